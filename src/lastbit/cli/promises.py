"""Guarantees as people type them: "pure 1", "approx 1 1e-6", "zcdp 0.01 x 3"."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from lastbit.cli.numbers import exact_number
from lastbit.errors import InvalidParameter
from lastbit.exact import exact_text

if TYPE_CHECKING:
    from lastbit.privacy import Guarantee

# name -> class of lastbit.privacy, its parameters in the order in which they are typed
KINDS = (
    ("pure", "PureDP", ("epsilon",)),
    ("approx", "ApproxDP", ("epsilon", "delta")),
    ("probabilistic", "ProbabilisticDP", ("epsilon", "delta")),
    ("zcdp", "ZCDP", ("rho",)),
    ("renyi", "RenyiDP", ("alpha", "epsilon")),
)
MOST_TIMES = 100_000
TIMES = re.compile(r"^(?P<one>.*?)(\s+[x×*]\s*(?P<times>\S+))?\s*$", re.DOTALL)


def promise(text: str, name: str = "the guarantee") -> Guarantee:
    """The guarantee that the words spell.

    >>> promise("zcdp 0.1"), promise("approx 1 1e-6")
    (ZCDP(rho='0.1'), ApproxDP(epsilon=1, delta='1e-06'))
    """
    words = text.split()
    if not words:
        raise InvalidParameter(name, problem="is empty", remedy=_forms())
    kind, parameters = _kind(words[0], name)
    if len(words) - 1 != len(parameters):
        needs = " and ".join(parameters)
        raise InvalidParameter(
            f'"{_cut(text)}"',
            problem=f"has {len(words) - 1} numbers where {words[0].lower()} has {needs}",
            remedy=_forms(),
        )
    where = f'in "{_cut(text)}"'
    numbers = [
        exact_number(word, f"{parameter} {where}")
        for word, parameter in zip(words[1:], parameters, strict=True)
    ]
    try:
        guarantee: Guarantee = kind(*numbers)
    except InvalidParameter as error:
        raise InvalidParameter(
            f"{error.parameter} {where}", problem=error.problem, remedy=error.remedy
        ) from error
    return guarantee


def promises(text: str) -> tuple[Guarantee, int]:
    """A guarantee and how many times it is given.

    >>> promises("pure 0.1 x 100")
    (PureDP(epsilon='0.1'), 100)
    """
    match = TIMES.match(text)
    assert match is not None  # every part of the pattern may be empty
    times = match["times"]
    if times is None:
        return promise(text), 1
    if not re.fullmatch(r"[0-9]{1,18}", times) or not 1 <= int(times) <= MOST_TIMES:
        raise InvalidParameter(
            f'the number after x in "{_cut(text)}"',
            problem=f"is no whole number from 1 to {MOST_TIMES:,}",
            remedy='write, say, "pure 0.1 x 100"; zcdp adds up, so "zcdp 10" is "zcdp 0.1 x 100"',
        )
    return promise(match["one"]), int(times)


def kind_named(name: str) -> Any:
    """The class of a kind that `--to` names."""
    return _kind(name, "--to")[0]


def promise_text(guarantee: Guarantee) -> str:
    """The guarantee in the words that `promise` reads, cut where numbers are long.

    >>> promise_text(promise("renyi 10 1/2"))
    'renyi 10 0.5'
    """
    for name, kind, parameters in KINDS:
        if type(guarantee).__name__ == kind:
            numbers = (exact_text(getattr(guarantee, p)) for p in parameters)
            return " ".join((name, *numbers))
    raise AssertionError(guarantee)


def title(guarantee: Guarantee) -> str:
    """What the guarantee promises, in one line: its kind by name, its numbers exactly.

    >>> title(promise("approx 1/3 1e-6"))
    'approximate differential privacy, ε = 1/3, δ = 1e-6'
    """
    kind = (type(guarantee).__doc__ or type(guarantee).__name__).splitlines()[0].rstrip(".")
    numbers = (
        f"{symbol} = {exact_text(getattr(guarantee, name))}"
        for name, symbol in guarantee.symbols.items()
    )
    return ", ".join((kind[0].lower() + kind[1:], *numbers))


def _kind(word: str, name: str) -> tuple[Any, tuple[str, ...]]:
    from lastbit import privacy

    for known, kind, parameters in KINDS:
        if word.lower() == known:
            return getattr(privacy, kind), parameters
    raise InvalidParameter(name, problem=f'is of the unknown kind "{_cut(word)}"', remedy=_forms())


def _forms() -> str:
    return 'write "pure 1", "approx 1 1e-6", "probabilistic 1 1e-6", "zcdp 0.1" or "renyi 10 0.5"'


def _cut(text: str) -> str:
    words = " ".join(text.split())
    return words if len(words) <= 40 else words[:37] + "..."
