"""However a server ends, it says why: in its log, in its state folder, or at the next start."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from lastbit.serve.run import ENDING, RUN, last_run
from tests.serve.commands import hospital, running

SERVE = ("serve", "visits.toml", "--port", "0", "--slot", "1")
PROGRAM = """
import asyncio, logging, os, signal, sys, time
from pathlib import Path
from types import SimpleNamespace
from lastbit.serve.run import _in_words, _logging, _until_told

class Desk:
    async def start(self): pass
    async def stop(self): await asyncio.sleep(0.2)

class Server:
    should_exit = False
    async def serve(self, sockets):
        {doing}
        while not self.should_exit: await asyncio.sleep(0.01)

with _logging(lambda line: print(line, flush=True)), _in_words(Path(".")) as run:
    {before}
    run.started()
    asyncio.run(_until_told(Server(), None, Desk(), run))
"""


def ended(folder: Path, *, before: str = "", doing: str = "") -> tuple[int, str]:
    """The status and the words of a server that has no tables, and to which something is done."""
    program = PROGRAM.format(before=before or "pass", doing=doing or "pass")
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, check=False)
    return done.returncode, done.stdout + done.stderr


def sent(*numbers: int, pause: str = "await asyncio.sleep(0.05)") -> str:
    return "; ".join(f"os.kill(os.getpid(), {number}); {pause}" for number in numbers)


def test_every_signal_that_would_end_it_is_named(tmp_path):
    """Those that a process may catch, by their default an end; not what Python ignores anyway."""
    alone = {signal.SIGKILL, signal.SIGSTOP}  # which nobody can catch
    faults = {signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGFPE, signal.SIGILL}
    for number in signal.valid_signals() - alone - faults - set(ENDING):
        if number in range(signal.SIGRTMIN, signal.SIGRTMAX + 1):
            continue  # nobody sends those, and the C library takes the first
        assert number.name in (
            *("SIGCHLD", "SIGCONT", "SIGURG", "SIGWINCH"),  # by default ignored
            *("SIGTSTP", "SIGTTIN", "SIGTTOU", "SIGPIPE", "SIGXFSZ"),  # a pause; Python's own
            *("SIGTRAP", "SIGSYS", "SIGSTKFLT", "SIGPWR"),  # of debuggers and old systems
        ), number


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1])
def test_a_signal_is_named_and_noted(tmp_path, number):
    status, text = ended(tmp_path, doing=sent(number))
    assert status == 0 and f"{number.name} ({ENDING[number]}): ending once" in text
    assert f"by {number.name} ({ENDING[number]})" in (last_run(tmp_path) or "")


def test_two_signals_one_before_it_is_up_and_one_that_is_ignored(tmp_path):
    status, text = ended(tmp_path, doing=sent(signal.SIGHUP, signal.SIGTERM))
    assert status == 128 + signal.SIGTERM and "SIGTERM (it was told to stop), once more" in text
    assert "at once, by SIGTERM" in (last_run(tmp_path) or "")
    (tmp_path / RUN).unlink()
    status, text = ended(tmp_path, before=sent(signal.SIGTERM, pause="time.sleep(5)"))
    assert status == 128 + signal.SIGTERM and "ended before it was up" in text
    assert last_run(tmp_path) is None  # the folder may be another server's
    ignored = "signal.signal(signal.SIGHUP, signal.SIG_IGN)"  # as nohup does
    both = sent(signal.SIGHUP) + "; assert not self.should_exit; " + sent(signal.SIGTERM)
    status, text = ended(tmp_path, before=f"{ignored}; run._is_ours = True", doing=both)
    assert status == 0 and "SIGHUP" not in text and "SIGTERM" in text


def test_an_error_is_named_by_its_class_and_a_fault_by_the_interpreter(tmp_path):
    status, text = ended(tmp_path, doing="raise BrokenPipeError('a value')")
    assert status == 1 and "error: the server ends by an error: BrokenPipeError" in text
    assert "by an error, BrokenPipeError" in (last_run(tmp_path) or "")
    status, text = ended(tmp_path, doing="return")
    assert status == 1 and "the server ended by itself; read the lines above" in text
    assert "by an error, InvalidParameter" in (last_run(tmp_path) or "")
    status, text = ended(tmp_path, doing=sent(signal.SIGSEGV))
    assert status == -signal.SIGSEGV and "Fatal Python error: Segmentation fault" in text
    assert "ended without a word" in (last_run(tmp_path) or "")


def test_killed_then_started_in_a_terminal_that_is_closed(tmp_path):
    """The real one, without standard input: whom nobody could tell is told at the next start."""
    hospital(tmp_path)
    with running(tmp_path, *SERVE, stdin=subprocess.DEVNULL) as server:
        server.until("/link/")
        assert server.ended(signal.SIGKILL) == -signal.SIGKILL
    ours, its = pty.openpty()
    command = [sys.executable, "-m", "lastbit", *SERVE]
    terminal = {"stdin": its, "stdout": its, "stderr": its}
    with subprocess.Popen([*("setsid", "--ctty"), *command], cwd=tmp_path, **terminal) as process:  # type: ignore[call-overload]
        os.close(its)
        text, end = "", time.monotonic() + 60
        while "/link/" not in text and time.monotonic() < end:
            text += os.read(ours, 4096).decode()
        assert "and ended without a word" in " ".join(text.split())
        os.close(ours)  # the terminal is gone
        assert process.wait(60) == 0
    assert "by SIGHUP (its terminal was closed" in (last_run(tmp_path / "visits.serve") or "")
