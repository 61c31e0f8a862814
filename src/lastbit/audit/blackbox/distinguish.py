"""A certified lower bound on the epsilon of a mechanism for neighbouring inputs."""

from __future__ import annotations

import multiprocessing
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from lastbit.audit.blackbox.exact_laws import RUNS, counted, exact_finding, law_of
from lastbit.audit.blackbox.releases import law_trial, release_of
from lastbit.audit.blackbox.sampled import explore
from lastbit.audit.blackbox.search import Plan, Progress
from lastbit.audit.bounds import error_of, error_rate
from lastbit.audit.inputs import Pair, SeededRandom, listed
from lastbit.audit.result import AuditResult, PairFinding
from lastbit.audit.targets.target import as_release
from lastbit.errors import InvalidParameter
from lastbit.exact import Number, nonnegative, positive, probability, shown, whole
from lastbit.verify import Code, input_of, monotone_steps

_MOST_SAMPLES = 1 << 32
_WORTH_A_FORK = 1 << 16
LAW_SHARE = Fraction(1, 8)
"""Of the error: for saying wrongly that a law is not that of release."""


def distinguish(
    mechanism: Any,
    pairs: Any,
    *,
    epsilon: Number | None = None,
    delta: Number = 0,
    seconds: float = 60,
    samples: int | None = None,
    error: Number | None = None,
    confidence: Number | None = None,
    seed: int = 0,
    processes: int | None = None,
    progress: Progress | None = None,
) -> AuditResult:
    """A certified lower bound on epsilon: by the law where it is known, else by sampling.

    `mechanism(value, size)` gives `size` independent outputs, `mechanism(value)` one; `pairs` is
    one tuple (x, y), or a list or generator of such tuples. A mechanism with a method `law(value)`
    and a `verify.Code` are judged by their laws (`distinguish_by_law`), everything else by samples
    (`distinguish_by_sampling`), for which `samples`, the tests of each input, may be fixed: without
    it the time decides how many, and two runs may differ. The answer is wrong with probability at
    most `error`, 1e-6 unless told otherwise; `confidence` is 1 - error, and given in its place.

    **What sampling cannot see.** A violation that happens with probability 1e-9 does not happen in
    a million runs. A curator that publishes the data once in 2**60 times passes every black-box
    audit of this or any other tool: a bound of 0 says that nothing was found, never that nothing is
    there. Laws have no such limit.

    A law is an object's own word. Where there are releases too, some are drawn and held against
    it (`releases.law_trial`, with an eighth of the error); a law that they contradict is dropped,
    the result says so, and samples decide, with the rest of the error. The law of a `verify.Code`
    decides where the code is proved to be monotone in its uniform (`verify.direction`); else it
    chooses the event, and samples decide (`exact_laws.counted`).

    >>> from lastbit.mechanisms.laplace import Laplace
    >>> result = distinguish(Laplace(sensitivity=1, epsilon="1/2"), (0, 1), epsilon="1/2")
    >>> result.exact, round(result.epsilon_lower, 9), result.broken
    (True, 0.5, False)
    >>> result.rests_on
    'the law, which 4,096 releases do not contradict'
    """
    given, allowed = listed(pairs), error_of(error, confidence)
    release, whole_error = release_of(mechanism), allowed
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
    return sampled if found is None else contradicted(sampled, found, whole_error)


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
    found = replace(found, releases=trial.releases, unheard=trial.unheard)
    return replace(found, contradiction=trial.contradiction)


def confirmed(
    found: AuditResult, code: Code, *, error: Fraction, samples: int | None
) -> AuditResult:
    """What samples say of code that is only probed to be monotone, on the pair its law chose."""
    start = time.perf_counter()
    source = law_of(code)
    assert source is not None
    counts = counted(
        code,
        found.inputs,
        (source(found.inputs[0]), source(found.inputs[1])),
        epsilon=found.epsilon,
        delta=found.delta,
        error=error,
        runs=RUNS if samples is None else _tests(samples),
    )
    judged = _result(
        counts,
        found.inputs,
        (found.epsilon, found.delta),
        start - found.seconds,
        error=error,
        function="distinguish",
        options=f"samples={counts.trials}, error={shown(error)}",
    )
    return replace(judged, monotone=found.monotone)


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
    claim, share = _claim(epsilon, delta)
    best: tuple[PairFinding, Pair] | None = None
    rest = None if claim is None else 0.0
    own = mechanism if law is None and isinstance(mechanism, Code) else None
    proved = own is not None
    for x, y in listed(pairs):
        laws = (source(x), source(y))
        found = exact_finding(*laws, epsilon=claim, delta=share)
        if found is None:
            return None
        if proved:
            inputs = [input_of(value, "value") for value in (x, y)]
            proved = monotone_steps(own, inputs, laws) is not None
        if best is None or found.epsilon_lower > best[0].epsilon_lower:
            best = found, (x, y)
        rest = None if rest is None else max(rest, found.delta_lower or 0.0)
    assert best is not None  # there is at least one pair
    judged = _result(
        replace(best[0], delta_lower=rest),
        best[1],
        (claim, share),
        start,
        function="distinguish_by_law",
    )
    return replace(
        judged,
        estimate=None,
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
    error: Number | None = None,
    confidence: Number | None = None,
    also: Sequence[Number] = (),
    seed: int = 0,
    processes: int | None = None,
    progress: Progress | None = None,
) -> AuditResult:
    """A bound from samples, wrong with probability at most `error`.

    `also` names further errors at which the same counts will be read, by `AuditResult.at`: for each
    of them the search fits an event of its own.

    Theorem  `processes` look at the pairs; then one pair and its events are fixed, and all
             processes count these on outputs drawn afterwards (`sampled`), so the bound is wrong
             with probability at most `error`. That needs independent streams in the processes.
             Where their first outputs agree, one process goes on alone, and the result says so
    Source   Ding et al. 2018 (StatDP); Bichsel et al. 2021 (DP-Sniper); Neyman, Pearson 1933
    Differs  one error budget over everything tried; exact binomial ends; features of last bits
    Checked  tests/audit/test_distinguish.py

    >>> def honest(value):
    ...     return value                                       # no noise at all
    >>> found = distinguish_by_sampling(honest, (0, 1), epsilon=1, samples=1_000, processes=1)
    >>> found.broken, found.epsilon_lower > 3
    (True, True)
    """
    start = time.perf_counter()
    given, (claim, share) = listed(pairs), _claim(epsilon, delta)
    plan = Plan(
        epsilon=claim,
        delta=share,
        error=error_of(error, confidence),
        also=tuple(error_rate(other) for other in also),
        seconds=float(positive(seconds, "seconds")),
        samples=None if samples is None else _tests(samples),
        seed=whole(seed, "seed"),
    )
    can_fork = "fork" in multiprocessing.get_all_start_methods()
    cores = len(os.sched_getaffinity(0)) if can_fork and hasattr(os, "sched_getaffinity") else 1
    few = plan.samples is not None and plan.samples < _WORTH_A_FORK
    wanted = (1 if few else cores) if processes is None else whole(processes, "processes", least=1)
    order = SeededRandom(plan.seed, "pairs").order(range(len(given)))
    finding = explore(
        as_release(mechanism),
        [given[i] for i in order],
        plan,
        progress or (lambda share, text: None),
        wanted if can_fork else 1,
    )
    tests = finding.trials or plan.samples or 1
    return _result(
        finding,
        given[order[finding.pair]],
        (claim, share),
        start,
        error=plan.error,
        function="distinguish_by_sampling",
        options=f"samples={tests}, error={shown(plan.error)}, seed={plan.seed}",
    )


def _result(
    found: PairFinding,
    pair: Pair,
    claim: tuple[Fraction | None, Fraction],
    start: float,
    *,
    error: Fraction = Fraction(0),
    function: str,
    options: str = "",
) -> AuditResult:
    """The finding with its inputs in the order of the event, and the call that finds it again."""
    inputs = (pair[1], pair[0]) if found.swapped else (pair[0], pair[1])
    epsilon = "None" if claim[0] is None else shown(claim[0])
    claimed = f"epsilon={epsilon}, delta={shown(claim[1])}"
    return AuditResult(
        epsilon_lower=found.epsilon_lower,
        delta_lower=found.delta_lower,
        epsilon=claim[0],
        delta=claim[1],
        error=error,
        witness=found.event,
        inputs=inputs,
        **found.counts,
        samples=found.samples,
        seconds=time.perf_counter() - start,
        again=f"{function}(mechanism, {[inputs]!r}, {claimed}{', ' * bool(options)}{options})",
        estimate=found.estimate(claim[1]),
        stated=found.stated,
        repeated=found.repeated,
    )


def _tests(samples: int) -> int:
    number = whole(samples, "samples", least=1)
    if number > _MOST_SAMPLES:
        raise InvalidParameter(
            "samples", problem="are more than 2**32", remedy="pass a smaller number"
        )
    return number


def _claim(epsilon: Number | None, delta: Number) -> tuple[Fraction | None, Fraction]:
    share = probability(delta, "delta", one=False, remedy="pass 0 or a small probability")
    return None if epsilon is None else nonnegative(epsilon, "epsilon"), share
