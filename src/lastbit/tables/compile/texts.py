"""Functions of texts as steps: none makes a text longer than LONGEST_TEXT bytes, all are linear.

Law      a text that would have more bytes is missing. Lengths are looked at before texts are joined
Theorem  LIKE is as fast as RE2, which reads each character once: its automaton has few states, as
         the pattern is a constant of at most LONGEST_PATTERN characters in which at most
         MOST_SINGLE_WILDCARDS signs _ stand beside a %. DuckDB's own LIKE goes back at every %
Source   Cox, Regular Expression Matching Can Be Simple And Fast (2007)
Checked  tests/tables/test_values.py, tests/tables/test_limits.py
"""

from __future__ import annotations

from lastbit.errors import QueryRefused
from lastbit.tables.compile.literals import text
from lastbit.tables.compile.steps import Steps, Typed
from lastbit.tables.limits import LONGEST_TEXT

_FURTHEST = 1 << 32  # where the engine's substring would raise


def text_value(function: str, values: list[Typed], steps: Steps) -> Typed:
    """The function of texts (and, of substring, whole numbers) as a step."""
    inner = ", ".join(value.sql for value in values)
    first = values[0].sql
    match function:
        case "like" | "ilike":
            return _matched(function, values, steps)
        case "length":
            return steps.value(f"length({inner})", "integer", *values)
        case "contains":
            _check_constant(values[1], function)
            return steps.value(f"contains({inner})", "boolean", *values)
        case "starts_with":
            return steps.value(f"starts_with({inner})", "boolean", *values)
        case "lower" | "upper":
            grown = steps.value(f"{function}({inner})", "text", *values)  # by half, at most
            sql = f"CASE WHEN strlen({grown.sql}) <= {LONGEST_TEXT} THEN {grown.sql} END"
            return steps.value(sql, "text", grown)
        case "trim":
            return steps.value(f"trim({inner})", "text", *values)
        case "substring":
            places = [_place(value.sql) for value in values[1:]]
            return steps.value(f"substring({', '.join([first, *places])})", "text", *values)
        case "concat":
            total = _total([f"coalesce(strlen({value.sql}), 0)" for value in values])
            sql = f"CASE WHEN {total} <= {LONGEST_TEXT} THEN concat({inner}) END"
            return steps.value(sql, "text", *values)
    raise QueryRefused(function[:40], problem="is no function known here", remedy="leave it out")


def pattern_text(pattern: str) -> str:
    r"""The pattern of LIKE as a regular expression without letters of its own, so in either case.

    >>> pattern_text("50%_a.b")
    '50.*.a\\.b'
    """
    parts: list[str] = []
    for sign in pattern:
        if sign == "%":
            parts += [] if parts[-1:] == [".*"] else [".*"]
        elif sign == "_":
            parts.append(".")
        else:
            plain = sign.isalnum() or not sign.isascii() or not sign.isprintable() or sign == " "
            parts.append(sign if plain else f"\\{sign}")
    return "".join(parts)


def _matched(function: str, values: list[Typed], steps: Steps) -> Typed:
    subject, pattern = values
    _check_constant(pattern, function)
    if pattern.type is None or pattern.sql.startswith("CAST(NULL"):
        return steps.value("CAST(NULL AS BOOLEAN)", "boolean")
    written = pattern.sql[1:-1].replace("''", "'")
    wanted = text(pattern_text(written))
    if function == "ilike":
        subject = steps.value(f"lower({subject.sql})", "text", subject)
        wanted = f"lower({wanted})"
    return steps.value(f"regexp_full_match({subject.sql}, {wanted}, 's')", "boolean", subject)


def _check_constant(value: Typed, function: str) -> None:
    if not value.constant:
        raise QueryRefused(
            function.upper(),
            problem="looks for a text that is no constant",
            remedy="write the text into the question, in quotes",
        )


def _place(sql: str) -> str:
    return f"CASE WHEN {sql} BETWEEN {-_FURTHEST} AND {_FURTHEST - 1} THEN {sql} END"


def _total(parts: list[str]) -> str:
    if len(parts) == 1:
        return parts[0]
    middle = len(parts) // 2
    return f"({_total(parts[:middle])} + {_total(parts[middle:])})"
