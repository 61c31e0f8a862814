"""Steps of a question as one SELECT: what a server is sent where a program asks step by step.

Nothing here decides what a question means: `remote.py` parses what was written, by the card, and
sends it only if that is the query of the steps.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from types import MappingProxyType
from typing import Any

from lastbit.errors import QueryRefused
from lastbit.exact import exact_text
from lastbit.release.answer import quoted
from lastbit.release.question import Question
from lastbit.tables import AggregateSpec, DerivedSpec, PairSpec


def unwritable(what: str, problem: str) -> QueryRefused:
    """The refusal of a step that no statement says, with the way out."""
    remedy = 'ask it as one statement: .sql("SELECT ...")'
    return QueryRefused(what, problem=problem, remedy=remedy)


_FUNCTIONS: Mapping[str, str] = MappingProxyType(
    {
        "sum": "SUM",
        "mean": "AVG",
        "variance": "VAR_POP",
        "std": "STDDEV_POP",
        "min": "MIN",
        "max": "MAX",
        "correlation": "CORR",
        "covariance": "COVAR_POP",
        "slope": "REGR_SLOPE",
        "intercept": "REGR_INTERCEPT",
        "r_squared": "REGR_R2",
    }
)


def statement_of(asked: Question) -> str:
    """The whole question as one statement."""
    unit, source, tests, keys = asked.card.unit, quoted(asked.card.name), "", []
    for step in asked.steps:
        match step:
            case "where", test:
                tests += f"{' AND' if tests else ' WHERE'} ({test})"
            case "column", name, text:
                source, tests = f"(SELECT *, {text} AS {quoted(name)} FROM {source}{tests})", ""
            case "join", other, pairs:
                source += f" JOIN {quoted(other)} {_equal(other, pairs)}"
            case "per_unit", by, wanted:
                whose = quoted(unit or "")
                columns = [whose, *_columns(by), *_columns(wanted, unit)]
                groups = ", ".join([whose, *by.values()])
                inner = f"SELECT {', '.join(columns)} FROM {source}{tests} GROUP BY {groups}"
                source, tests = f"({inner})", ""
            case "key", name, text:
                keys.append((name, text))
    columns = [*_columns(dict(keys)), *_columns(dict(asked.asked), unit)]
    parts = [f"SELECT {', '.join(columns)} FROM {source}{tests}"]
    if keys:
        parts.append(f"GROUP BY {', '.join(str(i + 1) for i in range(len(keys)))}")
    if asked.filters:
        parts.append(f"HAVING {' AND '.join(f'({test})' for test in asked.filters)}")
    if asked.order:
        order = (f"{quoted(name)}{' DESC' if down else ''}" for name, down in asked.order)
        parts.append(f"ORDER BY {', '.join(order)}")
    if asked.most is not None:
        parts.append(f"LIMIT {asked.most}")
    return " ".join(parts)


def _columns(wanted: Mapping[str, Any], unit: str | None = None) -> list[str]:
    return [f"{_as_sql(one, unit)} AS {quoted(name)}" for name, one in wanted.items()]


def _equal(other: str, pairs: Mapping[str, str]) -> str:
    if all(ours.lower() == theirs.lower() for ours, theirs in pairs.items()):
        return f"USING ({', '.join(pairs)})"
    return f"ON {' AND '.join(f'{a} = {quoted(other)}.{b}' for a, b in pairs.items())}"


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
        case AggregateSpec(function="quantile", level=Fraction() as level):
            bounded = _clamped(spec.expression, spec.bounds)
            return f"QUANTILE_CONT({bounded}, {exact_text(level)})"
        case AggregateSpec(function="histogram", expression=str(text), edges=edges):
            return f"HISTOGRAM({text}, {', '.join(map(exact_text, edges or ()))})"
        case AggregateSpec(function=function) if function in _FUNCTIONS:
            return f"{_FUNCTIONS[function]}({_clamped(spec.expression, spec.bounds)})"
        case PairSpec(kind=kind) if kind in _FUNCTIONS:
            y, x = _clamped(spec.y, spec.y_bounds), _clamped(spec.x, spec.x_bounds)
            return f"{_FUNCTIONS[kind]}({y}, {x})"
        case DerivedSpec("+" | "-" | "*" | "/" as sign, parts):
            return f"({f' {sign} '.join(_as_sql(part, unit) for part in parts)})"
        case DerivedSpec("negate", (part,)):
            return f"(-{_as_sql(part, unit)})"
        case DerivedSpec("abs" | "round" as name, parts):
            return f"{name}({', '.join(_as_sql(part, unit) for part in parts)})"
        case int() | Fraction():
            return exact_text(Fraction(spec))
        case str():  # of a key, as it was written
            return spec
    raise unwritable(str(spec)[:60], "has no SQL")


def _clamped(text: str | None, bounds: tuple[Fraction, Fraction] | None) -> str:
    if bounds is None:
        return text or ""
    return f"clamp({text}, {exact_text(bounds[0])}, {exact_text(bounds[1])})"
