"""Runs `lastbit` commands without starting Python for each of them.

A process of its own has loaded lastbit, drawn nothing and opened nothing; it forks once for each
command. So a command has a fresh process, as in a shell, and saves the second that imports take.
"""

import atexit
import gc
import json
import os
import signal
import subprocess
import sys
import tempfile
import traceback
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

LOADED = ("duckdb", "lastbit.tables.backends.duckdb.engine", "lastbit.release.release")


def finished(
    arguments: list[str], directory: Path, environment: dict[str, str], seconds: int
) -> tuple[int, str]:
    """The exit status of `lastbit arguments`, and what it wrote."""
    with tempfile.NamedTemporaryFile() as written:
        job = {
            "arguments": arguments,
            "directory": str(directory),
            "environment": environment,
            "written": written.name,
            "seconds": seconds,
        }
        server = _server()
        assert server.stdin is not None and server.stdout is not None
        server.stdin.write(json.dumps(job) + "\n")
        server.stdin.flush()
        status = int(server.stdout.readline())
        return status, written.read().decode()


@cache
def _server() -> "subprocess.Popen[str]":
    server = subprocess.Popen(
        [sys.executable, "-X", "utf8", __file__],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    atexit.register(_ended, server)
    return server


def _ended(server: "subprocess.Popen[str]") -> None:
    """Ends by the end of its input; also if this process is killed."""
    with server:
        assert server.stdin is not None
        server.stdin.close()


def _serve() -> None:
    from lastbit.cli.main import COMMANDS, main

    for name in (*LOADED, *(f"lastbit.cli.{command}" for command in COMMANDS)):
        import_module(name)
    gc.freeze()  # so that no child copies what it only looks through
    sys.path[0] = str(Path(sys.executable).parent)  # what a script has, and not this folder
    for line in sys.stdin:
        job = json.loads(line)
        child = os.fork()
        if not child:
            _become(job)
            _end(main, job["arguments"])
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        os.write(1, f"{status}\n".encode())
    os._exit(0)


def _become(job: dict) -> None:
    """This process as a shell would have started it."""
    signal.alarm(job["seconds"])
    os.environ.clear()
    os.environ.update(job["environment"])
    os.chdir(job["directory"])
    written = os.open(job["written"], os.O_WRONLY)
    for stream, number in ((os.open(os.devnull, os.O_RDONLY), 0), (written, 1), (written, 2)):
        os.dup2(stream, number)
    sys.stdin = os.fdopen(0)
    sys.argv = ["lastbit", *job["arguments"]]


def _end(main: Any, arguments: list[str]) -> None:
    """Run the command and end, without taking apart what was loaded before the fork."""
    try:
        main(arguments, prog_name="lastbit")
        status = 0
    except SystemExit as ended:
        status = ended.code if isinstance(ended.code, int) else 1 if ended.code else 0
    except BaseException:
        traceback.print_exc()
        status = 1
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


if __name__ == "__main__":
    _serve()
