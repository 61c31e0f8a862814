"""lastbit's noise in the plane and on the Earth, seen by two questions.

The first coordinate of a released point is a number plus noise, for the attacks on bits. How much
nearer the point is to the one place than to the other is the logarithm of the likelihood ratio, up
to a factor: no other number tells more about which of the two was true. Either is made from the
released point alone, so it is as private as the point.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lastbit.audit.target import Target
from lastbit.geo.location import Geo
from lastbit.mechanisms.planar import PlanarLaplace
from lastbit.mechanisms.polar import PolarLaplace
from lastbit.sampling.planar import planar_laplace

__all__ = ["nearer", "own_point_targets"]

BERLIN = (52.5, 13.4)
METRES = (111_270.0, 67_910.0)  # about so many in a degree there; any numbers make a true test
EAST = 0.0029445  # degrees of longitude: just below 200 m


def nearer(points: NDArray[np.float64], far: float) -> NDArray[np.float64]:
    """By how much each point is nearer to (far, 0) than to the origin; NaN for one at infinity.

    >>> nearer(np.array([[2.0, 0.0], [0.5, 7.0], [np.inf, np.inf]]), 1.0).tolist()
    [1.0, 0.0, nan]
    """
    inside: NDArray[np.bool_] = np.all(np.isfinite(points), axis=1)
    x, y = np.where(inside[:, None], points, 0.0).T
    return np.where(inside, np.hypot(x, y) - np.hypot(x - far, y), np.nan)


def own_point_targets() -> Iterator[Target]:
    """Points that are moved, in the plane and on the Earth."""
    lattice = PlanarLaplace(epsilon=1, within=1, grid="1/64")
    yield from _both(
        "PlanarLaplace",
        lambda point, size: lattice.release(np.full((size, 2), point)),
        far=1.0,
        claimed=lattice.guarantee_at(1).epsilon,
        step=lattice.grid,
    )
    polar = PolarLaplace(epsilon=1, within=200, unit="m", cell=4, half_width=2000, inputs=1000)
    yield from _both(
        "PolarLaplace",
        lambda point, size: polar.release(np.full((size, 2), point)),
        far=200.0,
        claimed=polar.guarantee_at(200).epsilon,
        step=polar.cell,
    )
    yield from _both(
        "planar_laplace",
        lambda point, size: np.asarray(planar_laplace("1/16", size=size), np.float64) + point,
        far=16.0,
        claimed=1,
        step=1,
    )
    yield from _earth()


def _both(
    name: str, move: Callable[[Any, int], Any], *, far: float, claimed: Any, step: Any
) -> Iterator[Target]:
    pair = partial(Target, values=((0.0, 0.0), (far, 0.0)), claimed=claimed)
    yield pair(
        name=f"lastbit {name}",
        release=lambda point, size: move(point, size)[:, 0],
        answers=(0.0, far),
        scale=far,
        step=step,
    )
    yield pair(
        name=f"lastbit {name}, which is nearer",
        release=lambda point, size: nearer(move(point, size), far),
    )


def _earth() -> Iterator[Target]:
    geo = Geo(epsilon="1/200m", region=(52.3, 13.0, 52.7, 13.8))
    far = EAST * METRES[1]
    east = (BERLIN[0], BERLIN[1] + EAST)

    def moved(place: tuple[float, float], size: int) -> NDArray[np.float64]:
        released = np.asarray(geo.release(np.full((size, 2), place)))
        return (released - BERLIN) * METRES

    pair = partial(Target, values=(BERLIN, east), claimed=geo.guarantee_at(200).epsilon)
    yield pair(
        name="lastbit Geo",
        release=lambda place, size: geo.release(np.full((size, 2), place))[:, 1],
        answers=(BERLIN[1], east[1]),
    )
    yield pair(
        name="lastbit Geo, which is nearer",
        release=lambda place, size: nearer(moved(place, size)[:, ::-1], far),
    )
