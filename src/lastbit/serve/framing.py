"""Where a request ends: only requests that no two readers end differently are read at all.

A proxy in front of this server and the server itself must agree on the first byte of the next
request. Where they do not, somebody's body is taken for another person's request (smuggling).

Law      a head has lines that end in CR LF, none folded, and at most one field that says a length:
         one Content-Length, of one number, or one Transfer-Encoding, which must be "chunked" and is
         not for HTTP/1.0. After any other head, or a chunk that is malformed, comes 400, and the
         connection is closed. A connection also ends with the response to a body in chunks
Theorem  a byte behind such a head, or behind a body in chunks, is never read as a request
Proof    `next_event` raises before h11 has read a line of the head, and at every later call; h11
         does the same after a malformed chunk. uvicorn answers 400 and closes, or, if a response
         has begun, the connection is aborted (`safety.PatientProtocol`). While a body in chunks is
         read or its response made, h11 is paused before what follows; its response says
         `connection: close`, after which h11 starts no other cycle
Differs  h11 takes lines that end in LF alone, joins folded ones, and takes a length that is given
         twice, or with Transfer-Encoding, as RFC 9112 allows
Source   RFC 9112, sections 2.2, 5.2, 6.1, 6.3, 11.2
Checked  tests/serve/test_framing.py
"""

from __future__ import annotations

import re
from typing import Any

import h11

_LOOSE_END = re.compile(rb"(?<!\r)\n|\r(?!\n|\Z)")
_FOLD = re.compile(rb"\r\n[ \t]")
_LENGTH = re.compile(rb"\r\n(content-length|transfer-encoding)[ \t]*:([^\r\n]*)", re.IGNORECASE)
_OLD = re.compile(rb"[^\r\n]* HTTP/1\.0(?:\r\n|\Z)")


class StrictConnection(h11.Connection):
    """h11's connection of a server, to which an ambiguous head is the end."""

    problem = ""

    def next_event(self) -> Any:
        """The next part of a request; raises for good where a head is ambiguous."""
        if self.their_state is h11.IDLE and not self.problem:
            self.problem = head_problem(self.trailing_data[0])
        if self.problem:
            raise h11.RemoteProtocolError(self.problem)
        return super().next_event()


def head_problem(data: bytes) -> str:
    r"""What makes the head at the beginning of these bytes ambiguous; empty if nothing does, yet.

    >>> head_problem(b"GET / HTTP/1.1\r\nHost: a\n\r\n")
    'A line does not end in CR LF.'
    >>> head_problem(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n\n")
    ''
    """
    head = data.partition(b"\r\n\r\n")[0]
    if _LOOSE_END.search(head):
        return "A line does not end in CR LF."
    if _FOLD.search(head):
        return "A header goes on in a second line."
    lengths = _LENGTH.findall(head)
    if len(lengths) > 1 or any(b"," in value for _, value in lengths):
        return "Send one length: Content-Length, or Transfer-Encoding: chunked, once."
    if _OLD.match(head) and any(name.lower() == b"transfer-encoding" for name, _ in lengths):
        return "Send Content-Length: HTTP/1.0 has no Transfer-Encoding."
    return ""
