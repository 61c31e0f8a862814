"""Canaries in one training run: how many of them can be told apart if a loop keeps its claim.

An auditor makes m canaries, examples that stand out, and leaves each in the data or out of it by
a fair coin of its own. The loop trains once. From what it released, and nothing else, each canary
gets a score, and the auditor guesses of the highest that they were in, of the lowest that they were
out. One canary more or less is what the claim is about; so who is right too often refutes it.

Law      W guesses of r are right, on m canaries. The claim is refuted where the tail
         beta + m delta beta (1-beta) / (v b) is at most the error that a look may spend, with
         b = P[B = v], beta = P[B >= v], B binomial with r trials of chance e**epsilon /
         (1 + e**epsilon), v what W came to
Theorem  if the release y keeps (epsilon, delta) for each flip of one coin, and the guesses, r of
         them, are a function of y, then P[W >= v] is at most that tail, for each v >= 1. No
         smaller number will do: some release attains it, wherever it is below 1
Proof    Let p(y|s) be the density for the coins s. Fix y, and let a_k be the sum of 2**-m p(y|s)
         over the s for which k guesses are right. To flip the coin of a right guess leads from k
         to k-1: each s has k such flips, and r-k+1 lead to each s' below. Summed up, k a_k <=
         e**epsilon (r-k+1) a_{k-1} + X_k, where X_k(y) sums 2**-m (p(y|s) - e**epsilon p(y|s'))+.
         Over all k and y that is at most m delta: of m coins, each has 2**(m-1) pairs of s; for
         a pair the two directions belong to different y, and each has at most delta.
         The binomial b_k has k b_k = e**epsilon (r-k+1) b_{k-1}. So a_k/b_k <= a_{k-1}/b_{k-1} +
         d_k with d_k = X_k/(k b_k), and a_k/b_k = f_k + d_1 + ... + d_k with f falling. With
         beta_j = P[B >= j]: where f falls, sum_{k>=v} f_k b_k <= beta_v sum_k f_k b_k (Chebyshev).
         So sum_{k>=v} a_k <= beta_v sum_k a_k + sum_j d_j (beta_max(v,j) - beta_v beta_j). Of X_j,
         the factor is beta_v sum_{i<j} b_i/(j b_j) up to j = v, and each term rises in j, since
         k b_k/b_{k-1} falls in k; from j = v on it is (1-beta_v) sum_{i>=j} b_i/(j b_j), and falls.
         It is greatest at j = v. Integrate over y.
         Attained: choose r places at random, and publish t for them with k right with probability
         f c_k, but (f + d) c_k for k >= v, where c_k = e**(k epsilon) / (1 + e**epsilon)**r.  []
Theorem  (looks) r, and how many guesses are of either kind, are fixed before the coins are tossed,
         in some 10 looks of equal shares of the error: so all are right at once, except with
         probability `error`. A look says an epsilon whose tail is at most its share. Let v be the
         least count for which that is above the true one: the release keeps that epsilon too, so
         W >= v, and with it every such count, has at most the share for probability
Source   Steinke, Nasr, Jagielski 2023 (Privacy Auditing with One Training Run), Theorem 5.2
Differs  they add alpha m delta, with alpha the greatest 2 P[v > B >= v - i] / i. Ours is best
         possible and simpler to compute: of 1000 guesses 850 right at epsilon 1, m delta times
         0.0022 in place of 0.0134. Where beta is near 1 that alpha, as their program has it, is too
         small: of 2 guesses 1 right, e**epsilon = 3, a release adds 5/16 delta, above their 4/16.
         Looks are paid for: the best of several is not one
Differs  a loop that publishes everything with probability delta keeps (0, delta). So no run refutes
         a claim whose delta is not below the error: state it at a smaller delta
Checked  tests/audit/test_canaries.py: the tail attained, exactly, and its mutants refuted
"""

from __future__ import annotations

import inspect
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import Any

import numpy as np
from flint import arb
from numpy.typing import NDArray

from lastbit.audit.bounds import DEFAULT_ERROR, error_rate, exceeds
from lastbit.errors import InvalidParameter, WrongType
from lastbit.exact import (
    DEFAULT_PRECISION,
    Number,
    arb_of,
    ends,
    exact_text,
    nonnegative,
    probability,
    rounded_down,
    rounded_up,
    upper,
    whole,
    working_precision,
)
from lastbit.sampling import bernoulli

MOST_CANARIES = 1 << 20
_FEWEST = 64  # all of so few guesses right prove an epsilon of 1
_LARGEST_EPSILON = 32.0  # all of 2**20 guesses right prove less than 14
_HALVINGS = 40
_PRECISION = 2 * DEFAULT_PRECISION
_STRIDE, _NEGLIGIBLE = 64, arb(2) ** -100


def guesses_tail(
    right: int, guesses: int, canaries: int, *, epsilon: Number, delta: Number = 0
) -> float:
    """How likely so many right guesses are, at most, if a loop keeps its claim; rounded up.

    >>> guesses_tail(1, 1, 1, epsilon=0), guesses_tail(1, 1, 1, epsilon=0, delta="1/2")
    (0.5, 0.75)
    """
    hits, trials = whole(right, "right"), whole(guesses, "guesses", least=1)
    count = whole(canaries, "canaries", least=1)
    if not hits <= trials <= count <= MOST_CANARIES:
        remedy = "pass right <= guesses <= canaries, and 2**20 canaries at most"
        raise InvalidParameter("guesses", problem="do not fit the other counts", remedy=remedy)
    mass, loss = count * probability(delta, "delta"), nonnegative(epsilon, "epsilon")
    if hits == 0:
        return 1.0
    with working_precision(DEFAULT_PRECISION):
        # its upper end is the chance of a greater epsilon, which the loop keeps as well
        chance = ends(1 / (1 + (-arb_of(loss)).exp()))[1]
    return 1.0 if chance >= 1 else min(1.0, upper(tail_ball(hits, trials, mass, chance)))


def tail_ball(right: int, guesses: int, mass: Fraction, chance: Fraction) -> arb:
    """The tail of the law, enclosed, for 0 < right <= guesses; `mass` is m delta."""
    wrong = guesses - right
    with working_precision(_PRECISION):
        yes, no = arb_of(chance), arb_of(1 - chance)
        ways = (arb(guesses + 1).lgamma() - arb(right + 1).lgamma() - arb(wrong + 1).lgamma()).exp()
        times = _tail_over_point(right, guesses, yes / no)
        beta = times * ways * yes**right * no**wrong
        return beta + arb_of(mass) * times * (1 - beta) / right


def _tail_over_point(right: int, guesses: int, odds: arb) -> arb:
    """beta/b: 1 and the products of the ratios of neighbouring weights, which fall.

    So what is left after a ratio c < 1 is at most the last product times c/(1-c).
    """
    total = product = arb(1)
    for k in range(right, guesses):
        ratio = (guesses - k) * odds / (k + 1)
        product *= ratio
        total += product
        if k % _STRIDE == 0 and ratio < 1:
            rest = product * ratio / (1 - ratio)
            if rest < total * _NEGLIGIBLE:
                return total.union(total + rest)
    return total


def guesses_epsilon_lower(
    right: int, guesses: int, canaries: int, *, delta: Number = 0, error: Number = DEFAULT_ERROR
) -> float:
    """A certified lower bound on epsilon by guesses whose number was fixed before; 0 if none.

    Law      an epsilon, the greatest within rounding, at which `guesses_tail` is at most `error`
    Theorem  exceeds the true epsilon with probability at most `error` (the head of this file)

    >>> round(guesses_epsilon_lower(950, 1000, 1000), 3), guesses_epsilon_lower(500, 1000, 1000)
    (2.308, 0.0)
    """
    allowed = error_rate(error)
    low, high = 0.0, _LARGEST_EPSILON

    def certain(epsilon: float) -> bool:
        tail = guesses_tail(right, guesses, canaries, epsilon=epsilon, delta=delta)
        return tail <= allowed

    if 2 * right <= guesses or not certain(0):
        return low
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        # below the mean of B the tail is about a half or more, and long to add up
        seldom = right > guesses / (1 + math.exp(-middle)) and certain(middle)
        low, high = (middle, high) if seldom else (low, middle)
    return low


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingAudit:
    """A certified lower bound on the loss of one training run, and the guesses that prove it.

    `epsilon_lower` holds at `delta` and is wrong with probability at most `error`, over all looks.
    `right` of `guesses` were right: `guesses_in` that a canary was in the data, the others that it
    was out. `included` of the `canaries` were in.
    """

    epsilon_lower: float
    epsilon: Fraction | None
    delta: Fraction
    error: Fraction
    canaries: int
    included: int
    guesses: int
    guesses_in: int
    right: int
    looks: int
    reach: float  # epsilon_lower if every guess were right
    seconds: float

    @property
    def broken(self) -> bool:
        """Whether the claim is refuted."""
        return self.epsilon is not None and exceeds(self.epsilon_lower, self.epsilon)

    def __str__(self) -> str:
        bound, share = rounded_down(self.epsilon_lower, 4), rounded_up(self.error, 3)
        verdict = "REFUTED" if self.broken else "not refuted"
        claim = [] if self.epsilon is None else [f"claimed: {exact_text(self.epsilon)}: {verdict}"]
        return "\n".join(
            [
                f"epsilon >= {bound} at delta = {exact_text(self.delta)} (wrong with probability "
                f"at most {share})",
                *claim,
                f"{self.right:,} of {self.guesses:,} guesses were right, "
                f"on {self.canaries:,} canaries",
            ]
        )

    def to_dict(self) -> dict[str, Any]:
        """Everything as text and numbers, ready for JSON."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        exact = {n: str(v) if isinstance(v, Fraction) else v for n, v in values.items()}
        return {**exact, "broken": self.broken}


def audit_training(
    loop: Callable[..., Any],
    *,
    canaries: int,
    epsilon: Number | None = None,
    delta: Number = 0,
    error: Number = DEFAULT_ERROR,
    progress: Callable[[float, str], None] | None = None,
) -> TrainingAudit:
    """Audit a training loop by one run, with canaries.

    `loop(included)` gets a truth value for each canary, trains once on data from which the others
    are left out, and returns a score for each canary, the greater the likelier it was there: the
    dot product of its gradient with the sums that were released, or minus its loss. Scores may use
    all that the loop releases, and nothing else: not `included`. A loop with a parameter `progress`
    gets a function to call with the share that is done.

    >>> audit_training(lambda included: included, canaries=1000, epsilon=3).broken
    True
    >>> audit_training(lambda included: 0 * included, canaries=1000, epsilon=3).epsilon_lower
    0.0
    """
    count = whole(canaries, "canaries", least=1)
    if count > MOST_CANARIES:
        raise InvalidParameter("canaries", problem="are above 2**20", remedy="pass fewer")
    claim = None if epsilon is None else nonnegative(epsilon, "epsilon")
    level, allowed = probability(delta, "delta"), error_rate(error)
    looks = looks_at(count)
    share = allowed / len(looks)

    def certified(right: int, guesses: int) -> float:
        return guesses_epsilon_lower(right, guesses, count, delta=level, error=share)

    reach = max(certified(size, size) for size in {a + b for a, b in looks})
    if level >= share:
        problem = f"is not below {rounded_down(share, 2)}, the error of each look: a loop that"
        problem += " publishes all so seldom would be blamed"
        remedy = "state the claim at a smaller one, or pass a greater {error}"
        raise InvalidParameter("delta", problem=problem, remedy=remedy, error="")
    if not exceeds(reach, claim or Fraction(0)):
        most = f"epsilon = {rounded_down(reach, 3)}" if reach else "nothing"
        problem = f"are too few: if every guess were right, they would prove {most}"
        remedy = "pass more, or a greater {error}"
        raise InvalidParameter("canaries", problem=problem, remedy=remedy, error="")
    included = np.asarray(bernoulli(Fraction(1, 2), count), dtype=np.bool_)
    start = time.monotonic()
    order = np.argsort(-_scores(loop, included.copy(), progress), kind="stable")
    seconds = time.monotonic() - start
    there = included[order]
    counts = [int(there[:a].sum()) + b - int(there[count - b :].sum()) for a, b in looks]
    bounds = [certified(right, a + b) for right, (a, b) in zip(counts, looks, strict=True)]
    best = bounds.index(max(bounds))
    return TrainingAudit(
        epsilon_lower=bounds[best],
        epsilon=claim,
        delta=level,
        error=allowed,
        canaries=count,
        included=int(included.sum()),
        guesses=sum(looks[best]),
        guesses_in=looks[best][0],
        right=counts[best],
        looks=len(looks),
        reach=reach,
        seconds=seconds,
    )


def looks_at(canaries: int) -> list[tuple[int, int]]:
    """How many canaries are guessed in and out, in each look: fixed by their number alone.

    All are guessed, or the half, a quarter, ...: few guesses see more where few canaries tell.

    >>> looks_at(129)
    [(65, 64), (32, 32), (64, 0), (0, 64)]
    """
    looks, size = [(canaries - canaries // 2, canaries // 2)], canaries // 2
    while size >= _FEWEST:
        looks += [(size - size // 2, size // 2), (size, 0), (0, size)]
        size //= 2
    return looks


def _scores(
    loop: Callable[..., Any],
    included: NDArray[np.bool_],
    progress: Callable[[float, str], None] | None,
) -> NDArray[np.float64]:
    """What the loop says of each canary: it is trained here."""
    remedy = "return one number for each canary, such as its gradient times the released sum"
    words = f"training on {int(included.sum()):,} of {len(included):,} canaries"

    def tell(share: float) -> None:
        if progress is not None:
            progress(share, words)

    told = {"progress": tell} if _takes_progress(loop) else {}
    returned = loop(included, **told)
    try:
        scores = np.asarray(returned, dtype=np.float64)
    except (TypeError, ValueError, RuntimeError):
        raise WrongType("scores", problem="are not numbers", remedy=remedy) from None
    if scores.shape != included.shape:
        problem = f"have the shape {scores.shape}, for {len(included):,} canaries"
        raise InvalidParameter("scores", problem=problem, remedy=remedy)
    if np.isnan(scores).any():
        problem = "hold a NaN"
        raise InvalidParameter("scores", problem=problem, remedy="train with smaller steps")
    return scores


def _takes_progress(loop: Callable[..., Any]) -> bool:
    try:
        return "progress" in inspect.signature(loop).parameters
    except (TypeError, ValueError):  # a builtin that does not say what it takes
        return False
