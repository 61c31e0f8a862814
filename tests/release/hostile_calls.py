"""Calls of the public interface that nobody should make, made at random from a seed.

A target is a public function or class of `lastbit.__all__`, a method of what they give, or looking
for a name that is not there. Its call is a valid one in which one or two arguments are replaced:
by the wrong type, NaN, infinities, what is negative, huge, empty, missing, or by an unknown name.
"""

from __future__ import annotations

import inspect
import random
import re
import traceback
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy
import pandas

import lastbit as lb
from lastbit.errors import InvalidParameter, LastbitError
from lastbit.ledger import Ledger
from lastbit.tables import parsed, planned, read_card

HOSTILE: tuple[Any, ...] = (
    *(None, True, False, 0, -1, -7, 1, 3, 2**63, -(2**63) - 1, 10**400, -(10**400)),
    *(0.5, -0.5, 1e308, 5e-324, float("nan"), float("inf"), -float("inf")),
    *(Decimal("NaN"), Decimal("Infinity"), Decimal("1e-9"), Fraction(-1, 3), Fraction(1, 10**300)),
    *("", " ", "x", "cost", "reigon", "nan", "inf", "1/0", "1e999999", "-1", "balanced", "auto"),
    *("a\0b", "\ud800", "é" * 300, "9" * 5000, "((((", "cost >", "SELECT", "; DROP TABLE visits"),
    *(b"cost", bytearray(b"x"), 1j, Ellipsis, NotImplemented),
    *((), (1,), (1, 2), (2, 1), (float("nan"), 1), (None, None), ("a", "b"), (1, 2, 3)),
    *([], [1], ["cost"], ["nope"], [None], [[]], [float("nan")], ["a", "a"], [10**400], [{}]),
    *({}, {"cost": 1}, {"cost": "number"}, {1: 2}, {"nope": ["a"]}, {"cost": None}, {(): []}),
    *({"region": 5}, {"region": []}, {"region": [[]]}, {None: None}, {"": ""}, {"n": -1}),
    *(set(), {1, 2}, frozenset({"cost"}), range(3), range(0), slice(1, 2), object(), int, str),
    *(numpy.float64("nan"), numpy.int64(3), numpy.array([1.5, 2.5]), numpy.array(["a"])),
    *(numpy.array([]), numpy.array([[1, 2], [3, 4]]), numpy.bool_(True), numpy.array(None)),
    *(date(2026, 1, 1), datetime(2026, 1, 1, tzinfo=UTC), Path("nowhere"), Path()),
    *(pandas.DataFrame({"cost": [1.5]}), pandas.Series([1, 2]), pandas.NaT, pandas.NA),
    *(lb.count(), lb.mean("cost", 0, 1), lb.PureDP(1), lb.Budget(epsilon=1), lb.CHANGE_ONE),
    *(lb.Column(name="cost", type="number"), ValueError("x"), type("Empty", (), {})()),
)
"""Values that fit nowhere, or in one place only. Iterators are made anew for each call."""

GOOD: Mapping[str, Any] = {
    **dict(epsilon=1, delta="1e-6", sensitivity=1, level="1/2", lower=0, upper=9, bound=8),
    **dict(cell="1/4", half_width=4, norm=1, dimension=2, keys_per_person=1, threshold=3),
    **dict(keys=["a", "b"], variance=4, scale=2, mu_squared=1, rate="1/2", categories=3, alpha=2),
    **dict(p="1/2", gamma=1, weights=[1, 2], exponents=[1, 2], n=5, law="laplace"),
    **dict(expression="cost", x="cost", y="ward", points=[1, 2], levels=["1/4", "1/2"]),
    **dict(edges=[0, 5, 9], statistic="median", data=[1.0, 2.0, 3.0], beta="0.1", total=3),
    **dict(kind="pure", relation="add-remove", type="number", name="cost", condition="cost > 1"),
    **dict(columns=["region"], public="regions", text="SELECT count(*) AS n FROM visits"),
    **dict(outcomes=[("1/2", "1/3"), ("1/2", "2/3")], guarantees=[lb.PureDP(1)], prior="1/2"),
    **dict(guarantee=lb.PureDP(1), bounds=[2], grid="1/4", column="cost", most=3, value=1),
    **dict(scores=[1, 2], distance=1, which=0, title="Visits", value_or_rows=1, names="n"),
    **dict(draw=lb.geometric, parts=[(lb.LaplaceLoss(1), 2)], account="visits", sequence=1),
    **dict(neighbours=lb.ADD_REMOVE, count=3, max_rows=2, words="a note", by="me", role="analyst"),
    **dict(principal="me", last=3, up_to=2, per=1, unit="record", standard_deviation=2),
}


@dataclass(frozen=True, slots=True)
class Target:
    """What is called, and by which arguments it works."""

    name: str
    call: Callable[..., Any]
    fitting: Mapping[str, Any] = field(default_factory=dict)


_ROWS: Mapping[str, list[Any]] = {
    "patient": [i // 3 for i in range(90)],
    "region": [("south", "north")[i % 2] for i in range(90)],
    "ward": [i % 7 for i in range(90)],
    "cost": [float(i % 9) for i in range(90)],
    "old": [i % 2 == 0 for i in range(90)],
}


def world(folder: Path) -> dict[str, Any]:
    """What calls may start from: tables, answers, a ledger in this folder."""
    rows: Any = pandas.DataFrame(_ROWS)
    regions = pandas.DataFrame({"region": ["north", "south"], "climate": ["cold", "warm"]})
    keyed = {"region": ["north", "south"], "old": [True, False]}
    options: Any = dict(unit="patient", max_rows=3, keys=keyed, name="visits")
    columns = {"cost": lb.Column(name="cost", type="number", bounds=(0, 9))}
    visits = lb.table(
        rows, **options, columns=columns, public={"regions": regions}, budget=lb.Budget(epsilon=50)
    )
    place = folder / "visits.ledger"
    question = visits.group_by("region").agg(n=lb.count(), cost=lb.mean("cost"))
    answer = question.release(epsilon=1, ledger=place)
    marginals = visits.marginals(["region", "old"])
    workload = lb.workload([visits.agg(n=lb.count()), question])
    ledger = Ledger.open(place)
    return {
        "rows": rows,
        "visits": visits,
        "by region": visits.group_by("region"),
        "question": question,
        "plan": question.plan(epsilon=1),
        "answer": answer,
        "row": answer[0],
        "marginals question": marginals,
        "marginals": marginals.release(epsilon=1, ledger=place),
        "workload": workload,
        "workload plan": workload.plan(epsilon=1),
        "profile": lb.table(rows, unit="patient", name="bare").profile(epsilon=1),
        "ledger": ledger,
        "card": visits.card,
        "column": visits.card.column("cost"),
        "query": question.query,
    }


STABILITY = lb.distance_to_instability("mode", [1, 1, 1, 2], neighbours=lb.CHANGE_ONE)

AFTER_PAYING = ("suggest_bounds",)
"""What may refuse after an answer that is paid and on record: it can be told from noise, or not."""

RELEASED: Mapping[str, Mapping[str, Any]] = {
    "Histogram.release": {"counts": {"a": 1, "b": 2}},
    "ThresholdedHistogram.release": {"counts": {"a": 9}},
    "AboveThreshold.release": {"values": [1, 5]},
    "ProposeTestRelease.release": {
        "proposal": lb.propose("median", [1.0, 2.0, 3.0], bounds=[2], lower=0, upper=9)
    },
    "StableValue.release": {"stability": STABILITY},
    "RandomizedResponse.release": {"value": 1},
}

FITTING: Mapping[str, Mapping[str, Any]] = {
    "Gaussian": {"sensitivity": 1, "epsilon": 1, "delta": "1e-6"},
    "NormLaplace": {"sensitivity": 1, "norm": "L2", "dimension": 2, "epsilon": 1},
    "PolarLaplace": {"epsilon": 1, "cell": "1/64", "half_width": 4},
    **{
        name: {"sensitivity": 1, "epsilon": 1}
        for name in ("Laplace", "Exponential", "PermuteAndFlip", "ReportNoisyMax")
    },
    "Histogram": {"keys": ["a", "b"], "keys_per_person": 1, "epsilon": 1},
    "FiniteLoss": {"outcomes": [("1/2", "1/3"), ("1/2", "2/3")]},
    "Poll": {"epsilon": 1},
    "ProposeTestRelease": {"epsilon": 1, "delta": "1e-3", "bound": 1},
    "RandomizedResponse": {"epsilon": 1},
    "RoundedLaplace": {"sensitivity": 1, "epsilon": 1, "cell": "1/4", "bound": 8},
    "SmoothNoise": {"epsilon": 1, "grid": "1/1024"},
    "Snapping": {"bound": 8, "epsilon": 1},
    "AboveThreshold": {"threshold": 3, "epsilon": 1},
    "Profile": {"parts": [(lb.LaplaceLoss(1), 2)]},
    "ThresholdedHistogram": {"keys_per_person": 1, "epsilon": 1, "delta": "1e-3"},
    "ThresholdLoss": {"scale": 2, "threshold": 30, "keys": 1},
    "calibrated": {"kind": lb.GaussianLoss, "epsilon": 1, "delta": "1e-6"},
    "Column": {"name": "cost", "type": "number", "bounds": (0, 9)},
    "Budget": {"epsilon": 1},
    "discrete_gaussian": {"variance": 4},
    "distance_to_instability": {"kind": "mode", "data": [1, 1, 2], "neighbours": lb.CHANGE_ONE},
    "global_sensitivity": {"statistic": "median", "neighbours": lb.CHANGE_ONE, "lower": 0,
                           "upper": 9, "count": 3},
    "local_sensitivity": {"statistic": "median", "data": [1.0, 2.0, 3.0], "lower": 0, "upper": 9},
    "smooth_sensitivity": {"statistic": "median", "data": [1.0, 2.0], "beta": "0.1", "lower": 0,
                           "upper": 9},
    "propose": {"statistic": "median", "data": [1.0, 2.0, 3.0], "bounds": [2], "lower": 0,
                "upper": 9},
    **{f"private_{name}": {"data": [1.0, 2.0, 3.0], "epsilon": 1, "lower": 0, "upper": 9}
       for name in ("median", "variance", "trimmed_mean")},
    "private_quantile": {"data": [1.0, 2.0], "level": "1/2", "epsilon": 1, "lower": 0, "upper": 9},
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Call:
    """One call, made once: its target, and what stands in it."""

    target: Target
    given: tuple[Any, ...]
    named: Mapping[str, Any]

    def __str__(self) -> str:
        shown = [*map(_short, self.given), *(f"{n}={_short(v)}" for n, v in self.named.items())]
        return f"{self.target.name}({', '.join(shown)})"


def _short(value: Any) -> str:
    return repr(value)[:60].replace("\n", " ")


def targets(world: Mapping[str, Any]) -> list[Target]:
    """All that is called: public functions and classes, and the methods of what they give."""
    found: list[Target] = []
    rows, visits = world["rows"], world["visits"]
    fitting: Mapping[str, Mapping[str, Any]] = {
        **FITTING,
        "table": {"source": rows, "unit": "patient", "max_rows": 3, "name": "visits"},
        **{name: {"table": visits, "epsilon": 1} for name in ("suggest_max_rows", "synthetic")},
        "suggest_bounds": {"table": visits, "column": "ward", "epsilon": 1},
    }
    for name in lb.__all__:
        value = getattr(lb, name)
        if inspect.isclass(value) or inspect.isfunction(value):
            found.append(Target(name, value, fitting.get(name, {})))
        if inspect.isclass(value):
            built = value(**_fitting(found[-1]))
            found += methods(name, built)
    for name, value in world.items():
        found += [] if value is rows else methods(name, value)
    card, query = world["card"], world["query"]

    def statement(text: Any) -> Any:
        return parsed(text, card)

    def step(name: Any) -> Any:
        return getattr(visits, name) if isinstance(name, str) else None

    found += [
        Target("planned", planned, {"card": card, "query": query}),
        Target("parsed", statement),
        Target("read_card", read_card),
        Target("Ledger.open", Ledger.open),
        Target("step", step),
    ]
    return [_paying(one, world["ledger"]) for one in found if one.name not in NOT_CALLED]


NOT_CALLED = {
    *("directions", "by_card", "with_bounds", "query.from_json"),
    *("draw", "drawn", "settle", "is_at", "existing", "reserve"),
    *("upgrade", "init"),
    "stream",
}
"""What other modules call with what they made, as the kernel does with reservations; what makes
ledgers; and `stream`, which calls what it is given later."""


def _paying(target: Target, ledger: Ledger) -> Target:
    """The same, where it pays, at a small price to this ledger."""
    parameters = inspect.signature(target.call).parameters
    if "ledger" not in parameters:
        return target
    price = {"ledger": ledger, "epsilon": "1/1000"}
    return replace(target, fitting={**target.fitting, **price})


def methods(owner: str, value: Any) -> Iterator[Target]:
    """The public methods of an object, and what stands in brackets behind it."""
    for name in dir(type(value)):
        static = inspect.getattr_static(type(value), name)
        plain = inspect.isfunction(static) or isinstance(static, staticmethod | classmethod)
        if (
            {name, f"{owner}.{name}"} & NOT_CALLED
            or not plain
            or (name.startswith("_") and name != "__getitem__")
        ):
            continue
        fitting = RELEASED.get(f"{owner}.{name}", {})
        yield Target(f"{owner}.{name}", getattr(value, name), fitting)


def _fitting(target: Target) -> dict[str, Any]:
    """Arguments by which a target works: those that it must have."""
    parameters = inspect.signature(target.call).parameters
    keywords = any(one.kind is one.VAR_KEYWORD for one in parameters.values())
    named = {}
    for name, one in parameters.items():
        if one.default is one.empty and one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD):
            named[name] = GOOD.get(name, 1)
    own = target.fitting.items()
    return named | {name: value for name, value in own if keywords or name in parameters}


def hostile_call(target: Target, draw: random.Random, world: Mapping[str, Any]) -> Call:
    """A call with one or two arguments that do not fit; or too few, or unknown ones."""
    parameters = inspect.signature(target.call).parameters
    named, given = _fitting(target), list[Any]()
    names = [n for n, p in parameters.items() if p.kind is not p.VAR_POSITIONAL]
    several = [n for n, p in parameters.items() if p.kind is p.VAR_POSITIONAL]
    for _ in range(draw.choice((1, 1, 1, 2))):
        where = draw.choice([*names, *several] or ["nothing"])
        value = _hostile(draw, world)
        if where == "nothing" or draw.random() < 0.04:
            named["no_such_name"] = value
        elif where in several:
            given.append(value)
        elif parameters[where].kind is parameters[where].VAR_KEYWORD:
            named[draw.choice(("epsilon", "rho", "n", "cost", "delta"))] = value
        else:
            named[where] = value
    if named and draw.random() < 0.03:
        del named[draw.choice(list(named))]
    for name, one in parameters.items():  # what stands before * has no name there
        before = one.kind is one.POSITIONAL_OR_KEYWORD and bool(several) and name == names[0]
        if name in named and (before or one.kind is one.POSITIONAL_ONLY):
            given.insert(0, named.pop(name))
    return Call(target, tuple(given), named)


def calls(world: Mapping[str, Any], *, seed: int, number: int) -> Iterator[Call]:
    """So many calls, each target about as often as any other."""
    draw, every = random.Random(seed), targets(world)
    left: list[Target] = []
    for _ in range(number):
        if not left:
            left = draw.sample(every, len(every))
        yield hostile_call(left.pop(), draw, world)


def _hostile(draw: random.Random, world: Mapping[str, Any]) -> Any:
    if draw.random() < 0.1:
        return world[draw.choice(list(world))]
    if draw.random() < 0.04:
        return iter([1, "cost"])
    return draw.choice(HOSTILE)


def refusal(call: Call) -> Exception | None:
    """What a call raises; None where it answers."""
    try:
        result = call.target.call(*call.given, **call.named)
        if inspect.isgenerator(result):
            list(result)
        repr(result)
    except Exception as error:
        return error
    return None


def problem_with(error: Exception, call: Call) -> str | None:
    """What is wrong with an error that a call raises; None if it is one of ours, with a remedy."""
    if isinstance(error, LastbitError):
        return wrong_words(error)
    if isinstance(error, TypeError) and is_about_signature(error, call):
        return None
    if isinstance(error, IndexError) and call.target.name.endswith("__getitem__"):
        return None  # a row beyond the last one, as of a list
    return raw(error)


def wrong_words(error: LastbitError) -> str | None:
    """What is missing in the words of an error of ours."""
    if isinstance(error, InvalidParameter) and not (error.problem and error.remedy):
        return f"no problem or remedy: {error!r}"
    return None if str(error).strip() else f"no words: {error!r}"


def is_about_signature(error: TypeError, call: Call) -> bool:
    """Whether Python itself says which argument is unknown, or missing, of a public function.

    Options that a function hands on are refused where they arrive, one call further: then the text
    must name one that the caller has given, or has not.
    """
    text, depth = str(error), len(traceback.extract_tb(error.__traceback__))
    names = set(re.findall(r"'(\w+)'", text))
    if "unexpected keyword argument" in text:
        return bool(names & set(call.named))
    if "missing" in text and "argument" in text:
        return depth <= 2 and not names & set(call.named)
    return depth == 1 and "positional argument" in text


def raw(error: Exception) -> str:
    """An error of Python, and where it comes from."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    place = f"{'/'.join(Path(last.filename).parts[-2:])}:{last.lineno}"
    return f"{type(error).__name__}: {str(error)[:90]} at {place}"
