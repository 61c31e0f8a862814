"""Hooks on functions: their code is exchanged for a while, and always put back.

A Python function keeps its identity when its `__code__` is exchanged: names imported earlier, bound
methods and default arguments all lead to it, and so to the listener. Types written in C have no
such code; for them the entry in the type's own dictionary is exchanged (`numpy_generators.py`).

Hooks are seen by the whole process. Only calls made in the recording thread reach the listener;
those of other threads go through as if nothing had happened, and are counted.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from types import CodeType, FunctionType
from typing import Any, Protocol

from lastbit.errors import InvalidParameter

_HERE = "the hook of lastbit.audit"
_LISTENING = threading.Lock()


class Described(Protocol):
    """What a primitive makes of a call: see `tape.py`."""

    def __call__(self, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """The call's kind, input and parameters, or None if it is none of ours."""
        ...


class Listener(Protocol):
    """Receives every call, and answers it."""

    def on_call(
        self, original: Callable[..., Any], describe: Described, args: Any, named: Any
    ) -> Any:
        """What the caller gets."""
        ...


class Hook:
    """Where calls arrive: at one thread's listener, or past it."""

    __slots__ = ("_depth", "_thread", "elsewhere", "listener")

    def __init__(self) -> None:
        self.listener: Listener | None = None
        self.elsewhere = 0
        self._thread = threading.get_ident()
        self._depth = 0

    def called(
        self, original: Callable[..., Any], describe: Described, args: Any, named: Any
    ) -> Any:
        """Tell the listener, unless the call is part of one it was told of already."""
        if threading.get_ident() != self._thread:
            self.elsewhere += 1
            return original(*args, **named)
        if self.listener is None or self._depth:
            return original(*args, **named)
        self._depth += 1
        try:
            return self.listener.on_call(original, describe, args, named)
        finally:
            self._depth -= 1


class _Tap:
    """One exchanged function; a constant of the code it is exchanged for."""

    __slots__ = ("describe", "hook", "original")

    def __init__(self, original: FunctionType, describe: Described, hook: Hook) -> None:
        self.original = original
        self.describe = describe
        self.hook = hook


def dispatched(tap: Any, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
    """Where exchanged code leads."""
    return tap.hook.called(tap.original, tap.describe, args, named)


def _template(*args: Any, **named: Any) -> Any:
    # inside, since this code runs with the globals of the function that was exchanged
    from lastbit.audit.replay.hooks import dispatched

    return dispatched("the hook of lastbit.audit", args, named)


@contextmanager
def hooked(function: FunctionType, describe: Described, hook: Hook) -> Iterator[None]:
    """Lead every call of a function to the hook, inside the `with` block.

    >>> def double(x, *, times=2):
    ...     return times * x
    >>> class Loud:
    ...     def on_call(self, original, describe, args, named):
    ...         return original(*args, **named) + 1000
    >>> hook, alias = Hook(), double
    >>> hook.listener = Loud()
    >>> with hooked(double, lambda args, named: None, hook):
    ...     alias(21)
    1042
    >>> alias(21)
    42
    """
    code, defaults, named = function.__code__, function.__defaults__, function.__kwdefaults__
    if code.co_freevars:
        raise InvalidParameter(
            "function", problem="is a closure", remedy="decorate it with lastbit.audit.noise"
        )
    original = FunctionType(code, function.__globals__, function.__name__, defaults)
    original.__kwdefaults__ = named
    tap = _Tap(original, describe, hook)
    try:
        function.__code__ = _leading_to(tap, code)
        yield
    finally:
        function.__code__ = code
        function.__defaults__ = defaults
        function.__kwdefaults__ = named


def _leading_to(tap: _Tap, code: CodeType) -> CodeType:
    template = _template.__code__
    constants = tuple(tap if constant == _HERE else constant for constant in template.co_consts)
    return template.replace(co_consts=constants, co_name=code.co_name)


@contextmanager
def one_at_a_time() -> Iterator[ExitStack]:
    """A stack of exchanges, undone in reverse order whatever happens; never two in a process."""
    if not _LISTENING.acquire(blocking=False):
        raise InvalidParameter(
            "record", problem="is going on already", remedy="end the other `with` block first"
        )
    try:
        with ExitStack() as stack:
            yield stack
    finally:
        _LISTENING.release()
