"""However a server ends, it says why: in its log, in its state folder, or at the next start."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
import time
from pathlib import Path

from lastbit.serve.run import ENDING, last_run
from tests.serve.commands import hospital, running

SERVE = ("serve", "visits.toml", "--port", "0", "--slot", "1")
PROGRAM = """
import asyncio, os, signal, sys, time
from pathlib import Path
from lastbit.serve.run import _in_words, _logging, _until_told, last_run

for number in (signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1):
    signal.signal(number, signal.SIG_DFL)  # nohup and shells ignore some in the background

class Desk:
    async def start(self): pass
    async def stop(self): await asyncio.sleep(0.1)

def lived(before, doing):
    class Server:
        should_exit = False
        async def serve(self, sockets):
            await doing(self)
            while not self.should_exit: await asyncio.sleep(0.01)

    Path("last-run").unlink(missing_ok=True)
    with _logging(lambda line: print(line, flush=True)), _in_words(Path(".")) as run:
        before()
        run.started()
        asyncio.run(_until_told(Server(), (None, None), Desk(), None, run))

def send(*numbers):
    async def sending(server):
        for number in numbers:
            os.kill(os.getpid(), number)
            await asyncio.sleep(0.05)
    return sending

def nothing(): pass
"""
LIFE = """
try: lived({before}, {doing})
except BaseException as error: print(repr(error))
print(f"noted: {{last_run(Path('.'))}}", flush=True)
print("--", flush=True)
"""


def ended(folder: Path, *lives: tuple[str, str]) -> tuple[int, list[str]]:
    """The status of a program, and its words, of one server after the other that has no tables."""
    program = PROGRAM + "".join(LIFE.format(before=b, doing=d) for b, d in lives)
    command = [sys.executable, "-c", program]
    done = subprocess.run(
        command, capture_output=True, text=True, cwd=folder, check=False, timeout=120
    )
    return done.returncode, (done.stdout + done.stderr).split("--\n")


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


def test_signals_and_errors_are_named_and_noted(tmp_path):
    signals = (signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1)
    ignored = "lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN)"  # as nohup does
    default = "lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL)"
    early = "lambda: (os.kill(os.getpid(), signal.SIGTERM), time.sleep(5))"
    status, (*told, up, lost, alone, twice) = ended(
        tmp_path,
        *(("nothing", f"send({number})") for number in signals),
        (early, "send()"),
        (default, "lambda _: asyncio.to_thread(os.write, -1, b'')"),
        ("nothing", "lambda server: asyncio.sleep(server.__setattr__('should_exit', True) or 0)"),
        ("nothing", "send(signal.SIGHUP, signal.SIGTERM)"),
    )
    for number, text in zip(signals, told, strict=True):
        assert f"warning: {number.name} ({ENDING[number]}): ending once" in text
        assert f"by {number.name} ({ENDING[number]})\n" in text.partition("noted: ended ")[2]
    assert "SIGTERM (it was told to stop): ended before it was up\nSystemExit(143)" in up
    assert "noted: None" in up  # the folder may be another server's
    assert "error: the server ends by an error: OSError\n" in lost
    assert "by an error, OSError\n" in lost.partition("noted: ended ")[2]
    assert "the server ended by itself; read the lines above" in " ".join(alone.split())
    assert "by an error, InvalidParameter\n" in alone.partition("noted: ended ")[2]
    assert status == 128 + signal.SIGTERM and "SIGTERM (it was told to stop), once more" in twice
    assert "at once, by SIGTERM" in (last_run(tmp_path) or "")
    both = "send(signal.SIGHUP, signal.SIGTERM)"
    status, (heard, fault) = ended(tmp_path, (ignored, both), (default, "send(signal.SIGSEGV)"))
    assert "SIGHUP" not in heard and "warning: SIGTERM" in heard and "once more" not in heard
    assert status == -signal.SIGSEGV and "Fatal Python error: Segmentation fault" in fault
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
    own = ("setsid", "--ctty", "env", "--default-signal=HUP")  # not as nohup has it
    with subprocess.Popen([*own, *command], cwd=tmp_path, **terminal) as process:
        os.close(its)
        text, end = "", time.monotonic() + 60
        while "/link/" not in text and time.monotonic() < end:
            text += os.read(ours, 4096).decode()
        assert "and ended without a word" in " ".join(text.split())
        os.close(ours)  # the terminal is gone
        assert process.wait(60) == 0
    assert "by SIGHUP (its terminal was closed" in (last_run(tmp_path / "visits.serve") or "")
