"""The mechanisms that lastbit ships, judged: snapping, and rounded Laplace noise."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from lastbit.cli.verify_answer import Outcome
from lastbit.errors import InvalidParameter
from lastbit.exact import exact_text, floor_log2, rounded_up

if TYPE_CHECKING:
    from lastbit.verify import RoundingAnalysis

SIGNIFICANDS = (("binary16", 11), ("binary32", 24), ("binary64", 53))
LOGARITHM_ULPS = 6  # unit_exponential is within 6u relatively, which is at most 6 ulps
DRAW_BITS = 52  # its uniform is within 2**-52 of a real one, as this model's is
STANDS_FOR = (
    "RoundedLaplace takes these steps: its uniform is within a factor of 1 ± 2**-52 of a "
    "uniform real number and its logarithm within 6 ulps, as proved in their docstrings and not "
    "checked here. Its logarithm need not be monotone: its error is relative, so that what lies "
    "beyond a cut stays beyond the same end."
)


def snapping_outcome(epsilon: Fraction, bound: Fraction, form: str) -> Outcome:
    """The theorem for all inputs, with epsilon and bound as the floats nearest to what was said."""
    from lastbit.exact import positive
    from lastbit.verify import snapping_bound

    bits = dict(SIGNIFICANDS)[form]
    exact = [
        _nearest(positive(value, name), bits)
        for name, value in (("epsilon", epsilon), ("bound", bound))
    ]
    found = snapping_bound(epsilon=exact[0], bound=exact[1], format=form)
    worst = max(found.cases, key=lambda case: found.cases[case])
    words: tuple[str, ...] = (
        f"The worst case of the proof is {worst}, with {rounded_up(found.units, 5)} units of "
        f"2**-{bits}. Paper 002 states {rounded_up(found.published, 5)}.",
        "ε is that of the noise (inner_epsilon of Snapping); Snapping(epsilon=...) lowers it so "
        "that the floats are paid for too.",
    )
    if exact != [epsilon, bound]:
        words = (*words, f"ε and the bound are the numbers of {form} nearest to what you wrote.")
    promise = f"ε ≤ {exact_text(epsilon)} + {rounded_up(found.loss - exact[0], 4)}"
    return Outcome(
        certificate=found.certificate(),
        title=f"Snapping, ε = {exact_text(epsilon)}, bound {exact_text(bound)}",
        verdict=f"CERTIFIED {promise}" + (", δ > 0" if found.delta else ""),
        word="certified",
        status=0,
        words=words,
    )


def _nearest(x: Fraction, bits: int) -> Fraction:
    """The number with so many significant bits nearest to x > 0, ties to even."""
    step = Fraction(2) ** (floor_log2(x) - bits + 1)
    return round(x / step) * step


def noise(u: Any, sign: Any, scale: Any) -> Any:
    """The noise of RoundedLaplace as it is followed: two operations and a logarithm."""
    return sign * (scale * math.log(u))


def rounding_outcome(
    epsilon: Fraction,
    sensitivity: Fraction,
    *,
    cell: Fraction | None,
    region: tuple[Fraction, Fraction] | None,
    target: Fraction | None,
) -> Outcome:
    """The certificate of RoundedLaplace's noise, at the scale sensitivity/epsilon."""
    from lastbit.exact import positive, upper
    from lastbit.mechanisms import rounded_bounds

    positive(epsilon, "epsilon")
    scale = upper(positive(sensitivity, "sensitivity") / epsilon)
    if target is not None:
        positive(target, "target")
    found = _found(scale, sensitivity, cell, region, target)
    own = rounded_bounds(scale=found.scale, cell=found.cell, bound=found.region[1])
    more = f"{exact_text(found.ideal)} + {rounded_up(found.excess, 4)}"
    bound = exact_text(found.region[1])
    words = [
        f"The mechanism: RoundedLaplace(sensitivity={exact_text(sensitivity)}, epsilon=..., "
        f"cell={exact_text(found.cell)}, bound={bound}), whose epsilon is the price of the whole."
    ]
    if own is not None:
        words.append(
            f"Its own proof, made for its own logarithm, counts {rounded_up(own.excess, 4)} for "
            "the floats."
        )
    kept = target is None or found.epsilon <= target
    title = f"Rounded Laplace, grid {exact_text(found.cell)}, region ±{bound}"
    if not kept:
        title = f"ABOVE the target: rounded Laplace noise is certified for ε = {more}"
    return Outcome(
        certificate=_sealed(found),
        title=title,
        verdict=f"CERTIFIED ε ≤ {more}" if kept else "",
        word="certified" if kept else "above",
        status=0 if kept else 1,
        words=tuple(words),
    )


def _sealed(found: RoundingAnalysis) -> dict[str, Any]:
    """The certificate of the steps, with one assumption more: what they stand for."""
    from dataclasses import replace

    from lastbit.verify import certificate

    plain = replace(found, code=()).certificate()
    assumptions = [*plain["assumptions"], STANDS_FOR]
    return certificate("rounding", plain["claim"], assumptions, plain["body"])


def _found(
    scale: float,
    sensitivity: Fraction,
    cell: Fraction | None,
    region: tuple[Fraction, Fraction] | None,
    target: Fraction | None,
) -> RoundingAnalysis:
    from lastbit.verify import FullPrecision, largest_region, least_cell, rounding_certificate

    def certified(step: Fraction, ends: tuple[Fraction, Fraction]) -> RoundingAnalysis:
        return rounding_certificate(
            noise,
            sensitivity=sensitivity,
            cell=step,
            region=ends,
            uniform=FullPrecision(DRAW_BITS),
            parameters={"scale": scale},
            ulps={"ln": LOGARITHM_ULPS},
        )

    if region is not None and region[0] != -region[1]:
        raise InvalidParameter(
            "region",
            problem="is not symmetric, and RoundedLaplace keeps results within ±bound",
            remedy="pass, say, --region -100 100",
        )
    if cell is not None and cell.numerator & (cell.numerator - 1) | (
        cell.denominator & (cell.denominator - 1)
    ):
        raise InvalidParameter("cell", problem="is no power of two", remedy="pass, say, 1/16")
    if cell is not None and region is not None:
        return certified(cell, region)
    if target is None or (cell is None and region is None):
        raise InvalidParameter(
            "--grid and --region",
            problem="are not both given",
            remedy="pass both, or one of them and --target",
        )
    if cell is None:
        assert region is not None
        ends = region
        return least_cell(lambda step: certified(step, ends), epsilon=target, region=ends)
    step = cell
    return largest_region(lambda end: certified(step, (-end, end)), epsilon=target, cell=step)
