"""From a prepared sampler to what the caller asked for: one draw, a vector, or a stream."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, Protocol, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from lastbit.errors import InvalidParameter, LastbitError
from lastbit.exact.rational import whole
from lastbit.sampling.bits import Bits, KeyStream, secure_bits

__all__ = ["Sampler", "Size", "cached", "drawn", "drawn_fresh", "stream"]

Size: TypeAlias = int | tuple[int, ...] | None
Prepared = TypeVar("Prepared")

BLOCK = 1 << 16
_AHEAD = 256
_MOST_POOLS = 64


class Sampler(Protocol):
    """A law with its tables, ready to draw."""

    def draw(self, bits: Bits, size: int) -> NDArray[Any]:
        """`size` independent draws; the bytes taken depend on `size` alone."""
        ...


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
    shape = _shape(size)
    return drawn_with(sampler, secure_bits(), math.prod(shape)).reshape(shape)


def drawn_fresh(sampler: Sampler, size: Size) -> Any:
    """The same for a sampler that is used once: nothing is drawn ahead."""
    if size is None:
        return drawn_with(sampler, secure_bits(), 1).tolist()[0]
    return drawn(sampler, size)


def drawn_with(sampler: Sampler, bits: Bits, count: int) -> NDArray[Any]:
    """`count` draws, block by block, so that only the result needs memory."""
    if count <= BLOCK:
        return _whole_draw(sampler, bits, count)
    first = _whole_draw(sampler, bits, BLOCK)
    out = np.empty(count, first.dtype)
    out[:BLOCK] = first
    for start in range(BLOCK, count, BLOCK):
        block = _whole_draw(sampler, bits, min(BLOCK, count - start))
        if block.dtype != out.dtype:
            out = out.astype(np.object_)
        out[start : start + block.size] = block
    return out


def _whole_draw(sampler: Sampler, bits: Bits, count: int) -> NDArray[Any]:
    """A draw that no fork cut in two: a child throws away what its parent may return."""
    while True:
        block = sampler.draw(bits, count)
        if not isinstance(bits, KeyStream) or bits.unbroken():
            return block
        bits.forget()


def _one(sampler: Sampler) -> Any:
    """One draw, from a pool made ahead: noise is drawn before and apart from the data.

    The pool gives up its draw in one step (`pop`), and the draw is used only if no fork came
    between: neither a thread, nor a signal handler, nor a child ever gets the same one.
    """
    bits = secure_bits()
    while True:
        pool = bits.pools.get(sampler)
        if not pool:
            if len(bits.pools) >= _MOST_POOLS:
                bits.pools.clear()
            ahead = _whole_draw(sampler, bits, _AHEAD).tolist()
            bits.pools.setdefault(sampler, []).extend(ahead)
            continue
        try:
            value = pool.pop()
        except IndexError:
            continue
        if bits.unbroken():
            return value
        bits.forget()


def stream(
    draw: Callable[..., NDArray[Any]], *parameters: object, total: int, block: int = 1 << 16
) -> Iterator[NDArray[Any]]:
    """`total` draws in arrays of at most `block`, in bounded memory.

    >>> from lastbit import discrete_laplace
    >>> sum(piece.size for piece in stream(discrete_laplace, 5, total=200_000))
    200000
    """
    left, most = whole(total, "total"), whole(block, "block", least=1)
    while left:
        piece = draw(*parameters, size=min(left, most))
        left -= piece.size
        yield piece


def _shape(size: object) -> tuple[int, ...]:
    parts = size if isinstance(size, tuple) else (size,)
    shape = tuple(whole(part, "size") for part in parts)
    if math.prod(shape) > 1 << 36:
        raise InvalidParameter(
            "size",
            problem="is above 2**36 draws",
            remedy="draw in pieces with lastbit.sampling.stream",
        )
    return shape
