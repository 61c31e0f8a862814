"""Mechanisms to try an auditor on: right ones, wrong ones, and ones that only floats make wrong.

Each is written from its paper's definition, at the nominal epsilon 1/10 and the parameters that
DP-Sniper and StatDP were measured at, so that bounds can be compared. **None of these is for
use**: most are broken on purpose, and their noise is plain float arithmetic.

`benchmark(value, size)` gives `size` outputs, `benchmark.pairs` the neighbours that its claim is
about, and `benchmark.exact`, where there is one, the greatest loss of two inputs in closed form.
`benchmark.cells` is the law of two inputs in floats, as far as counting can tell them apart.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, partial
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
from .noise import Floats, SparseVector, exponential, laplace, two_sided, uniform, vector
from .optimum import (
    Cells,
    laplace_cdf,
    laplace_moves,
    largest,
    merged,
    mixed,
    of_laws,
    place_of_largest,
    published_above,
    together,
)

Sampler: TypeAlias = Callable[[Any, int, Bits], NDArray[Any]]
CellsOf: TypeAlias = Callable[[Any, Any], Cells]
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
    cells: CellsOf
    delta: Fraction = Fraction(0)

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


def additive(value: Any, size: int, bits: Bits, *, scale: float) -> Floats:
    x = vector(value)
    outputs: Floats = x + laplace(bits, scale, (size, len(x)))
    return outputs


def _additive_loss(x: Any, y: Any, *, scale: Fraction) -> Fraction:
    """Real Laplace noise on each entry: the event {every entry beyond x} attains the L1 bound."""
    moves = zip(vector(x).tolist(), vector(y).tolist(), strict=True)
    return sum((abs(Fraction(a) - Fraction(b)) for a, b in moves), Fraction(0)) / scale


def additive_cells(x: Any, y: Any, *, scale: float) -> Cells:
    return laplace_moves((vector(x) - vector(y)).tolist(), scale)


def last_bits(x: Any, y: Any, *, scale: float = 10.0) -> Cells:
    """Float Laplace has no closed law. The best event known: bits finer than 2**-53, near 0.

    Under 0 the noise itself is published: between 2**-k-1 and 2**-k it is a multiple of 2**-53-k,
    and one in 2**k of those is one of 2**-53 too. Under 1 or 2 every output is one.
    """
    ends = 1 - np.exp(-(2.0 ** -np.arange(1, 60)) / scale)
    fine = float(np.sum((ends[:-1] - ends[1:]) * (1 - 2.0 ** -np.arange(1, 59))))
    return np.array([[fine, 1 - fine], [0.0, 1.0]]) if 0 in (x, y) else np.ones((2, 1))


def _prefix_sums(value: Any, size: int, bits: Bits) -> Floats:
    return np.cumsum(additive(value, size, bits, scale=10.0), axis=1)


def _snapped(value: Any, size: int, bits: Bits) -> Floats:
    noise = Snapping(sensitivity=1, bound=64, epsilon=EPSILON)
    outputs: Floats = noise.release(np.full(size, float(vector(value)[0])))
    return outputs


def _snapped_loss(x: Any, y: Any) -> float:
    """From the exact law of the float code itself."""
    return _law_loss(vector(x)[0], vector(y)[0], law=_snapped_law)


def _snapped_cells(x: Any, y: Any) -> Cells:
    laws = (_snapped_law(vector(value)[0]) for value in (x, y))
    return merged(of_laws(*(dict(zip(f.outputs, f.probabilities, strict=True)) for f in laws)))


@cache
def _snapped_law(value: float) -> Any:
    inner = Snapping(sensitivity=1, bound=64, epsilon=EPSILON).inner_epsilon
    code = Code("lastbit.mechanisms.snapping:snapped", epsilon=inner, bound=64.0)
    return exact_law(code, float(value))


def _law_loss(x: Any, y: Any, *, law: Callable[[Any], Any]) -> float:
    found = exact_finding(law(x), law(y), epsilon=None, delta=Fraction(0))
    assert found is not None  # laws of kinds that can be compared
    return found.epsilon_lower


# ---------------------------------------------------------------- noisy maximum


def noisy(value: Any, size: int, bits: Bits, *, one_sided: bool, scale: float) -> Floats:
    x = vector(value)
    if one_sided:
        return x + exponential(bits, scale, (size, len(x)))
    return x + two_sided(bits, scale, size * len(x)).reshape(size, len(x))


def noisy_argmax(
    value: Any, size: int, bits: Bits, *, one_sided: bool = False, scale: float = 20.0
) -> NDArray[np.int64]:
    outputs = noisy(value, size, bits, one_sided=one_sided, scale=scale)
    places: NDArray[np.int64] = outputs.argmax(axis=1)
    return places


def noisy_maximum(
    value: Any, size: int, bits: Bits, *, one_sided: bool = False, scale: float = 20.0
) -> Floats:
    """Wrong: the noisy value itself, not its place."""
    greatest: Floats = noisy(value, size, bits, one_sided=one_sided, scale=scale).max(axis=1)
    return greatest


def _exponential_cdf(centre: float) -> Any:
    return lambda t: -np.expm1(-np.maximum(t - centre, 0) / 20)


def maximum_cells(
    x: Any,
    y: Any,
    *,
    of: Callable[[Any, Any, Any], Cells],
    one_sided: bool = False,
    scale: float = 20.0,
) -> Cells:
    noise = _exponential_cdf if one_sided else partial(laplace_cdf, scale=scale)
    return of(vector(x).tolist(), vector(y).tolist(), noise)


# ---------------------------------------------------------------- sparse vector


def threshold_only_cells(x: Any, y: Any, *, scale: float = 20.0) -> Cells:
    """The pattern changes where the noisy threshold passes a query."""

    def law(queries: Floats) -> dict[Any, float]:
        ends = np.unique(queries)
        masses = np.diff(laplace_cdf(1, scale)(ends), prepend=0.0, append=1.0)
        return {
            tuple((queries >= end).tolist()): float(mass)
            for end, mass in zip([*ends, math.inf], masses, strict=True)
        }

    return of_laws(*(law(vector(value)) for value in (x, y)))


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


def thresholded(
    threshold_scale: Fraction | int,
    query_scale: Fraction | int,
    *,
    threshold: str = "1",
    most: int | None = 1,
    answer_scale: int | None = None,
) -> tuple[Callable[[Any, Any], float], CellsOf]:
    """The loss and the cells of two inputs."""
    law = Thresholded(
        threshold=Fraction(threshold),
        threshold_scale=Fraction(threshold_scale),
        query_scale=Fraction(query_scale),
        most=most,
    )
    answers = None if answer_scale is None else Fraction(answer_scale)

    def loss(x: Any, y: Any) -> float:
        return pattern_loss(law, _exact_vector(x), _exact_vector(y), answer_scale=answers)

    def cells(x: Any, y: Any) -> Cells:
        """The patterns, those with the same moves of answers together."""
        one, two = (
            {pattern: float(share.ends[0]) for pattern, share in law.law(_exact_vector(v)).items()}
            for v in (x, y)
        )
        if answer_scale is None:
            return of_laws(one, two)
        moves = (vector(x) - vector(y)).tolist()
        groups: dict[tuple[float, ...], list[Any]] = {}
        for pattern in one:
            above = (abs(m) for m, answer in zip(moves, pattern, strict=False) if answer and m)
            groups.setdefault(tuple(sorted(above)), []).append(pattern)
        return mixed([
            together([
                np.array([[side[pattern] for pattern in alike] for side in (one, two)]),
                laplace_moves(moved, answer_scale),
            ])
            for moved, alike in groups.items()
        ])  # fmt: skip

    return loss, cells


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


def _rappor_cells(x: Any, y: Any) -> Cells:
    """How many of the bits that differ are as under the first input."""
    n, p = int((_bloom(x) != _bloom(y)).sum()), 1 - float(_RANDOM) / 2
    law = {k: math.comb(n, k) * p**k * (1 - p) ** (n - k) for k in range(n + 1)}
    return of_laws(law, {n - k: share for k, share in law.items()})


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
    laws = (_geometric_masses(value).tolist() for value in (x, y))
    return lower(Ball.of(max(Fraction(a, b) for a, b in zip(*laws, strict=True))).log())


def _geometric_masses(value: Any) -> NDArray[np.int64]:
    return np.diff(_geometric_table(int(vector(value)[0]), 5), prepend=0)


def _truncated_geometric_cells(x: Any, y: Any) -> Cells:
    masses = np.array([_geometric_masses(value) for value in (x, y)], dtype=np.float64)
    cells: Cells = masses / masses.sum(axis=1, keepdims=True)
    return cells


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


def made(
    name: str,
    source: str,
    sampler: Sampler,
    pairs: list[Pair],
    cells: CellsOf,
    truth: Fraction | float | None = None,
    exact: Callable[[Any, Any], Fraction | float] | None = None,
    *,
    epsilon: Fraction = EPSILON,
    delta: Fraction = Fraction(0),
) -> Benchmark:
    return Benchmark(
        name=name,
        source=source,
        epsilon=epsilon,
        truth=truth,
        pairs=tuple(pairs),
        sampler=sampler,
        exact=exact,
        cells=cells,
        delta=delta,
    )


def _additive_ones() -> list[Benchmark]:
    one, many, ding = one_may_move(1), one_may_move(5), "Ding et al. 2018"
    ten, tenth = Fraction(10), Fraction(1, 10)
    add, loss = partial(additive, scale=10.0), partial(_additive_loss, scale=ten)
    wrong, wrong_loss = partial(additive, scale=0.1), partial(_additive_loss, scale=tenth)
    cells, wrong_cells = (partial(additive_cells, scale=scale) for scale in (10.0, 0.1))
    mironov, wang = "Mironov 2012", "Wang et al. 2019"
    sums = all_may_move(10)
    return [
        made("float Laplace", mironov, add, one, last_bits, math.inf),
        made("snapped Laplace", mironov, _snapped, one, _snapped_cells, EPSILON, _snapped_loss),
        made("histogram 1", ding, gridded(add), many, cells, EPSILON, loss),
        made("histogram 2", ding, gridded(wrong), many, wrong_cells, Fraction(10), wrong_loss),
        made("prefix sums", wang, gridded(_prefix_sums), sums, cells, Fraction(1), loss),
    ]


def gridded(sampler: Sampler) -> Sampler:
    """Outputs rounded to 2**-20: these benchmarks are about the formula, not the floats."""
    return partial(_rounded, sampler=sampler)


def _rounded(value: Any, size: int, bits: Bits, *, sampler: Sampler) -> Floats:
    grid = 2.0**20
    outputs: Floats = np.round(sampler(value, size, bits) * grid) / grid
    return outputs


def _maxima() -> list[Benchmark]:
    pairs, ding = all_may_move(5), "Ding et al. 2018"
    place = [partial(noisy_argmax, one_sided=e) for e in (False, True)]
    value = [gridded(partial(noisy_maximum, one_sided=e)) for e in (False, True)]
    all_low = partial(_tail, scale=20, all_of_them=True)
    cells = [
        partial(maximum_cells, one_sided=e, of=of)
        for of in (place_of_largest, largest)
        for e in (False, True)
    ]
    return [
        made("noisy max 1", ding, place[0], pairs, cells[0], EPSILON),
        made("noisy max 2", ding, place[1], pairs, cells[1], EPSILON),
        made("noisy max 3", ding, value[0], pairs, cells[2], Fraction(1, 4), all_low),
        made("noisy max 4", ding, value[1], pairs, cells[3], math.inf, _one_sided_loss),
    ]


def _sparse_vectors() -> list[Benchmark]:
    pairs, lyu = all_may_move(10), "Lyu, Su, Li 2017"
    first = SparseVector(threshold_scale=20.0, query_scale=40.0, threshold=0.5)
    second = SparseVector(threshold_scale=20.0, query_scale=40.0, fresh=True)
    third = SparseVector(threshold_scale=20.0, query_scale=20.0, numeric=True)
    fourth = SparseVector(threshold_scale=40.0, query_scale=1 / 0.075)
    fifth = SparseVector(threshold_scale=20.0, query_scale=0.0, most=None)
    sixth = SparseVector(threshold_scale=20.0, query_scale=20.0, most=None)
    losses, cells = zip(
        thresholded(20, 40, threshold="1/2"),
        thresholded(20, 40),
        (partial(_tail, scale=20), partial(published_cells, of=third)),
        thresholded(40, Fraction(40, 3)),
        (_threshold_only_loss, threshold_only_cells),
        thresholded(20, 20, most=None),
        strict=True,
    )
    truths = (EPSILON, EPSILON, None, Fraction(7, 40), math.inf, None)
    samplers: list[Sampler] = [first, second, gridded(third), fourth, fifth, sixth]
    return [
        made(f"sparse vector {number}", lyu, sampler, pairs, law, truth, loss)
        for number, sampler, law, truth, loss in zip(
            range(1, 7), samplers, cells, truths, losses, strict=True
        )
    ]


def published_cells(x: Any, y: Any, *, of: SparseVector) -> Cells:
    assert of.most is not None
    return published_above(
        vector(x).tolist(),
        vector(y).tolist(),
        threshold=of.threshold,
        threshold_scale=of.threshold_scale,
        query_scale=of.query_scale,
        most=of.most,
    )


def _others() -> list[Benchmark]:
    vectors, wang = all_may_move(10), "Wang et al. 2019"
    third = SparseVector(threshold_scale=20.0, query_scale=40.0, numeric=True, most=2)
    fourth = SparseVector(threshold_scale=40.0, query_scale=1 / 0.075, most=2)
    both = gridded(partial(_both, parts=(third, fourth)))
    numeric = SparseVector(threshold_scale=30.0, query_scale=120.0, most=2, answer_scale=60.0)
    fourth_alone, fourth_cells = thresholded(40, Fraction(40, 3), most=2)
    numeric_loss, numeric_cells = thresholded(30, 120, most=2, answer_scale=60)

    def sum_of_both(x: Any, y: Any) -> float:
        """Two mechanisms side by side: the losses of independent events add up.

        Of the first only the low tail, so this is a lower bound: its cells lose up to 0.487.
        """
        return lower(Ball.of(_tail(x, y, scale=40)) + fourth_alone(x, y))

    def cells_of_both(x: Any, y: Any) -> Cells:
        return together([published_cells(x, y, of=third), fourth_cells(x, y)])

    filters = _full_filters()
    words_: list[Pair] = [filters, (0, 1), (1, 2)]
    counts: list[Pair] = [(k, k + 1) for k in range(5)]
    claim = Fraction(upper(Ball.of((1 - _RANDOM / 2) / (_RANDOM / 2)).log() * 2 * _HASHES))
    step = Fraction(upper(Ball.of(Fraction(33, 32)).log()))
    return [
        made(
            "RAPPOR",
            "Erlingsson et al. 2014",
            _rappor,
            words_,
            _rappor_cells,
            claim,
            _rappor_loss,
            epsilon=claim,
        ),
        made(
            "truncated geometric",
            "Balcer, Vadhan 2018",
            _truncated_geometric,
            counts,
            _truncated_geometric_cells,
            step,
            _truncated_geometric_loss,
        ),
        made(
            "numerical sparse vector",
            wang,
            gridded(numeric),
            vectors,
            numeric_cells,
            EPSILON,
            numeric_loss,
        ),
        made(
            "parallel sparse vector",
            "Bichsel et al. 2021",
            both,
            vectors,
            cells_of_both,
            None,
            sum_of_both,
        ),
    ]


def _correct_ones() -> list[Benchmark]:
    answers: list[Pair] = [(0, 1), (2, 3)]
    noise, response = Laplace(sensitivity=1, epsilon=EPSILON), _response()

    def moved(x: Any, y: Any) -> float:
        """One entry moves; the noise of the others is the same."""
        places = zip(vector(x).tolist(), vector(y).tolist(), strict=True)
        one, two = next((int(a), int(b)) for a, b in places if a != b)
        return _law_loss(one, two, law=noise.law)

    def cells(x: Any, y: Any) -> Cells:
        """All outputs of the entry that moves, as far as floats tell them from impossible ones."""
        move = int(np.abs(vector(x) - vector(y)).sum())
        law = {k: math.exp(-abs(k) / 10) * math.tanh(1 / 20) for k in range(-400, 401)}
        return of_laws(law, {k + move: share for k, share in law.items()})

    def told_cells(x: Any, y: Any) -> Cells:
        laws = [response.law(value) for value in (x, y)]
        return np.array([[float(law.probability(k).ends[0]) for k in range(4)] for law in laws])

    told = partial(_law_loss, law=response.law)
    return [
        made("exact Laplace", "lastbit", _exact_laplace, one_may_move(1), cells, EPSILON, moved),
        made("exact histogram", "lastbit", _exact_laplace, one_may_move(5), cells, EPSILON, moved),
        made("exact response", "lastbit", _exact_response, answers, told_cells, EPSILON, told),
    ]
