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
         in its second half (`MOST_FITTED` events at most): given the first half they are fixed.
         These are the most frequent outputs; all outputs that were seen, which come again too often
         where there are fewer outputs than the law says; residues modulo 2 ... 16 of whole
         multiples; buckets of a digest for outputs that a law lists; the half-line that lies
         furthest off; the widest gap
Differs  no contradiction proves nothing: a law that is wrong by less than about 6/sqrt(n) in every
         event that is tried, n releases of an input, is not noticed, nor one that is wrong in other
         events only. What a verdict rests on is said with it
Checked  tests/audit/test_releases.py
"""

from __future__ import annotations

import hashlib
import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from flint import arb
from numpy.typing import NDArray

from lastbit.audit.blackbox.exact_laws import listed_law, same_output
from lastbit.audit.inputs import Pair
from lastbit.exact import (
    ends as ends_of,
    probability_lower,
    probability_upper,
    rational,
    working_precision,
)
from lastbit.laws import Law, OnGrid
from lastbit.verify import ExactLaw

RELEASES = 4096  # of all inputs together
_FEWEST = 64  # of an input
_MOST_INPUTS = 16
_LEVELS = tuple(Fraction(k, 16) for k in range(1, 16))
_MOST_ATOMS = 64
_MOST_EVEN = 1 << 12
_EVEN_TAIL = Fraction(1, 1 << 30)
_PRECISION = 128
_NEAR = 4.0
# fitted events
_TOP = 4
_MODULI = range(2, 17)
_BUCKETS = 16
_CUTS = 32
_MOST_SEEN = 2048
_MOST_MASSES = 1 << 15
_TAIL = Fraction(1, 1 << 12)
_LONGEST = 60
_PAD = Fraction(1, 1 << 30)
MOST_FITTED = _TOP + 1 + len(_MODULI) + 1 + 1 + 1


@dataclass(frozen=True, slots=True)
class LawEvent:
    """A set of outputs, by their keys, and bounds on its probability."""

    name: str
    holds: Callable[[Any], bool]
    low: Fraction
    high: Fraction

    @classmethod
    def enclosed(cls, name: str, holds: Callable[[Any], bool], share: arb) -> LawEvent:
        """An event whose probability lies in this ball."""
        low, high = ends_of(share)
        return cls(name, holds, max(Fraction(0), low), min(Fraction(1), high))

    @classmethod
    def near(
        cls, name: str, holds: Callable[[Any], bool], share: float, below: Fraction, above: Fraction
    ) -> LawEvent:
        """An event whose probability is this, less at most `below`, and at most `above` more."""
        middle = Fraction(share)
        return cls(name, holds, max(Fraction(0), middle - below), min(Fraction(1), middle + above))

    @classmethod
    def at_most(cls, law: Law, cut: int, step: Fraction) -> LawEvent:
        """A half-line of a law on the multiples of a step."""
        name = f"at most {float(cut * step):.6g}"
        return cls.enclosed(name, lambda k: bool(k <= cut), law.cumulative(cut))

    @classmethod
    def single(cls, output: Any, name: str, share: arb) -> LawEvent:
        return cls.enclosed(name, lambda k: bool(k == output), share)


# ---------------------------------------------------------------- fitted events


def fitted_to_multiples(law: Law, step: Fraction, keys: Sequence[int]) -> list[LawEvent]:
    """Events for a law on the multiples of a step, from multiples that were seen."""
    if not keys:
        return []
    seen, ordered = Counter(keys), sorted(keys)
    found = _frequent(seen, law.mass, lambda k: f"{float(k * step):.6g}")
    found += _residues(law, seen)
    # of some of the multiples seen: where the law and the releases differ most
    cut = max(
        (ordered[place] for place in sorted({len(keys) * i // _CUTS for i in range(_CUTS)})),
        key=lambda k: abs(bisect_right(ordered, k) / len(keys) - float(law.cumulative(k).mid())),
    )
    found.append(LawEvent.at_most(law, cut, step))
    # the widest gap between two that were seen, in the middle of them
    distinct = sorted(seen)
    quarter = len(distinct) // 8
    inner = distinct[quarter : len(distinct) - quarter] or distinct
    low, high = max(pairwise(inner), key=lambda pair: pair[1] - pair[0], default=(0, 0))
    if high - low > 1:
        between = law.cumulative(high - 1) - law.cumulative(low)
        name = f"strictly between {float(low * step):.6g} and {float(high * step):.6g}"
        found.append(LawEvent.enclosed(name, lambda k: bool(low < k < high), between))
    return found


def fitted_to_list(shares: Mapping[Any, arb], keys: Sequence[Hashable]) -> list[LawEvent]:
    """Events for a law that lists its outputs, from outputs that were seen."""
    if not keys:
        return []
    seen = Counter(keys)
    found = _frequent(seen, shares.__getitem__, printed)
    known = {output: float(share.mid()) for output, share in shares.items()}
    pad = _blur(shares.values())
    # looked up, not made again: equal outputs may be written in two ways
    buckets = {output: _bucket(output) for output in known}
    classes: list[tuple[int, str, Callable[[Any], int]]] = [
        (_BUCKETS, "in some buckets of a digest", buckets.__getitem__)
    ]
    if all(type(output) is int for output in shares):
        classes += [(m, f"in some classes modulo {m}", _modulo(m)) for m in _MODULI]
    for count, name, classed in classes:
        expected = np.zeros(count)
        for output, share in known.items():
            expected[classed(output)] += share
        more, total = _more(expected, seen, classed)
        found.append(LawEvent.near(name, _within(classed, more), total, pad, pad))
    if all(isinstance(output, int | float | Fraction) for output in shares):
        outputs = sorted(known)  # the half-line that lies furthest off
        law = np.cumsum([known[output] for output in outputs])
        drawn = np.cumsum([seen[output] for output in outputs]) / seen.total()
        place = int(np.argmax(np.abs(law - drawn)))
        cut = outputs[place]
        name = f"at most {printed(cut)}"
        found.append(LawEvent.near(name, lambda k: k <= cut, float(law[place]), pad, pad))
    return found


def _frequent(
    seen: Counter[Any], mass: Callable[[Any], arb], text: Callable[[Any], str]
) -> list[LawEvent]:
    """The most frequent outputs; and one of all that were seen, or of the most frequent 2,048."""
    top = [LawEvent.single(k, text(k), mass(k)) for k, _ in seen.most_common(_TOP)]
    some = frozenset(output for output, _ in seen.most_common(_MOST_SEEN))
    total = sum((mass(output) for output in some), arb(0))
    name = f"one of {len(some):,} that were seen before"
    return [*top, LawEvent.enclosed(name, some.__contains__, total)]


def _residues(law: Law, seen: Counter[int]) -> Iterator[LawEvent]:
    """Residues of which more were seen than the law says, for laws that are not too wide."""
    low, high = law.quantile(_TAIL), law.quantile(1 - _TAIL)
    if high - low >= _MOST_MASSES:
        return
    balls = [law.mass(k) for k in range(low, high + 1)]
    masses, pad = np.array([float(ball.mid()) for ball in balls]), _blur(balls)
    outside = max(Fraction(0), 1 - Fraction(float(masses.sum()))) + 2 * pad
    for m in _MODULI:
        classes = (np.arange(len(masses)) + low % m) % m
        expected = np.bincount(classes, weights=masses, minlength=m)
        more, least = _more(expected, seen, _modulo(m))
        name = f"{', '.join(map(str, sorted(more)))} modulo {m}"
        yield LawEvent.near(name, _within(_modulo(m), more), least, pad, outside)


def _more(
    expected: NDArray[Any], seen: Counter[Any], classed: Callable[[Any], int]
) -> tuple[frozenset[int], float]:
    """The classes of which more were seen than the law says, and their share by the law."""
    counts = np.zeros(len(expected))
    for output, times in seen.items():
        counts[classed(output)] += times
    more = frozenset(np.flatnonzero(counts / counts.sum() > expected).tolist())
    return more, float(expected[list(more)].sum()) if more else 0.0


def _modulo(m: int) -> Callable[[Any], int]:
    return lambda k: int(k % m)


def _within(classed: Callable[[Any], int], classes: frozenset[int]) -> Callable[[Any], bool]:
    return lambda k: classed(k) in classes


def _blur(shares: Iterable[arb]) -> Fraction:
    """More than sums of the middles of some enclosures, as floats, can be off."""
    return _PAD + sum((Fraction(float(share.rad())) for share in shares), Fraction(0)) * 2


def _bucket(output: Any) -> int:
    return hashlib.sha256(repr(output).encode("utf-8", "backslashreplace")).digest()[0] % _BUCKETS


def printed(output: Any) -> str:
    """An output as Python prints it, cut to a line."""
    text = repr(output.item() if isinstance(output, np.generic) else output)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."


# ---------------------------------------------------------------- releases against the law


@dataclass(frozen=True, slots=True, kw_only=True)
class LawTrial:
    """How many releases were compared with the law, and what contradicts it, if anything does.

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
    trials = len(keys)
    for event in events:
        hits = sum(map(event.holds, keys))
        p = float((event.low + event.high) / 2)
        near = _NEAR * math.sqrt(max(p * (1 - p) * trials, 0.0))
        if abs(hits - p * trials) <= near and p not in (0, 1):
            continue  # not worth an exact tail; a statement that is not made is never wrong
        low = probability_lower(hits, trials, error=share)
        high = probability_upper(hits, trials, error=share)
        if Fraction(low) > event.high or Fraction(high) < event.low:
            return (
                f"the output is {event.name} in {hits:,} of {trials:,} releases, "
                f"where the law says {p:.4g}"
            )
    return None


def _look(output: Any) -> str:
    """What is visible of an output: its type and how it is printed."""
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
    events = [LawEvent.at_most(law, cut, step) for cut in cuts]
    events += [LawEvent.single(k, f"{float(k * step):.6g}", law.mass(k)) for k in sorted(atoms)]
    first, last = law.quantile(_EVEN_TAIL), law.quantile(1 - _EVEN_TAIL)
    if last - first <= _MOST_EVEN:
        # noise that was scaled after it was drawn has no odd multiples
        inside = sum((law.mass(k) for k in range(first, last + 1) if k % 2 == 0), arb(0))
        even = LawEvent.enclosed("an even multiple", lambda k: k % 2 == 0, inside)
        events.append(replace(even, high=min(even.high + 2 * _EVEN_TAIL, Fraction(1))))
    fitted = partial(fitted_to_multiples, law, step)
    return _Stated(key, possible, tuple(events), fitted)


def _listed(law: Any) -> _Stated:
    """A law that lists its outputs: the key is the output as the law knows it."""
    bitwise = isinstance(law, ExactLaw)
    shares = listed_law(law, bitwise=bitwise) or {}
    common = sorted(shares, key=lambda output: -float(shares[output].mid()))[:_MOST_ATOMS]
    events = tuple(LawEvent.single(k, printed(k), shares[k]) for k in common)

    def key(output: Any) -> Hashable | None:
        found = same_output(_plain(output), bitwise=bitwise)
        try:
            return found if found in shares else None
        except TypeError:  # it cannot be a key
            return None

    return _Stated(key, lambda k: not shares[k].is_zero(), events, partial(fitted_to_list, shares))


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
