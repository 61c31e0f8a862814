"""Plans a proof by the law of the sum of all losses, for checker/convolution.py to redo.

Nothing here is believed. A plan says which way each loss goes, on which lattice and at which order,
and which epsilon the accountant finds for what the checker will see; the checker then computes all
of it by itself, in whole numbers, and accepts or not.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np

from lastbit.exact import upper, working_precision
from lastbit.privacy import (
    ZCDP,
    ApproxLoss,
    BoundedRangeLoss,
    DiscreteGaussianLoss,
    DiscreteGaussianVectorLoss,
    DiscreteLaplaceLoss,
    GaussianLoss,
    LaplaceLoss,
    PrivacyLoss,
    Profile,
    RandomizedResponseLoss,
    SubsampledGaussianLoss,
    SubsampledLaplaceLoss,
    ThresholdLoss,
)

Part: TypeAlias = tuple[PrivacyLoss | ZCDP, int]
_LATTICE, _SPREAD = "lattice", "spread"
_MOST_CELLS, _MOST_SPREAD_CELLS = 12_000, 2_400
_WINDOW = 19.0  # deviations: beyond 9 of them a tilted mass is below 2**-48 of the greatest
_PARTS = (24, 8, 4)  # cells to the deviation of a loss that is on no lattice
_FEW_RANGES = 12  # so many releases of bounded range have less on a lattice than as spread
_GREATEST_LATTICE_VARIANCE = 100
_LARGEST_SPREAD = 8


@dataclass(frozen=True, slots=True)
class LawPlan:
    """An epsilon that the law of the sum should prove, and how."""

    epsilon: Fraction
    body: dict[str, Any]


def law_plan(parts: Sequence[Part], delta: Fraction, order: Fraction) -> LawPlan | None:
    """How to prove nearly the tight epsilon; None if there is no such way."""
    losses = [(loss, n) for loss, n in parts if not isinstance(loss, ZCDP)]
    about_samples = (SubsampledGaussianLoss, SubsampledLaplaceLoss)
    if len(losses) < len(parts) or any(isinstance(loss, about_samples) for loss, _ in losses):
        return None
    chosen = sum(n for loss, n in losses if isinstance(loss, BoundedRangeLoss))
    first, few = [_first_way(loss) for loss, _ in losses], chosen <= _FEW_RANGES
    if few:
        kinds = [isinstance(loss, BoundedRangeLoss) for loss, _ in losses]
        first = [_LATTICE if kind else way for kind, way in zip(kinds, first, strict=True)]
    for ways in (first, [_second_way(loss) for loss, _ in losses]):
        steps = (_step(losses, ways, float(order), parts) for parts in _PARTS)
        step = next((step for step in steps if step is not None), None)
        seen = _modelled(losses, ways) if step is not None else None
        if seen is not None:
            _, high = seen.epsilon(delta)
            body = {"form": "lattice", "order": str(order), "step": str(step), "ways": ways}
            return LawPlan(Fraction(high), body) if math.isfinite(high) else None
    return None


def _first_way(loss: PrivacyLoss) -> str:
    match loss:
        case GaussianLoss() | DiscreteGaussianVectorLoss() | BoundedRangeLoss():
            return _SPREAD
        case DiscreteGaussianLoss() if loss.variance > _GREATEST_LATTICE_VARIANCE:
            return _SPREAD
    return _LATTICE


def _second_way(loss: PrivacyLoss) -> str:
    """Where lattices are too fine: whatever can be a range is one."""
    match loss:
        case ApproxLoss() | LaplaceLoss() | DiscreteLaplaceLoss() | ThresholdLoss():
            return _SPREAD
        case RandomizedResponseLoss(categories=2):
            return _SPREAD
    return _first_way(loss)


# ---------------------------------------------------------------- the lattice


def _step(losses: Sequence[Part], ways: Sequence[str], order: float, parts: int) -> Fraction | None:
    """The common lattice, made finer for losses that are on none; None if it has many cells."""
    listed = [
        (component, n * times)
        for (loss, times), way in zip(losses, ways, strict=True)
        if way == _LATTICE and not isinstance(loss, ZCDP)
        for component, n in loss.directions()[0]
    ]
    if not listed:
        return Fraction(1)
    spacing, fine, total, most = Fraction(0), math.inf, 0.0, 0.0
    for component, n in listed:
        deviation, greatest = _deviation(component, order), component.greatest
        total += n * deviation**2
        most = max(most, float(greatest or 0), 12 * deviation)
        size = max(deviation, float(greatest or 0))
        if component.grid is None:
            fine = min(fine, size / parts) if size else fine
        else:
            spacing = _common(spacing, component.grid.spacing)
    if not spacing:
        spacing = Fraction(fine).limit_denominator(10**9) if fine < 1e9 else Fraction(1)
    elif fine < spacing:
        spacing /= math.ceil(spacing / Fraction(fine))
    if not spacing:
        return None
    limit = _MOST_CELLS if set(ways) == {_LATTICE} else _MOST_SPREAD_CELLS
    cells = (_WINDOW * math.sqrt(total) + 2 * most) / float(spacing)
    return spacing if cells <= limit else None


def _deviation(component: Any, order: float) -> float:
    """That of the tilted loss, about: floats choose, and prove nothing."""
    shift = 1e-3
    with np.errstate(all="ignore"):
        left, here, right = component.cumulant(np.array([1 - shift, 1, 1 + shift]) * order)
    found = (right - 2 * here + left) / (shift * order) ** 2
    return math.sqrt(found) if found > 0 and math.isfinite(found) else 0.0


def _common(one: Fraction, other: Fraction) -> Fraction:
    top = math.gcd(one.numerator * other.denominator, other.numerator * one.denominator)
    return Fraction(top, one.denominator * other.denominator)


# ---------------------------------------------------------------- what the checker will see


def _modelled(losses: Sequence[Part], ways: Sequence[str]) -> Profile | None:
    """The accountant's form of it: Gaussian losses in the place of what goes as spread."""
    neighbours = losses[0][0].neighbours
    seen: list[tuple[PrivacyLoss, int]] = []
    ranges: list[tuple[Fraction, int]] = []
    for (loss, times), way in zip(losses, ways, strict=True):
        match loss:
            case ThresholdLoss():
                told = _shown(loss)
                keys = times * loss.keys
                if way == _SPREAD:
                    ranges.append((2 / loss.scale, keys))
                    seen.append((ApproxLoss(0, told, neighbours=neighbours), keys if told else 0))
                else:
                    seen.append((ApproxLoss(1 / loss.scale, told, neighbours=neighbours), keys))
            case DiscreteGaussianLoss() if way == _SPREAD:
                if loss.variance * 3 < 1:
                    return None
                far = loss.distance**2
                seen.append(
                    (DiscreteGaussianVectorLoss(loss.variance, far, neighbours=neighbours), times)
                )
            case BoundedRangeLoss() if way == _SPREAD:
                ranges.append((loss.epsilon, times))
            case ApproxLoss() if way == _SPREAD:
                ranges.append((2 * loss.epsilon, times))
                told = loss.delta
                seen.append((ApproxLoss(0, told, neighbours=neighbours), times if told else 0))
            case LaplaceLoss() | RandomizedResponseLoss() if way == _SPREAD:
                ranges.append((2 * loss.epsilon, times))
            case DiscreteLaplaceLoss() if way == _SPREAD:
                ranges.append((2 * loss.distance / loss.scale, times))
            case ZCDP():
                return None
            case _:
                seen.append((loss, times))
    spreads = [(length * length / 4, times) for length, times in ranges if length and times]
    if spreads:
        most = max(spread for spread, _ in spreads)
        if most > _LARGEST_SPREAD:
            return None
        total = sum((spread * times for spread, times in spreads), Fraction(0))
        extra = Fraction(float(most) * math.log1p(float(total / most)))
        seen.append((GaussianLoss(3 * most + total + extra, neighbours=neighbours), 1))
    return Profile(seen or [(GaussianLoss(0, neighbours=neighbours), 1)])


def _shown(loss: ThresholdLoss) -> Fraction:
    ((component, _),) = loss.directions()[0]
    with working_precision(128):
        return Fraction(upper(component.infinite()))
