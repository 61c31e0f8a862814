"""The sentences of an answer, written again from its numbers: what is said must be what follows.

Theorem  `guarantee_of` and `notes_of` depend on the certified plan alone. A saved answer whose
         sentences are these, letter for letter, says nothing else: no other number, no other unit,
         no second claim, no digits of another script
Differs  names (of the unit's column, of columns of the answer) are whatever the card and the query
         call them. A name that is no plain word is quoted and its odd letters are escaped, so that
         it is not taken for a part of the sentence
Checked  tests/verify/test_check_words.py
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from fractions import Fraction
from math import isfinite
from typing import Any

from lastbit.verify.arithmetic import number

__all__ = ["CONSISTENT", "UNRECORDED", "bin_name", "guarantee_of", "named", "notes_of", "plain"]

UNRECORDED = "Not recorded: no ledger was given, so nobody counts what this answer cost."
CONSISTENT = "Counts were made whole, not negative and adding up to their total after the noise."
_INTERVALS = (
    "Intervals hold the number without noise in 95 % of all releases. They do not cover what "
    "limits on rows, bounds and rounding did to the data, and nobody may know if they did."
)
_VARIANCES = "Variances are those of the rows themselves (divided by n, not n - 1)."
_QUANTILES = (
    "Quantiles are chosen among bins between the bounds, and shown as the middle of the "
    "bin, or as its lower edge where a bin is one step."
)
_WORD = re.compile("[A-Za-z_\u00c0-\u024f][A-Za-z0-9_\u00c0-\u024f]{0,59}")


def guarantee_of(plan: Mapping[str, Any]) -> str:
    """The promise in one sentence."""
    epsilon, delta, rho = (number(plan["cost"][name]) for name in ("epsilon", "delta", "rho"))
    if rho:
        price = f"rho = {plain(rho)} zero-concentrated"
    else:
        price = f"epsilon = {plain(epsilon)}" + (f", delta = {plain(delta)}" if delta else "")
    unit = "row" if plan["unit"] is None else named(plan["unit"])
    how = "changed" if plan["neighbours"] == "change-one" else "more or less"
    return f"{price} differential privacy for one {unit} {how}"


def notes_of(plan: Mapping[str, Any]) -> list[str]:
    """What a reader must know, in the order in which answers say it."""
    functions = {recipe["function"] for recipe in plan["recipes"]}
    notes = [_INTERVALS]
    if plan["unit"] is not None:
        notes.append(
            f"Each {named(plan['unit'])} counts for at most {plan['max_rows']} rows: where there "
            "are more, all of them count for less."
        )
    for part in plan["parts"]:
        if part["part"] == "keys":
            notes.append(
                f"A key is shown if about {part['threshold']} units or more have it; others are "
                "unknown, and counts close to that number tend to be too high."
            )
    if functions & {"variance", "std"}:
        notes.append(_VARIANCES)
    if functions & {"quantile", "min", "max"}:
        notes.append(_QUANTILES)
    return notes


def bin_name(name: str, low: Fraction, high: Fraction, *, last: bool) -> str:
    """How the column of a bin is called: the last one is closed."""
    return f"{name} [{plain(low)}, {plain(high)}{']' if last else ')'}"


def named(name: str) -> str:
    r"""A name as it stands in a sentence: a plain word as it is, any other quoted and escaped.

    >>> print(named("patient_id"), named("row more or less; in truth"), named("a\u202eb"))
    patient_id "row more or less; in truth" "a\u202eb"
    """
    if _WORD.fullmatch(name):
        return name
    kept = (c if c.isprintable() and c not in '"\\' else f"\\u{ord(c):04x}" for c in name)
    return f'"{"".join(kept)}"'


def plain(x: Fraction) -> str:
    """A number as a person would write it: whole, a short decimal, a double, or a ratio.

    >>> plain(Fraction(1, 10)), plain(Fraction(0.1)), plain(Fraction(1, 3)), plain(Fraction(7))
    ('0.1', '0.1', '1/3', '7')
    """
    if x.denominator == 1 and abs(x) < 10**21:
        return str(x.numerator)
    try:
        near = x.numerator / x.denominator
    except OverflowError:
        return str(x)
    decimal = f"{near:.15g}"
    if decimal != "0" and isfinite(near) and Fraction(decimal) == x:
        return decimal
    return repr(near) if isfinite(near) and Fraction(near) == x else str(x)
