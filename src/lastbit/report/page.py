"""Pages: one HTML shell, one style sheet, templates that escape, and words that are fit to print.

A page is one file without script, font or picture from elsewhere. It follows the reader's light or
dark scheme, fits a phone, and prints. What it quotes is somebody else's: keys, names and sentences
are escaped by the templates, and letters that steer a terminal or turn the reading around are
replaced, so that a hostile certificate or table is a readable page and nothing more. In a sentence,
names of columns, keys and files come through `printable` or `quoted` first. Amounts are exact where
that is short, else rounded to the side that the caller names.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cache
from math import ceil
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from lastbit.exact import exact_text, rounded_down, rounded_up
from lastbit.report.charts import FONT, INSIDE_A_PAGE, colours, inline, shortened, template
from lastbit.report.law_charts import LawPanel, law_picture

if TYPE_CHECKING:
    from jinja2 import Environment

CURRENCIES = (("epsilon", "ε"), ("delta", "δ"), ("rho", "ρ"))
MALFORMED = (LookupError, TypeError, ValueError, ArithmeticError, AttributeError, AssertionError)
"""What reading somebody else's JSON raises where it is not what it should be."""
_LONGEST_NAME, _MOST_JSON = 200, 400_000
_WORD = re.compile("[A-Za-z_\u00c0-\u024f][A-Za-z0-9_.:\u00c0-\u024f]*")
_DIGITS = 4


def printable(name: object, most: int = _LONGEST_NAME) -> str:
    r"""The name without letters that steer a terminal or turn the reading around; cut if long.

    >>> printable("a\x1b[31mb\u202ec"), printable("abcdef", 4)
    ('a�[31mb�c', 'abc…')
    """
    letters = shortened(str(name), most)
    return "".join(letter if letter.isprintable() else "\ufffd" for letter in letters)


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
    letters = (
        letter
        if (" " <= letter <= "~" or "\u00c0" <= letter <= "\u024f") and letter not in '×÷"\\'
        else f"\\u{ord(letter):04x}"
        for letter in text[:most]
    )
    return f'"{"".join(letters)}{cut}"'


def listed(names: Sequence[str], last: str = "and") -> str:
    """Names in a sentence.

    >>> listed(["a", "b", "c"])
    'a, b and c'
    """
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} {last} {names[-1]}"


def amount(number: Fraction, *, up: bool, digits: int = 7) -> str:
    """A number as a person would write it; one too long for that by some digits, up or down.

    >>> amount(Fraction(1, 10**9), up=True), amount(Fraction(1, 3), up=False)
    ('1e-9', '1/3')
    >>> amount(Fraction(10**30 + 1, 3), up=True)
    '3.333334e+29'
    """
    exact = exact_text(number)
    if not exact.endswith("..."):
        return exact
    return (rounded_up if up else rounded_down)(number, digits)


def grouped(amount: str) -> str:
    """The same number with its thousands apart.

    >>> grouped("59915"), grouped("1234.5"), grouped("1e-9"), grouped("1/1000")
    ('59,915', '1,234.5', '1e-9', '1/1000')
    """
    return amount if set(amount) & set("e/∞") else f"{Decimal(amount):,f}"


def grouped_up(number: Fraction) -> str:
    """Four digits, or all digits of a whole number, not below the truth.

    >>> grouped_up(Fraction(1, 3)), grouped_up(Fraction(59914_6, 10))
    ('0.3334', '59,915')
    """
    whole = Fraction(ceil(number))
    return grouped(rounded_up(whole if number >= 10**_DIGITS else number, _DIGITS))


def price(cost: Mapping[str, str], *, up: bool = True) -> str:
    """A price in its currencies.

    >>> price({"epsilon": "1/2", "delta": "0", "rho": "0"})
    'ε = 0.5'
    """
    paid = ((letter, Fraction(cost[name])) for name, letter in CURRENCIES)
    return ", ".join(f"{letter} = {amount(n, up=up)}" for letter, n in paid if n) or "nothing"


def whole_text(certificate: Mapping[str, Any]) -> str | None:
    """A certificate to be copied from a page; None if it is too long for one."""
    # ASCII: a letter that the page would replace is still there as its code
    text = json.dumps(certificate, indent=1, ensure_ascii=True)
    return text if len(text) <= _MOST_JSON else None


def rendered(template: str, **values: Any) -> Markup:
    """A template filled in; only values that are `Markup` already are not escaped."""
    return Markup(_environment().get_template(template).render(values))


@cache
def _environment() -> Environment:
    return page_environment(template)


def page_environment(load: Callable[[str], str]) -> Environment:
    """Templates that escape, refuse what is undefined, and have the colours; `load` reads them."""
    # late: a query in a terminal needs no page, and this is a tenth of its time
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    environment = Environment(
        loader=FunctionLoader(load),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_readable,
        keep_trailing_newline=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    light, dark = (
        Markup("; ").join(Markup(f"--{name}: {c}") for name, c in colours(dark).items())
        for dark in (False, True)
    )
    environment.globals.update(
        light=light,
        dark=dark,
        font=Markup(FONT),
        charts=Markup(INSIDE_A_PAGE),
    )
    return environment


def _readable(value: object) -> object:
    """Text without control characters and without letters that nobody sees; lines are kept."""
    if isinstance(value, Markup) or not isinstance(value, str) or value.isprintable():
        return value
    kept = (c if c.isprintable() or c in "\n\t" else "\ufffd" for c in value)
    return "".join(kept)


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditStory:
    """An audit in words: headline, sentences, facts, limits and how to run it again."""

    title: str
    verdict: str
    refuted: bool
    sentences: tuple[str, ...]
    facts: tuple[tuple[str, str], ...]
    limits: tuple[str, ...]
    again: tuple[str, ...]
    note: str
    """What can differ when it is run again."""


def audit_page(story: AuditStory, panels: tuple[LawPanel, ...] = (), *, drawn: str = "") -> Markup:
    """The page as text; `drawn` says where the heights of the panels come from.

    >>> story = AuditStory(
    ...     title="Audit of noise:naive", verdict="refuted", refuted=True, sentences=("a < b",),
    ...     facts=(("claimed", "ε = 1"),), limits=(), again=("lastbit audit noise:naive",), note="")
    >>> page = audit_page(story)
    >>> page.startswith("<!doctype html>"), "a &lt; b" in page, "<svg" in page
    (True, True, False)
    """
    picture = inline(law_picture("Two inputs, output by output", panels)) if panels else None
    return rendered("audit.html", title=story.title, story=story, picture=picture, drawn=drawn)
