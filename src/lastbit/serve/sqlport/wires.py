"""A connection's bytes: whole messages in, at most so many at a time; TLS; a limit to patience.

Law      a message is handed on once it is whole; its length is looked at before its bytes are
         waited for, and one that is too long ends the connection. At most two chunks beyond a
         message are held; what follows is left to TCP. A client that owes the rest of a message,
         takes no bytes, or does not finish TLS is let go after a while
Theorem  (injection)  No byte that came before TLS is read as if it had come within
Proof    `secure` ends the connection if anything is held when TLS begins (CVE-2021-23214)
Checked  tests/serve/test_sqlport_wires.py
"""

from __future__ import annotations

import asyncio
import socket
import ssl
import struct
from contextlib import suppress
from typing import cast

from lastbit.serve.sqlport.messages import Malformed
from lastbit.serve.sqlport.session import Gone

PART_SECONDS, DRAIN_SECONDS, TLS_SECONDS = 20.0, 30.0, 10.0
_MOST_HELD = 1 << 17
_FLUSHED = 1 << 15


class Wire(asyncio.Protocol):
    """One client's connection."""

    part_seconds, drain_seconds = PART_SECONDS, DRAIN_SECONDS

    def __init__(self, server: WireServer) -> None:
        self._server = server
        self._held, self._out = bytearray(), bytearray()
        self._wanted = 0
        self._came, self._writable = asyncio.Event(), asyncio.Event()
        self._writable.set()
        self._ended, self._paused = False, False
        self._transport: asyncio.Transport | None = None
        self.address, self.is_local, self.is_secret = "", False, False

    @property
    def is_ended(self) -> bool:
        """Whether its client is gone, or was told to go."""
        return self._ended

    # ------------------------------------------------------------ what the loop tells

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        peer = transport.get_extra_info("peername")
        line = transport.get_extra_info("socket")
        self.address = peer[0] if isinstance(peer, tuple) else "socket"
        family = None if line is None else line.family
        local = self.address in ("127.0.0.1", "::1", "::ffff:127.0.0.1")
        self.is_local = local or family == socket.AF_UNIX
        self._server.begun(self)

    def data_received(self, data: bytes) -> None:
        self._held += data
        if len(self._held) > self._wanted + _MOST_HELD and self._transport and not self._paused:
            self._paused = True
            self._transport.pause_reading()
        self._came.set()

    def eof_received(self) -> bool:
        self._end()
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self._end()

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    def _end(self) -> None:
        self._ended = True
        self._came.set()
        self._writable.set()
        self._server.ended(self)

    # ------------------------------------------------------------ what a session asks

    async def first(self, most: int) -> bytes:
        """What follows the length of a first packet."""
        (length,) = struct.unpack(">i", await self._take(4))
        if not 8 <= length <= most:
            raise Malformed("this is a port of PostgreSQL's protocol")
        return await self._take(length - 4)

    async def message(self, most: int) -> tuple[bytes, bytes]:
        """The tag of the next message, and what follows its length."""
        await self.drain()
        tag = await self._take(1)
        try:
            async with asyncio.timeout(self.part_seconds):
                (length,) = struct.unpack(">i", await self._take(4))
                if not 4 <= length <= most:
                    raise Malformed(f"a message has at most {most} bytes")
                return tag, await self._take(length - 4)
        except TimeoutError:
            raise Gone from None

    async def _take(self, size: int) -> bytes:
        while len(self._held) < size:
            if self._ended or self._transport is None:
                raise Gone
            self._wanted = size
            if self._paused:
                self._paused = False
                self._transport.resume_reading()
            self._came.clear()
            await self._came.wait()
        part = bytes(self._held[:size])
        del self._held[:size]
        return part

    def send(self, part: bytes) -> None:
        self._out += part
        if len(self._out) > _FLUSHED:
            self._flush()

    def _flush(self) -> None:
        if self._transport is not None and self._out and not self._transport.is_closing():
            self._transport.write(bytes(self._out))
        self._out.clear()

    async def drain(self) -> None:
        """Write what is to be sent, and wait while the client takes none of it."""
        self._flush()
        if self._writable.is_set():
            return
        try:
            async with asyncio.timeout(self.drain_seconds):
                await self._writable.wait()
        except TimeoutError:
            self.abort()
            raise Gone from None

    async def secure(self) -> bool:
        """Answer that TLS is spoken, and speak it; False: there is no certificate."""
        if self._server.context is None or self.is_secret or self._transport is None:
            return False
        if self._held:
            raise Malformed("something was sent before TLS began")
        self._transport.pause_reading()
        self._transport.write(b"S")
        loop = asyncio.get_running_loop()
        try:
            made = await loop.start_tls(
                self._transport,
                self,
                self._server.context,
                server_side=True,
                ssl_handshake_timeout=TLS_SECONDS,
            )
        except (OSError, ssl.SSLError):
            self.abort()
            raise Gone from None
        if made is None or self._ended:
            raise Gone
        self._transport, self.is_secret, self._paused = made, True, False
        return True

    def abort(self) -> None:
        """End it at once."""
        self._ended = True
        self._came.set()
        if self._transport is not None:
            self._transport.abort()

    def close(self) -> None:
        """End it once all is sent, or after a while."""
        self._flush()
        if self._transport is not None:
            self._transport.close()
            with suppress(RuntimeError):
                loop = asyncio.get_running_loop()
                loop.call_later(self.drain_seconds, self._transport.abort)


class WireServer:
    """What a wire tells of its begin and end; `port.py` has the one of the server."""

    context: ssl.SSLContext | None = None

    def begun(self, wire: Wire) -> None:
        """A client has connected."""

    def ended(self, wire: Wire) -> None:
        """A client is gone."""
