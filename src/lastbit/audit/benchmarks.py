"""Mechanisms to try an auditor on: right ones, wrong ones, and ones that only floats make wrong.

Each is written from its paper's definition, at the nominal epsilon 1/10 and the parameters that
DP-Sniper and StatDP were measured at, so that bounds can be compared. **None of these is for
use**: most are broken on purpose, and their noise is plain float arithmetic.

`benchmark(value, size)` gives `size` outputs, `benchmark.pairs` the neighbours that its claim is
about, and `benchmark.exact`, where there is one, the greatest loss of two inputs in closed form.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from lastbit.audit.benchmark_laws import Thresholded
from lastbit.audit.choices import Pair, all_may_move, one_may_move
from lastbit.audit.exactly import exact_finding
from lastbit.errors import InvalidParameter
from lastbit.exact.ball import Ball
from lastbit.exact.rounding import lower, upper
from lastbit.mechanisms.laplace import Laplace
from lastbit.mechanisms.randomized_response import RandomizedResponse
from lastbit.mechanisms.snapping import Snapping
from lastbit.sampling.bits import Bits, secure_bits, words

__all__ = ["Benchmark", "benchmark", "benchmarks"]

Floats: TypeAlias = NDArray[np.float64]
Sampler: TypeAlias = Callable[[Any, int, Bits], NDArray[Any]]
EPSILON = Fraction(1, 10)
_ABORTED, _BELOW = -2000.0, -1000.0
_BITS, _HASHES, _RANDOM = 20, 4, Fraction(95, 100)


@dataclass(frozen=True, slots=True, kw_only=True)
class Benchmark:
    """A mechanism with its claim, its neighbours, and what is known of its true loss.

    `truth` is proved not to be exceeded by the loss of any pair; one above the claim means that the
    claim is false. None where nobody has worked it out. `correct` says that the claim is true:
    whoever calls it broken is wrong.

    >>> float(benchmark("histogram 2").truth), benchmark("sparse vector 5").truth
    (10.0, inf)
    """

    name: str
    source: str
    epsilon: Fraction
    truth: Fraction | float | None
    pairs: tuple[Pair, ...]
    sampler: Sampler
    exact: Callable[[Any, Any], Fraction | float] | None = None

    @property
    def correct(self) -> bool:
        """Whether the claim is known to be true."""
        return self.truth is not None and self.truth <= self.epsilon

    def __call__(self, value: Any, size: int) -> NDArray[Any]:
        return self.sampler(value, size, secure_bits())


def benchmark(name: str) -> Benchmark:
    """The benchmark of that name."""
    for found in benchmarks():
        if found.name == name:
            return found
    raise InvalidParameter("name", problem="is no benchmark", remedy="see benchmarks()")


# ---------------------------------------------------------------- noise in plain floats


def _uniform(bits: Bits, shape: tuple[int, ...]) -> Floats:
    """(k + 1/2) 2**-53 for uniform k: never 0 or 1."""
    numbers = words(bits, math.prod(shape), np.uint64) >> np.uint64(11)
    uniform: Floats = (numbers.astype(np.float64) + 0.5) * 2.0**-53
    return uniform.reshape(shape)


def _exponential(bits: Bits, scale: float, shape: tuple[int, ...]) -> Floats:
    noise: Floats = -scale * np.log(_uniform(bits, shape))
    return noise


def _laplace(bits: Bits, scale: float, shape: tuple[int, ...]) -> Floats:
    """By inversion, as libraries do: the two halves of the uniform are the two signs."""
    u = _uniform(bits, shape)
    noise: Floats = scale * np.log(2 * np.minimum(u, 1 - u))
    return np.where(u < 0.5, noise, -noise)


def _two_sided(bits: Bits, scale: float, size: int) -> Floats:
    """Laplace noise from a sign and an exponential: half the time of the inversion."""
    numbers = words(bits, size, np.uint64)
    noise = (numbers >> np.uint64(11)).astype(np.float64)
    noise += 0.5
    noise *= 2.0**-53
    np.log(noise, out=noise)
    noise *= scale
    signs = (numbers << np.uint64(63)).view(np.float64)
    return np.copysign(noise, signs, out=noise)


def _vector(value: Any) -> Floats:
    return np.atleast_1d(np.asarray(value, dtype=np.float64))


# ---------------------------------------------------------------- additive noise


def _additive(value: Any, size: int, bits: Bits, *, scale: float) -> Floats:
    x = _vector(value)
    outputs: Floats = x + _laplace(bits, scale, (size, len(x)))
    return outputs


def _additive_loss(x: Any, y: Any, *, scale: Fraction) -> Fraction:
    """Real Laplace noise on each entry: the event {every entry beyond x} attains the L1 bound."""
    moves = zip(_vector(x).tolist(), _vector(y).tolist(), strict=True)
    return sum((abs(Fraction(a) - Fraction(b)) for a, b in moves), Fraction(0)) / scale


def _prefix_sums(value: Any, size: int, bits: Bits) -> Floats:
    return np.cumsum(_additive(value, size, bits, scale=10.0), axis=1)


def _snapped(value: Any, size: int, bits: Bits) -> Floats:
    noise = Snapping(sensitivity=1, bound=64, epsilon=EPSILON)
    outputs: Floats = noise.release(np.full(size, float(_vector(value)[0])))
    return outputs


# ---------------------------------------------------------------- noisy maximum


def _noisy(value: Any, size: int, bits: Bits, *, exponential: bool) -> Floats:
    x = _vector(value)
    if exponential:
        return x + _exponential(bits, 20.0, (size, len(x)))
    return x + _two_sided(bits, 20.0, size * len(x)).reshape(size, len(x))


def _noisy_argmax(value: Any, size: int, bits: Bits, *, exponential: bool) -> NDArray[np.int64]:
    places: NDArray[np.int64] = _noisy(value, size, bits, exponential=exponential).argmax(axis=1)
    return places


def _noisy_maximum(value: Any, size: int, bits: Bits, *, exponential: bool) -> Floats:
    """Wrong: the noisy value itself, not its place."""
    greatest: Floats = _noisy(value, size, bits, exponential=exponential).max(axis=1)
    return greatest


# ---------------------------------------------------------------- sparse vector


@dataclass(frozen=True, slots=True, kw_only=True)
class _SparseVector:
    """Which queries lie above a noisy threshold, as in Lyu, Su, Li 2017.

    A scale of 0 means no noise; `most` answers above end the run, None never does.
    """

    threshold_scale: float
    query_scale: float
    threshold: float = 1.0
    most: int | None = 1
    fresh: bool = False  # a new noisy threshold after each answer above
    numeric: bool = False  # the noisy query that was compared is published
    answer_scale: float = 0.0  # an answer above is published with new noise of this scale

    def __call__(self, value: Any, size: int, bits: Bits) -> Floats:
        x = _vector(value)
        ended = _ABORTED if self.numeric or self.answer_scale else -1.0
        result = np.full((len(x), size), ended)
        running, seen = np.arange(size), np.zeros(size, dtype=np.int64)
        limit = self._limit(size, bits)
        for query, column in zip(x.tolist(), result, strict=True):
            noisy = query + _two_sided(bits, self.query_scale, len(running))
            above = noisy >= limit
            column[running] = self._answers(query, noisy, above, bits)
            if self.fresh:
                limit = np.where(above, self._limit(len(running), bits), limit)
            if self.most is not None:
                seen = seen + above
                left = seen < self.most
                running, seen, limit = running[left], seen[left], limit[left]
        return result.T

    def _limit(self, size: int, bits: Bits) -> Floats:
        return self.threshold + _two_sided(bits, self.threshold_scale, size)

    def _answers(self, query: float, noisy: Floats, above: NDArray[np.bool_], bits: Bits) -> Floats:
        """What is published where the run has not ended."""
        answers = noisy if self.numeric else np.ones(len(noisy))
        if self.answer_scale:
            answers[above] = query + _two_sided(bits, self.answer_scale, int(above.sum()))
        return np.where(above, answers, _BELOW if self.numeric else 0.0)


def _threshold_only_loss(x: Any, y: Any) -> float:
    """Sparse vector 5 has no noise on the queries: their order is published.

    Theorem  under x the entries above are {x_i >= t}, for a t that can be any real number. If x
             and y put two entries in different orders, some pattern is possible under x alone
    """
    possible = [{tuple((v >= t).tolist()) for t in [*v, math.inf]} for v in map(_vector, (x, y))]
    if possible[0] - possible[1]:
        return math.inf
    moves = [a - b for a, b in zip(_vector(x).tolist(), _vector(y).tolist(), strict=True)]
    if len(set(moves)) == 1:  # the whole moves: as if the threshold moved
        return float(abs(moves[0])) / 20
    raise InvalidParameter("x", problem="has no closed loss", remedy="audit by sampling")


def _pattern_loss(x: Any, y: Any, *, law: Thresholded) -> float:
    """From the exact laws of the patterns, for real noise; rounded down."""
    one, two = (law.law([Fraction(query) for query in _vector(v).tolist()]) for v in (x, y))
    found = exact_finding(one, two, epsilon=None, delta=Fraction(0))
    assert found is not None  # two mappings
    return found.epsilon_lower


def _thresholded(
    threshold_scale: int, query_scale: Fraction | int, *, threshold: str = "1", most: int | None = 1
) -> Callable[[Any, Any], float]:
    law = Thresholded(
        threshold=Fraction(threshold),
        threshold_scale=Fraction(threshold_scale),
        query_scale=Fraction(query_scale),
        most=most,
    )
    return partial(_pattern_loss, law=law)


def _both(value: Any, size: int, bits: Bits, *, parts: tuple[Sampler, ...]) -> NDArray[Any]:
    return np.concatenate([part(value, size, bits) for part in parts], axis=1)


# ---------------------------------------------------------------- randomised answers


def _bloom(value: Any) -> NDArray[np.bool_]:
    """The filter of a word: each hash sets one bit."""
    text = str(int(_vector(value)[0])).encode()
    found = np.zeros(_BITS, dtype=bool)
    for number in range(_HASHES):
        digest = hashlib.blake2b(text, digest_size=8, salt=bytes([number])).digest()
        found[int.from_bytes(digest, "big") % _BITS] = True
    return found


def _rappor(value: Any, size: int, bits: Bits) -> NDArray[np.bool_]:
    """The permanent answer: each bit of the filter is replaced by a fair coin with chance f."""
    u = _uniform(bits, (size, _BITS))
    half = float(_RANDOM) / 2
    return (u < half) | ((u >= 2 * half) & _bloom(value))


def _rappor_loss(x: Any, y: Any) -> float:
    """Each bit that differs costs ln((1-f/2)/(f/2)), and the bits are independent; rounded down."""
    different = int((_bloom(x) != _bloom(y)).sum())
    return lower(Ball.of((1 - _RANDOM / 2) / (_RANDOM / 2)).log() * different)


def _full_filters() -> Pair:
    """Two words whose filters have no bit in common and no hash lost."""
    words_ = range(1000)
    filters = [_bloom(word) for word in words_]
    full = [word for word in words_ if filters[word].sum() == _HASHES]
    apart = (w for w in full if not (filters[w] & filters[full[0]]).any())
    return full[0], next(apart)


def _geometric_table(count: int, most: int) -> list[int]:
    """F(0) ... F(most): the cumulative counts of GeoSample at k = 5, the least above lb(2/0.1)."""
    two, odd = 32, 33
    total = (2 * two + 1) * odd ** (most - 1)
    below = [two ** (count - z) * odd ** (most - (count - z)) for z in range(count)]
    above = [
        total - two ** (z - count + 1) * odd ** (most - 1 - (z - count)) for z in range(count, most)
    ]
    return [*below, *above, total]


def _truncated_geometric(value: Any, size: int, bits: Bits) -> NDArray[np.int64]:
    table = np.array(_geometric_table(int(_vector(value)[0]), 5))
    u = np.floor(_uniform(bits, (size,)) * float(table[-1])) + 1
    return np.searchsorted(table, u)


def _truncated_geometric_loss(x: Any, y: Any) -> float:
    """From the table: all probabilities are rational. Rounded down."""
    laws = [np.diff(_geometric_table(int(_vector(v)[0]), 5), prepend=0).tolist() for v in (x, y)]
    return lower(Ball.of(max(Fraction(a, b) for a, b in zip(*laws, strict=True))).log())


# ---------------------------------------------------------------- exact ones, which must pass


def _exact_laplace(value: Any, size: int, bits: Bits) -> NDArray[Any]:
    x = _vector(value).astype(np.int64)
    noise = Laplace(sensitivity=1, epsilon=EPSILON)
    outputs: NDArray[Any] = noise.release(np.tile(x, size)).reshape(size, len(x))
    return outputs


def _exact_response(value: Any, size: int, bits: Bits) -> NDArray[Any]:
    answer = int(_vector(value)[0])
    outputs: NDArray[Any] = _response().release(np.full(size, answer))
    return outputs


def _response() -> RandomizedResponse:
    return RandomizedResponse(categories=4, epsilon=EPSILON)


# ---------------------------------------------------------------- the list


def benchmarks() -> tuple[Benchmark, ...]:
    """All of them, in the order in which tables show them."""
    return (*_additive_ones(), *_maxima(), *_sparse_vectors(), *_others(), *_correct_ones())


def _made(
    name: str,
    source: str,
    sampler: Sampler,
    pairs: list[Pair],
    truth: Fraction | float | None = None,
    exact: Callable[[Any, Any], Fraction | float] | None = None,
    *,
    epsilon: Fraction = EPSILON,
) -> Benchmark:
    return Benchmark(
        name=name,
        source=source,
        epsilon=epsilon,
        truth=truth,
        pairs=tuple(pairs),
        sampler=sampler,
        exact=exact,
    )


def _additive_ones() -> list[Benchmark]:
    one, many, ding = one_may_move(1), one_may_move(5), "Ding et al. 2018"
    ten, tenth = Fraction(10), Fraction(1, 10)
    add, loss = partial(_additive, scale=10.0), partial(_additive_loss, scale=ten)
    wrong, wrong_loss = partial(_additive, scale=0.1), partial(_additive_loss, scale=tenth)
    sums = all_may_move(10)
    return [
        _made("float Laplace", "Mironov 2012", add, one, math.inf),
        _made("snapped Laplace", "Mironov 2012", _snapped, one, EPSILON),
        _made("histogram 1", ding, _gridded(add), many, EPSILON, loss),
        _made("histogram 2", ding, _gridded(wrong), many, Fraction(10), wrong_loss),
        _made("prefix sums", "Wang et al. 2019", _gridded(_prefix_sums), sums, Fraction(1), loss),
    ]


def _gridded(sampler: Sampler) -> Sampler:
    """Outputs rounded to 2**-20: these benchmarks are about the formula, not the floats."""
    return partial(_rounded, sampler=sampler)


def _rounded(value: Any, size: int, bits: Bits, *, sampler: Sampler) -> Floats:
    grid = 2.0**20
    outputs: Floats = np.round(sampler(value, size, bits) * grid) / grid
    return outputs


def _maxima() -> list[Benchmark]:
    pairs, ding = all_may_move(5), "Ding et al. 2018"
    place = [partial(_noisy_argmax, exponential=e) for e in (False, True)]
    value = [_gridded(partial(_noisy_maximum, exponential=e)) for e in (False, True)]
    return [
        _made("noisy max 1", ding, place[0], pairs, EPSILON),
        _made("noisy max 2", ding, place[1], pairs, EPSILON),
        _made("noisy max 3", ding, value[0], pairs, Fraction(1, 4)),
        _made("noisy max 4", ding, value[1], pairs, math.inf),
    ]


def _sparse_vectors() -> list[Benchmark]:
    pairs, lyu = all_may_move(10), "Lyu, Su, Li 2017"
    first = _SparseVector(threshold_scale=20.0, query_scale=40.0, threshold=0.5)
    second = _SparseVector(threshold_scale=20.0, query_scale=40.0, fresh=True)
    third = _SparseVector(threshold_scale=20.0, query_scale=20.0, numeric=True)
    fourth = _SparseVector(threshold_scale=40.0, query_scale=1 / 0.075)
    fifth = _SparseVector(threshold_scale=20.0, query_scale=0.0, most=None)
    sixth = _SparseVector(threshold_scale=20.0, query_scale=20.0, most=None)
    thinly = _thresholded(40, Fraction(40, 3))
    return [
        _made("sparse vector 1", lyu, first, pairs, EPSILON, _thresholded(20, 40, threshold="1/2")),
        _made("sparse vector 2", lyu, second, pairs, EPSILON, _thresholded(20, 40)),
        _made("sparse vector 3", lyu, _gridded(third), pairs),
        _made("sparse vector 4", lyu, fourth, pairs, Fraction(7, 40), thinly),
        _made("sparse vector 5", lyu, fifth, pairs, math.inf, _threshold_only_loss),
        _made("sparse vector 6", lyu, sixth, pairs, None, _thresholded(20, 20, most=None)),
    ]


def _others() -> list[Benchmark]:
    vectors, wang = all_may_move(10), "Wang et al. 2019"
    third = _SparseVector(threshold_scale=20.0, query_scale=40.0, numeric=True, most=2)
    fourth = _SparseVector(threshold_scale=40.0, query_scale=1 / 0.075, most=2)
    both = _gridded(partial(_both, parts=(third, fourth)))
    numeric = _SparseVector(threshold_scale=30.0, query_scale=120.0, most=2, answer_scale=60.0)
    filters = _full_filters()
    words_: list[Pair] = [filters, (0, 1), (1, 2)]
    counts: list[Pair] = [(k, k + 1) for k in range(5)]
    claim = Fraction(upper(Ball.of((1 - _RANDOM / 2) / (_RANDOM / 2)).log() * 2 * _HASHES))
    step = Fraction(upper(Ball.of(Fraction(33, 32)).log()))
    return [
        _made(
            "RAPPOR", "Erlingsson et al. 2014", _rappor, words_, claim, _rappor_loss, epsilon=claim
        ),
        _made(
            "truncated geometric",
            "Balcer, Vadhan 2018",
            _truncated_geometric,
            counts,
            step,
            _truncated_geometric_loss,
        ),
        _made("numerical sparse vector", wang, _gridded(numeric), vectors, EPSILON),
        _made("parallel sparse vector", "Bichsel et al. 2021", both, vectors),
    ]


def _correct_ones() -> list[Benchmark]:
    answers: list[Pair] = [(0, 1), (2, 3)]
    return [
        _made("exact Laplace", "lastbit", _exact_laplace, one_may_move(1), EPSILON),
        _made("exact histogram", "lastbit", _exact_laplace, one_may_move(5), EPSILON),
        _made("exact response", "lastbit", _exact_response, answers, EPSILON),
    ]
