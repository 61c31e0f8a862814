"""What runs: the very JSON that the independent checker accepted, read into rows, measures, steps.

Law      a `Program` is made of a certificate's text and a card. The text is parsed once; the
         checker is given what was parsed, and everything that runs is read from the same values.
         Of the card it takes where the data are and the types of columns; its name, unit, the
         way to it, neighbours and private tables must be those of the certificate
Theorem  a program exists only if the checker accepts its certificate. So running each step once, on
         measures that the engine computed as it says, costs no more than `cost` for one unit of
         this card more or less (or changed)
Proof    `__init__` asks first, and no call of a public name makes one otherwise; Python cannot keep
         code in this process from `__new__` and `object.__setattr__`, and the kernel's theorem
         says nothing of such code (`__init__.py`). The checker works the price out
         from query, measures, limits and parameters of noise; the fields below are those values,
         each read from the place that the checker looked at. That any max_rows and max_groups are
         private is `tables/measures.py`
Checked  tests/kernel/test_program.py, tests/kernel/test_malicious_plans.py
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from math import prod
from types import MappingProxyType
from typing import Any, Literal, TypeAlias

from lastbit.canonical import canonical_json
from lastbit.checker import Rejected, check_price
from lastbit.errors import InvalidParameter, NotCertified, WrongType
from lastbit.reading import NotJson, parse_json
from lastbit.sampling import MOST_SCALE, MOST_VARIANCE
from lastbit.tables import (
    Cost,
    DataCard,
    Marginal,
    Measure,
    PerUnit,
    Scan,
    check_parts,
    scan_fields,
)

_MOST_GROUPS = 1 << 20
_MOST_ENTRIES = 1 << 25


@dataclass(frozen=True, slots=True, kw_only=True)
class Noise:
    """Noise on every entry: discrete Laplace of this scale, or discrete Gaussian of this variance.

    `measure` None: of the entries that a step names itself.
    """

    measure: str | None
    mechanism: Literal["laplace", "gaussian"]
    parameter: Fraction


@dataclass(frozen=True, slots=True, kw_only=True)
class KeySelection:
    """Which undeclared keys are shown: those whose noisy number of units reaches the threshold.

    `single`: or whose noisy number of units with this key alone reaches a threshold of its own.
    """

    noise: Noise
    threshold: int
    single: tuple[Noise, int] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RankDraw:
    """One draw a group of the exponential mechanism over the bins of a measure."""

    aggregate: str
    role: str
    measure: str
    level: Fraction
    shift: int
    """The rank aimed at is level * (weight of the group) + shift, counted from the first end."""
    ends: tuple[int, int]
    """Public weights put before the first and behind the last bin, so that the rank exists."""
    candidates: int
    rate: Fraction


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeNoise:
    """Noise on every node of a tree over the bins of a measure."""

    noise: Noise
    branching: int
    levels: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PairDraws:
    """Draws of the exponential mechanism that decide which two-way tables are measured."""

    candidates: tuple[Marginal, ...]
    picks: int
    penalty: int
    rate: Fraction


Step: TypeAlias = Noise | KeySelection | RankDraw | TreeNoise | PairDraws


class Program:
    """A certificate that the checker accepted, read into what runs; it cannot be changed."""

    __slots__ = (
        "_sealed",
        "asked",
        "card",
        "cost",
        "engine",
        "gaussian_noise",
        "groups",
        "marginals",
        "measures",
        "plan_digest",
        "query_digest",
        "scan",
        "steps",
    )
    scan: Scan
    card: DataCard
    """The steward's, with the limits on rows and groups of the certificate."""
    measures: tuple[Measure, ...]
    steps: tuple[Step, ...]
    marginals: tuple[Marginal, ...] | None
    """The tables of counts that are always measured; None for an ordinary question."""
    groups: int | None
    cost: Cost
    gaussian_noise: bool
    """Whether all that is paid for is discrete Gaussian noise."""
    asked: str
    """The question and the price that was asked, as JSON: all that tells questions apart."""
    engine: Mapping[str, Any]
    """What the certificate says of the engine."""
    query_digest: str
    plan_digest: str

    def __init__(self, certificate: str, card: DataCard) -> None:
        if type(card) is not DataCard or not isinstance(certificate, str):
            raise WrongType("certificate", problem="is no text", remedy="pass text and a DataCard")
        kind, body = _accepted(certificate)
        query, plan = body["query"], body["plan"]
        _check_card(plan, query, card)
        self.query_digest = plan["query"]
        self.engine = MappingProxyType(dict(body.get("engine", {})))
        self.asked = canonical_json({**plan["asked"], "query": query})
        self.plan_digest = body["plan_digest"]
        self.scan = Scan(**scan_fields(query))
        self.card = replace(card, max_rows=plan["max_rows"], max_groups=plan["max_groups"])
        self.measures = tuple(map(Measure.from_json, plan["measures"]))
        self.groups = self.scan.groups
        names = [key.name for key in self.scan.keys]
        self.steps = tuple(_step(part, names) for part in plan["parts"])
        self.marginals = None
        if kind == "marginals":
            self.marginals = tuple(_places(one, names) for one in plan["marginals"])
        self.cost = Cost.from_json(plan["cost"])
        self.gaussian_noise = all(
            isinstance(step, Noise) and step.mechanism == "gaussian" for step in self.steps
        )
        edges = [part["edges"] for part in query["aggregates"] if part["edges"] is not None]
        _check_size(self, edges)
        object.__setattr__(self, "_sealed", True)

    def __setattr__(self, name: str, value: object) -> None:
        if hasattr(self, "_sealed"):
            raise AttributeError("a program cannot be changed")
        object.__setattr__(self, name, value)

    def __reduce__(self) -> Any:
        raise TypeError("a program is made of a certificate, wherever it runs")


def _accepted(text: str) -> tuple[str, Mapping[str, Any]]:
    """The kind and the body of the certificate in a text, if the checker accepts its price."""
    problem = "is no certificate of an answer"
    try:
        found = parse_json(text)
        if isinstance(found, Mapping) and found.get("kind") in ("release", "marginals"):
            check_price(found["kind"], found.get("claim", ()), found.get("body", ()))
            return found["kind"], found["body"]
    except NotJson as error:
        problem = str(error)
    except Rejected as error:
        problem = f"is rejected by the independent checker: {error}"
    raise NotCertified(f"the plan {problem}; nothing was charged; plan the question again")


def _check_card(plan: Mapping[str, Any], query: Mapping[str, Any], card: DataCard) -> None:
    """That the certificate is about this card's table, unit, neighbours and private tables."""
    joins = [*query["joins"], *query.get("per_unit", {"joins": ()})["joins"]]
    joined = {name: card.private.get(name) for name in (join.get("table", "") for join in joins)}
    private = {
        name: {"unit": table.column(table.unit).name, "max_rows": table.max_rows}
        for name, table in joined.items()
        if table is not None
    }
    ours = (card.name, card.unit, card.neighbours.relation, private, card.way())
    said = (plan["table"], plan["unit"], plan["neighbours"], plan.get("private", {}))
    if (*said, plan.get("through", [])) != ours:
        problem, remedy = "is about another table or unit", "plan the question by this card"
        raise InvalidParameter("certificate", problem=problem, remedy=remedy)


def _step(part: Mapping[str, Any], keys: list[str]) -> Step:
    """One mechanism, with the numbers that the checker has seen."""
    match part["part"]:
        case "noise":
            return _noise(part)
        case "tree":
            return TreeNoise(noise=_noise(part), branching=part["branching"], levels=part["levels"])
        case "keys":
            apart = part.get("single")
            return KeySelection(
                noise=_noise(part),
                threshold=part["threshold"],
                single=None if apart is None else (_noise(apart), apart["threshold"]),
            )
        case "rank":
            first, last = part["ends"]
            return RankDraw(
                aggregate=part["aggregate"],
                role=part["role"],
                measure=part["measure"],
                level=Fraction(part["level"]),
                shift=int(part["shift"]),
                ends=(int(first), int(last)),
                candidates=part["candidates"],
                rate=Fraction(part["rate"]),
            )
        case "choice":
            return PairDraws(
                candidates=tuple(_places(one, keys) for one in part["candidates"]),
                picks=part["picks"],
                penalty=int(part["penalty"]),
                rate=Fraction(part["rate"]),
            )
    raise NotCertified("the plan has a part that is not known here; plan the question again")


def _noise(part: Mapping[str, Any]) -> Noise:
    """Gaussian noise if there is a variance, and Laplace noise if there is a scale.

    What the sampler does not draw, or the books do not keep, is refused: it would be charged, and
    never be answered.
    """
    gaussian = "variance" in part
    parameter = Fraction(part["variance" if gaussian else "scale"])
    if parameter > (MOST_VARIANCE if gaussian else MOST_SCALE):
        problem, remedy = "is of a scale above 2**512", "ask at a higher price, or in larger steps"
        raise InvalidParameter("noise", problem=problem, remedy=remedy)
    mechanism: Any = "gaussian" if gaussian else "laplace"
    return Noise(measure=part.get("measure"), mechanism=mechanism, parameter=parameter)


def _places(names: list[str], keys: list[str]) -> Marginal:
    return tuple(keys.index(name) for name in names)


def scanned_marginals(program: Program) -> tuple[Marginal, ...]:
    """The marginals that are counted: all that are released, or could be."""
    draws = [step.candidates for step in program.steps if isinstance(step, PairDraws)]
    return (*(program.marginals or ()), *(one for candidates in draws for one in candidates))


def _check_size(program: Program, edges: list[list[str]]) -> None:
    """That what is computed and noised fits into memory, whoever planned it."""
    groups = program.groups or 1
    if program.marginals is not None:
        tables = scanned_marginals(program)
        sizes = [len(key.values or ()) for key in program.scan.keys]
        groups = sum(prod(sizes[place] for place in one) for one in tables)
        if any((place,) not in program.marginals for one in tables for place in one):
            raise NotCertified("the plan measures pairs without their columns; plan it again")
    bins = sum(len(measure.edges) for measure in program.measures if measure.kind == "bins")
    scan, measures = program.scan, program.measures
    inner = PerUnit() if scan.per_unit is None else scan.per_unit
    values = [measure.expression for measure in measures if measure.expression is not None]
    check_parts(
        keys=len(scan.keys) + len(inner.keys),
        joins=len(scan.all_joins),
        names=[*(key.name for key in scan.keys), *inner.names],
        aggregates=len(measures) + len(inner.columns),
        edges=edges,
        expressions=[*scan.expressions(), *values],
    )
    if groups > _MOST_GROUPS or groups * bins > _MOST_ENTRIES:
        problem = f"has more than {_MOST_GROUPS} groups, or {_MOST_ENTRIES} bins in all of them"
        raise InvalidParameter("query", problem=problem, remedy="ask for fewer groups")
