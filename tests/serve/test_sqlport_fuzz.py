"""Hostile packets: a session ends or goes on, never crashes, never charges, keeps what it may.

Packets are good ones that were changed, and noise, from a fixed seed; before the password is right,
and after it.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import struct
import tracemalloc
from collections.abc import Iterator
from hashlib import shake_256

import pytest

from lastbit.serve.sqlport.wires import Wire
from tests.serve.sqlbytes import (
    LOGIN,
    SYNC,
    FakeDoor,
    bind,
    execute,
    first,
    message,
    parse,
    query,
    served,
    startup,
)

FREE = [
    query("SHOW ALL"),
    query("SET lastbit.epsilon = '0.5'; RESET ALL; SHOW lastbit.epsilon"),
    query("BEGIN; ROLLBACK TO a; COMMIT"),
    query("FETCH ALL FROM c; CLOSE ALL; DISCARD ALL; DEALLOCATE ALL"),
    query("EXPLAIN (VERBOSE) SELECT 1"),
    query("DROP TABLE t"),
    parse("SHOW lastbit.delta", "s"),
    parse("", ""),
    bind(b"1", b"2", name="s"),
    bind(name="s", portal="p"),
    message("D", b"Ss\0"),
    message("D", b"Pp\0"),
    message("C", b"Ss\0"),
    execute(3, "p"),
    execute(),
    SYNC,
    message("H"),
    message("F", b"\0\0\0\1\0\0\0\0\0\0"),
    message("d", b"data"),
    message("p", b"x\0"),
    first(struct.pack(">ii", 80877102, 7) + b"abcd"),
    first(struct.pack(">i", 80877104)),
    startup(options="-c lastbit.epsilon=1"),
]
"""Good packets of which none is a SELECT: whatever comes of them, nothing may be charged."""


class Bits:
    """A stream of numbers from a seed."""

    def __init__(self, seed: int) -> None:
        self._left = shake_256(str(seed).encode()).digest(1 << 14)

    def below(self, end: int) -> int:
        if len(self._left) < 4:
            self._left = shake_256(self._left + b"more").digest(1 << 14)
        number = int.from_bytes(self._left[:4], "big")
        self._left = self._left[4:]
        return number % end

    def bytes(self, size: int) -> bytes:
        return bytes(self.below(256) for _ in range(size))


def packets(bits: Bits, count: int) -> Iterator[bytes]:
    """Good packets, changed ones, and noise."""
    for _ in range(count):
        packet = bytearray(FREE[bits.below(len(FREE))])
        match bits.below(8):
            case 0:
                for _ in range(1 + bits.below(4)):
                    packet[bits.below(len(packet))] = bits.below(256)
            case 1:
                del packet[bits.below(len(packet)) :]
            case 2:
                packet[1:5] = struct.pack(">i", bits.below(1 << 31) - (1 << 30))
            case 3:
                packet = bytearray(bits.bytes(1 + bits.below(40)))
            case 4:  # a body of noise of the right length
                size = bits.below(60)
                packet = packet[:1] + struct.pack(">i", size + 4) + bits.bytes(size)
            case 5:
                place = bits.below(len(packet))
                packet[place:place] = packet[: bits.below(len(packet))]
        yield bytes(packet)


def check(seed: int, count: int) -> int:
    """Streams of packets, until so many were sent; how many were."""
    bits, sent, door = Bits(seed), 0, FakeDoor()
    while sent < count:
        stream = list(packets(bits, 1 + bits.below(12)))
        sent += len(stream)
        start = LOGIN if bits.below(4) else b""
        # a changed packet that happens to say SELECT would be a question, and is left out
        whole = b"".join(stream).replace(b"SELECT", b"SHOW  ")
        asyncio.run(served(start + whole, door))
    assert not door.fake.paid
    assert all("SELECT" not in one.sql for one in door.fake.paid)
    return sent


def test_hostile_packets_neither_crash_nor_charge(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR):
        assert check(seed=1, count=1_500) >= 1_500
    assert not caplog.records  # an error that is not ours would be logged as a fault


@pytest.mark.evidence
def test_a_hundred_thousand_hostile_packets(caplog: pytest.LogCaptureFixture) -> None:
    check(seed=2, count=2_000)
    gc.collect()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    with caplog.at_level(logging.ERROR):
        for seed in range(3, 13):
            check(seed, count=10_000)
    gc.collect()  # loops and sessions refer to each other
    grown = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert not caplog.records
    assert grown < 1 << 20


def test_a_length_is_refused_before_its_bytes_are_waited_for() -> None:
    door = FakeDoor()
    written, _ = asyncio.run(served(LOGIN + b"Q" + struct.pack(">i", 1 << 30), door))
    assert b"08P01" in written


def test_bytes_beyond_a_message_are_left_to_the_network() -> None:
    class Told:
        paused = 0

        def get_extra_info(self, name: str) -> object:
            return ("127.0.0.1", 1) if name == "peername" else None

        def pause_reading(self) -> None:
            self.paused += 1

    async def fed() -> tuple[int, int]:
        wire, transport = Wire(FakeDoor()), Told()
        wire.connection_made(transport)  # type: ignore[arg-type]  # as much of one as is used
        for _ in range(100):
            if not transport.paused:
                wire.data_received(b"x" * (1 << 16))
        return transport.paused, len(wire._held)

    paused, held = asyncio.run(fed())
    assert paused == 1 and held < 1 << 18
