"""Histograms: noisy counts of declared keys, and of undeclared keys (partition selection)."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date
from fractions import Fraction
from types import NoneType
from typing import Any

import numpy as np
from flint import arb
from numpy.typing import NDArray

from lastbit.errors import InvalidParameter, WrongType
from lastbit.exact import (
    Ball,
    Number,
    arb_of,
    at_most,
    nonnegative,
    positive,
    upper,
    whole,
    working_precision,
)
from lastbit.laws import DiscreteLaplace, Shifted, least
from lastbit.mechanisms.lattice import INTEGERS, numbers_of
from lastbit.mechanisms.mechanism import Pure, exactly_one, level, set_fields
from lastbit.privacy import (
    ADD_REMOVE,
    ApproxDP,
    DiscreteLaplaceLoss,
    Neighbours,
    ProbabilisticDP,
    Profile,
    ThresholdLoss,
)
from lastbit.sampling import laplace_sampler
from lastbit.sensitivity import relation_of

_PLAIN = (str, bytes, int, date, NoneType)
_DEEPEST = 32


def mapping_of(counts: Mapping[Any, int]) -> Mapping[Any, int]:
    """The counts, if they are given by key."""
    if not isinstance(counts, Mapping):
        raise WrongType("counts", problem="is not a mapping", remedy="pass {key: count}")
    return counts


def count_of(value: object) -> int:
    """One count: a whole number from 0 up."""
    if type(value) is int and value >= 0:
        return value
    _refuse_masked("counts", value)
    if isinstance(value, np.timedelta64):  # numpy takes it for an integer
        raise WrongType("counts", problem="is a time span", remedy="pass whole numbers")
    return whole(value, "counts")


def counts_of(counts: Any) -> NDArray[Any]:
    """A list of counts as a vector."""
    _refuse_masked("counts", counts)
    if not isinstance(counts, list | tuple | np.ndarray) or getattr(counts, "ndim", 1) != 1:
        raise WrongType("counts", problem="is not a list of counts", remedy="pass whole numbers")
    if not isinstance(counts, np.ndarray) or counts.dtype.kind not in "iu":
        return numbers_of([count_of(count) for count in counts])
    if counts.size and counts.min() < 0:
        raise InvalidParameter("counts", problem="is below 0", remedy="pass counts from 0 up")
    return np.asarray(counts)


def labels_of(keys: Any) -> NDArray[Any]:
    """A list of keys as a vector, each in its one spelling."""
    _refuse_masked("keys", keys)
    if not isinstance(keys, list | tuple | np.ndarray) or getattr(keys, "ndim", 1) != 1:
        raise WrongType("keys", problem="is not a list of keys", remedy="pass, say, a list of text")
    if isinstance(keys, np.ndarray) and keys.dtype.kind in "iuUS":
        return np.asarray(keys)
    return np.fromiter((plain(key) for key in keys), np.object_, len(keys))


def plain(key: Any) -> Any:
    """The one way in which a key is written."""
    if type(key) in _PLAIN:
        return key
    if type(key) is tuple:
        if not shallow(key):
            problem = f"holds a tuple in which more than {_DEEPEST} others are nested"
            raise WrongType("keys", problem=problem, remedy="turn the keys into text first")
        return tuple(map(plain, key))
    if isinstance(key, np.str_ | np.bytes_ | np.integer) and not isinstance(key, np.timedelta64):
        return key.item()
    problem = "holds one that is not text, bytes, a whole number, a date, None or a tuple"
    raise WrongType("keys", problem=problem, remedy="turn the keys into text first")


def shallow(key: object) -> bool:
    """Whether a key can be hashed and compared without exhausting the stack."""
    level = [key]
    for _ in range(_DEEPEST + 1):
        level = [part for parts in level if isinstance(parts, tuple) for part in parts]
        if not level:
            return True
    return False


def _refuse_masked(name: str, value: object) -> None:
    if isinstance(value, np.ma.MaskedArray):
        raise WrongType(name, problem="is masked", remedy="pass what is not masked")


def order_of(labels: NDArray[Any]) -> NDArray[np.intp]:
    """Where the keys stand when sorted; two equal keys are refused, as each would be noised."""
    if labels.dtype.kind == "O":
        keys = labels.tolist()
        order = np.array(sorted(range(len(keys)), key=lambda i: _place(keys[i])), np.intp)
    else:
        order = np.argsort(labels, kind="stable")
    ordered = labels[order]
    if (ordered[1:] == ordered[:-1]).any():
        remedy = "add up the counts of each key first"
        raise InvalidParameter("keys", problem="holds a key twice", remedy=remedy)
    return order


def _place(key: Any) -> tuple[str, Any]:
    """A total order of the plain keys that depends on nothing but the keys."""
    if type(key) is tuple:
        return "tuple", tuple(_place(part) for part in key)
    return type(key).__name__, key


def narrowed(array: NDArray[Any]) -> NDArray[Any]:
    """Without what the width of its cells would tell about keys that are not in it."""
    if array.dtype.kind in "US":
        return np.array(array.tolist(), array.dtype.kind)
    if array.dtype.kind in "iu":
        wide = array.size and int(array.max()) >= 1 << 63
        return array.astype(np.uint64 if wide else np.int64)
    if array.dtype.kind == "O" and all(type(item) is int for item in array):
        return numbers_of(array.tolist())
    return array


class _NoisyCounts:
    """Counts with independent discrete Laplace noise of one scale."""

    __slots__ = ()

    scale: Fraction

    def accuracy(self, beta: Number, *, keys: int = 1) -> int:
        """The least a with P[abs(X) > a for one of this many keys] <= beta.

        Theorem  with probability 1 - beta each of these keys is off by at most a; with a threshold
                 it may instead be left out, and then its count is below threshold + a
        """
        most = level(beta, "beta")
        return least(
            lambda error: at_most(lambda: self._off(error, keys), lambda: arb_of(most)), (0, None)
        )

    def beta(self, error: Number, *, keys: int = 1) -> float:
        """P[abs(X) > error for one of this many keys], rounded up: the inverse of `accuracy`."""
        with working_precision(128):
            chance = self._off(int(nonnegative(error, "error")), keys)
            return min(upper(chance), 1.0) if chance.is_finite() else 1.0

    def _off(self, error: int, keys: int) -> arb:
        """P[abs(X) > error for one of this many keys], for an error from 0 up."""
        one = 2 * DiscreteLaplace(self.scale).cumulative(-error - 1)
        return _some(one, whole(keys, "keys", least=1))


@dataclass(frozen=True, slots=True, init=False)
class Histogram(Pure, _NoisyCounts):
    """Noisy counts of declared keys, including those that no record has.

    Law      release(n)[k] = n[k] + X_k for every declared key k, X_k independent discrete Laplace;
             a key that is not in the data counts 0
    Theorem  let each person add 0 ... per_key to each of at most c = keys_per_person keys, and let
             d keys be declared. One person more or less moves the counts by at most
             per_key min(c, d) in the L1 norm; one person changed by at most per_key min(2c, d),
             since at most 2c keys move and none by more than per_key. An L1 distance of s costs
             epsilon = s/scale (`mechanisms/laplace.py`), and the set of keys shown is public
    Source   Dwork, McSherry, Nissim, Smith 2006
    Differs  a key that was not declared is refused without being named. The refusal is a fact about
             the data that no guarantee covers: map or drop such keys row by row before counting
    Checked  tests/mechanisms/test_histogram.py

    >>> votes = Histogram(keys=["yes", "no", "maybe"], epsilon=1, keys_per_person=1)
    >>> votes.guarantee
    PureDP(epsilon=1, neighbours=Neighbours(relation='add-remove', unit='record'))
    >>> list(votes.release({"no": 41, "yes": 17}))
    ['yes', 'no', 'maybe']
    >>> votes.accuracy(beta="0.05"), votes.accuracy(beta="0.05", keys=3)
    (3, 4)
    """

    keys: tuple[Hashable, ...] = field(repr=False)
    keys_per_person: int
    per_key: int
    scale: Fraction
    neighbours: Neighbours

    def __init__(
        self,
        *,
        keys: Iterable[Hashable],
        keys_per_person: int,
        epsilon: Number | None = None,
        scale: Number | None = None,
        per_key: int = 1,
        neighbours: Neighbours = ADD_REMOVE,
    ) -> None:
        set_fields(self, keys=_declared(keys), neighbours=neighbours)
        set_fields(self, keys_per_person=whole(keys_per_person, "keys_per_person", least=1))
        set_fields(self, per_key=whole(per_key, "per_key", least=1))
        set_fields(self, scale=_scale(epsilon, scale, self.sensitivity))

    @property
    def sensitivity(self) -> int:  # type: ignore[override]
        """How far neighbours can be apart in the L1 norm."""
        moved = min(_people(self.neighbours) * self.keys_per_person, len(self.keys))
        return moved * self.per_key

    def _loss(self, distance: Fraction) -> Fraction:
        return distance / self.scale

    @property
    def loss(self) -> Profile:
        """What one release loses, for a `Profile`."""
        keys = min(_people(self.neighbours) * self.keys_per_person, len(self.keys))
        one = DiscreteLaplaceLoss(self.scale, self.per_key, neighbours=self.neighbours)
        return Profile([(one, keys)])

    def release(self, counts: Mapping[Any, int]) -> dict[Any, int]:
        """A private count for every declared key, in the order of declaration."""
        given = mapping_of(counts)
        exact = [count_of(given[key]) if key in given else 0 for key in self.keys]
        if sum(key in given for key in self.keys) != len(given):
            remedy = "declare it, drop it row by row, or use ThresholdedHistogram"
            problem = "has a key that was not declared"
            raise InvalidParameter("counts", problem=problem, remedy=remedy)
        noisy = INTEGERS.noised(numbers_of(exact), laplace_sampler(self.scale))
        return dict(zip(self.keys, noisy.tolist(), strict=True))

    def law(self, count: int) -> Shifted:
        """The exact law of what is released for a key with this count."""
        return Shifted(DiscreteLaplace(self.scale), count_of(count))


@dataclass(frozen=True, slots=True)
class ThresholdedLaw:
    """What becomes of a key with a given count: a number from the threshold up, or nothing.

    >>> law = ThresholdedHistogram(epsilon=1, delta="1e-6", keys_per_person=1).law(30)
    >>> law.suppressed < "1e-6", law.probability(law.threshold - 1)
    (True, Ball(0))
    """

    noise: DiscreteLaplace
    count: int
    threshold: int

    @property
    def suppressed(self) -> Ball:
        """P[the key is not shown]; 1 for a key that no record has."""
        return self.noise.cdf(self.threshold - 1 - self.count) if self.count else Ball.of(1)

    @property
    def released(self) -> Ball:
        """P[the key is shown]."""
        # X is symmetric, and its lower tail is computed without cancellation
        return self.noise.cdf(self.count - self.threshold) if self.count else Ball.of(0)

    def probability(self, value: int) -> Ball:
        """P[the key is shown with this value]."""
        number = whole(value, "value", least=-(1 << 4096))
        if not self.count or number < self.threshold:
            return Ball.of(0)
        return self.noise.probability(number - self.count)


@dataclass(frozen=True, slots=True, init=False)
class ThresholdedHistogram(_NoisyCounts):
    """Noisy counts of the keys in the data, of which only the large ones are shown.

    Law      every key with a count n >= 1 gets n + X, X independent discrete Laplace with
             q = exp(-1/scale), and is shown iff n + X >= threshold. Nothing else is shown, and the
             order is that of the keys
    Theorem  let each person add 1 to each of at most c = keys_per_person keys, and let
             p = P[1 + X >= threshold] <= 1 - q. Then the release is probabilistically private,
             epsilon = c/scale (2c/scale if one person changes), delta = 1 - (1-p)**c.
             Add-remove: let y be x and one person, with j new keys (in y their count is 1) and at
             most c - j old ones. Let B be the outputs that show a new key. P_x[B] = 0, and
             P_y[B] = 1 - (1-p)**j <= delta. For an output outside B the laws are products over
             keys: each new key gives the factor 1 in x and 1 - p in y. A moved old key gives
             factors within exp(+-1/scale) of each other, shown or not, since both are events of
             n + X, n moved by 1. So P_y <= exp((c-j)/scale) P_x, and
             P_x <= exp((c-j)/scale) (1-p)**-j P_y <= exp(c/scale) P_y as 1 - p >= q.
             Change-one: i keys only in x, j only in y, B the outputs that show one of the i:
             P_x[B] <= delta, and elsewhere, at most 2c - i - j moves apart on common keys,
             P_x <= exp((2c-i-j)/scale) (1-p)**(i-j) P_y <= exp(2c/scale) P_y, or P_x = 0
             The condition is delta <= 1 - exp(-c/scale), and it is needed: the proof page
    Source   paper 003 section 3; Korolova, Kenthapadi, Mishra, Ntoulas 2009
    Differs  delta is exact (rounded up once), the threshold is the least integer that reaches it,
             and the condition on p, which paper 003 does not mention, is checked
    Checked  tests/mechanisms/test_histogram.py; proof: docs/theory/thresholded-histogram.md

    The number of keys in the data is itself data: the time a release takes, and the number of
    random words it draws, depend on it. Keys are text, bytes, whole numbers, dates, None, or tuples
    of these: 1, 1.0 and True are equal, and which of them a table holds tells who came first.

    >>> foods = ThresholdedHistogram(epsilon=1, delta="1e-9", keys_per_person=1)
    >>> foods.threshold, float(foods.guarantee.delta) <= 1e-9
    (22, True)
    >>> sorted(foods.release({"pizza": 1000, "pasta": 400, "escargots": 1}))
    ['pasta', 'pizza']
    """

    keys_per_person: int
    scale: Fraction
    threshold: int
    delta: Fraction
    neighbours: Neighbours

    def __init__(
        self,
        *,
        keys_per_person: int,
        epsilon: Number | None = None,
        scale: Number | None = None,
        delta: Number | None = None,
        threshold: int | None = None,
        neighbours: Neighbours = ADD_REMOVE,
    ) -> None:
        keys = whole(keys_per_person, "keys_per_person", least=1)
        noise = _scale(epsilon, scale, _people(neighbours) * keys)
        exactly_one(delta=delta, threshold=threshold)
        asked = None if delta is None else level(delta, "delta")
        least_bar = _least_threshold(noise, keys, asked)
        bar = least_bar if threshold is None else whole(threshold, "threshold")
        if bar < least_bar:
            problem = "is so low that not seeing a new key costs more than epsilon"
            raise InvalidParameter("threshold", problem=problem, remedy=f"pass {least_bar} or more")
        set_fields(self, keys_per_person=keys, scale=noise, threshold=bar, neighbours=neighbours)
        set_fields(self, delta=min(asked or 1, _delta(noise, bar, keys)))

    @property
    def epsilon(self) -> Fraction:
        """The exact loss of an output that shows no key of one person alone."""
        return _people(self.neighbours) * self.keys_per_person / self.scale

    @property
    def guarantee(self) -> ProbabilisticDP:
        """What one release promises; `post_processed()` is what survives processing."""
        return ProbabilisticDP(self.epsilon, self.delta, neighbours=self.neighbours)

    @property
    def loss(self) -> ThresholdLoss:
        """What one release loses, for a `Profile`."""
        keys = _people(self.neighbours) * self.keys_per_person
        return ThresholdLoss(self.scale, self.threshold, keys, neighbours=self.neighbours)

    def guarantee_at(self, distance: int) -> ProbabilisticDP | ApproxDP:
        """What one release promises to a group of people; from two on approximately."""
        people = whole(distance, "distance")
        if people == 0:
            return ProbabilisticDP(0, 0, neighbours=self.neighbours)
        return self.guarantee if people == 1 else self.guarantee.group(people)

    def release(self, counts: Mapping[Any, int]) -> dict[Any, int]:
        """The keys whose noisy count reaches the threshold, with that count, ordered by key."""
        keys, noisy = self.release_arrays(list(mapping_of(counts)), list(counts.values()))
        return dict(zip(keys.tolist(), noisy.tolist(), strict=True))

    def release_arrays(self, keys: Any, counts: Any) -> tuple[NDArray[Any], NDArray[Any]]:
        """The same for a million keys: an array or list of different keys, and their counts."""
        labels, numbers = labels_of(keys), counts_of(counts)
        if labels.shape != numbers.shape:
            raise InvalidParameter(
                "counts", problem="and keys differ in length", remedy="pass one count a key"
            )
        order = order_of(labels)
        order = order[numbers[order] > 0]
        noisy = INTEGERS.noised(numbers[order], laplace_sampler(self.scale))
        shown = noisy >= self.threshold
        return narrowed(labels[order][shown]), narrowed(noisy[shown])  # copies: no view of the rest

    def law(self, count: int) -> ThresholdedLaw:
        """The exact law of what becomes of a key with this count."""
        return ThresholdedLaw(DiscreteLaplace(self.scale), count_of(count), self.threshold)


def _people(neighbours: Neighbours) -> int:
    """How many persons' keys differ between two neighbours."""
    return 1 if relation_of(neighbours) == "add-remove" else 2


def _scale(epsilon: Number | None, scale: Number | None, sensitivity: int) -> Fraction:
    exactly_one(epsilon=epsilon, scale=scale)
    if epsilon is None:
        return positive(scale, "scale")
    return sensitivity / positive(epsilon, "epsilon")


def _declared(keys: Iterable[Hashable]) -> tuple[Hashable, ...]:
    listed = isinstance(keys, Iterable) and not isinstance(keys, str | bytes)
    declared = tuple(keys) if listed else ()
    try:
        different = set(declared) if listed and all(map(shallow, declared)) else None
    except (TypeError, RecursionError):  # a tuple says it is hashable, whatever it holds
        different = None
    if different is None:
        raise WrongType("keys", problem="is not a list of keys", remedy="pass, say, a list of text")
    if not declared or len(different) != len(declared):
        problem = "are none, or two are equal"
        raise InvalidParameter("keys", problem=problem, remedy="pass each key once")
    return declared


def _appears(scale: Fraction, threshold: int) -> arb:
    """P[1 + X >= threshold], at the working precision."""
    return DiscreteLaplace(scale).cumulative(1 - threshold)


def _some(chance: arb, number: int) -> arb:
    """P[at least one of `number` independent events], without cancellation."""
    return -(number * (-chance).log1p()).expm1()


def _least_threshold(scale: Fraction, keys: int, delta: Fraction | None) -> int:
    """The least integer with p <= 1 - q, as the theorem demands, and the delta asked for.

    Decidable: both sides are different algebraic functions of q, which is transcendental.
    """

    def enough(threshold: int) -> bool:
        def p() -> arb:
            return _appears(scale, threshold)

        return at_most(p, lambda: -(-arb_of(1 / scale)).expm1()) and (
            delta is None or at_most(lambda: _some(p(), keys), lambda: arb_of(delta))
        )

    return least(enough, (2, None))  # below 2, p >= 1/(1+q) > 1 - q


def _delta(scale: Fraction, threshold: int, keys: int) -> Fraction:
    """1 - (1-p)**keys, rounded up."""
    with working_precision(128):
        return Fraction(upper(_some(_appears(scale, threshold), keys)))
