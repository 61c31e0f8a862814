"""Every reader of files that strangers write refuses large ones before it parses them."""

from __future__ import annotations

import json
import os
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from lastbit.checker.__main__ import main as check_by_copy
from lastbit.errors import LastbitError
from lastbit.ledger import Ledger
from lastbit.ledger.chain import StoredEntry
from lastbit.ledger.entry import Entry, Malformed
from lastbit.privacy import Profile, PureDP, from_json
from lastbit.reading import MOST_VALUES
from lastbit.release.answer import Answer
from lastbit.release.connection import Server
from lastbit.release.marginal_answer import Marginals
from lastbit.serve.api import _parsed
from lastbit.serve.questions import Refusal
from lastbit.servers import Secret
from lastbit.tables.card.read import read_card
from lastbit.verify import read
from tests.cli.running import lastbit

MANY = b'{"rows": [' + b"{}," * (MOST_VALUES // 2) + b"{}]}"
DEEP = b'{"a":' * 300 + b"0" + b"}" * 300
LONG = b'{"a":' + b"7" * 2000 + b"}"
JSON = {"many": MANY, "deep": DEEP, "long": LONG}


@contextmanager
def within(size: int) -> Iterator[None]:
    """The block allocates little more than four times what it reads."""
    tracemalloc.start()
    try:
        yield
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 4 * size + (4 << 20), peak


def command(*words: str) -> Callable[[Path], None]:
    def run(path: Path) -> None:
        result = lastbit(*(word.format(path) for word in words))
        assert result.exit_code == 2 and "Traceback" not in result.output, result.output

    return run


def refuse(reader: Callable[[Any], object]) -> Callable[[Path], None]:
    def run(path: Path) -> None:
        with pytest.raises(LastbitError):
            reader(path)

    return run


def refuse_text(reader: Callable[[Any], object]) -> Callable[[Path], None]:
    return refuse(lambda path: reader(path.read_text("utf-8")))


def by_copy(path: Path) -> None:
    assert check_by_copy([str(path)]) == 2


def by_server(path: Path) -> None:
    with pytest.raises(Refusal):
        _parsed(path.read_bytes())


def from_server(path: Path) -> None:
    """A server that answers with the file."""
    content = path.read_bytes()

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_: Any) -> None: ...

        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            with suppress(OSError):
                self.wfile.write(content)

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as there:
        Thread(target=there.serve_forever, args=(0.01,), daemon=True).start()
        server, _ = Server.at(
            f"http://127.0.0.1:{there.server_address[1]}/visits", Secret("lbt_12345678")
        )
        try:
            with pytest.raises(LastbitError, match="does not answer in JSON"):
                server.get("/tables/visits", most=1 << 27)
        finally:
            there.shutdown()


READERS: dict[str, Callable[[Path], None]] = {
    "check": command("check", "{}"),
    "report": command("report", "{}", "--checklist"),
    "audit": command(
        *("audit", "lastbit.mechanisms.snapping:snapped", "--epsilon", "1", "--pairs", "{}")
    ),
    "a copy of the checker": by_copy,
    "verify.read": refuse(read),
    "Answer.load": refuse(Answer.load),
    "Marginals.load": refuse(Marginals.load),
    "a guarantee": refuse_text(from_json),
    "a profile": refuse_text(Profile.from_json),
    "the server's API": by_server,
    "answers of a server": from_server,
}


@pytest.mark.parametrize("name", READERS)
def test_json(name: str, tmp_path: Path) -> None:
    """Failed before: each of them held 24 times what the file has."""
    for kind, content in JSON.items():
        path = tmp_path / f"{kind}.json"
        path.write_bytes(content)
        # the text itself is there up to three times, in bytes and as text
        with within(2 * len(content)):
            READERS[name](path)


CARDS = {
    "sections": lambda: "".join(f"[{i}]\n" for i in range(400_000)),
    "keys": lambda: "".join(f"{i}=0\n" for i in range(400_000)),
    "values": lambda: "a=[" + "0," * (1 << 20) + "0,]",
    "objects": lambda: "a=[" + "{}," * (1 << 18) + "]",
    "dots": lambda: "".join(f"{i}.{'a.' * 90}a=0\n" for i in range(20_000)),
}


@pytest.mark.parametrize("name", CARDS)
def test_cards(name: str, tmp_path: Path) -> None:
    """Failed before: 4 MB of dotted keys took 1.2 GB."""
    path = tmp_path / "card.toml"
    path.write_text(CARDS[name](), "utf-8")
    with within(path.stat().st_size), pytest.raises(LastbitError) as caught:
        read_card(path)
    assert "more keys, sections or values than a card can have" in str(caught.value)


@pytest.mark.parametrize("content", [DEEP, LONG], ids=["deep", "long"])
def test_entries_and_answers_of_a_ledger(content: bytes) -> None:
    text = content.decode()
    with pytest.raises(Malformed):
        Entry.read(text)
    entry = Entry(kind="note", words="x", result=sha256(content).hexdigest())
    stored = StoredEntry(entry.sequence, None, None, entry.text, entry.hash, text)
    found = stored.read_whole()
    assert found.record is None and found.unreadable is not None  # charged, and no answer
    whole = json.dumps({"a": 1})
    fine = Entry(kind="note", words="x", result=sha256(whole.encode()).hexdigest())
    stored = StoredEntry(fine.sequence, None, None, fine.text, fine.hash, whole)
    assert stored.read_whole().record is not None


def test_anchors(tmp_path: Path) -> None:
    """Failed before: a list of as many lines as bytes."""
    Ledger.open(tmp_path / "book").note("x")
    path = tmp_path / "anchor"
    path.write_bytes(b"\n" * (8 << 20))
    with within(path.stat().st_size):
        result = lastbit("ledger", "verify", str(tmp_path / "book"), "--anchor", str(path))
        assert result.exit_code == 2 and "something else" in result.output, result.output


def test_tokens_and_statements(tmp_path: Path) -> None:
    os.symlink("/dev/zero", tmp_path / "token")
    (tmp_path / "long").write_bytes(b"a" * 5000)
    for name in ("token", "long"):
        result = lastbit(
            *("query", "https://stats.example.org/visits", "SELECT 1"),
            *("--epsilon", "1", "--token-file", str(tmp_path / name)),
        )
        assert result.exit_code == 2 and "cannot be read" in result.output
    assert PureDP(1) == from_json(PureDP(1).to_json())
