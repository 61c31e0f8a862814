"""What is promised: frozen values with exact parameters."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field, fields, replace
from fractions import Fraction
from html import escape
from typing import Any, ClassVar, Self, TypeAlias, TypeVar, cast

from lastbit.errors import IncompatibleGuarantees, InvalidParameter, LastbitError, WrongType
from lastbit.exact import Number, nonnegative, probability, rational, shown, whole
from lastbit.privacy.neighbours import AS_DECLARED, Neighbours, check_neighbours
from lastbit.reading import parse_json

Loss: TypeAlias = Fraction | float
"""A privacy loss: an exact rational, or `math.inf` where nothing is promised."""

# Python itself writes integers of at most 4300 digits.
MOST_BITS = 14_000

Other = TypeVar("Other", bound="_Guarantee")


def plus(one: Loss, other: Loss) -> Loss:
    """The sum of two losses; infinity swallows every number, also one beyond all floats."""
    if isinstance(one, float) or isinstance(other, float):
        return math.inf
    return one + other


def times(factor: Loss, loss: Loss) -> Loss:
    """A loss times a factor; nothing times infinity is nothing."""
    if factor == 0 or loss == 0:
        return Fraction(0)
    if isinstance(factor, float) or isinstance(loss, float):
        return math.inf
    return factor * loss


def loss_parameter(value: object, name: str = "epsilon") -> Loss:
    """An exact loss from 0 up; infinity means that nothing is promised."""
    if isinstance(value, float) and value == math.inf:
        return math.inf
    return _writable(nonnegative(value, name), name)


def _writable(number: Fraction, name: str) -> Fraction:
    """A guarantee is written down, in JSON and on paper: its numbers must be short enough."""
    if max(number.numerator.bit_length(), number.denominator.bit_length()) > MOST_BITS:
        raise InvalidParameter(
            name, problem="has thousands of digits", remedy="round it up to a shorter number"
        )
    return number


def _set(guarantee: object, **parameters: object) -> None:
    check_neighbours(parameters["neighbours"])
    for name, value in parameters.items():
        object.__setattr__(guarantee, name, value)


def _delta(value: object) -> Fraction:
    return probability(_writable(rational(value, "delta"), "delta"), "delta")


@dataclass(frozen=True, slots=True)
class _Guarantee:
    """What all guarantees share; each rule itself stands in the file of its kind of reasoning."""

    symbols: ClassVar[dict[str, str]]
    neighbours: Neighbours = field(default=AS_DECLARED, kw_only=True)

    def __add__(self, other: Any) -> Self:
        """Basic composition; both sides must be of one kind and one neighbour relation."""
        from lastbit.privacy.compose import added

        return added(cast(Any, self), other)  # type: ignore[no-any-return]

    def __radd__(self, other: object) -> Self:
        if other == 0:  # so that sum() works
            return self
        return NotImplemented

    def group(self, size: int) -> Any:
        """What is promised to a group of this many units."""
        from lastbit.privacy.convert import grouped

        return grouped(cast(Any, self), whole(size, "size", least=1))

    def to(self, kind: type[Other], **parameters: object) -> Other:
        """The same promise as another kind, rounded up: see `privacy/convert.py`."""
        from lastbit.privacy.convert import converted

        return converted(cast(Any, self), kind, **parameters)

    def implies(self, other: Any) -> bool:
        """Whether this promise proves the other one, by the conversions known here."""
        from lastbit.privacy.convert import implies

        return implies(cast(Any, self), other)

    def post_processed(self) -> Any:
        """What remains promised after any processing of the output."""
        return self

    def under(self, neighbours: Neighbours) -> Self:
        """The same numbers, said of a named relation: the caller's declaration, not a proof."""
        if self.neighbours.relation != AS_DECLARED.relation:
            raise IncompatibleGuarantees(
                f"this guarantee is already about {self.neighbours}; "
                "use changed_one() to go from add-remove to change-one"
            )
        return replace(self, neighbours=neighbours)

    def changed_one(self) -> Any:
        """From add-remove to change-one: a change is one removal and one addition, a group of 2."""
        neighbours = self.neighbours
        if neighbours.relation != "add-remove":
            raise IncompatibleGuarantees(
                f"this guarantee is about {neighbours}, not about one more or less"
            )
        return replace(self.group(2), neighbours=Neighbours("change-one", neighbours.unit))

    def to_json(self) -> str:
        """JSON with exact parameters; `from_json` reads it back."""
        return json.dumps(self.to_dict(), ensure_ascii=False)

    def to_dict(self) -> dict[str, object]:
        """The same as a dictionary of strings."""
        values: dict[str, object] = {"kind": type(self).__name__}
        for name, value in self._parameters():
            values[name] = str(value)
        neighbours = self.neighbours
        values["neighbours"] = {"relation": neighbours.relation, "unit": neighbours.unit}
        return values

    def _parameters(self) -> list[tuple[str, Any]]:
        return [(f.name, getattr(self, f.name)) for f in fields(self) if f.name != "neighbours"]

    def __repr__(self) -> str:
        inside = [f"{name}={_literal(value)}" for name, value in self._parameters()]
        neighbours = self.neighbours
        if neighbours != AS_DECLARED:
            inside.append(f"neighbours={neighbours!r}")
        return f"{type(self).__name__}({', '.join(inside)})"

    def __str__(self) -> str:
        inside = ", ".join(f"{symbol} = {value}" for symbol, value in self._symbols())
        return f"{self._title()}: {inside}"

    def _repr_html_(self) -> str:
        pairs = [*self._symbols(), ("neighbours", str(self.neighbours))]
        rows = "".join(f"<tr><td>{name}</td><td>{escape(value)}</td></tr>" for name, value in pairs)
        return f"<table><caption>{self._title()}</caption>{rows}</table>"

    def _title(self) -> str:
        return (type(self).__doc__ or "").splitlines()[0].rstrip(".")

    def _symbols(self) -> list[tuple[str, str]]:
        """The parameters that people know by a symbol, with their values in full."""
        return [
            (self.symbols[name], _literal(value).strip("'"))
            for name, value in self._parameters()
            if name in self.symbols
        ]


def _literal(value: object) -> str:
    return shown(value) if isinstance(value, Fraction) else repr(value)


@dataclass(frozen=True, slots=True, repr=False, init=False)
class PureDP(_Guarantee):
    """Pure differential privacy.

    P[M(x) in S] <= exp(epsilon) P[M(y) in S] for neighbours x, y and every S (paper 003 Def. 1).

    >>> PureDP("0.1") + PureDP("0.2")
    PureDP(epsilon='0.3')
    >>> PureDP(0.1)                       # the float, which is not one tenth
    PureDP(epsilon=0.1)
    """

    symbols: ClassVar[dict[str, str]] = {"epsilon": "ε"}
    epsilon: Loss

    def __init__(self, epsilon: Number, *, neighbours: Neighbours = AS_DECLARED) -> None:
        _set(self, epsilon=loss_parameter(epsilon), neighbours=neighbours)


@dataclass(frozen=True, slots=True, repr=False, init=False)
class ApproxDP(_Guarantee):
    """Approximate differential privacy.

    P[M(x) in S] <= exp(epsilon) P[M(y) in S] + delta (paper 003 Def. 3).

    >>> ApproxDP(1, "1e-9").group(2).delta < 4e-9
    True
    """

    symbols: ClassVar[dict[str, str]] = {"epsilon": "ε", "delta": "δ"}
    epsilon: Loss
    delta: Fraction

    def __init__(
        self, epsilon: Number, delta: Number, *, neighbours: Neighbours = AS_DECLARED
    ) -> None:
        _set(self, epsilon=loss_parameter(epsilon), delta=_delta(delta), neighbours=neighbours)


@dataclass(frozen=True, slots=True, repr=False, init=False)
class ProbabilisticDP(_Guarantee):
    """Probabilistic differential privacy.

    Outside a set of outputs of probability at most delta, pure with epsilon (paper 003 Def. 2). It
    does not survive post-processing (Prop. 4); what does is the approximate guarantee (Prop. 5).

    >>> ProbabilisticDP(1, "1e-9").post_processed()
    ApproxDP(epsilon=1, delta='1e-09')
    """

    symbols: ClassVar[dict[str, str]] = {"epsilon": "ε", "delta": "δ"}
    epsilon: Loss
    delta: Fraction

    def __init__(
        self, epsilon: Number, delta: Number, *, neighbours: Neighbours = AS_DECLARED
    ) -> None:
        _set(self, epsilon=loss_parameter(epsilon), delta=_delta(delta), neighbours=neighbours)

    def post_processed(self) -> ApproxDP:
        return ApproxDP(self.epsilon, self.delta, neighbours=self.neighbours)


@dataclass(frozen=True, slots=True, repr=False, init=False)
class ZCDP(_Guarantee):
    """Zero-concentrated differential privacy.

    The Renyi divergence of every order alpha > 1 is at most alpha * rho (Bun, Steinke 2016).

    >>> ZCDP("1/2").to(ApproxDP, delta="1e-6").epsilon < 5.3
    True
    """

    symbols: ClassVar[dict[str, str]] = {"rho": "ρ"}
    rho: Loss

    def __init__(self, rho: Number, *, neighbours: Neighbours = AS_DECLARED) -> None:
        _set(self, rho=loss_parameter(rho, "rho"), neighbours=neighbours)


@dataclass(frozen=True, slots=True, repr=False, init=False)
class RenyiDP(_Guarantee):
    """Renyi differential privacy of one order.

    The Renyi divergence of order alpha is at most epsilon (Mironov 2017).

    >>> ZCDP("0.1").to(RenyiDP, alpha=10)
    RenyiDP(alpha=10, epsilon=1)
    """

    symbols: ClassVar[dict[str, str]] = {"alpha": "α", "epsilon": "ε"}
    alpha: Fraction
    epsilon: Loss

    def __init__(
        self, alpha: Number, epsilon: Number, *, neighbours: Neighbours = AS_DECLARED
    ) -> None:
        order = _writable(rational(alpha, "alpha"), "alpha")
        if order <= 1:
            raise InvalidParameter("alpha", problem="is not above 1", remedy="pass an order > 1")
        _set(self, alpha=order, epsilon=loss_parameter(epsilon), neighbours=neighbours)


@dataclass(frozen=True, slots=True, repr=False, init=False)
class MetricDP(_Guarantee):
    """Metric privacy.

    P[M(x) in S] <= exp(epsilon * (d(x, y) + slack) / per) P[M(y) in S] for all x, y with
    d(x, y) > 0: the loss grows with the distance, `epsilon` for every `per` units of it
    (geo-indistinguishability for d in metres). Inputs at distance 0 lose nothing. `slack` is a
    distance too: that by which rounding the inputs to a grid can move two of them apart.

    >>> MetricDP(1, per=200, unit="m").at(500)
    PureDP(epsilon='2.5')
    >>> MetricDP(1, per=200, unit="m", slack=2).at(198)
    PureDP(epsilon=1)
    """

    symbols: ClassVar[dict[str, str]] = {
        "epsilon": "ε",
        "per": "per",
        "unit": "unit",
        "slack": "slack",
    }
    epsilon: Loss
    per: Fraction
    unit: str
    slack: Fraction

    def __init__(
        self,
        epsilon: Number,
        per: Number = 1,
        unit: str = "unit",
        *,
        slack: Number = 0,
        neighbours: Neighbours = AS_DECLARED,
    ) -> None:
        distance = _writable(rational(per, "per"), "per")
        if distance <= 0:
            raise InvalidParameter("per", problem="is not above 0", remedy="pass a distance")
        if not isinstance(unit, str) or not unit:
            raise WrongType("unit", problem="is not a name", remedy='pass, say, "m"')
        further = _writable(rational(slack, "slack"), "slack")
        if further < 0:
            raise InvalidParameter("slack", problem="is negative", remedy="pass a distance")
        _set(
            self,
            epsilon=loss_parameter(epsilon),
            per=distance,
            unit=unit,
            slack=further,
            neighbours=neighbours,
        )

    def _parameters(self) -> list[tuple[str, Any]]:
        """Without a slack of 0: most metric guarantees have none, and older JSON names none."""
        return [part for part in _Guarantee._parameters(self) if part != ("slack", 0)]

    def at(self, distance: object) -> PureDP:
        """The pure guarantee for inputs so far apart."""
        far = nonnegative(distance, "distance")
        reach = far + self.slack if far else far
        return PureDP(times(reach / self.per, self.epsilon), neighbours=self.neighbours)


Guarantee: TypeAlias = PureDP | ApproxDP | ProbabilisticDP | ZCDP | RenyiDP | MetricDP
"""Any of the promises above."""

_KINDS = (PureDP, ApproxDP, ProbabilisticDP, ZCDP, RenyiDP, MetricDP)


def from_json(text: str) -> Guarantee:
    """The guarantee that `to_json` wrote.

    >>> from_json(PureDP("1/3").to_json())
    PureDP(epsilon='1/3')
    """
    try:
        values = parse_json(text)
        kind = {k.__name__: k for k in _KINDS}[values.pop("kind")]
        relation = Neighbours(**values.pop("neighbours"))
        for name in ("epsilon", "rho"):
            if values.get(name) == "inf":
                values[name] = math.inf
        return kind(**values, neighbours=relation)
    except LastbitError:
        raise
    except (KeyError, TypeError, AttributeError, ValueError, RecursionError):
        raise InvalidParameter(
            "text", problem="is not the JSON of a guarantee", remedy="pass what to_json wrote"
        ) from None
