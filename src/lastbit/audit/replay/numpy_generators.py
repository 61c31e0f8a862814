"""numpy's generators: their methods are exchanged inside their types, and put back.

`Generator` and `RandomState` are types written in C, so their methods cannot be assigned. Their
dictionaries are reached through the garbage collector, as debuggers do, and the interpreter is told
that the type has changed. After every exchange it is checked that calls arrive, also of generators
that existed before; where they do not, recording refuses to start.

This module draws nothing: it reports what others draw. It never imports `numpy.random`; a program
that uses it has done so.
"""

from __future__ import annotations

import ctypes
import gc
import math
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from fractions import Fraction
from types import FunctionType, MappingProxyType, ModuleType
from typing import Any

import numpy as np
from flint import arb

from lastbit.audit.replay.primitives import spread_of
from lastbit.audit.replay.recorder import Call, Described, Hook, bound, hooked
from lastbit.audit.replay.taint import Spread, SpreadRule
from lastbit.errors import LastbitError
from lastbit.exact import arb_of, rational, upper, working_precision

_MODULE = "numpy.random"
_TYPES = ("Generator", "RandomState")
_CENTRED = MappingProxyType({"loc": 0.0, "scale": 1.0, "size": None})
_SCALED = MappingProxyType({"scale": 1.0, "size": None})
_STANDARD: Mapping[str, Any] = MappingProxyType({"size": None, "dtype": None, "out": None})
_NOISE: Mapping[str, tuple[str, Mapping[str, Any]]] = MappingProxyType(
    {
        "laplace": ("laplace", _CENTRED),
        "logistic": ("laplace", _CENTRED),
        "normal": ("gaussian", _CENTRED),
        "gumbel": ("unknown", _CENTRED),
        "exponential": ("one-sided", _SCALED),
        "standard_exponential": ("one-sided", _STANDARD),
        "standard_normal": ("gaussian", _STANDARD),
        "standard_cauchy": ("laplace", _STANDARD),
        "geometric": ("one-sided", MappingProxyType({"p": None, "size": None})),
    }
)
# arguments that say how many coins there are, or what is chosen from: no part of their law
_COUNTS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {"choice": ("a", "size"), "rand": ("d0", "d1", "d2")}
    | dict.fromkeys(("permutation", "permuted", "shuffle"), ("x",))
    | dict.fromkeys(("random", "random_sample"), ("size",))
)
_SILENT = frozenset({"seed", "get_state", "set_state", "bit_generator", "spawn"})


def numpy_noise_loaded() -> bool:
    """Whether the process has numpy's generators at all."""
    return _MODULE in sys.modules


@contextmanager
def hook_numpy(hook: Hook) -> Iterator[None]:
    """Lead every draw of every numpy generator, old or new, to the hook."""
    module = sys.modules.get(_MODULE)
    with ExitStack() as stack:
        if module is not None:
            for name in _TYPES:
                stack.enter_context(_methods(getattr(module, name), hook))
            stack.enter_context(_legacy_functions(module))
        yield


@contextmanager
def _methods(kind: type, hook: Hook) -> Iterator[None]:
    entries: dict[str, Any] = gc.get_referents(kind.__dict__)[0]
    originals = {
        name: method
        for name, method in entries.items()
        if not name.startswith("_") and name not in _SILENT and callable(method)
    }
    try:
        for name, method in originals.items():
            entries[name] = _leading(method, _describing(name), hook)
        _changed(kind)
        if any(getattr(kind, name) is not entries[name] for name in originals):
            raise LastbitError("this interpreter hides the methods of numpy's generators")
        yield
    finally:
        entries.update(originals)
        _changed(kind)


def _changed(kind: type) -> None:
    """Tell the interpreter, which remembers where it found methods."""
    ctypes.pythonapi.PyType_Modified(ctypes.py_object(kind))


def _leading(method: Callable[..., Any], describe: Described, hook: Hook) -> Callable[..., Any]:
    def hooked_method(*args: Any, **named: Any) -> Any:
        return hook.called(method, describe, args, named)

    return hooked_method


@contextmanager
def _legacy_functions(module: ModuleType) -> Iterator[None]:
    """`np.random.laplace` and its like: methods bound when numpy was loaded, under many names."""
    ours = getattr(module, "mtrand", None), module
    bound_methods: dict[int, tuple[str, Any]] = {}
    for place in filter(None, ours):
        for name, value in vars(place).items():
            if type(getattr(value, "__self__", None)).__name__ == "RandomState":
                bound_methods[id(value)] = (getattr(value, "__name__", name), value)
    undo: list[tuple[dict[str, Any], str, Any]] = []
    try:
        for holder in list(sys.modules.values()):
            names: Any = getattr(holder, "__dict__", None)
            for name, value in list(names.items()) if isinstance(names, dict) else ():
                found = bound_methods.get(id(value))
                if found is None or found[0] in _SILENT or not hasattr(value, "__self__"):
                    continue
                undo.append((names, name, value))
                names[name] = getattr(value.__self__, found[0])
        yield
    finally:
        for names, name, value in undo:
            names[name] = value


# ---------------------------------------------------------------- what a call means


class _Coins:
    """The state of a generator: with it the same coins fall again, for whatever input."""

    __slots__ = ("_generator",)

    def __init__(self, generator: Any) -> None:
        self._generator = generator

    def state(self) -> Any:
        bits = getattr(self._generator, "bit_generator", None)
        return bits.state if bits is not None else self._generator.get_state()

    def restore(self, state: Any) -> None:
        bits = getattr(self._generator, "bit_generator", None)
        if bits is not None:
            bits.state = state
        else:
            self._generator.set_state(state)


def _describing(name: str) -> Described:
    noise = _NOISE.get(name)

    def describe(args: tuple[Any, ...], named: dict[str, Any]) -> Call:
        if name == "randn":
            return _drawn("numpy randn", "gaussian", {"size": args[1:] or None})
        given = None if noise is None else bound({"self": None, **noise[1]}, args, named)
        if noise is None or given is None or given.get("out") is not None:
            return _tossed(name, args, named)
        del given["self"]
        return _drawn(f"numpy {name}", noise[0], given)

    return describe


def _tossed(name: str, args: tuple[Any, ...], named: dict[str, Any]) -> Call:
    """Coins: `value` says how many, `parameters` all that shapes their law."""
    names = _COUNTS.get(name, ("size",))
    places = names if name in _COUNTS else ()
    counts = {**dict(zip(places, args[1:], strict=False)), **named}
    law = {key: value for key, value in named.items() if key not in names}
    return Call(
        kind=f"numpy {name}",
        # of a pool its length: the same coins choose the same places of it
        value=[
            len(count) if hasattr(count, "__len__") and not isinstance(count, tuple) else count
            for count in (counts[key] for key in names if key in counts)
        ],
        parameters=(args[1 + len(places) :], law),
        coins=_Coins(args[0]),
    )


def _drawn(kind: str, law: str, given: dict[str, Any]) -> Call:
    """Noise of a law: about its centre, if that is not 0, else tracked."""
    centre, scale, size = given.pop("loc", 0), given.get("scale", 1), given.get("size")
    try:
        shapes = np.shape(centre), np.shape(scale), () if size is None else size
        shape = np.broadcast_shapes(*shapes)
    except (TypeError, ValueError):
        shape = ()  # numpy itself will refuse it
    wide = np.broadcast_to(scale, shape) if np.ndim(scale) else scale
    spread = _geometric(given["p"]) if "p" in given else spread_of(law, wide)
    alone = not np.any(np.asarray(centre) != 0)
    return Call(
        kind=kind,
        value=centre,
        parameters=(*given.values(), shape),
        rule=SpreadRule(spread, shape),
        taint=spread if alone else None,
    )


def _geometric(p: Any) -> Spread:
    """One-sided, of scale -1/ln(1-p), rounded down."""
    try:
        chance = rational(p)
    except LastbitError:
        chance = Fraction(0)
    if not 0 < chance < 1:
        return Spread(law="unknown", scale=Fraction(0))
    with working_precision(128):
        rate = upper(-(arb(1) - arb_of(chance)).log())
    scale = 1 / Fraction(rate) if math.isfinite(rate) else Fraction(0)
    return Spread(law="one-sided", scale=scale, whole=True)


# ---------------------------------------------------------------- the standard library's generator


def library_state() -> Any:
    """Where the generator behind `random.random` stands; None if it is not loaded."""
    module = sys.modules.get("random")
    return None if module is None else module.getstate()


def set_library_state(state: Any) -> None:
    """Let it go on from there."""
    module = sys.modules.get("random")
    if module is not None and state is not None:
        module.setstate(state)


@contextmanager
def hook_random(hook: Hook) -> Iterator[None]:
    """`random.gauss` and its like, of every generator; uniforms are coins, by the state above."""
    module = sys.modules.get("random")
    with ExitStack() as stack:
        if module is not None:
            for name in ("gauss", "normalvariate"):
                function = module.Random.__dict__[name]
                if isinstance(function, FunctionType):
                    stack.enter_context(hooked(function, _library(name), hook))
        yield


def _library(name: str) -> Described:
    def describe(args: tuple[Any, ...], named: dict[str, Any]) -> Call:
        spelled = {{"mu": "loc", "sigma": "scale"}.get(key, key): v for key, v in named.items()}
        given = bound({"self": None, "loc": 0.0, "scale": 1.0}, args, spelled)
        del given["self"]
        return _drawn(f"random.{name}", "gaussian", given)

    return describe
