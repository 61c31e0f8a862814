"""Noise on the integers as people ask for it: any number as a parameter, any size of the result."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, overload

from numpy.typing import NDArray

from lastbit.errors import InvalidParameter
from lastbit.exact import Number, positive
from lastbit.sampling.blocks import Sampler
from lastbit.sampling.draw import Shape, Size, cached, drawn
from lastbit.sampling.gaussian_tables import gaussian_sampler
from lastbit.sampling.laplace_tables import digits, laplace_sampler


@overload
def geometric(scale: Number, size: None = None) -> int: ...
@overload
def geometric(scale: Number, size: Shape) -> NDArray[Any]: ...
def geometric(scale: Number, size: Size = None) -> int | NDArray[Any]:
    """Exact draws from the geometric law on 0, 1, 2, ...

    Law      P[X = k] = (1-q) * q**k, q = exp(-1/scale)
    Theorem  see `digits`
    Differs  any rational scale above 0; Python integers where int64 would overflow
    Checked  tests/laws/test_laplace.py

    >>> geometric(3, size=4).shape
    (4,)
    >>> geometric(-1)
    Traceback (most recent call last):
        ...
    lastbit.errors.InvalidParameter: scale is negative; pass a number above 0
    """
    return drawn(cached(_geometric, scale), size)  # type: ignore[no-any-return]


@overload
def discrete_laplace(scale: Number, size: None = None) -> int: ...
@overload
def discrete_laplace(scale: Number, size: Shape) -> NDArray[Any]: ...
def discrete_laplace(scale: Number, size: Size = None) -> int | NDArray[Any]:
    """Exact draws from the discrete Laplace law.

    Law      P[X = k] = (1-q)/(1+q) * q**abs(k), q = exp(-1/scale)
    Theorem  see `laplace_sampler`
    Source   Ghosh, Roughgarden, Sundararajan 2009 for the law
    Differs  any rational scale above 0; Python integers where int64 would overflow
    Checked  tests/laws/test_laplace.py

    >>> noise = discrete_laplace("1/2", size=1000)
    >>> noise.dtype, noise.shape
    (dtype('int64'), (1000,))
    >>> isinstance(discrete_laplace(2**40), int)
    True
    """
    return drawn(cached(_laplace, scale), size)  # type: ignore[no-any-return]


@overload
def discrete_gaussian(
    *, variance: Number | None = None, standard_deviation: Number | None = None, size: None = None
) -> int: ...
@overload
def discrete_gaussian(
    *, variance: Number | None = None, standard_deviation: Number | None = None, size: Shape
) -> NDArray[Any]: ...
def discrete_gaussian(
    *, variance: Number | None = None, standard_deviation: Number | None = None, size: Size = None
) -> int | NDArray[Any]:
    """Exact draws from the discrete Gaussian law, given its variance or its standard deviation.

    Law      P[X = k] proportional to exp(-k**2 / (2 variance)) on the integers
    Theorem  see `Direct` (small variance) and `Cells` (large variance)
    Source   CKS20, Definition 1, for the law
    Differs  no rejection from a Laplace law; any rational variance above 0; the parameter is that
             of the formula. Python integers where int64 would overflow
    Checked  tests/laws/test_gaussian.py

    >>> discrete_gaussian(variance=2, size=3).dtype
    dtype('int64')
    >>> discrete_gaussian(standard_deviation="0.1")
    0
    >>> discrete_gaussian()
    Traceback (most recent call last):
        ...
    lastbit.errors.InvalidParameter: variance is missing; pass variance= or standard_deviation=
    """
    if (variance is None) == (standard_deviation is None):
        problem = "is missing" if variance is None else "and standard_deviation are both given"
        remedy = "pass variance= or standard_deviation="
        raise InvalidParameter("variance", problem=problem, remedy=remedy)
    if variance is not None:
        return drawn(cached(_gaussian, variance), size)  # type: ignore[no-any-return]
    exact = positive(standard_deviation, "standard_deviation") ** 2
    return drawn(gaussian_sampler(exact), size)  # type: ignore[no-any-return]


@lru_cache(maxsize=32, typed=True)
def _geometric(scale: Number) -> Sampler:
    return digits(positive(scale, "scale"), signed=False)


@lru_cache(maxsize=32, typed=True)
def _laplace(scale: Number) -> Sampler:
    return laplace_sampler(positive(scale, "scale"))


@lru_cache(maxsize=32, typed=True)
def _gaussian(variance: Number) -> Sampler:
    return gaussian_sampler(positive(variance, "variance"))
