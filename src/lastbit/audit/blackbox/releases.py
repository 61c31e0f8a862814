"""Does `release` follow the law that an object has for itself?

An exact audit judges the law that a mechanism states. Whether its releases have that law is another
question, and only releases answer it. Some are drawn for each input and held against the law.

Theorem  a law that is said to be contradicted is wrongly said to be so with probability at most
         `error`, whatever the mechanism is, if its releases are independent.
         Proof. Three things contradict a law. An output that has the probability 0 by it: under the
         law that never happens. Two outputs that the law takes for one and that look different
         (0.0 and -0.0, 1 and 1.0): a law that does not tell them apart is not that of what is seen.
         An event whose frequency is too great or too small: events and the number of releases are
         fixed by the law and the inputs alone, before anything is released; each count is binomial
         with the law's probability p, which lies in its enclosure, and exceeds the one-sided end of
         Clopper and Pearson with probability at most `share`. There are 2 * events * inputs such
         statements, and `share` is half of the error divided by that number (union bound). The
         other half goes to events fitted to the first half of the releases of an input and counted
         in its second half (`fitted_law_events`): given the first half they are fixed
Differs  no contradiction proves nothing: a law that is wrong by less than about 6/sqrt(n) in every
         event that is tried, n releases of an input, is not noticed, nor one that is wrong in other
         events only. What a verdict rests on is said with it
Checked  tests/audit/test_releases.py
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from flint import arb

from lastbit.audit.blackbox.exact_laws import listed_law, same_output
from lastbit.audit.blackbox.fitted_events import (
    MOST_FITTED,
    LawEvent,
    fitted_to_list,
    fitted_to_multiples,
    printed,
    share_ends,
)
from lastbit.audit.inputs import Pair
from lastbit.exact import probability_lower, probability_upper, rational, working_precision
from lastbit.laws import Law, OnGrid
from lastbit.verify import ExactLaw

RELEASES = 4096  # of all inputs together
_FEWEST = 64  # of an input
_MOST_INPUTS = 16
_LEVELS = tuple(Fraction(k, 16) for k in range(1, 16))
_MOST_ATOMS = 64
_MOST_MASSES = 1 << 12
_TAIL = Fraction(1, 1 << 30)
_PRECISION = 128
_NEAR = 4.0


@dataclass(frozen=True, slots=True, kw_only=True)
class LawTrial:
    """So many releases were held against the law, and what contradicts it, if anything does.

    `unheard` says why nothing could be released.
    """

    releases: int
    contradiction: str | None = None
    unheard: str | None = None


@dataclass(frozen=True, slots=True)
class _Stated:
    """A law as it is tested: the key of an output (None if it has none), what is possible, events.

    Equal keys are what the law takes for one output.
    """

    key: Callable[[Any], Hashable | None]
    possible: Callable[[Any], bool]
    events: tuple[LawEvent, ...]
    fitted: Callable[[list[Any]], list[LawEvent]]


def release_of(mechanism: Any) -> Callable[..., Any] | None:
    """How a mechanism releases a value: its method `release`, or the call of it; None if neither.

    >>> release_of({0: 1}) is None
    True
    """
    own = getattr(mechanism, "release", None)
    if callable(own):
        return own  # type: ignore[no-any-return]
    return mechanism if callable(mechanism) else None


def law_trial(
    release: Callable[[Any, int], Any],
    law: Callable[[Any], Any],
    pairs: Sequence[Pair],
    *,
    error: Fraction,
    releases: int = RELEASES,
) -> LawTrial:
    """Releases of the inputs of these pairs, the first 16, held against the law of each."""
    inputs = [value for pair in pairs for value in pair][:_MOST_INPUTS]
    size = max(_FEWEST, releases // len(inputs))
    alike = len({type(value) for value in inputs}) == 1  # else the inputs' own types may show
    looks: dict[Hashable, str] = {}
    done = 0
    for value in inputs:
        with working_precision(_PRECISION):
            stated = _stated(law(value), value)
        if stated is None:
            return LawTrial(releases=0, unheard="the law is of a kind that cannot be compared")
        try:
            outputs = list(release(value, size))
        except Exception as failure:  # whatever somebody's code raises
            return LawTrial(releases=0, unheard=f"release raises {type(failure).__name__}")
        done += len(outputs)
        found = _contradiction(stated, outputs, looks if alike else {}, error / len(inputs))
        if found is not None:
            return LawTrial(releases=done, contradiction=found)
    return LawTrial(releases=done)


def _contradiction(
    stated: _Stated, outputs: list[Any], looks: dict[Hashable, str], error: Fraction
) -> str | None:
    """What contradicts the law; wrongly so with probability at most `error`."""
    keys = []
    for output in outputs:
        key = stated.key(output)
        if key is None or not stated.possible(key):
            return f"{printed(output)} was released, which has the probability 0 by the law"
        look = looks.setdefault(key, _look(output))
        if look != _look(output):
            other = look.partition(" ")[2]
            return f"{printed(output)} and {other} were released, one output by the law"
        keys.append(key)
    found = _off(stated.events, keys, error / (4 * max(1, len(stated.events))))
    if found is not None:
        return found
    half = len(keys) // 2
    with working_precision(_PRECISION):
        events = stated.fitted(keys[:half])
    assert len(events) <= MOST_FITTED
    return _off(events, keys[half:], error / (4 * MOST_FITTED))


def _off(events: Sequence[LawEvent], keys: list[Any], share: Fraction) -> str | None:
    """The first event that happens too often or too seldom, each way with a share of the error."""
    for event in events:
        hits = sum(map(event.holds, keys))
        if not _far(hits, len(keys), event):
            continue
        low = probability_lower(hits, len(keys), error=share)
        high = probability_upper(hits, len(keys), error=share)
        if Fraction(low) > event.high or Fraction(high) < event.low:
            near = float((event.low + event.high) / 2)
            return (
                f"the output is {event.name} in {hits:,} of {len(keys):,} releases, "
                f"where the law says {near:.4g}"
            )
    return None


def _far(hits: int, trials: int, event: LawEvent) -> bool:
    """Whether it is worth an exact tail; a statement that is not made is never wrong."""
    p = float((event.low + event.high) / 2)
    return abs(hits - p * trials) > _NEAR * math.sqrt(max(p * (1 - p) * trials, 0.0)) or p in (0, 1)


def _look(output: Any) -> str:
    """What whoever sees the output sees: its type and how it is written."""
    if isinstance(output, np.ndarray):
        output = output.tolist()
    return f"{type(output).__name__} {output!r}"


# ---------------------------------------------------------------- laws as they are stated


def _stated(law: Any, value: Any) -> _Stated | None:
    if isinstance(law, OnGrid):
        return _whole(law.law, law.step, value)
    if isinstance(law, Law):
        return _whole(law, Fraction(1), value)
    if isinstance(law, ExactLaw | Mapping):
        return _listed(law)
    return None


def _whole(law: Law, step: Fraction, value: Any) -> _Stated:
    """A law on the multiples of a step: the key is the multiple."""
    low, high = law.support

    def key(output: Any) -> Hashable | None:
        number = _number(output)
        if number is None or (number / step).denominator != 1:
            return None
        return int(number / step)

    def possible(k: int) -> bool:
        inside = (low is None or k >= low) and (high is None or k <= high)
        with working_precision(_PRECISION):
            return inside and not law.mass(k).is_zero()

    cuts = sorted({law.quantile(level) for level in _LEVELS})
    own = key(value)
    atoms = {*cuts, own} if isinstance(own, int) else {*cuts}
    events = [*_half_lines(law, cuts, step), *_atoms(law, sorted(atoms), step)]
    even = _even(law)
    return _Stated(
        key,
        possible,
        tuple(events if even is None else [*events, even]),
        lambda keys: fitted_to_multiples(law, step, keys),
    )


def _half_lines(law: Law, cuts: Sequence[int], step: Fraction) -> Iterator[LawEvent]:
    for cut in cuts:
        ends = share_ends(law.cumulative(cut))
        yield LawEvent(f"at most {float(cut * step):.6g}", lambda k, c=cut: k <= c, *ends)  # type: ignore[misc]


def _atoms(law: Law, atoms: Sequence[int], step: Fraction) -> Iterator[LawEvent]:
    for atom in atoms:
        ends = share_ends(law.mass(atom))
        yield LawEvent(f"{float(atom * step):.6g}", lambda k, a=atom: k == a, *ends)  # type: ignore[misc]


def _even(law: Law) -> LawEvent | None:
    """An even multiple of the step: noise that was scaled after it was drawn has no odd ones."""
    low, high = law.quantile(_TAIL), law.quantile(1 - _TAIL)
    if high - low > _MOST_MASSES:
        return None
    inside = sum((law.mass(k) for k in range(low, high + 1) if k % 2 == 0), arb(0))
    least, most = share_ends(inside)
    return LawEvent(
        "an even multiple", lambda k: k % 2 == 0, least, min(most + 2 * _TAIL, Fraction(1))
    )


def _listed(law: Any) -> _Stated:
    """A law that lists its outputs: the key is the output as the law knows it."""
    shares = listed_law(law)
    common = sorted(shares, key=lambda output: -float(shares[output].mid()))[:_MOST_ATOMS]
    events = [
        LawEvent(printed(output), lambda k, o=output: k == o, *share_ends(shares[output]))  # type: ignore[misc]
        for output in common
    ]

    def key(output: Any) -> Hashable | None:
        found = same_output(_plain(output), law)
        try:
            return found if found in shares else None
        except TypeError:  # it cannot be a key
            return None

    return _Stated(
        key,
        lambda k: not shares[k].is_zero(),
        tuple(events),
        lambda keys: fitted_to_list(shares, keys),
    )


def _plain(output: Any) -> Any:
    """Arrays and lists as tuples, which a law can list."""
    if isinstance(output, np.ndarray):
        output = output.tolist()
    return tuple(_plain(part) for part in output) if isinstance(output, list) else output


def _number(output: Any) -> Fraction | None:
    """The exact value of a number that is seen as one; a zero with a sign is not."""
    if isinstance(output, np.ndarray):
        output = output.tolist()
    if isinstance(output, bool | np.bool_ | str | bytes):
        return None
    if isinstance(output, float | np.floating) and output == 0 and math.copysign(1.0, output) < 0:
        return None
    try:
        return rational(output)
    except (TypeError, ValueError):
        return None
