"""What audits find: the event that tells two inputs apart, and what it proves; an attack's verdict.

An event is a set of outputs. It is data, so that pictures and programs need not read the sentence.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, Literal, TypeAlias

from lastbit.audit.blackbox.features import Feature
from lastbit.audit.bounds import Prior, delta_lower, epsilon_lower, error_rate, exceeds, ratio_lower
from lastbit.errors import InvalidParameter, WrongType
from lastbit.exact import Number, exact_text, probability, rounded_down, rounded_up, whole

Range: TypeAlias = tuple[float, float]
"""From the first number, included, to the second, excluded; a single value if both are equal."""
_MOST_RANGES = 8  # in a sentence


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputEvent:
    """The output is one of these, as they are printed, or of `others` that are not listed."""

    outputs: tuple[str, ...]
    others: int = 0

    @classmethod
    def of(cls, names: Sequence[str], most: int = 6) -> OutputEvent:
        """The event of all these outputs, of which the first `most` are listed."""
        return cls(outputs=tuple(names[:most]), others=max(0, len(names) - most))

    @property
    def sentence(self) -> str:
        """In words.

        >>> OutputEvent.of("abc", most=2).sentence, OutputEvent.of([]).sentence
        ('the output is a or b or 1 more', 'no output')
        """
        more = f" or {self.others} more" if self.others else ""
        return f"the output is {' or '.join(self.outputs)}{more}" if self.outputs else "no output"

    def to_dict(self) -> dict[str, Any]:
        return {"kind": "outputs", "outputs": list(self.outputs), "others": self.others}


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """A feature of the output lies in one of some ranges."""

    feature: Feature
    ranges: tuple[Range, ...]

    @property
    def sentence(self) -> str:
        more = len(self.ranges) - _MOST_RANGES
        tail = f", or in {more} more ranges" if more > 0 else ""
        named = " or ".join(map(_within, self.ranges[:_MOST_RANGES]))
        return f"{self.feature.name} is {named}{tail}"


@dataclass(frozen=True, slots=True, kw_only=True)
class RangeEvent:
    """All of the conditions hold, or at least one of them."""

    conditions: tuple[Condition, ...]
    all_hold: bool = True

    @property
    def sentence(self) -> str:
        joined = " and " if self.all_hold else " or "
        return joined.join(condition.sentence for condition in self.conditions)

    def to_dict(self) -> dict[str, Any]:
        conditions = [
            {
                "feature": condition.feature.name,
                "ranges": [[_json(low), _json(high)] for low, high in condition.ranges],
            }
            for condition in self.conditions
        ]
        return {"kind": "ranges", "all_hold": self.all_hold, "conditions": conditions}


@dataclass(frozen=True, slots=True, kw_only=True)
class RatioEvent:
    """The likelihood ratio estimated from several features reaches a limit."""

    features: tuple[str, ...]  # which kinds of features, in words
    groups: tuple[str, ...]  # the same by `Feature.group`
    at_least: float

    @property
    def sentence(self) -> str:
        names = ", ".join(self.features)
        return f"the likelihood ratio estimated from {names} is at least {self.at_least:.4g}"

    def to_dict(self) -> dict[str, Any]:
        return {"kind": "ratio", "features": list(self.features), "at_least": self.at_least}


@dataclass(frozen=True, slots=True)
class NoEvent:
    """All outputs were alike, so there was nothing to count."""

    @property
    def sentence(self) -> str:
        return "none"

    def to_dict(self) -> dict[str, Any]:
        return {"kind": "none"}


Event: TypeAlias = OutputEvent | RangeEvent | RatioEvent | NoEvent


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """How often an event happened in how many runs, under its likelier input and the other."""

    hits: int = 0
    trials: int = 0
    other_hits: int = 0
    other_trials: int = 0

    @property
    def counts(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in Counted.__slots__}


@dataclass(frozen=True, slots=True, kw_only=True)
class Stated(Counted):
    """Counts of one event, and what was fixed about the statement before they were counted.

    That is: its `share` of the error, for which error that share was `planned`, whether the ratio
    of the hits decides or two intervals, and the `priors` of a statement for every number of runs;
    without them the number of runs was fixed too.
    """

    by_ratio: bool
    share: Fraction
    planned: Fraction
    priors: tuple[Prior, ...] = ()
    event: Event = NoEvent()
    swapped: bool = False

    def epsilon_lower(self, error: Fraction, delta: Fraction) -> float:
        """What is certified of epsilon, if all statements together may err this often."""
        allowed = error * self.share
        if self.by_ratio:
            prior = self.priors[0] if self.priors else None
            return ratio_lower(self.hits, self.other_hits, error=allowed, prior=prior)
        if not (self.trials and self.other_trials):
            return 0.0
        return epsilon_lower(**self.counts, delta=delta, error=allowed, priors=self._both)

    def delta_lower(self, error: Fraction, epsilon: Fraction | None) -> float | None:
        """The same of delta, which takes intervals; from the same two ends."""
        if epsilon is None:
            return None
        if self.by_ratio or not (self.trials and self.other_trials):
            return 0.0
        allowed = error * self.share
        return delta_lower(**self.counts, epsilon=epsilon, error=allowed, priors=self._both)

    @property
    def _both(self) -> tuple[Prior, Prior] | None:
        return (self.priors[0], self.priors[1]) if self.priors else None


@dataclass(frozen=True, slots=True, kw_only=True)
class PairFinding(Counted):
    """Certified lower bounds for one pair, by the event and, where samples decided, its counts.

    `swapped` says that the event is likelier under the second input; the hits are then in that
    order: `hits` under the likelier input, `other_hits` under the other.
    """

    epsilon_lower: float
    delta_lower: float | None
    event: Event
    swapped: bool = False
    samples: int = 0
    pair: int = 0
    stated: tuple[Stated, ...] = ()
    repeated: bool = False

    @classmethod
    def of(
        cls,
        stated: Sequence[Stated],
        *,
        error: Fraction,
        epsilon: Fraction | None,
        delta: Fraction,
    ) -> PairFinding:
        """The greatest bounds that the statements planned for this error prove.

        Those planned for the first error are restated where none was planned for this one.
        """
        planned = error if any(s.planned == error for s in stated) else stated[0].planned
        chosen = [s for s in stated if s.planned == planned]
        losses = [s.epsilon_lower(error, delta) for s in chosen]
        rests = [rest for s in chosen if (rest := s.delta_lower(error, epsilon)) is not None]
        best = chosen[losses.index(max(losses))]
        return cls(
            epsilon_lower=max(losses),
            delta_lower=max(rests, default=None),
            event=best.event,
            swapped=best.swapped,
            stated=tuple(stated),
            **best.counts,
        )

    def estimate(self, delta: Fraction) -> float:
        """Where the bound tends to with more runs: not itself a bound."""
        above = self.hits / self.trials - float(delta) if self.trials and self.other_trials else 0.0
        if above <= 0:
            return 0.0
        if not self.other_hits:
            return math.inf
        return max(0.0, math.log(above * self.other_trials / self.other_hits))


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditResult(Counted):
    """A certified lower bound on the loss of a mechanism for two inputs.

    `epsilon_lower` holds at `delta`; `delta_lower` at the claimed `epsilon`, if one was claimed.
    Both are rounded down, and together wrong with probability at most `error`, which is 0 where
    the law was known: then they are true of that law, and `rests_on` says what is known of the law.
    `monotone` is "proved" or "probed" for code whose law was computed by running it: that law is
    the code's if the code is monotone in its uniform. Where that is only probed the law decides
    nothing: the result is not exact, and `broken` only if samples say so.
    `contradiction` says why a law that the mechanism stated is not that of its releases; the
    verdict then rests on samples. `estimate` is where the bound tends to with more runs: no bound,
    but a reason to run longer if it is above the claim.

    `witness` is the event that tells the inputs apart, as data, and `event` the sentence of it.
    `inputs` are in the order in which the event is likelier under the first: it happened `hits`
    times in `trials` runs there, and `other_hits` times in `other_trials` runs under the second. A
    coin decided the input of each run, so the two numbers of runs differ a bit. `stated` is what
    was counted, for `at`; `repeated` says that the processes drew the same outputs, so that only
    one of them was counted.
    """

    epsilon_lower: float
    delta_lower: float | None
    epsilon: Fraction | None
    delta: Fraction
    error: Fraction
    event: str = ""
    inputs: tuple[Any, Any]
    samples: int
    seconds: float
    again: str
    estimate: float | None = None
    basis: Literal["samples", "law", "code"] = "samples"
    releases: int = 0
    unheard: str | None = None
    contradiction: str | None = None
    monotone: Literal["proved", "probed"] | None = None
    witness: Event = NoEvent()
    stated: tuple[Stated, ...] = ()
    repeated: bool = False

    def __post_init__(self) -> None:
        if self.witness != NoEvent() or not self.event:
            object.__setattr__(self, "event", self.witness.sentence)

    @property
    def rests_on(self) -> str:
        """What the verdict is about: a law, and what is known of it, or samples."""
        match self.basis:
            case "code" if self.monotone == "proved":
                return (
                    "the law of the code itself, worked out by running it; its steps prove it "
                    "monotone in its uniform"
                )
            case "code":
                return (
                    "a law that holds if the code is monotone in its uniform, which was probed, "
                    "not proved: it decides nothing"
                )
            case "law" if self.releases:
                return f"the law, which {self.releases:,} releases do not contradict"
            case "law":
                return f"the law alone: {self.unheard or 'no release was compared with it'}"
        if self.monotone == "probed":
            return (
                "samples: its law chose the event, but that the code is monotone in its "
                "uniform was only probed, not proved"
            )
        if self.contradiction is not None:
            return "samples, since the law is not that of release"
        alone = ", of one process: the others drew the same outputs" if self.repeated else ""
        return f"samples{alone}"

    def at(self, error: Number) -> AuditResult:
        """The same counts, read at another error: a claim of its own.

        Theorem  for each error that is fixed before the audit, the result at that error is wrong
                 with probability at most that error: the events, the shares and the numbers of
                 runs were fixed before the counts, and each statement holds with its share of any
                 error. An error that is chosen after looking at the bounds has no such promise
        Checked  tests/audit/test_spending.py
        """
        allowed = error_rate(error)
        if self.exact or self.contradiction is not None or (self.trials and not self.stated):
            raise InvalidParameter(
                "error",
                problem="cannot be changed: this result rests on a law, or on samples held "
                "against one",
                remedy="audit it by sampling, with that error",
            )
        if not self.stated:
            return replace(self, error=allowed)
        found = PairFinding.of(self.stated, error=allowed, epsilon=self.epsilon, delta=self.delta)
        deciding = next(s for s in self.stated if s.hits == self.hits and s.event == self.witness)
        return replace(
            self,
            error=allowed,
            epsilon_lower=found.epsilon_lower,
            delta_lower=found.delta_lower,
            witness=found.event,
            inputs=self.inputs if found.swapped == deciding.swapped else self.inputs[::-1],
            estimate=found.estimate(self.delta),
            **found.counts,
        )

    @property
    def undecided(self) -> bool:
        """Whether the claim stands, and the estimate is above it: more runs may refute it."""
        if self.epsilon is None or self.broken or self.estimate is None:
            return False
        return self.estimate > self.epsilon

    @property
    def exact(self) -> bool:
        """Whether the laws decided, and not samples; a law of code that is only probed does not."""
        return self.error == 0 and not self._only_probed

    @property
    def confidence(self) -> Fraction:
        """The probability with which the bounds hold, at least: 1 - error."""
        return 1 - self.error

    @property
    def sureness(self) -> str:
        """The confidence in words, rounded down."""
        return f"{rounded_down(100 * self.confidence, 6)} % confidence"

    @property
    def _only_probed(self) -> bool:
        return self.basis == "code" and self.monotone != "proved"

    @property
    def broken(self) -> bool:
        """Whether the claim is refuted: epsilon is greater, or delta is at that epsilon."""
        if self.epsilon is None or self._only_probed:
            return False
        return self.epsilon_lower > self.epsilon or (self.delta_lower or 0.0) > self.delta

    def __str__(self) -> str:
        how = f"{self.sureness}: wrong with probability at most {rounded_up(self.error, 3)}"
        if self.exact:
            how = "exact"
        elif self._only_probed:
            how = "if the code is monotone in its uniform: probed, not proved"
        bound = rounded_down(self.epsilon_lower, 4)
        lines = [f"epsilon >= {bound} at delta = {exact_text(self.delta)} ({how})"]
        if self.contradiction is not None:
            lines.insert(0, f"THE LAW IS NOT THAT OF RELEASE: {self.contradiction}")
        lines.append(f"rests on {self.rests_on}")
        if self.epsilon is not None:
            verdict = "REFUTED" if self.broken else "not refuted"
            low = rounded_down(self.delta_lower or 0.0, 4)
            lines.append(f"claimed: epsilon = {exact_text(self.epsilon)}: {verdict}")
            lines.append(f"delta >= {low} at the claimed epsilon")
        if self.undecided:
            lines.append(f"the estimate is {self.estimate:.4g}, above the claim: run it longer")
        one, other = self.inputs
        counts = f"{self.other_hits} times in {self.other_trials} on {other}"
        seen = f"seen {self.hits} times in {self.trials} runs on {one}, {counts}"
        inputs = seen if self.trials else f"inputs: {one} against {other}"
        return "\n".join([*lines, f"event: {self.event}", inputs, f"again: {self.again}"])

    def to_dict(self) -> dict[str, Any]:
        """Everything as text and numbers, ready for JSON."""
        return {
            "epsilon_lower": _json(self.epsilon_lower),
            "delta_lower": self.delta_lower,
            "epsilon": None if self.epsilon is None else str(self.epsilon),
            "delta": str(self.delta),
            "error": str(self.error),
            "confidence": str(self.confidence),
            "broken": self.broken,
            "exact": self.exact,
            "event": self.event,
            "witness": self.witness.to_dict(),
            "inputs": [str(value) for value in self.inputs],
            **self.counts,
            **{name: getattr(self, name) for name in ("samples", "seconds", "again")},
            "estimate": _json(self.estimate),
            **{name: getattr(self, name) for name in ("undecided", "basis", "rests_on")},
            "contradiction": self.contradiction,
            "monotone": self.monotone,
        }


# ---------------------------------------------------------------- as text


def _within(ends: Range) -> str:
    low, high = ends
    if low == high:
        return f"{low:.17g}"
    if low == -math.inf:
        return "anything" if high == math.inf else f"below {high:.17g}"
    return f"in [{low:.17g}, {high:.17g})"


def _json(number: float | None) -> float | str | None:
    """Infinity as text, which JSON lacks."""
    return str(number) if number is not None and math.isinf(number) else number


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The outcome of one attack on one target.

    `broken` means: certified to be above the claim, except with probability `error`. It never means
    "probably". The other way round nothing is proved: a target that is not broken resisted this
    attack, on these inputs, with this number of samples.

    `epsilon_lower` is certified too, and rounded down: with probability 1 - error the mechanism is
    not epsilon-private for any smaller epsilon (with the claim's own delta, if it has one).
    `claimed` is None where the claim is not an epsilon, as for the time a draw takes.

    >>> print(Verdict(
    ...     name="precision", target="numpy Laplace", broken=True, epsilon_lower=5.25,
    ...     claimed=Fraction(1), error=Fraction(1, 10**6), samples=10_000, seconds=0.1,
    ...     witness="2.5 is no multiple of 3", details={"hits": "27 %, 0 %"}))
    precision on numpy Laplace: BROKEN
      epsilon is at least 5.25, claimed was 1 (wrong with probability at most 1e-6)
      2.5 is no multiple of 3
      hits: 27 %, 0 %
      10,000 samples in 0.1 s
    """

    name: str
    target: str
    broken: bool
    epsilon_lower: float
    claimed: Fraction | None
    error: Fraction
    samples: int
    seconds: float
    witness: str
    details: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("name", "target", "witness"):
            if not isinstance(getattr(self, name), str):
                raise WrongType(name, problem="is not text", remedy="pass a string")
        if not isinstance(self.broken, bool):
            raise WrongType("broken", problem="is not a truth value", remedy="pass True or False")
        if not self.epsilon_lower >= 0:
            raise InvalidParameter(
                "epsilon_lower", problem="is negative or NaN", remedy="pass 0 if nothing is shown"
            )
        probability(self.error, "error", one=False, remedy="pass the rate of false accusations")
        whole(self.samples, "samples")
        if self.claimed is not None and self.broken != exceeds(self.epsilon_lower, self.claimed):
            raise InvalidParameter(
                "broken",
                problem="disagrees with epsilon_lower and the claim",
                remedy="pass epsilon_lower > claimed",
            )
        object.__setattr__(self, "details", dict(self.details))

    def __str__(self) -> str:
        lines = [f"{self.name} on {self.target}: {'BROKEN' if self.broken else 'resisted'}"]
        sure = f"(wrong with probability at most {rounded_up(self.error, 3)})"
        if self.claimed is not None:
            low, claimed = rounded_down(self.epsilon_lower, 4), exact_text(self.claimed)
            lines.append(f"  epsilon is at least {low}, claimed was {claimed} {sure}")
        else:
            lines.append(f"  {'shown' if self.broken else 'nothing shown'} {sure}")
        lines.append(f"  {self.witness}")
        lines += [f"  {key}: {text}" for key, text in self.details.items()]
        lines.append(f"  {self.samples:,} samples in {self.seconds:.1f} s")
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values; rationals as text, infinity too."""
        plain = {name: getattr(self, name) for name in self.__slots__}
        return plain | {
            "epsilon_lower": _json(self.epsilon_lower),
            "claimed": None if self.claimed is None else str(self.claimed),
            "error": str(self.error),
            "details": dict(self.details),
        }
