"""No failure within says a value of the data, nor a number that is not paid for.

The engine, the ledger, interrupts; and an exception put into every function that sees an answer
being made, with all that the function holds in its words.
"""

from __future__ import annotations

import inspect
import itertools
import os
import resource
import signal
import sqlite3
import threading
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from lastbit.errors import EngineFailed, LastbitError
from lastbit.kernel import answering
from lastbit.ledger.ledger import Ledger
from lastbit.release.release import released
from lastbit.tables.backends.duckdb import engine, files
from lastbit.tables.card.read import read_card
from lastbit.tables.plan.plan import planned
from lastbit.tables.sql.statement import parsed
from tests.cli.running import lastbit
from tests.evidence import Extent
from tests.kernel.unsealing import aggregates
from tests.release import canaries
from tests.release.canaries import (
    ALL,
    FOUND,
    ask,
    broken_statement,
    fails,
    leaks,
    raw_numbers,
    shown,
    told,
    write_card,
    write_parquet,
)  # fmt: skip

canary_folder, memory_folder = canaries.canary_folder, canaries.memory_folder
PARQUET = '"visits.parquet"'


# ---------------------------------------------------------------- the engine


@pytest.mark.thinned(one_in=3)
@pytest.mark.parametrize(
    "sql",
    [
        "SELECT CAST(note AS INTEGER) FROM lastbit_table",
        "SELECT CAST(cost AS DATE) FROM lastbit_table",
        "SELECT sum(CAST(age AS BIGINT) * 9000000000000) * 99999999999999 FROM lastbit_table",
        "SELECT regexp_matches('x', note) FROM lastbit_table",
        "SELECT error(note) FROM lastbit_table",
        "SELECT 0, note, NULL, 1 FROM lastbit_table",  # rows of a shape that was not promised
        "SELECT nonsense FROM lastbit_table",
    ],
)
def test_engine_errors(
    sql: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capfd: Any, caplog: Any
) -> None:
    write_parquet(folder / "visits.parquet")  # CSV is read with its errors left out
    write_card(folder, PARQUET)
    broken_statement(monkeypatch, sql)
    for _ in range(2):  # charged once: it may depend on the data
        error = fails(ask, capfd, caplog)
        assert isinstance(error, EngineFailed) and "the price stays charged" in str(error)
        assert Ledger.open("visits.ledger").spent("visits").epsilon == 1
    result = lastbit("query", "visits.toml", ALL, "--epsilon", "1")
    assert result.exit_code == 2 and leaks(result.output + told(result.exception)) == []


def test_an_engine_without_memory(monkeypatch: pytest.MonkeyPatch, capfd: Any, caplog: Any) -> None:
    broken_statement(
        monkeypatch,
        "SELECT 0, list(note || range) FROM lastbit_table, range(20000)",
    )
    monkeypatch.setattr(engine, "_MOST_MEMORY", 12 * 10**6)
    error = fails(ask, capfd, caplog)
    assert isinstance(error, EngineFailed) and "memory" in str(error)


def test_a_file_that_changes_while_it_is_read(
    monkeypatch: pytest.MonkeyPatch, capfd: Any, caplog: Any
) -> None:
    """The backend alone: its own error must not carry the rows that it had fetched."""
    card = read_card("visits.toml")
    query = parsed(ALL, card)
    plan = planned(query, card, epsilon=1)
    raw = raw_numbers(aggregates(query, card, plan.measures, secret="s" * 64))
    stamps = itertools.count()
    monkeypatch.setattr(files.Opened, "now", property(lambda _: next(stamps)))
    work = lambda: aggregates(query, card, plan.measures, secret="s" * 64)  # noqa: E731
    assert isinstance(fails(work, capfd, caplog, raw), EngineFailed)
    assert isinstance(fails(ask, capfd, caplog, raw), EngineFailed)


def test_an_interrupt_in_the_engine(
    monkeypatch: pytest.MonkeyPatch, capfd: Any, caplog: Any
) -> None:
    broken_statement(
        monkeypatch,
        "SELECT sum(hash(note, a.range * b.range)) FROM lastbit_table, range(30000) a, "
        "range(3000) b",
    )
    signal.signal(signal.SIGINT, signal.default_int_handler)  # polars may have put its own there
    timer = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
    real = vars(engine)["_ran"]

    def running(*given: Any) -> Any:
        timer.start()  # when the price is reserved, and the engine starts
        return real(*given)

    monkeypatch.setattr(engine, "_ran", running)
    try:
        error = fails(ask, capfd, caplog)
    finally:
        timer.cancel()  # where it failed before the signal came
    assert isinstance(error, KeyboardInterrupt)
    assert Ledger.open("visits.ledger").spent("visits").epsilon == 1


# ---------------------------------------------------------------- ledgers


def test_ledgers(folder: Path, capfd: Any, caplog: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    raw: set[str] = set()
    unpaid(monkeypatch, raw)
    book = folder / "visits.ledger"
    Ledger.open(book)
    patient = Ledger.open(book, patience=0.1)

    def locked() -> None:
        with sqlite3.connect(book, isolation_level=None) as other:
            real = answering._run

            def busy(*a: Any, **k: Any) -> Any:
                made = real(*a, **k)
                other.execute("BEGIN IMMEDIATE")
                return made

            monkeypatch.setattr(answering, "_run", busy)
            try:
                ask(ledger=patient)
            finally:
                monkeypatch.setattr(answering, "_run", real)
                other.execute("ROLLBACK")

    def full() -> None:
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (book.stat().st_size + 2000, hard))
        try:
            ask()
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))

    def exchanged() -> None:
        real = answering._run

        def exchange(*a: Any, **k: Any) -> Any:
            made = real(*a, **k)
            Ledger.open(folder / "other.ledger").account("visits", read_card("visits.toml").budget)
            os.replace(folder / "other.ledger", book)
            return made

        monkeypatch.setattr(answering, "_run", exchange)
        try:
            ask()
        finally:
            monkeypatch.setattr(answering, "_run", real)

    def damaged() -> None:
        book.write_bytes(book.read_bytes()[:5000] + b"\x5a" * 9000)
        ask()

    def overspent() -> None:
        card = read_card("visits.toml")
        query = parsed(ALL, card)
        released(query, card, planned(query, card, epsilon=9))

    for work in (overspent, locked, full, exchanged, damaged):
        error = fails(work, capfd, caplog, raw)
        assert isinstance(error, LastbitError), work.__name__
    assert len(raw) > 10  # answers were made, and nobody saw them


def unpaid(monkeypatch: pytest.MonkeyPatch, numbers: set[str]) -> None:
    """Note raw aggregates and the noisy numbers of every answer in the making."""
    real = vars(answering)["noisy_numbers"]

    def noisy_numbers(program: Any, raw: Any) -> Any:
        noisy = real(program, raw)
        numbers.update(raw_numbers(raw) | raw_numbers(noisy))
        return noisy

    monkeypatch.setattr(answering, "noisy_numbers", noisy_numbers)


# ---------------------------------------------------------------- failures put into functions


ROOMS = (
    "kernel.answering", "kernel.noise", "kernel.sealed",
    "release.release", "release.intervals", "release.formulas", "release.answer",
    "release.paying",
    "ledger.ledger", "ledger.chain",
    "mechanisms.lattice", "mechanisms.histogram", "sampling.choice", "checker.dispatch",
    "tables.backends.duckdb.engine", "tables.backends.engines", "ledger.ledger", "ledger.chain",
    "sampling.choice", "sampling.draw", "checker.dispatch",
)  # fmt: skip


def functions() -> Iterator[tuple[Any, str]]:
    """Every function and method that these modules define or call by name."""
    for room in ROOMS:
        module = import_module(f"lastbit.{room}")
        for name, value in sorted(vars(module).items()):
            if inspect.isfunction(value) and value.__module__.startswith("lastbit."):
                yield module, name
            elif inspect.isclass(value) and value.__module__ == module.__name__:
                for method, body in sorted(vars(value).items()):
                    if inspect.isfunction(body) and not method.startswith("__"):
                        yield value, method


def held(value: Any) -> str:
    """What a value holds, secrets too: the words of a careless exception."""
    slots = [getattr(value, name, None) for name in getattr(type(value), "__slots__", ())]
    return shown(value) + shown(slots)


def called(sql: str) -> list[tuple[Any, str]]:
    """Those functions that a question really calls."""
    found: dict[tuple[Any, str], None] = {}
    with pytest.MonkeyPatch.context() as patch:
        for one in list(functions()):
            real = getattr(*one)

            def counting(*given: Any, _real: Any = real, _one: Any = one, **named: Any) -> Any:
                found[_one] = None
                return _real(*given, **named)

            if not inspect.isgeneratorfunction(real):
                patch.setattr(*one, counting)
        ask(sql)
    return list(found)


@pytest.mark.parametrize(("how", "sql"), [(RuntimeError, ALL), (KeyboardInterrupt, FOUND)])
def test_an_exception_in_every_function(
    how: type[BaseException],
    sql: str,
    memory: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: Any,
    caplog: Any,
    extent: Extent,
) -> None:
    """Each fails when it has done its work, with everything it was given and found in its words."""
    outcomes = {True: 0, False: 0}
    for place, (owner, name) in enumerate(extent.cases(called(sql), one_in=20)):
        real = getattr(owner, name)
        secret: set[str] = set()
        book = memory / f"{place}.ledger"
        write_card(Path(), **{'"visits.ledger"': f'"{book}"'})

        hit: list[str] = []

        def failing(*given: Any, _real: Any = real, _hit: Any = hit, **named: Any) -> Any:
            found = _real(*given, **named)
            _hit.append("called")
            raise how(" ".join(map(held, (*given, *named.values(), found))))

        with monkeypatch.context() as patch:
            unpaid(patch, secret)
            patch.setattr(owner, name, failing)
            try:
                ask(sql)
            except BaseException as error:
                caught = error
            else:
                # HAVING is false where it fails; and what is called may depend on the noise
                assert not hit or owner.__name__ == "lastbit.release.formulas"
                continue
        assert isinstance(caught, KeyboardInterrupt) == (how is KeyboardInterrupt)
        seen = capfd.readouterr()
        text = "\n".join((told(caught), seen.out, seen.err, caplog.text))
        entries = Ledger.open(book).entries() if book.exists() else ()
        kinds = [entry.kind for entry in entries]
        settled = "settled" in kinds
        # what is settled is public: then only raw numbers and values are secret
        assert leaks(text, frozenset() if settled else secret) == [], (owner, name)
        assert not secret or "reserved" in kinds, (owner, name)  # no number before the charge
        outcomes[settled] += 1
        if name == "to_text":  # a draw that cannot be written down is spent: `kernel/answering.py`
            continue
        if "reserved" in kinds and place % 12 == 0:
            again = ask(sql).record["entry"]["sequence"]
            kinds = [entry.kind for entry in Ledger.open(book).entries()]
            assert (
                kinds[2:] == ["reserved", "drawn", "settled"] and again == 5
            )  # charged once in all
    assert outcomes[False] > extent.number(3, 30)
    assert outcomes[True] >= extent.number(0, 1)
