"""Given a mechanism and neighbouring inputs: how private is it certainly not?"""

from __future__ import annotations

import multiprocessing
import os
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from multiprocessing.connection import Connection, wait
from typing import Any, Literal

from lastbit.audit.blackbox.exact_laws import ExactFinding, exact_finding, law_of
from lastbit.audit.blackbox.probed_code import RUNS, counted, is_proved
from lastbit.audit.blackbox.releases import law_trial, release_of
from lastbit.audit.blackbox.sampled import SampledFinding, explore
from lastbit.audit.blackbox.search import Draw, Plan, Progress
from lastbit.audit.inputs import Choices, Pair, listed
from lastbit.audit.targets.target import as_release
from lastbit.audit.verdict import text_above, text_below
from lastbit.errors import InvalidParameter
from lastbit.exact import Number, nonnegative, positive, probability, shown, whole
from lastbit.verify import Code

_MOST_SAMPLES = 1 << 32
LAW_SHARE = Fraction(1, 8)
"""Of the error: for saying wrongly that a law is not that of release."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditResult:
    """A certified lower bound on the loss of a mechanism for two inputs.

    `epsilon_lower` holds at `delta`; `delta_lower` at the claimed `epsilon`, if one was claimed.
    Both are rounded down, and together wrong with probability at most `error`, which is 0 where
    the law was known: then they are true of that law, and `rests_on` says what is known of the law.
    `monotone` is "proved" or "probed" for code whose law was worked out by running it: that law is
    the code's if the code is monotone in its uniform. Where that is only probed the law decides
    nothing: the result is not exact, and `broken` only if samples say so.
    `contradiction` says why a law that the mechanism stated is not that of its releases; the
    verdict then rests on samples. `estimate` is where the bound tends to with more runs: no bound,
    but a reason to run longer if it is above the claim.

    `inputs` are in the order in which the event is likelier under the first: it happened `hits`
    times in `trials` runs there, and `other_hits` times in `other_trials` runs under the second. A
    coin decided the input of each run, so the two numbers of runs differ a bit.
    """

    epsilon_lower: float
    delta_lower: float | None
    epsilon: Fraction | None
    delta: Fraction
    error: Fraction
    event: str
    inputs: tuple[Any, Any]
    hits: int
    trials: int
    other_hits: int
    other_trials: int
    samples: int
    seconds: float
    again: str
    estimate: float | None = None
    basis: Literal["samples", "law", "code"] = "samples"
    releases: int = 0
    unheard: str | None = None
    contradiction: str | None = None
    monotone: Literal["proved", "probed"] | None = None

    @property
    def rests_on(self) -> str:
        """What the verdict is about: a law, and what is known of it, or samples."""
        match self.basis:
            case "code" if self.monotone == "proved":
                return (
                    "the law of the code itself, worked out by running it; that it is monotone in "
                    "its uniform is proved from its steps"
                )
            case "code":
                return (
                    "a law that is the code's only if it is monotone in its uniform, which was "
                    "probed and not proved: it decides nothing"
                )
            case "law" if self.releases:
                return f"the law, which {self.releases:,} releases do not contradict"
            case "law":
                return f"the law alone: {self.unheard or 'no release was compared with it'}"
            case "samples" if self.monotone == "probed":
                return (
                    "samples: its law chose the event, but that the code is monotone in its "
                    "uniform was only probed, not proved"
                )
            case "samples" if self.contradiction is not None:
                return "samples, since the law is not that of release"
            case "samples":
                return "samples"

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
    def _only_probed(self) -> bool:
        return self.basis == "code" and self.monotone != "proved"

    @property
    def broken(self) -> bool:
        """Whether the claim is refuted: epsilon is greater, or delta is at that epsilon."""
        if self.epsilon is None or self._only_probed:
            return False
        return self.epsilon_lower > self.epsilon or (self.delta_lower or 0.0) > self.delta

    def __str__(self) -> str:
        how = "exact" if self.exact else f"wrong with probability at most {text_above(self.error)}"
        if self._only_probed:
            how = "if the code is monotone in its uniform: probed, not proved"
        bound = text_below(self.epsilon_lower)
        lines = [f"epsilon >= {bound} at delta = {float(self.delta):.3g} ({how})"]
        if self.contradiction is not None:
            lines.insert(0, f"THE LAW IS NOT THAT OF RELEASE: {self.contradiction}")
        lines.append(f"rests on {self.rests_on}")
        if self.epsilon is not None:
            verdict = "REFUTED" if self.broken else "not refuted"
            lines.append(f"claimed: epsilon = {float(self.epsilon):.6g}: {verdict}")
            lines.append(f"delta >= {text_below(self.delta_lower or 0.0)} at the claimed epsilon")
        if self.undecided:
            lines.append(f"the estimate is {self.estimate:.4g}, above the claim: run it longer")
        lines.append(f"event: {self.event}")
        if self.trials:
            lines.append(
                f"seen {self.hits} times in {self.trials} runs on {self.inputs[0]}, "
                f"{self.other_hits} times in {self.other_trials} on {self.inputs[1]}"
            )
        else:
            lines.append(f"inputs: {self.inputs[0]} against {self.inputs[1]}")
        return "\n".join([*lines, f"again: {self.again}"])

    def to_dict(self) -> dict[str, Any]:
        """Everything as text and numbers, ready for JSON."""
        return {
            "epsilon_lower": self.epsilon_lower if self.epsilon_lower != float("inf") else "inf",
            "delta_lower": self.delta_lower,
            "epsilon": None if self.epsilon is None else str(self.epsilon),
            "delta": str(self.delta),
            "error": str(self.error),
            "broken": self.broken,
            "exact": self.exact,
            "event": self.event,
            "inputs": [str(value) for value in self.inputs],
            "hits": self.hits,
            "trials": self.trials,
            "other_hits": self.other_hits,
            "other_trials": self.other_trials,
            "samples": self.samples,
            "seconds": self.seconds,
            "again": self.again,
            "estimate": "inf" if self.estimate == float("inf") else self.estimate,
            "undecided": self.undecided,
            "basis": self.basis,
            "rests_on": self.rests_on,
            "contradiction": self.contradiction,
            "monotone": self.monotone,
        }


def distinguish(
    mechanism: Any,
    pairs: Any,
    *,
    epsilon: Number | None = None,
    delta: Number = 0,
    seconds: float = 60,
    samples: int | None = None,
    error: Number = "1e-6",
    seed: int = 0,
    processes: int | None = None,
    progress: Progress | None = None,
) -> AuditResult:
    """A certified lower bound on epsilon: by the law where it is known, else by sampling.

    `mechanism(value, size)` gives `size` independent outputs, `mechanism(value)` one; `pairs` is
    one tuple (x, y), or a list or generator of such tuples. A mechanism with a method `law(value)`
    and a `verify.Code` are judged by their laws (`distinguish_by_law`), everything else by samples
    (`distinguish_by_sampling`), for which `samples`, the tests of each input, may be fixed: without
    it the time decides how many, and two runs may differ.

    **What sampling cannot see.** A violation that happens with probability 1e-9 does not happen in
    a million runs. A curator that publishes the data once in 2**60 times passes every black-box
    audit of this or any other tool: a bound of 0 says that nothing was found, never that nothing is
    there. Laws have no such limit.

    A law is an object's own word. Where there are releases too, some are drawn and held against
    it (`releases.law_trial`, with an eighth of the error); a law that they contradict is dropped,
    the result says so, and samples decide, with the rest of the error. The law of a `verify.Code`
    decides where the code is proved to be monotone in its uniform (`verify.direction`); else it
    chooses the event, and samples decide (`probed_code`).

    >>> from lastbit.mechanisms.laplace import Laplace
    >>> result = distinguish(Laplace(sensitivity=1, epsilon="1/2"), (0, 1), epsilon="1/2")
    >>> result.exact, round(result.epsilon_lower, 9), result.broken
    (True, 0.5, False)
    >>> result.rests_on
    'the law, which 4,096 releases do not contradict'
    """
    given, allowed = listed(pairs), _error(error)
    release = release_of(mechanism)
    found = None
    if law_of(mechanism) is not None:
        found = distinguish_by_law(mechanism, given, epsilon=epsilon, delta=delta)
    if found is not None and found.monotone == "probed":
        return confirmed(found, mechanism, error=allowed, samples=samples)
    if found is not None:
        found = compared(found, mechanism, release, given, error=allowed * LAW_SHARE)
        if found.contradiction is None:
            return found
        allowed *= 1 - LAW_SHARE
    sampled = distinguish_by_sampling(
        mechanism if release is None else release,
        given,
        epsilon=epsilon,
        delta=delta,
        seconds=seconds,
        samples=samples,
        error=allowed,
        seed=seed,
        processes=processes,
        progress=progress,
    )
    if found is None:
        return sampled
    return contradicted(sampled, found, _error(error))


def compared(
    found: AuditResult,
    mechanism: Any,
    release: Callable[..., Any] | None,
    pairs: list[Pair],
    *,
    error: Fraction,
    law: Callable[[Any], Any] | None = None,
) -> AuditResult:
    """An exact result with what releases say of the law it rests on.

    Code of a uniform needs none: its law was worked out by running it.
    """
    source = law_of(mechanism) if law is None else law
    if found.basis == "code" or source is None:
        return found
    if release is None:
        return replace(found, unheard="there is no release to compare it with")
    # the pair that decides first: of many, only some are tried
    deciding = {id(value) for value in found.inputs}
    ordered = [found.inputs, *(p for p in pairs if {id(value) for value in p} != deciding)]
    trial = law_trial(as_release(release), source, ordered, error=error)
    return replace(
        found,
        releases=trial.releases,
        unheard=trial.unheard,
        contradiction=trial.contradiction,
    )


def confirmed(
    found: AuditResult, code: Code, *, error: Fraction, samples: int | None
) -> AuditResult:
    """What samples say of code that is only probed to be monotone, on the pair its law chose."""
    start = time.perf_counter()
    source = law_of(code)
    assert source is not None
    one, two = found.inputs
    counts = counted(
        code,
        (one, two),
        (source(one), source(two)),
        epsilon=found.epsilon,
        delta=found.delta,
        error=error,
        runs=RUNS if samples is None else _tests(samples),
    )
    inputs = (two, one) if counts.swapped else (one, two)
    return replace(
        found,
        epsilon_lower=counts.epsilon_lower,
        delta_lower=counts.delta_lower,
        error=error,
        event=counts.event,
        inputs=inputs,
        hits=counts.hits,
        trials=counts.runs,
        other_hits=counts.other_hits,
        other_trials=counts.runs,
        samples=2 * counts.runs,
        seconds=found.seconds + time.perf_counter() - start,
        again=f"distinguish(mechanism, {[inputs]!r}, {_claimed(found.epsilon, found.delta)}, "
        f"samples={counts.runs}, error={shown(error)})",
        estimate=counts.estimate(found.delta),
        basis="samples",
    )


def contradicted(sampled: AuditResult, by_law: AuditResult, error: Fraction) -> AuditResult:
    """The verdict by samples of a mechanism whose law was contradicted, with the error of both."""
    return replace(sampled, contradiction=by_law.contradiction, error=error)


def distinguish_by_law(
    mechanism: Any,
    pairs: Any,
    *,
    epsilon: Number | None = None,
    delta: Number = 0,
    law: Callable[[Any], Any] | None = None,
) -> AuditResult | None:
    """The exact bound of a law; None where it is of a kind that cannot be compared.

    Whether the mechanism's releases follow the law is not looked at: `distinguish` does that.
    `law(value)` may be given where the mechanism has none of its own: a `lastbit.laws.Law`, a
    `verify.ExactLaw`, or a mapping of all outputs to probabilities.

    >>> loud = {"quiet": 1 - Fraction(1, 2**60), "the truth": Fraction(1, 2**60)}
    >>> curator = lambda value: loud if value else {"quiet": 1}
    >>> distinguish_by_law(None, (0, 1), law=curator).epsilon_lower
    inf
    """
    start = time.perf_counter()
    source = law_of(mechanism) if law is None else law
    if source is None:
        raise InvalidParameter(
            "mechanism", problem="has no method law", remedy="pass law=, or audit it by sampling"
        )
    claim, share = _claim(epsilon), _share(delta)
    best: tuple[ExactFinding, Pair] | None = None
    rest = None if claim is None else 0.0
    own = mechanism if law is None and isinstance(mechanism, Code) else None
    proved = own is not None
    for x, y in listed(pairs):
        laws = (source(x), source(y))
        found = exact_finding(*laws, epsilon=claim, delta=share)
        if found is None:
            return None
        proved = proved and own is not None and is_proved(own, (x, y), laws)
        if best is None or found.epsilon_lower > best[0].epsilon_lower:
            best = found, (y, x) if found.swapped else (x, y)
        rest = None if rest is None else max(rest, found.delta_lower or 0.0)
    assert best is not None  # there is at least one pair
    return AuditResult(
        epsilon_lower=best[0].epsilon_lower,
        delta_lower=rest,
        epsilon=claim,
        delta=share,
        error=Fraction(0),
        event=best[0].event,
        inputs=best[1],
        hits=0,
        trials=0,
        other_hits=0,
        other_trials=0,
        samples=0,
        seconds=time.perf_counter() - start,
        again=f"distinguish_by_law(mechanism, {[best[1]]!r}, {_claimed(claim, share)})",
        basis="law" if own is None else "code",
        monotone=None if own is None else "proved" if proved else "probed",
    )


def distinguish_by_sampling(
    mechanism: Any,
    pairs: Any,
    *,
    epsilon: Number | None = None,
    delta: Number = 0,
    seconds: float = 60,
    samples: int | None = None,
    error: Number = "1e-6",
    seed: int = 0,
    processes: int | None = None,
    progress: Progress | None = None,
) -> AuditResult:
    """A bound from samples, wrong with probability at most `error`.

    Theorem  the pairs are dealt to the processes; each tests one event of one pair, with an equal
             share of the error (`sampled.explore`), so the greatest bound of all is wrong with
             probability at most `error` (union bound). That needs no independence between the
             processes: it holds even if the mechanism repeats its random stream after a fork,
             since each process fixes its event before the tests on its own stream
    Source   Ding et al. 2018 (StatDP); Bichsel et al. 2021 (DP-Sniper); Neyman, Pearson 1933
    Differs  one error budget over everything tried; exact binomial ends; features of last bits
    Checked  tests/audit/test_distinguish.py
    """
    start = time.perf_counter()
    given = listed(pairs)
    plan = Plan(
        epsilon=_claim(epsilon),
        delta=_share(delta),
        error=_error(error),
        seconds=float(positive(seconds, "seconds")),
        samples=None if samples is None else _tests(samples),
        seed=whole(seed, "seed"),
    )
    workers = min(len(given), _processes(processes))
    order = Choices(plan.seed, "pairs").order(range(len(given)))
    hands = [order[i::workers] for i in range(workers)]
    part = replace(plan, error=plan.error / workers)
    tell = progress if progress is not None else _silent
    found = _all(as_release(mechanism), given, hands, part, tell)
    best = max(range(workers), key=lambda i: found[i].epsilon_lower)
    return _result(given[hands[best][found[best].pair]], found, best, plan, start)


def _result(
    pair: Pair, found: list[SampledFinding], best: int, plan: Plan, start: float
) -> AuditResult:
    finding = found[best]
    inputs = (pair[1], pair[0]) if finding.swapped else (pair[0], pair[1])
    rest = None if plan.epsilon is None else max(f.delta_lower or 0.0 for f in found)
    number = finding.trials or plan.samples or 1
    again = (
        f"distinguish_by_sampling(mechanism, {[inputs]!r}, {_claimed(plan.epsilon, plan.delta)}, "
        f"samples={number}, error={shown(plan.error)}, seed={plan.seed})"
    )
    return AuditResult(
        epsilon_lower=finding.epsilon_lower,
        delta_lower=rest,
        epsilon=plan.epsilon,
        delta=plan.delta,
        error=plan.error,
        event=finding.event,
        inputs=inputs,
        hits=finding.hits,
        trials=finding.trials,
        other_hits=finding.other_hits,
        other_trials=finding.other_trials,
        samples=sum(f.samples for f in found),
        seconds=time.perf_counter() - start,
        again=again,
        estimate=finding.estimate(plan.delta),
    )


# ---------------------------------------------------------------- processes


def _all(
    draw: Draw, pairs: list[Pair], hands: list[list[int]], plan: Plan, tell: Progress
) -> list[SampledFinding]:
    """What each hand of pairs gave, in order."""
    dealt = [[pairs[i] for i in hand] for hand in hands]
    if len(dealt) == 1:
        return [explore(draw, dealt[0], plan, tell)]
    context = multiprocessing.get_context("fork")  # a closure cannot be sent, only inherited
    running: dict[Connection, tuple[int, Any]] = {}
    try:
        for number, hand in enumerate(dealt):
            ours, theirs = context.Pipe(duplex=False)
            process = context.Process(target=_work, args=(theirs, draw, hand, plan), daemon=True)
            with warnings.catch_warnings():
                # Python 3.12 warns of forks beside threads; a linear algebra library has some
                warnings.simplefilter("ignore", DeprecationWarning)
                process.start()
            theirs.close()
            running[ours] = number, process
        return _gathered(running, len(dealt), tell)
    finally:
        for pipe, (_, process) in running.items():
            pipe.close()
            process.terminate()
            process.join()


def _gathered(
    running: dict[Connection, tuple[int, Any]], count: int, tell: Progress
) -> list[SampledFinding]:
    found: dict[int, SampledFinding] = {}
    shares = [0.0] * count
    while len(found) < count:
        for pipe in wait([p for p, (number, _) in running.items() if number not in found]):
            assert isinstance(pipe, Connection)
            number = running[pipe][0]
            try:
                message = pipe.recv()
            except EOFError:
                raise RuntimeError("a process of the audit ended without an answer") from None
            match message:
                case SampledFinding():
                    found[number] = message
                case str():
                    raise _failure(pipe, message)
                case (share, text):
                    shares[number] = share
                    tell(min(shares), text)
    return [found[i] for i in range(count)]


def _failure(pipe: Connection, kind: str) -> Exception:
    """What the mechanism raised, or its kind where that does not survive the way through a pipe."""
    try:
        failure = pipe.recv()
    except Exception:
        return RuntimeError(kind)
    return failure if isinstance(failure, Exception) else RuntimeError(kind)


def _work(pipe: Connection, draw: Draw, pairs: list[Pair], plan: Plan) -> None:
    last = 0.0

    def report(share: float, text: str) -> None:
        nonlocal last
        if time.perf_counter() - last > 0.1:
            last = time.perf_counter()
            pipe.send((share, text))

    try:
        pipe.send(explore(draw, pairs, plan, report))
    except Exception as failure:
        pipe.send(f"the mechanism failed with {type(failure).__name__}")
        try:
            pipe.send(failure)
        except Exception:  # it cannot be sent: the parent has been told its kind
            pipe.close()


def _silent(share: float, text: str) -> None:
    """Nobody listens."""


# ---------------------------------------------------------------- parameters


def _processes(processes: int | None) -> int:
    if processes is not None:
        return whole(processes, "processes", least=1)
    can_fork = "fork" in multiprocessing.get_all_start_methods()
    return len(os.sched_getaffinity(0)) if can_fork and hasattr(os, "sched_getaffinity") else 1


def _tests(samples: int) -> int:
    number = whole(samples, "samples", least=1)
    if number > _MOST_SAMPLES:
        raise InvalidParameter(
            "samples", problem="are more than 2**32", remedy="pass a smaller number"
        )
    return number


def _claim(epsilon: Number | None) -> Fraction | None:
    return None if epsilon is None else nonnegative(epsilon, "epsilon")


def _share(delta: Number) -> Fraction:
    return probability(delta, "delta", one=False, remedy="pass 0 or a small probability")


def _error(error: Number) -> Fraction:
    return probability(error, "error", zero=False, one=False, remedy='pass, say, "1e-6"')


def _claimed(epsilon: Fraction | None, delta: Fraction) -> str:
    claim = "None" if epsilon is None else shown(epsilon)
    return f"epsilon={claim}, delta={shown(delta)}"
