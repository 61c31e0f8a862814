"""Events fitted to some releases, at which a law that is not that of release is likely to fail.

Law      an event here is a set of outputs with bounds on its probability by the law. It is chosen
         from releases that are not counted: whatever they were, the count of the event among other
         releases is binomial with the law's probability, if the law is that of release
Theorem  at most `MOST_FITTED` events are made, so a share of the error divided by twice that number
         goes to each of their two-sided tests
Checked  tests/audit/test_releases.py

The most frequent outputs; all outputs that were seen, which come again too often where there are
fewer outputs than the law says; residues modulo 2 ... 16 of whole multiples; buckets of a digest
for outputs that a law lists; the half-line that lies furthest off; the widest gap.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
from flint import arb

from lastbit.exact import ends as ends_of
from lastbit.laws import Law

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
    """The classes of which more were seen than the law says: of so many, by a name."""
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
