"""Steps of a question as one SELECT: what a server is sent where a program asks step by step.

Nothing here decides what a question means: `remote.py` parses what was written, by the card, and
sends it only if that is the query of the steps.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from types import MappingProxyType
from typing import Any

from lastbit.errors import QueryRefused
from lastbit.exact import exact_text
from lastbit.tables import AggregateSpec, DerivedSpec, PairSpec


def unwritable(what: str, problem: str) -> QueryRefused:
    """The refusal of a step that no statement says, with the way out."""
    remedy = 'ask it as one statement: .sql("SELECT ...")'
    return QueryRefused(what, problem=problem, remedy=remedy)


def quoted(name: str) -> str:
    """A name as SQL takes it, whatever letters it has."""
    return '"' + name.replace('"', '""') + '"'


_FUNCTIONS: Mapping[str, str] = MappingProxyType(
    {
        "sum": "SUM",
        "mean": "AVG",
        "variance": "VAR_POP",
        "std": "STDDEV_POP",
        "min": "MIN",
        "max": "MAX",
    }
)
_PAIRS: Mapping[str, str] = MappingProxyType(
    {
        "correlation": "CORR",
        "covariance": "COVAR_POP",
        "slope": "REGR_SLOPE",
        "intercept": "REGR_INTERCEPT",
        "r_squared": "REGR_R2",
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """The clauses of a SELECT, as far as steps have given them; whoever uses it compares."""

    source: str
    tests: tuple[str, ...] = ()
    keys: tuple[tuple[str, str], ...] = ()
    asked: tuple[tuple[str, Any], ...] = ()
    having: tuple[str, ...] = ()
    order: tuple[tuple[str, bool], ...] = ()
    most: int | None = None

    def where(self, condition: str) -> Statement:
        """With one condition more."""
        return replace(self, tests=(*self.tests, condition))

    def with_column(self, name: str, text: str) -> Statement:
        """With one column more."""
        inner = f"SELECT *, {text} AS {quoted(name)} FROM {self.source}{self._where()}"
        return replace(self, source=f"({inner})", tests=())

    def join(self, table: str, pairs: Mapping[str, str]) -> Statement:
        """With another table beside it."""
        if not all(ours.lower() == theirs.lower() for ours, theirs in pairs.items()):
            on = [f"{ours} = {quoted(table)}.{theirs}" for ours, theirs in pairs.items()]
            return replace(self, source=f"{self.source} JOIN {quoted(table)} ON {' AND '.join(on)}")
        return replace(
            self, source=f"{self.source} JOIN {quoted(table)} USING ({', '.join(pairs)})"
        )

    def per_unit(
        self, unit: str, keys: Mapping[str, str], wanted: Mapping[str, AggregateSpec]
    ) -> Statement:
        """Of one row a unit and key."""
        whose = quoted(unit)
        columns = [whose, *(f"{text} AS {quoted(name)}" for name, text in keys.items())]
        columns += [f"{_as_sql(one, unit)} AS {quoted(name)}" for name, one in wanted.items()]
        groups = ", ".join([whose, *keys.values()])
        inner = f"SELECT {', '.join(columns)} FROM {self.source}{self._where()} GROUP BY {groups}"
        return Statement(source=f"({inner})")

    def _where(self) -> str:
        return f" WHERE {' AND '.join(f'({test})' for test in self.tests)}" if self.tests else ""

    def text(self, unit: str | None = None) -> str:
        """The whole statement."""
        columns = [f"{text} AS {quoted(name)}" for name, text in self.keys]
        columns += [f"{_as_sql(one, unit)} AS {quoted(name)}" for name, one in self.asked]
        parts = [f"SELECT {', '.join(columns)} FROM {self.source}{self._where()}"]
        if self.keys:
            parts.append(f"GROUP BY {', '.join(str(i + 1) for i in range(len(self.keys)))}")
        if self.having:
            parts.append(f"HAVING {' AND '.join(f'({test})' for test in self.having)}")
        if self.order:
            order = (f"{quoted(name)}{' DESC' if down else ''}" for name, down in self.order)
            parts.append(f"ORDER BY {', '.join(order)}")
        if self.most is not None:
            parts.append(f"LIMIT {self.most}")
        return " ".join(parts)


def _as_sql(spec: Any, unit: str | None) -> str:
    """What is asked for, as SQL; what has no SQL is refused, and the rest is compared later."""
    match spec:
        case AggregateSpec(function="count", expression=None):
            return "COUNT(*)"
        case AggregateSpec(function="count", expression=str(text)):
            return f"COUNT({text})"
        case AggregateSpec(function="count_units") if unit is not None:
            return f"COUNT(DISTINCT {quoted(unit)})"
        case AggregateSpec(function="count_distinct", expression=str(text)):
            return f"COUNT(DISTINCT {text})"
        case AggregateSpec(function="quantile", levels=levels, level=level):
            shares = level if levels is None else levels
            written = (
                f"[{', '.join(map(exact_text, shares))}]"
                if isinstance(shares, tuple)
                else exact_text(shares or Fraction(0))
            )
            return f"QUANTILE_CONT({_clamped(spec.expression, spec.bounds)}, {written})"
        case AggregateSpec(function="histogram", expression=str(text), edges=edges):
            return f"HISTOGRAM({text}, {', '.join(map(exact_text, edges or ()))})"
        case AggregateSpec(function=function) if function in _FUNCTIONS:
            return f"{_FUNCTIONS[function]}({_clamped(spec.expression, spec.bounds)})"
        case PairSpec(kind=kind) if kind in _PAIRS:
            y, x = _clamped(spec.y, spec.y_bounds), _clamped(spec.x, spec.x_bounds)
            return f"{_PAIRS[kind]}({y}, {x})"
        case DerivedSpec("+" | "-" | "*" | "/" as sign, parts):
            return f"({f' {sign} '.join(_as_sql(part, unit) for part in parts)})"
        case DerivedSpec("negate", (part,)):
            return f"(-{_as_sql(part, unit)})"
        case DerivedSpec("abs" | "round" as name, parts):
            return f"{name}({', '.join(_as_sql(part, unit) for part in parts)})"
        case int() | Fraction():
            return exact_text(Fraction(spec))
    raise unwritable(str(spec)[:60], "has no SQL")


def _clamped(text: str | None, bounds: tuple[Fraction, Fraction] | None) -> str:
    if bounds is None:
        return text or ""
    return f"clamp({text}, {exact_text(bounds[0])}, {exact_text(bounds[1])})"
