"""A function judged: its exact law for pairs of inputs, a witness against it, or a proof for it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from lastbit.cli.verify_answer import Outcome
from lastbit.cli.verify_loading import THE_FUNCTION, Loaded
from lastbit.errors import InvalidParameter, LastbitError, NotMonotone, TooManyOutputs
from lastbit.exact import exact_text, rounded_up

if TYPE_CHECKING:
    from lastbit.verify import ExactLoss, FullPrecision, Grid, Refutation

UNIFORMS = ("full", "grid53", "grid53-open")
MOST_CELLS = 4096


def uniform_of(name: str) -> FullPrecision | Grid:
    """The model of a generator by its name on the command line."""
    from lastbit.verify import FullPrecision, Grid

    if name == "full":
        return FullPrecision()
    return Grid(53, first=1 if name == "grid53-open" else 0)


def pairs_of(
    given: Sequence[tuple[Fraction, Fraction]], sensitivity: Fraction
) -> list[tuple[float, float]]:
    """The pairs of inputs to try: those given, or a few as far apart as the sensitivity allows."""
    if given:
        pairs = [(_float(x), _float(y)) for x, y in given]
        for x, y in pairs:
            if x == y or abs(Fraction(x) - Fraction(y)) > sensitivity:
                raise InvalidParameter(
                    "--inputs",
                    problem="are equal as floats, or further apart than --sensitivity",
                    remedy="pass neighbours, or a larger --sensitivity",
                )
        return pairs
    apart = _float(sensitivity)
    found = []
    for x in (0.0, -apart / 2, apart / 3, 10 * apart):
        y = x + apart
        while Fraction(y) - Fraction(x) > sensitivity:
            y = math.nextafter(y, -math.inf)
        if y > x:
            found.append((x, y))
    return found


def _float(number: Fraction) -> float:
    try:
        value = float(number)
    except OverflowError:
        value = math.inf
    if math.isinf(value) or (number and abs(value) < 2.0**-1000):
        raise InvalidParameter(
            "--inputs or --sensitivity", problem="is beyond floats", remedy="pass moderate numbers"
        )
    return value


# ---------------------------------------------------------------- pairs of inputs


def by_exact_law(
    function: Loaded,
    pairs: Sequence[tuple[float, float]],
    *,
    epsilon: Fraction,
    uniform: str,
    splits: Sequence[float],
) -> Outcome:
    """The worst pair: refuted if it loses more than epsilon, else within it for these pairs."""
    worst: ExactLoss | Refutation | None = None
    undecided = 0
    try:
        for x, y in pairs:
            found = _judged(function, x, y, uniform, splits)
            if found is None:
                undecided += 1
                continue
            worst = found if worst is None or _worse(found, worst) else worst
            if worst.infinite:
                break
    except NotMonotone as turn:
        raise LastbitError(
            str(turn).replace("pass pieces= with the points", "pass --split with the points")
        ) from turn
    except InvalidParameter as problem:
        raise _in_our_words(problem) from problem
    if worst is not None:
        loss = worst.loss
        if loss is None or loss > epsilon:
            return _refuted(function, worst, epsilon)
        if not undecided and not _is_search(worst):
            return _within(function, worst, epsilon, len(pairs))
    raise LastbitError(
        "nothing is proved: the function has too many outputs to list them all, and none was found "
        f"that loses more than {exact_text(epsilon)}; pass other --inputs, or --grid and --region "
        "for a proof about its rounded result"
    )


def _judged(
    function: Loaded, x: float, y: float, uniform: str, splits: Sequence[float]
) -> ExactLoss | Refutation | None:
    from lastbit.verify import exact_loss, refute

    settings: dict[str, Any] = {
        "uniform": uniform_of(uniform),
        "signs": function.signs,
        "pieces": tuple(splits),
    }
    try:
        return exact_loss(function, x, y, most_cells=MOST_CELLS, **settings)
    except TooManyOutputs:
        return refute(function, x, y, **settings)


def _is_search(found: ExactLoss | Refutation) -> bool:
    from lastbit.verify import Refutation

    return isinstance(found, Refutation)


def _worse(one: ExactLoss | Refutation, other: ExactLoss | Refutation) -> bool:
    loss, least = one.loss, other.loss
    if loss is None or least is None:
        return loss is None and least is not None
    return loss.ends[1] > least.ends[1]


def _refuted(function: Loaded, found: ExactLoss | Refutation, epsilon: Fraction) -> Outcome:
    return Outcome(
        certificate=found.certificate(function.code),
        title=f"REFUTED: {function.code.name} loses more than ε = {exact_text(epsilon)}",
        verdict="",
        word="refuted",
        status=1,
    )


def _within(function: Loaded, found: Any, epsilon: Fraction, pairs: int) -> Outcome:
    tried = "this pair" if pairs == 1 else f"{pairs} pairs, of which this is the worst"
    return Outcome(
        certificate=found.certificate(function.code),
        title=f"{function.code.name}, ε = {exact_text(epsilon)}",
        verdict="WITHIN ε, these inputs",
        word="within",
        status=0,
        words=(
            f"Tried: {tried}. That is exact for these inputs and says nothing of others. For a "
            "proof about a whole region, pass --grid and --region.",
        ),
    )


def _in_our_words(problem: InvalidParameter) -> InvalidParameter:
    """The remedy in options: which generator does not draw a uniform at which the code fails."""
    remedy = problem.remedy
    if "model of the generator" in remedy:
        remedy = (
            "change the code there, or name another generator: --uniform grid53-open draws "
            "multiples of 2**-53 between 0 and 1 only"
        )
    name = THE_FUNCTION if problem.parameter == "function" else problem.parameter
    return InvalidParameter(name, problem=problem.problem, remedy=remedy)


# ---------------------------------------------------------------- a whole region


def by_rounding(
    function: Loaded,
    *,
    epsilon: Fraction,
    sensitivity: Fraction,
    cell: Fraction,
    region: tuple[Fraction, Fraction],
    uniform: str,
) -> Outcome:
    """The loss proved if the function's result is rounded to the cell and kept in the region."""
    from lastbit.verify import certified_function

    model = uniform_of(uniform)
    found, rounds = certified_function(
        function.code, sensitivity=sensitivity, cell=cell, region=region, uniform=model
    )
    if found.cell != cell:
        raise InvalidParameter(
            "cell",
            problem=f"is not what the code rounds to, {exact_text(found.cell)}",
            remedy="pass that, or leave the rounding out of the code",
        )
    if not found.named:
        raise InvalidParameter(
            THE_FUNCTION,
            problem="cannot be named in a certificate: its name leads to another function, or its "
            "source is not there",
            remedy="name the function itself, in a module with its source",
        )
    within = found.epsilon <= epsilon
    more = f"{exact_text(found.ideal)} + {rounded_up(found.excess, 4)}"
    name = function.code.name
    words: tuple[str, ...] = ()
    if not rounds:
        words = (
            f"The code itself does not round. Proved is: round its result to the nearest multiple "
            f"of {exact_text(cell)}, then move what lies outside the region to its nearer end.",
        )
    if within:
        title, verdict, word = f"{name}, ε = {exact_text(epsilon)}", f"CERTIFIED ε ≤ {more}", ""
    else:
        title = f"ABOVE ε: {name} is certified, but for ε = {more}"
        verdict, word = "", "above"
        words = (
            *words,
            f"The noise itself costs {exact_text(found.ideal)}, the floats "
            f"{rounded_up(found.excess, 4)}: together more than {exact_text(epsilon)}. Widen the "
            "noise a little, or promise a little more.",
        )
    return Outcome(
        certificate=found.certificate(),
        title=title,
        verdict=verdict,
        word=word or "certified",
        status=0 if within else 1,
        words=words,
    )
