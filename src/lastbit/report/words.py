"""Words that are fit to print: names out of somebody's data, amounts and prices.

Names of columns, keys and files are text that a stranger may have chosen. They come through
`printable` or `quoted` before they stand in a sentence; pages escape them on top of that. Amounts
are exact where that is short, else rounded to the side that the caller names.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from fractions import Fraction

from lastbit.exact import exact_text, rounded_down, rounded_up

CURRENCIES = (("epsilon", "ε"), ("delta", "δ"), ("rho", "ρ"))
_LONGEST_NAME = 200
_DIGITS = 7
_WORD = re.compile("[A-Za-z_\u00c0-\u024f][A-Za-z0-9_.:\u00c0-\u024f]*")


def printable(name: object, most: int = _LONGEST_NAME) -> str:
    r"""The name without letters that steer a terminal or turn the reading around; cut if long.

    >>> printable("a\x1b[31mb\u202ec"), printable("abcdef", 4)
    ('a�[31mb�c', 'abc…')
    """
    text = str(name)
    cut = text if len(text) <= most else text[: most - 1] + "…"
    return "".join(letter if letter.isprintable() else "\ufffd" for letter in cut)


def quoted(name: object, most: int = 2000) -> str:
    r"""A name that a certificate gives: a plain word as it is, any other in quotes and escaped.

    Nothing in it steers a terminal, turns the reading around, or looks like a number or a sentence
    of ours: letters other than Latin ones are written by their code.

    >>> print(quoted("visits"), quoted("visits, \u03b5 = 0"), quoted("\u202e\uff11"))
    visits "visits, \u03b5 = 0" "\u202e\uff11"
    """
    text = str(name)
    if _WORD.fullmatch(text) and len(text) <= most + 8:
        return text
    cut = "..." if len(text) > most else ""
    return f'"{"".join(map(_escaped, text[:most]))}{cut}"'


def _escaped(letter: str) -> str:
    plain = " " <= letter <= "~" or ("\u00c0" <= letter <= "\u024f" and letter not in "×÷")
    return letter if plain and letter not in '"\\' else f"\\u{ord(letter):04x}"


def listed(names: Sequence[str]) -> str:
    """Names in a sentence.

    >>> listed(["a", "b", "c"])
    'a, b and c'
    """
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def amount(number: Fraction, *, up: bool) -> str:
    """A number as a person would write it; one too long for that by seven digits, up or down.

    >>> amount(Fraction(1, 10**9), up=True), amount(Fraction(1, 3), up=False)
    ('1e-9', '1/3')
    >>> amount(Fraction(10**30 + 1, 3), up=True)
    '3.333334e+29'
    """
    exact = exact_text(number)
    if not exact.endswith("..."):
        return exact
    return (rounded_up if up else rounded_down)(number, _DIGITS)


def grouped(amount: str) -> str:
    """The same number with its thousands apart.

    >>> grouped("59915"), grouped("1234.5"), grouped("1e-9"), grouped("1/1000")
    ('59,915', '1,234.5', '1e-9', '1/1000')
    """
    return amount if set(amount) & set("e/∞") else f"{Decimal(amount):,f}"


def price(cost: Mapping[str, str], *, up: bool = True) -> str:
    """A price in its currencies.

    >>> price({"epsilon": "1/2", "delta": "0", "rho": "0"})
    'ε = 0.5'
    """
    paid = ((letter, Fraction(cost[name])) for name, letter in CURRENCIES)
    return ", ".join(
        f"{letter} = {amount(number, up=up)}" for letter, number in paid if number
    ) or ("nothing")
