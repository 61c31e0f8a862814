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
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
from flint import arb

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


def share_ends(share: arb) -> tuple[Fraction, Fraction]:
    """Two fractions between which an enclosed probability lies."""
    low, high = ends_of(share)
    return max(Fraction(0), low), min(Fraction(1), high)


def fitted_to_multiples(law: Law, step: Fraction, keys: Sequence[int]) -> list[LawEvent]:
    """Events for a law on the multiples of a step, from multiples that were seen."""
    if not keys:
        return []
    seen = Counter(keys)
    found = [*_top(seen, law.mass, lambda k: f"{float(k * step):.6g}"), _again(seen, law.mass)]
    found += _residues(law, seen)
    cut = _furthest(law, sorted(keys))
    ends = share_ends(law.cumulative(cut))
    found.append(LawEvent(f"at most {float(cut * step):.6g}", lambda k: k <= cut, *ends))
    low, high = _gap(sorted(seen))
    if high - low > 1:
        between = share_ends(law.cumulative(high - 1) - law.cumulative(low))
        name = f"strictly between {float(low * step):.6g} and {float(high * step):.6g}"
        found.append(LawEvent(name, lambda k: low < k < high, *between))
    return found


def fitted_to_list(shares: Mapping[Any, arb], keys: Sequence[Hashable]) -> list[LawEvent]:
    """Events for a law that lists its outputs, from outputs that were seen."""
    if not keys:
        return []
    seen = Counter(keys)
    found = [*_top(seen, shares.__getitem__, printed), _again(seen, shares.__getitem__)]
    known = {output: float(share.mid()) for output, share in shares.items()}
    pad = _blur(shares.values())
    # looked up, not made anew: equal outputs may be written in two ways
    buckets = {output: _bucket(output) for output in known}
    name = "in some buckets of a digest"
    found.append(_chosen(known, seen, buckets.__getitem__, (_BUCKETS, name, pad)))
    if all(type(output) is int for output in shares):
        found += [
            _chosen(known, seen, _modulo(m), (m, f"in some classes modulo {m}", pad))
            for m in _MODULI
        ]
    if all(isinstance(output, int | float | Fraction) for output in shares):
        found.append(_ordered(known, seen, pad))
    return found


# ---------------------------------------------------------------- single events


def _top(
    seen: Counter[Any], mass: Callable[[Any], arb], text: Callable[[Any], str]
) -> Iterator[LawEvent]:
    for output, _ in seen.most_common(_TOP):
        yield LawEvent(text(output), lambda k, o=output: k == o, *share_ends(mass(output)))  # type: ignore[misc]


def _again(seen: Counter[Any], mass: Callable[[Any], arb]) -> LawEvent:
    """One of the outputs seen, the most frequent of them if they are many."""
    some = frozenset(output for output, _ in seen.most_common(_MOST_SEEN))
    total = sum((mass(output) for output in some), arb(0))
    name = f"one of {len(some):,} that were seen before"
    return LawEvent(name, some.__contains__, *share_ends(total))


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
        shares = np.bincount(classes, weights=masses, minlength=m)
        counts = np.zeros(m)
        for k, count in seen.items():
            counts[k % m] += count
        more = frozenset(np.flatnonzero(counts / counts.sum() > shares).tolist())
        least = Fraction(float(shares[list(more)].sum())) if more else Fraction(0)
        ends = max(Fraction(0), least - pad), min(Fraction(1), least + outside)
        text = ", ".join(map(str, sorted(more)))
        yield LawEvent(f"{text} modulo {m}", lambda k, m=m, s=more: k % m in s, *ends)  # type: ignore[misc]


def _chosen(
    known: Mapping[Any, float],
    seen: Counter[Any],
    classed: Callable[[Any], int],
    classes: tuple[int, str, Fraction],
) -> LawEvent:
    """The classes of which more were seen than the law says."""
    count, name, pad = classes
    shares, counts = np.zeros(count), np.zeros(count)
    for output, share in known.items():
        shares[classed(output)] += share
    for output, times in seen.items():
        counts[classed(output)] += times
    more = frozenset(np.flatnonzero(counts / counts.sum() > shares).tolist())
    total = Fraction(float(shares[list(more)].sum())) if more else Fraction(0)
    ends = max(Fraction(0), total - pad), min(Fraction(1), total + pad)
    return LawEvent(name, lambda k: classed(k) in more, *ends)


def _modulo(m: int) -> Callable[[Any], int]:
    return lambda k: int(k % m)


def _blur(shares: Iterable[arb]) -> Fraction:
    """More than sums of the middles of some enclosures, as floats, can be off."""
    return _PAD + sum((Fraction(float(share.rad())) for share in shares), Fraction(0)) * 2


def _ordered(known: Mapping[Any, float], seen: Counter[Any], pad: Fraction) -> LawEvent:
    """The half-line of a listed law that lies furthest off."""
    outputs = sorted(known)
    law = np.cumsum([known[output] for output in outputs])
    drawn = np.cumsum([seen[output] for output in outputs]) / seen.total()
    place = int(np.argmax(np.abs(law - drawn)))
    cut, share = outputs[place], Fraction(float(law[place]))
    ends = max(Fraction(0), share - pad), min(Fraction(1), share + pad)
    return LawEvent(f"at most {printed(cut)}", lambda k: k <= cut, *ends)


def _furthest(law: Law, ordered: Sequence[int]) -> int:
    """Of some of the multiples seen: where the law and the releases differ most."""
    total = len(ordered)
    places = sorted({total * i // _CUTS for i in range(_CUTS)})
    return max(
        (ordered[place] for place in places),
        key=lambda k: abs(bisect_right(ordered, k) / total - float(law.cumulative(k).mid())),
    )


def _gap(ordered: Sequence[int]) -> tuple[int, int]:
    """The widest gap between two that were seen, in the middle of them."""
    quarter = len(ordered) // 8
    inner = ordered[quarter : len(ordered) - quarter] or ordered
    return max(pairwise(inner), key=lambda pair: pair[1] - pair[0], default=(0, 0))


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
    low, high = law.quantile(_EVEN_TAIL), law.quantile(1 - _EVEN_TAIL)
    if high - low > _MOST_EVEN:
        return None
    inside = sum((law.mass(k) for k in range(low, high + 1) if k % 2 == 0), arb(0))
    least, most = share_ends(inside)
    return LawEvent(
        "an even multiple", lambda k: k % 2 == 0, least, min(most + 2 * _EVEN_TAIL, Fraction(1))
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
