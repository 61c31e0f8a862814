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

from lastbit.audit.blackbox.exact_laws import exact_finding
from lastbit.audit.inputs import Pair, all_may_move, one_may_move
from lastbit.errors import InvalidParameter
from lastbit.exact import Ball, lower, upper
from lastbit.mechanisms import Laplace, RandomizedResponse, Snapping
from lastbit.sampling import Bits, secure_bits
from lastbit.verify import Code, exact_law

from .laws import Thresholded, low_tail_loss, pattern_loss
from .noise import (
    Floats,
    SparseVector,
    exponential,
    laplace,
    two_sided,
    uniform,
    vector,
)

Sampler: TypeAlias = Callable[[Any, int, Bits], NDArray[Any]]
EPSILON = Fraction(1, 10)
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


# ---------------------------------------------------------------- additive noise


def _additive(value: Any, size: int, bits: Bits, *, scale: float) -> Floats:
    x = vector(value)
    outputs: Floats = x + laplace(bits, scale, (size, len(x)))
    return outputs


def _additive_loss(x: Any, y: Any, *, scale: Fraction) -> Fraction:
    """Real Laplace noise on each entry: the event {every entry beyond x} attains the L1 bound."""
    moves = zip(vector(x).tolist(), vector(y).tolist(), strict=True)
    return sum((abs(Fraction(a) - Fraction(b)) for a, b in moves), Fraction(0)) / scale


def _prefix_sums(value: Any, size: int, bits: Bits) -> Floats:
    return np.cumsum(_additive(value, size, bits, scale=10.0), axis=1)


def _snapped(value: Any, size: int, bits: Bits) -> Floats:
    noise = Snapping(sensitivity=1, bound=64, epsilon=EPSILON)
    outputs: Floats = noise.release(np.full(size, float(vector(value)[0])))
    return outputs


def _snapped_loss(x: Any, y: Any) -> float:
    """From the exact law of the float code itself."""
    inner = Snapping(sensitivity=1, bound=64, epsilon=EPSILON).inner_epsilon
    code = Code("lastbit.mechanisms.snapping:snapped", epsilon=inner, bound=64.0)
    return _law_loss(vector(x)[0], vector(y)[0], law=lambda value: exact_law(code, float(value)))


def _law_loss(x: Any, y: Any, *, law: Callable[[Any], Any]) -> float:
    found = exact_finding(law(x), law(y), epsilon=None, delta=Fraction(0))
    assert found is not None  # laws of kinds that can be compared
    return found.epsilon_lower


# ---------------------------------------------------------------- noisy maximum


def _noisy(value: Any, size: int, bits: Bits, *, one_sided: bool) -> Floats:
    x = vector(value)
    if one_sided:
        return x + exponential(bits, 20.0, (size, len(x)))
    return x + two_sided(bits, 20.0, size * len(x)).reshape(size, len(x))


def _noisy_argmax(value: Any, size: int, bits: Bits, *, one_sided: bool) -> NDArray[np.int64]:
    places: NDArray[np.int64] = _noisy(value, size, bits, one_sided=one_sided).argmax(axis=1)
    return places


def _noisy_maximum(value: Any, size: int, bits: Bits, *, one_sided: bool) -> Floats:
    """Wrong: the noisy value itself, not its place."""
    greatest: Floats = _noisy(value, size, bits, one_sided=one_sided).max(axis=1)
    return greatest


# ---------------------------------------------------------------- sparse vector


def _threshold_only_loss(x: Any, y: Any) -> float:
    """Sparse vector 5 has no noise on the queries: their order is published.

    Theorem  under x the entries above are {x_i >= t}, for a t that can be any real number. If x
             and y put two entries in different orders, some pattern is possible under x alone
    """
    possible = [{tuple((v >= t).tolist()) for t in [*v, math.inf]} for v in map(vector, (x, y))]
    if possible[0] - possible[1]:
        return math.inf
    moves = [a - b for a, b in zip(vector(x).tolist(), vector(y).tolist(), strict=True)]
    if len(set(moves)) == 1:  # the whole moves: as if the threshold moved
        return float(abs(moves[0])) / 20
    raise InvalidParameter("x", problem="has no closed loss", remedy="audit by sampling")


def _exact_vector(value: Any) -> list[Fraction]:
    return [Fraction(query) for query in vector(value).tolist()]


def _thresholded(
    threshold_scale: int,
    query_scale: Fraction | int,
    *,
    threshold: str = "1",
    most: int | None = 1,
    answer_scale: int | None = None,
) -> Callable[[Any, Any], float]:
    law = Thresholded(
        threshold=Fraction(threshold),
        threshold_scale=Fraction(threshold_scale),
        query_scale=Fraction(query_scale),
        most=most,
    )
    answers = None if answer_scale is None else Fraction(answer_scale)
    return lambda x, y: pattern_loss(law, _exact_vector(x), _exact_vector(y), answer_scale=answers)


def _tail(x: Any, y: Any, *, scale: int, all_of_them: bool = False) -> float:
    """Everything is very low; of numbers that are published, or of all entries at once."""
    one, two = _exact_vector(x), _exact_vector(y)
    least = len(one) if all_of_them else 1
    return lower(Ball.of(low_tail_loss(one, two, scale=Fraction(scale), least=least)))


def _one_sided_loss(x: Any, y: Any) -> float:
    """No output is below the greatest query: it is certain that it was not greater."""
    return math.inf if vector(x).max() < vector(y).max() else 0.0


def _both(value: Any, size: int, bits: Bits, *, parts: tuple[Sampler, ...]) -> NDArray[Any]:
    return np.concatenate([part(value, size, bits) for part in parts], axis=1)


# ---------------------------------------------------------------- randomised answers


def _bloom(value: Any) -> NDArray[np.bool_]:
    """The filter of a word: each hash sets one bit."""
    text = str(int(vector(value)[0])).encode()
    found = np.zeros(_BITS, dtype=bool)
    for number in range(_HASHES):
        digest = hashlib.blake2b(text, digest_size=8, salt=bytes([number])).digest()
        found[int.from_bytes(digest, "big") % _BITS] = True
    return found


def _rappor(value: Any, size: int, bits: Bits) -> NDArray[np.bool_]:
    """The permanent answer: each bit of the filter is replaced by a fair coin with chance f."""
    u = uniform(bits, (size, _BITS))
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
    table = np.array(_geometric_table(int(vector(value)[0]), 5))
    u = np.floor(uniform(bits, (size,)) * float(table[-1])) + 1
    return np.searchsorted(table, u)


def _truncated_geometric_loss(x: Any, y: Any) -> float:
    """From the table: all probabilities are rational. Rounded down."""
    laws = [np.diff(_geometric_table(int(vector(v)[0]), 5), prepend=0).tolist() for v in (x, y)]
    return lower(Ball.of(max(Fraction(a, b) for a, b in zip(*laws, strict=True))).log())


# ---------------------------------------------------------------- exact ones, which must pass


def _exact_laplace(value: Any, size: int, bits: Bits) -> NDArray[Any]:
    x = vector(value).astype(np.int64)
    noise = Laplace(sensitivity=1, epsilon=EPSILON)
    outputs: NDArray[Any] = noise.release(np.tile(x, size)).reshape(size, len(x))
    return outputs


def _exact_response(value: Any, size: int, bits: Bits) -> NDArray[Any]:
    answer = int(vector(value)[0])
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
        _made("snapped Laplace", "Mironov 2012", _snapped, one, EPSILON, _snapped_loss),
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
    place = [partial(_noisy_argmax, one_sided=e) for e in (False, True)]
    value = [_gridded(partial(_noisy_maximum, one_sided=e)) for e in (False, True)]
    all_low = partial(_tail, scale=20, all_of_them=True)
    return [
        _made("noisy max 1", ding, place[0], pairs, EPSILON),
        _made("noisy max 2", ding, place[1], pairs, EPSILON),
        _made("noisy max 3", ding, value[0], pairs, Fraction(1, 4), all_low),
        _made("noisy max 4", ding, value[1], pairs, math.inf, _one_sided_loss),
    ]


def _sparse_vectors() -> list[Benchmark]:
    pairs, lyu = all_may_move(10), "Lyu, Su, Li 2017"
    first = SparseVector(threshold_scale=20.0, query_scale=40.0, threshold=0.5)
    second = SparseVector(threshold_scale=20.0, query_scale=40.0, fresh=True)
    third = SparseVector(threshold_scale=20.0, query_scale=20.0, numeric=True)
    fourth = SparseVector(threshold_scale=40.0, query_scale=1 / 0.075)
    fifth = SparseVector(threshold_scale=20.0, query_scale=0.0, most=None)
    sixth = SparseVector(threshold_scale=20.0, query_scale=20.0, most=None)
    thinly = _thresholded(40, Fraction(40, 3))
    return [
        _made("sparse vector 1", lyu, first, pairs, EPSILON, _thresholded(20, 40, threshold="1/2")),
        _made("sparse vector 2", lyu, second, pairs, EPSILON, _thresholded(20, 40)),
        _made("sparse vector 3", lyu, _gridded(third), pairs, None, partial(_tail, scale=20)),
        _made("sparse vector 4", lyu, fourth, pairs, Fraction(7, 40), thinly),
        _made("sparse vector 5", lyu, fifth, pairs, math.inf, _threshold_only_loss),
        _made("sparse vector 6", lyu, sixth, pairs, None, _thresholded(20, 20, most=None)),
    ]


def _others() -> list[Benchmark]:
    vectors, wang = all_may_move(10), "Wang et al. 2019"
    third = SparseVector(threshold_scale=20.0, query_scale=40.0, numeric=True, most=2)
    fourth = SparseVector(threshold_scale=40.0, query_scale=1 / 0.075, most=2)
    both = _gridded(partial(_both, parts=(third, fourth)))
    numeric = SparseVector(threshold_scale=30.0, query_scale=120.0, most=2, answer_scale=60.0)
    fourth_alone = _thresholded(40, Fraction(40, 3), most=2)

    def sum_of_both(x: Any, y: Any) -> float:
        """Two mechanisms side by side: the losses of independent events add up."""
        return lower(Ball.of(_tail(x, y, scale=40)) + fourth_alone(x, y))

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
        _made(
            "numerical sparse vector",
            wang,
            _gridded(numeric),
            vectors,
            EPSILON,
            _thresholded(30, 120, most=2, answer_scale=60),
        ),
        _made("parallel sparse vector", "Bichsel et al. 2021", both, vectors, None, sum_of_both),
    ]


def _correct_ones() -> list[Benchmark]:
    answers: list[Pair] = [(0, 1), (2, 3)]
    noise, response = Laplace(sensitivity=1, epsilon=EPSILON), _response()

    def moved(x: Any, y: Any) -> float:
        """One entry moves; the noise of the others is the same."""
        places = zip(vector(x).tolist(), vector(y).tolist(), strict=True)
        one, two = next((int(a), int(b)) for a, b in places if a != b)
        return _law_loss(one, two, law=noise.law)

    told = partial(_law_loss, law=response.law)
    return [
        _made("exact Laplace", "lastbit", _exact_laplace, one_may_move(1), EPSILON, moved),
        _made("exact histogram", "lastbit", _exact_laplace, one_may_move(5), EPSILON, moved),
        _made("exact response", "lastbit", _exact_response, answers, EPSILON, told),
    ]
