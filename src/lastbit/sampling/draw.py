"""From a prepared sampler to what the caller asked for: one draw, a vector, or a stream."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias, TypeVar

from numpy.typing import NDArray

from lastbit.errors import InvalidParameter, LastbitError, WrongType
from lastbit.exact import whole
from lastbit.sampling.bits import secure_bits
from lastbit.sampling.blocks import BLOCK, Sampler, drawn_with

Shape: TypeAlias = int | tuple[int, ...]
Size: TypeAlias = Shape | None
Prepared = TypeVar("Prepared")

_AHEAD = 256
_MOST_POOLS = 64
_MOST_DIMENSIONS = 64  # numpy's own limit
_MOST_DRAWS = 1 << 36


def cached(prepare: Callable[[Any], Prepared], parameter: object) -> Prepared:
    """`prepare(parameter)`, past the cache where the parameter cannot be looked up there."""
    try:
        return prepare(parameter)
    except LastbitError:
        raise
    except TypeError:  # unhashable, so certainly no number: let `prepare` say so
        return prepare.__wrapped__(parameter)  # type: ignore[attr-defined, no-any-return]


def drawn(sampler: Sampler, size: Size) -> Any:
    """One draw (size None) or an array of that shape, from the thread's own secure stream."""
    if size is None:
        return _one(sampler)
    shape = tuple(whole(part, "size") for part in (size if isinstance(size, tuple) else (size,)))
    if len(shape) > _MOST_DIMENSIONS:
        raise InvalidParameter(
            "size", problem=f"has more than {_MOST_DIMENSIONS} dimensions", remedy="pass fewer"
        )
    if max(math.prod(shape), *shape, 0) > _MOST_DRAWS:
        raise _too_many("is above 2**36 draws")
    try:
        return drawn_with(sampler, secure_bits(), math.prod(shape)).reshape(shape)
    except MemoryError:
        raise _too_many("needs more memory than there is") from None


def _too_many(problem: str) -> InvalidParameter:
    """The error of a size that cannot be drawn at once."""
    remedy = "draw in pieces with lastbit.sampling.stream"
    return InvalidParameter("size", problem=problem, remedy=remedy)


def drawn_fresh(sampler: Sampler, size: Size) -> Any:
    """The same for a sampler that is used once: nothing is drawn ahead."""
    if size is None:
        return drawn_with(sampler, secure_bits(), 1).tolist()[0]
    return drawn(sampler, size)


def _one(sampler: Sampler) -> Any:
    """One draw, from a pool made ahead: noise is drawn before and apart from the data.

    The pool gives up its draw in one step (`pop`), and the draw is used only if no fork came
    between: neither a thread, nor a signal handler, nor a child ever gets the same one.
    """
    bits = secure_bits()
    while True:
        life = bits.life()
        pool = life.pools.get(sampler)
        if not pool:
            ahead = drawn_with(sampler, bits, _AHEAD).tolist()
            if bits.life() is life:
                if len(life.pools) >= _MOST_POOLS and sampler not in life.pools:
                    life.pools.pop(next(iter(life.pools), None), None)  # the oldest makes room
                life.pools.setdefault(sampler, []).extend(ahead)
            continue
        try:
            value = pool.pop()
        except IndexError:  # a signal handler took the last one
            continue
        if bits.life() is life:
            return value


def stream(
    draw: Callable[..., NDArray[Any]],
    *parameters: object,
    total: int,
    block: int = BLOCK,
    **named: object,
) -> Iterator[NDArray[Any]]:
    """`total` draws in arrays of at most `block`, in bounded memory.

    >>> from lastbit import discrete_gaussian, discrete_laplace
    >>> sum(piece.size for piece in stream(discrete_laplace, 5, total=200_000))
    200000
    >>> [piece.size for piece in stream(discrete_gaussian, variance=5, total=5, block=2)]
    [2, 2, 1]
    """
    if not callable(draw):
        raise WrongType(
            "draw", problem="is not a sampler", remedy="pass a function such as discrete_laplace"
        )
    left, most = whole(total, "total"), whole(block, "block", least=1)
    sizes = (min(most, left - start) for start in range(0, left, most))
    return (draw(*parameters, size=size, **named) for size in sizes)
