"""Places as people pass them: pairs (latitude, longitude) in degrees, checked before all else."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lastbit.errors import InvalidParameter, LastbitError, WrongType
from lastbit.exact.rational import rational
from lastbit.mechanisms.lattice import array_of

__all__ = ["places_of"]

_REMEDY = "pass (latitude, longitude) in degrees, a list of such pairs, or an array of shape (n, 2)"


def places_of(points: Any) -> tuple[NDArray[np.float64], bool]:
    """An array of shape (n, 2), and whether a single place was passed.

    Latitudes from -90 to 90. Longitudes from -180 to 180; those up to 360 are taken too, for
    whoever counts from 0 to 360. No message holds a coordinate.

    >>> places_of((52.5, 13.4))
    (array([[52.5, 13.4]]), True)
    """
    array = _floats(points)
    single = array.ndim == 1
    if array.shape[-1:] != (2,) or array.ndim > 2:
        raise InvalidParameter("points", problem="are no pairs", remedy=_REMEDY)
    places = array.reshape(-1, 2)
    if not len(places):
        raise InvalidParameter("points", problem="are none", remedy=_REMEDY)
    _check(places)
    return places, single


def _floats(points: Any) -> NDArray[np.float64]:
    try:
        array = array_of(points)
        if array.dtype.kind == "O":
            if any(isinstance(item, str | bytes) for item in array.flat):
                raise WrongType("value", problem="holds text", remedy=_REMEDY)
            numbers = [float(rational(item, "points")) for item in array.flat]
            return np.array(numbers, np.float64).reshape(array.shape)
        if not array.size and array.ndim == 1:
            raise InvalidParameter("points", problem="are none", remedy=_REMEDY)
        with np.errstate(over="ignore"):
            return array.astype(np.float64)
    except (LastbitError, OverflowError) as error:
        if isinstance(error, InvalidParameter) and error.parameter == "points":
            problem = "are none" if error.problem == "are none" else "hold what is no finite number"
        else:
            problem = "are not pairs of finite numbers"
        kind = WrongType if isinstance(error, WrongType) else InvalidParameter
        raise kind("points", problem=problem, remedy=_REMEDY) from None


def _check(places: NDArray[np.float64]) -> None:
    if not np.isfinite(places).all():
        raise InvalidParameter(
            "points", problem="hold NaN or an infinity", remedy="drop those places first"
        )
    latitude, longitude = places[:, 0], places[:, 1]
    if (np.abs(latitude) > 90).any():
        swapped = bool((np.abs(longitude) <= 90).all())
        raise InvalidParameter(
            "points",
            problem="hold a latitude beyond 90 degrees",
            remedy="the latitude comes first: swap the two" if swapped else _REMEDY,
        )
    if (longitude < -180).any() or (longitude > 360).any():
        raise InvalidParameter(
            "points",
            problem="hold a longitude outside -180 to 360 degrees",
            remedy="pass longitudes from -180 to 180",
        )
