"""Draws in blocks: a vector of any length from a prepared sampler, cut in two by no fork."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from lastbit.sampling.bits import Bits, KeyStream, Life

# large enough that threads seldom meet at the interpreter's lock, small enough for the caches
BLOCK = 1 << 18


class Sampler(Protocol):
    """A law with its tables, ready to draw."""

    def draw(self, bits: Bits, size: int) -> NDArray[Any]:
        """`size` independent draws; the bytes taken depend on `size` alone."""
        ...


def drawn_with(sampler: Sampler, bits: Bits, count: int) -> NDArray[Any]:
    """`count` draws that no fork cut in two: a child throws away what its parent may return."""
    while True:
        life = _life(bits)
        out = _blocks(sampler, bits, count)
        if _life(bits) is life:
            return out


def _blocks(sampler: Sampler, bits: Bits, count: int) -> NDArray[Any]:
    """`count` draws, block by block, so that only the result needs memory."""
    out = first = sampler.draw(bits, min(count, BLOCK))
    if count > BLOCK:
        out = np.empty(count, first.dtype)
        out[:BLOCK] = first
    for start in range(BLOCK, count, BLOCK):
        piece = sampler.draw(bits, min(count - start, BLOCK))
        if piece.dtype == np.object_:  # integers beyond int64
            out = out.astype(np.object_, copy=False)
        out[start : start + BLOCK] = piece
    return out


def _life(bits: Bits) -> Life | None:
    return bits.life() if isinstance(bits, KeyStream) else None
