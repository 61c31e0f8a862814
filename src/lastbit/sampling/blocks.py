"""Draws in blocks: a vector of any length from a prepared sampler, cut in two by no fork."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from lastbit.errors import InvalidParameter
from lastbit.sampling.bits import Bits, KeyStream, Life

# Large enough that threads seldom meet at the interpreter's lock, small enough for the caches;
# samplers that need many temporary arrays take the smaller one.
BLOCK = 1 << 18
SMALL_BLOCK = 1 << 16


class Sampler(Protocol):
    """A law with its tables, ready to draw."""

    def draw(self, bits: Bits, size: int) -> NDArray[Any]:
        """`size` independent draws; the bytes taken depend on `size` alone.

        A sampler may also have `into(bits, out, scratch)`: the same into a given int64 array, or,
        where that cannot hold them, into a new array that is returned.
        """
        ...


def drawn_with(sampler: Sampler, bits: Bits, count: int) -> NDArray[Any]:
    """`count` draws that no fork cut in two: a child throws away what its parent may return."""
    while True:
        life = _life(bits)
        out = _blocks(sampler, bits, count)
        if _life(bits) is life:
            return out


def _life(bits: Bits) -> Life | None:
    return bits.life() if isinstance(bits, KeyStream) else None


def _blocks(sampler: Sampler, bits: Bits, count: int) -> NDArray[Any]:
    """`count` draws, block by block, so that only the result needs memory."""
    into = getattr(sampler, "into", None)
    block = SMALL_BLOCK if into is None else BLOCK
    if count <= block:
        return sampler.draw(bits, count)
    first = None if into is not None else sampler.draw(bits, block)
    try:
        out: NDArray[Any] = np.empty(count, np.int64 if first is None else first.dtype)
    except MemoryError:
        raise too_many("needs more memory than there is") from None
    scratch = np.empty(block if first is None else 0, np.int64)
    if first is not None:
        out[:block] = first
    for start in range(0 if first is None else block, count, block):
        piece = out[start : start + block]
        if into is not None and piece.dtype == np.int64:
            drawn_block = into(bits, piece, scratch[: piece.size])
            if drawn_block is None:
                continue
        else:
            drawn_block = sampler.draw(bits, piece.size)
        if drawn_block.dtype != out.dtype:  # integers beyond int64
            out = out.astype(np.object_)
        out[start : start + block] = drawn_block
    return out


def too_many(problem: str) -> InvalidParameter:
    """The error of a size that cannot be drawn at once."""
    remedy = "draw in pieces with lastbit.sampling.stream"
    return InvalidParameter("size", problem=problem, remedy=remedy)
