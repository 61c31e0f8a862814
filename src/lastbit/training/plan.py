"""What a training run costs, before its first step: rate, steps, noise, and epsilon on the way.

Law      a run is `steps` steps; each takes every example with probability `rate`, clips (bound D),
         sums, and adds round(sigma Z), sigma = noise_multiplier D
Theorem  the run is dominated by the product of `steps` losses SubsampledGaussianLoss(rate,
         1/noise_multiplier**2), for one unit more or less: `epsilon_bounds` has both bounds of
         epsilon at delta. A step's model, learning rate and loss may depend on all earlier sums
Proof    `clipping.py`, `noise.py` for one step, whatever the model is; its loss is fixed
         beforehand, so products compose adaptively (Zhu, Dong, Wang 2022, Theorem 10).  []
Differs  nothing is hidden by a batch's size: only the expected one is used. The search for the
         noise may err, the promise does not: it is evaluated at the multiplier that is used, which
         is rounded up to six decimals
Checked  tests/training/test_plan.py: the settings of docs/attacks.md within one percent
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, isqrt
from pathlib import Path
from typing import Any

from lastbit.canonical import digest_of
from lastbit.errors import InvalidParameter
from lastbit.exact import Number, positive, probability, whole
from lastbit.privacy import (
    ADD_REMOVE,
    ApproxDP,
    Profile,
    SubsampledGaussianLoss,
    calibrated,
)
from lastbit.tables import Cost
from lastbit.training.clipping import WholeClip
from lastbit.verify import certificate, composition_certificate, read

_DECIMALS = 10**6
_MOST_STEPS = 10**9
_LEAST_MULTIPLIER = Fraction(1, 1000)
_POINTS = 30  # of the curve of epsilon: each takes the accountant a fraction of a second
KIND = "lastbit training plan 1"


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingPlan:
    """A run of DP-SGD as it is paid for.

    >>> sizes = dict(examples=60_000, batch=256, epochs=30)
    >>> plan = training_plan(**sizes, noise_multiplier=1, delta="1e-6")
    >>> plan.steps, plan.rate, plan.price.epsilon
    (7032, Fraction(8, 1875), Fraction(55377, 25000))
    >>> plan.epsilon_bounds()
    (2.21507906..., 2.21507906...)
    """

    examples: int
    """How many examples there are: public, like the places of the theorem."""
    rate: Fraction
    steps: int
    noise_multiplier: Fraction
    delta: Fraction
    epsilon: Fraction
    """What is promised and charged: at or a little above the upper bound."""
    unit: str = "example"
    """Whose presence is hidden; `examples` counts these."""

    def __post_init__(self) -> None:
        whole(self.examples, "examples", least=1)
        if whole(self.steps, "steps", least=1) > _MOST_STEPS:
            problem = f"are more than {_MOST_STEPS:,}"
            raise InvalidParameter("steps", problem=problem, remedy="plan fewer")
        for name in ("noise_multiplier", "epsilon"):
            object.__setattr__(self, name, positive(getattr(self, name), name))
        _check_multiplier(self.noise_multiplier)
        for name in ("rate", "delta"):
            object.__setattr__(self, name, probability(getattr(self, name), name))
            if not getattr(self, name):
                raise InvalidParameter(name, problem="is 0", remedy="pass a number above 0")
        ADD_REMOVE.by(self.unit)
        if not self.is_kept(self.epsilon):
            raise InvalidParameter(
                "epsilon", problem="is not reached with this noise", remedy="add noise, or pay more"
            )

    def is_kept(self, epsilon: Fraction) -> bool:
        """Whether all steps together promise this epsilon at delta."""
        return self.profile().delta(epsilon)[1] <= self.delta

    @property
    def expected_batch(self) -> Fraction:
        return self.examples * self.rate

    @property
    def loss(self) -> SubsampledGaussianLoss:
        """The loss of one step."""
        spread = 1 / self.noise_multiplier**2
        return SubsampledGaussianLoss(self.rate, spread, neighbours=ADD_REMOVE.by(self.unit))

    def profile(self, steps: int | None = None) -> Profile:
        """What the first steps promise together, or all of them."""
        profile: Profile = (self.steps if steps is None else steps) * self.loss
        return profile

    def epsilon_bounds(self, steps: int | None = None) -> tuple[float, float]:
        """Epsilon at delta after so many steps: from below and from above."""
        return self.profile(steps).epsilon(self.delta)

    def curve(self, points: int = _POINTS) -> list[tuple[int, float, float]]:
        """Steps and both bounds of epsilon, at the ends of epochs if there are not too many."""
        epoch = ceil(1 / self.rate)
        ends = list(range(epoch, self.steps + 1, epoch))
        if not 2 <= len(ends) <= points:
            ends = [self.steps * (i + 1) // points for i in range(points)]
        ends = sorted({end for end in ends if end} | {self.steps})
        return [(end, *self.epsilon_bounds(end)) for end in ends]

    @property
    def guarantee(self) -> ApproxDP:
        return ApproxDP(self.epsilon, self.delta, neighbours=ADD_REMOVE.by(self.unit))

    @property
    def price(self) -> Cost:
        """What a ledger is charged, before the first step."""
        return Cost(epsilon=self.epsilon, delta=self.delta)

    def deviation(self, clip: WholeClip) -> Fraction:
        """That of the noise, in whole steps of the clip."""
        return self.noise_multiplier * clip.bound

    def certificate(self, clip: WholeClip | None = None) -> dict[str, Any]:
        """What `lastbit check` derives again: rate, noise, steps and neighbours, epsilon and delta.

        Its epsilon is by moments, a little above that of the plan, which stands in it on trust.
        With a clip, how gradients were clipped is among what the proof assumes.
        """
        proved = composition_certificate([(self.loss, self.steps)], delta=self.delta)
        if clip is None:
            return proved
        more = (
            f"each {self.unit} is in a batch with probability {self.rate}, apart from all others",
            f"a batch adds up vectors of integers on int64, one of each {self.unit} in it",
            f"the vector of one depends on no other; its sum of squares is at most {clip.bound}**2",
            f"an absent {self.unit} leaves an empty place: others are as if it were there",
            f"the noise is round(s Z), drawn once for each sum, s = {self.deviation(clip)}, "
            "Z standard normal",
        )
        return certificate(
            proved["kind"], proved["claim"], [*proved["assumptions"], *more], proved["body"]
        )

    def to_dict(self) -> dict[str, Any]:
        """Exact numbers as text; `plan_from_dict` reads it back."""
        return {
            "kind": KIND,
            "examples": self.examples,
            "rate": str(self.rate),
            "steps": self.steps,
            "noise_multiplier": str(self.noise_multiplier),
            "delta": str(self.delta),
            "epsilon": str(self.epsilon),
            "unit": self.unit,
        }

    @property
    def digest(self) -> str:
        """SHA-256 of all of it."""
        return digest_of(self.to_dict())


def training_plan(
    *,
    examples: int,
    batch: Number,
    delta: Number,
    epochs: Number | None = None,
    steps: int | None = None,
    epsilon: Number | None = None,
    noise_multiplier: Number | None = None,
    unit: str = "example",
) -> TrainingPlan:
    """The plan of a run: for an epsilon the least noise that keeps it, or the epsilon of a noise.

    `batch` is the expected one, `epochs` how often each example is used on average.

    >>> plan = training_plan(examples=1_000, batch=50, epochs=5, epsilon=3, delta="1e-5")
    >>> plan.steps, plan.noise_multiplier
    (100, Fraction(1078807, 1000000))
    """
    count, rate = whole(examples, "examples", least=1), _rate(examples, batch)
    times = _steps(rate, epochs, steps)
    level = probability(delta, "delta", one=False, remedy="pass, say, 1e-6")
    if (epsilon is None) == (noise_multiplier is None):
        remedy = "pass {epsilon} or {noise_multiplier}"
        problem = "or noise_multiplier, exactly one, is needed"
        raise InvalidParameter(
            "epsilon", problem=problem, remedy=remedy, epsilon="", noise_multiplier=""
        )
    if noise_multiplier is not None:
        multiplier = positive(noise_multiplier, "noise_multiplier")
        _check_multiplier(multiplier)
        loss = SubsampledGaussianLoss(rate, 1 / multiplier**2)
        bound = (times * loss).epsilon(level)[1]
        promised = max(_rounded_up(Fraction(bound)), Fraction(1, _DECIMALS))
    else:
        assert epsilon is not None
        promised = positive(epsilon, "epsilon")
        found = calibrated(
            SubsampledGaussianLoss, epsilon=promised, delta=level, releases=times, rate=rate
        )
        multiplier = _root_up(1 / found.mu_squared)
    return TrainingPlan(
        examples=count,
        rate=rate,
        steps=times,
        noise_multiplier=multiplier,
        delta=level,
        epsilon=promised,
        unit=unit,
    )


def plan_from_dict(values: Mapping[str, Any]) -> TrainingPlan:
    """The plan that `to_dict` wrote, worked out again: what it promises is not believed.

    >>> plan = training_plan(examples=9, batch=3, steps=2, noise_multiplier=2, delta="1e-5")
    >>> plan_from_dict(plan.to_dict()) == plan
    True
    """
    remedy = "pass what to_dict() gave, or lastbit train plan --json wrote"
    try:
        fields = {name: values[name] for name in TrainingPlan.__dataclass_fields__}
        if values["kind"] != KIND or not isinstance(fields["unit"], str):
            raise KeyError("kind")
    except (KeyError, TypeError):
        raise InvalidParameter("plan", problem="is not a plan", remedy=remedy) from None
    return TrainingPlan(**fields)


def read_plan(path: str | Path) -> TrainingPlan:
    """The plan in a file that `lastbit train plan --json` wrote.

    >>> import json, tempfile
    >>> plan = training_plan(examples=9, batch=3, steps=2, noise_multiplier=2, delta="1e-5")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "plan.json"
    ...     _ = path.write_text(json.dumps(plan.to_dict()))
    ...     read_plan(path) == plan
    True
    """
    return plan_from_dict(read(path))


def _check_multiplier(multiplier: Fraction) -> None:
    if multiplier < _LEAST_MULTIPLIER:
        problem = f"is below {_LEAST_MULTIPLIER}, which hides nothing"
        raise InvalidParameter("noise_multiplier", problem=problem, remedy="pass 1, say")


def _rate(examples: int, batch: Number) -> Fraction:
    expected = positive(batch, "batch")
    if expected > examples:
        remedy = "pass a smaller one"
        raise InvalidParameter("batch", problem="is above the number of examples", remedy=remedy)
    return expected / examples


def _steps(rate: Fraction, epochs: Number | None, steps: int | None) -> int:
    if (epochs is None) == (steps is None):
        problem = "or steps, exactly one, is needed"
        remedy = "pass {epochs} or {steps}"
        raise InvalidParameter("epochs", problem=problem, remedy=remedy, epochs="", steps="")
    if epochs is None:
        return whole(steps, "steps", least=1)
    return ceil(positive(epochs, "epochs") / rate)


def _rounded_up(amount: Fraction) -> Fraction:
    """To six decimals."""
    return Fraction(ceil(amount * _DECIMALS), _DECIMALS)


def _root_up(square: Fraction) -> Fraction:
    """A number of six decimals whose square is not below."""
    whole_root = isqrt(ceil(square * _DECIMALS**2))
    root = Fraction(whole_root, _DECIMALS)
    return root if root**2 >= square else root + Fraction(1, _DECIMALS)
