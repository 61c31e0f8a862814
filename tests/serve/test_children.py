"""Children: they end with their parent, have no more memory than they are given, and keep quiet."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from lastbit.serve.child import Child, Gone

ECHO = """
import os, sys, time
from lastbit.serve.child import Parent, limited, seconds_left
limited(memory=300 << 20)
def answer(request):
    match request["do"]:
        case "take": return {"length": len(bytes(request["bytes"]))}
        case "pay":
            seconds_left(1)
            seconds_left(None)
            while time.process_time() < 3: pass
        case "burn":
            seconds_left(1)
            while True: pass
        case "sleep": time.sleep(60)
        case "print": print("a secret"); os.write(1, b"a secret\\\\n"); sys.stderr.write("a secret")
        case "fail": raise ValueError("a secret")
        case "exit": os._exit(3)
        case "pause": parent.pause()
    return {"pid": os.getpid(), "said": request["do"]}
parent = Parent()
parent.serve(answer)
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "echoing_child.py").write_text(ECHO)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    return tmp_path


def asked(*requests, within=60.0):
    """What a child says to each; an error is its class."""

    async def asking():
        child, found = Child("echoing_child"), []
        for request in requests:
            await child.start()
            try:
                found.append(await child.ask(request, within))
            except Gone:
                found.append(Gone)
        await child.end()
        return found

    return asyncio.run(asking())


def test_a_child_answers_line_by_line_and_what_it_prints_goes_nowhere(folder):
    first, second, third = asked({"do": "print"}, {"do": "fail"}, {"do": "x" * 100_000})
    assert first["said"] == "print" and third["pid"] == first["pid"]
    assert second == {"error": "ValueError", "words": ""}  # words that are not ours may be data


def test_a_child_that_takes_too_much_memory_is_gone_and_the_next_request_has_another(folder):
    small, large, after = asked(
        {"do": "take", "bytes": 1 << 20}, {"do": "take", "bytes": 1 << 30}, {"do": "hello"}
    )
    assert (small, large, after["said"]) == ({"length": 1 << 20}, Gone, "hello")


@pytest.mark.parametrize("what", ["burn", "exit"])
def test_a_child_that_computes_too_long_or_leaves_is_gone(folder, what):
    assert [Gone, "hello"] == [
        one if one is Gone else one["said"] for one in asked({"do": what}, {"do": "hello"})
    ]


def test_a_child_that_is_late_is_ended_and_its_answer_is_not_taken_for_the_next(folder):
    assert asked({"do": "sleep"}, {"do": "sleep"}, within=0.3) == [Gone, Gone]


def test_a_child_ends_with_its_parent_in_the_midst_of_its_work(folder):
    parent = """
import asyncio
from lastbit.serve.child import Child
async def main():
    child = Child("echoing_child")
    await child.start()
    print(child.pid, flush=True)
    await child.ask({"do": "sleep"})
asyncio.run(main())
"""
    with subprocess.Popen(
        [sys.executable, "-c", parent], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        pid = int(process.stdout.readline())
        time.sleep(0.1)
        os.kill(process.pid, signal.SIGKILL)
    deadline = time.monotonic() + 30
    while Path(f"/proc/{pid}").exists():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_who_pays_has_the_processor_for_as_long_as_it_takes(folder):
    async def paid():
        child = Child("echoing_child")
        await child.start()
        found = await child.ask({"do": "pay"}, 60)
        await child.end()
        return found

    assert asyncio.run(paid())["said"] == "pay"


def test_what_pauses_goes_on_when_it_is_told_to_and_ends_at_any_other_word(folder):
    """A request that comes in its place must not write down what nobody waits for."""

    async def paused():
        child = Child("echoing_child")
        await child.start()
        ready = await child.ready({"do": "pause"}), await child.settle()
        assert await child.ready({"do": "pause"})
        with pytest.raises(Gone):
            await child.ask({"do": "hello"}, 60)
        failed = await child.settle()
        await child.end()
        return *ready, failed

    ready, settled, failed = asyncio.run(paused())
    assert ready and settled["said"] == "pause" and failed == {"failed": "failed"}
