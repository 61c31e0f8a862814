"""The only door to entropy: its bytes, its failures, and that no two of its readers share a draw.

Draws that must differ are of 62 bits or more, and at most 200 000 are compared at a time: by chance
two of them agree with probability below 2e5**2 / 2 / 2**62 < 2**-27.
"""

import ctypes
import itertools
import mmap
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from numpy.typing import NDArray

import lastbit
from lastbit.errors import EntropyUnavailable, LastbitError
from lastbit.sampling import bits, blocks, draw
from lastbit.sampling.bits import BYTES_PER_KEY, Bits, KeyStream, secure_bits, words
from lastbit.sampling.blocks import BLOCK
from tests.evidence import Extent
from tests.sampling.children import (
    WIDE,
    Answer,
    in_child,
    interrupted,
    number_of_steps,
    scalars,
    send_scalars,
)

# Python warns of forks in a process with threads, such as a test worker; here they are the subject.
pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")

PIECE = 1 << 20  # the most that is encrypted at once


@pytest.fixture
def fresh(monkeypatch) -> KeyStream:
    """A new stream for this thread, without a key."""
    stream = KeyStream()
    monkeypatch.setattr(bits._LOCAL, "stream", stream)
    return stream


class Seeds:
    """A system that gives known seeds, and counts how often it is asked; None is a failure."""

    def __init__(self, *answers: bytes | Exception) -> None:
        self._answers = iter(answers)
        self.asked: list[int] = []
        self.given: list[bytes] = []

    def __call__(self, count: int) -> bytes:
        self.asked.append(count)
        answer = next(self._answers, None)
        if isinstance(answer, Exception):
            raise answer
        seed = bytes([len(self.asked)]) * count if answer is None else answer
        self.given.append(seed)
        return seed


@pytest.fixture
def system(monkeypatch) -> Callable[..., Seeds]:
    def install(*answers: bytes | Exception) -> Seeds:
        seeds = Seeds(*answers)
        monkeypatch.setattr(os, "urandom", seeds)
        return seeds

    return install


def keystream(seed: bytes, count: int) -> bytes:
    """AES-256 in counter mode from the block cipher alone: the counter is encrypted, big-endian."""
    assert len(seed) == 48
    encryptor = Cipher(algorithms.AES(seed[:32]), modes.ECB()).encryptor()
    start, blocks = int.from_bytes(seed[32:], "big"), -(-count // 16)
    counters = (((start + i) % (1 << 128)).to_bytes(16, "big") for i in range(blocks))
    return encryptor.update(b"".join(counters))[:count]


def distinct(*groups: list[int]) -> bool:
    together = list(itertools.chain(*groups))
    assert len(together) > 0
    return len(set(together)) == len(together)


# -- the bytes --

SEEDS = [bytes(range(48)), b"\xff" * 48, bytes(48), bytes(32) + b"\xff" * 15 + b"\xfe"]


@pytest.mark.parametrize("seed", SEEDS, ids=["counting", "ones", "zeros", "counter wraps"])
def test_the_bytes_are_those_of_aes_in_counter_mode(system, seed):
    system(seed)
    stream = KeyStream()
    pieces = [stream.fill(count) for count in (1, 0, 15, 16, 17, 1000, 3, 50_000)]
    assert [piece.size for piece in pieces] == [1, 0, 15, 16, 17, 1000, 3, 50_000]
    assert all(piece.dtype == np.uint8 for piece in pieces)
    together = b"".join(piece.tobytes() for piece in pieces)
    assert together == keystream(seed, len(together))


def test_the_known_answer_of_nist(system):
    """SP 800-38A, F.5.5: CTR-AES256.Encrypt; ciphertext xor plaintext is the keystream."""
    key = "603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4"
    counter = "f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff"
    plain = int("6bc1bee22e409f96e93d7e117393172a", 16)
    cipher = int("601ec313775789a5b7a7f504bbf3d228", 16)
    system(bytes.fromhex(key + counter))
    assert int.from_bytes(KeyStream().fill(16).tobytes(), "big") == plain ^ cipher


def test_one_long_request_is_the_same_stream(system):
    system(SEEDS[0])
    count = 3 * PIECE + 5
    assert KeyStream().fill(count).tobytes() == keystream(SEEDS[0], count)


def test_arrays_are_new_and_writable(fresh):
    first, second = fresh.fill(64), fresh.fill(64)
    copy = second.copy()
    first[:] = 0
    assert (second == copy).all()
    assert first.flags.writeable


@pytest.mark.parametrize("kind", [np.uint16, np.uint32, np.uint64])
def test_words_are_the_bytes(system, kind):
    system(SEEDS[0])
    drawn = words(KeyStream(), 100, kind)
    assert drawn.dtype == kind
    assert drawn.tobytes() == keystream(SEEDS[0], 100 * np.dtype(kind).itemsize)


def test_nothing_is_read_before_it_is_needed(system):
    seeds = system()
    stream = KeyStream()
    assert stream.fill(0).size == 0
    assert seeds.asked == []


# -- keys --


def test_a_key_serves_its_bytes_and_no_more(system):
    seeds = system()
    stream = KeyStream()
    for _ in range(BYTES_PER_KEY // PIECE):
        last = stream.fill(PIECE)
    assert seeds.asked == [48]
    assert last.tobytes()[-16:] == keystream(seeds.given[0], BYTES_PER_KEY)[-16:]
    assert stream.fill(1).tobytes() == keystream(seeds.given[1], 1)
    assert seeds.asked == [48, 48]


def test_a_long_request_changes_keys_in_its_midst(system):
    seeds = system()
    drawn = KeyStream().fill(2 * BYTES_PER_KEY + 7).tobytes()
    assert seeds.asked == [48, 48, 48]
    expected = [keystream(seed, BYTES_PER_KEY) for seed in seeds.given]
    assert drawn == expected[0] + expected[1] + expected[2][:7]


@pytest.mark.parametrize("size", [PIECE - 1, PIECE // 3, 777_777])
def test_uneven_requests_waste_less_than_one_of_them(system, size):
    seeds = system()
    stream = KeyStream()
    requests = 3 * BYTES_PER_KEY // size
    for _ in range(requests):
        stream.fill(size)
    per_key = BYTES_PER_KEY // size
    assert len(seeds.asked) == -(-requests // per_key)


# -- failing entropy --

FAILURES = [OSError("no device"), NotImplementedError("no source"), b"", bytes(47)]
NAMES = ["OSError", "NotImplementedError", "nothing", "short"]


@pytest.mark.parametrize("failure", FAILURES, ids=NAMES)
def test_without_entropy_nothing_is_drawn(system, fresh, failure):
    seeds = system(failure, failure, SEEDS[0])
    with pytest.raises(EntropyUnavailable, match="try again") as raised:
        fresh.fill(10)
    assert isinstance(raised.value, LastbitError)
    with pytest.raises(EntropyUnavailable):
        lastbit.uniform_below(WIDE)
    assert fresh.fill(10).tobytes() == keystream(SEEDS[0], 10)
    assert len(seeds.asked) == 3


@pytest.mark.parametrize("failure", FAILURES, ids=NAMES)
def test_without_entropy_for_the_next_key_nothing_is_drawn(system, fresh, failure):
    """A request that fails midway returns nothing; the next starts anew with a key of its own."""
    seeds = system(SEEDS[0], failure, SEEDS[3])
    with pytest.raises(EntropyUnavailable):
        fresh.fill(BYTES_PER_KEY + 1)
    assert fresh.fill(1000).tobytes() == keystream(SEEDS[3], 1000)
    assert len(seeds.asked) == 3


@pytest.mark.parametrize(
    "sample",
    [
        lambda size: lastbit.uniform_below(6, size=size),
        lambda size: lastbit.bernoulli("1/3", size=size),
        lambda size: lastbit.bernoulli_exp("1/3", size=size),
        lambda size: lastbit.geometric(5, size=size),
        lambda size: lastbit.discrete_laplace(5, size=size),
        lambda size: lastbit.discrete_laplace(2**70, size=size),
        lambda size: lastbit.discrete_gaussian(variance=5, size=size),
        lambda size: lastbit.discrete_gaussian(variance=10**9, size=size),
        lambda size: lastbit.choice([1, 2, 3], size=size),
        lambda size: lastbit.choice_exp([1, 2, 3], size=size),
    ],
)
def test_no_sampler_has_another_source(monkeypatch, system, sample):
    for size in (None, 3):
        monkeypatch.setattr(bits._LOCAL, "stream", KeyStream())
        system(*[OSError()] * 2)
        for _ in range(2):
            with pytest.raises(EntropyUnavailable):
                sample(size)
        system(SEEDS[0])
        sample(size)


class BreaksOnce:
    """The real cipher, except that the second piece it encrypts fails."""

    def __init__(self, failure: BaseException) -> None:
        self._failure = failure
        self._calls = 0

    def __call__(self, *arguments: Any) -> Any:
        inner = Cipher(*arguments).encryptor()

        def update_into(data: Any, buffer: Any) -> int:
            self._calls += 1
            if self._calls == 2:
                inner.update_into(data[:5], buffer)
                raise self._failure
            return inner.update_into(data, buffer)

        context = SimpleNamespace(update_into=update_into)
        return SimpleNamespace(encryptor=lambda: context)


@pytest.mark.parametrize("failure", [ValueError("broken"), KeyboardInterrupt()], ids=repr)
def test_a_cipher_in_an_unknown_state_is_dropped(monkeypatch, system, failure):
    system(SEEDS[0], SEEDS[3])
    monkeypatch.setattr(bits, "Cipher", BreaksOnce(failure))
    stream = KeyStream()
    assert stream.fill(10).tobytes() == keystream(SEEDS[0], 10)
    with pytest.raises(type(failure)):
        stream.fill(10)
    assert stream.fill(10).tobytes() == keystream(SEEDS[3], 10)


# -- forks --


def test_a_child_draws_its_own(fresh):
    before = scalars(3)  # fills the pool and takes a key
    child = in_child(lambda: scalars(300))
    assert distinct(before, child, scalars(300))


def test_a_child_draws_its_own_arrays(fresh):
    before = lastbit.uniform_below(WIDE, size=10).tolist()
    child = in_child(lambda: lastbit.uniform_below(WIDE, size=1000).tolist())
    assert distinct(before, child, lastbit.uniform_below(WIDE, size=1000).tolist())


def test_a_child_of_a_parent_without_a_key(fresh):
    assert distinct(in_child(lambda: scalars(300)), scalars(300))


@pytest.mark.evidence
def test_every_child_draws_its_own(fresh):
    before = scalars(3)
    children = [in_child(lambda: scalars(260)) for _ in range(20)]
    assert distinct(before, *children, scalars(260))


def test_grandchildren_draw_their_own(fresh):
    def generation(depth: int) -> list[int]:
        before = scalars(2)
        below = in_child(lambda: generation(depth - 1)) if depth else []
        return [*before, *below, *scalars(300)]

    assert distinct(generation(4))


def test_grandchildren_of_a_child_that_draws_nothing(fresh):
    before = scalars(2)
    grandchild = in_child(lambda: in_child(lambda: scalars(300)))
    assert distinct(before, grandchild, scalars(300))


def test_a_fork_in_a_thread(fresh):
    before = scalars(2)
    found: list[list[int]] = []

    def work() -> None:
        own = scalars(2)
        found.append([*own, *in_child(lambda: scalars(300)), *scalars(300)])

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert len(found) == 1
    assert distinct(before, found[0], scalars(300))


def test_the_child_takes_a_new_key(system, fresh):
    """Not the rest of the old one."""
    seeds = system(SEEDS[0], SEEDS[3])
    fresh.fill(10)
    child = in_child(lambda: [*fresh.fill(1000).tolist(), len(seeds.asked)])
    assert bytes(child[:-1]) == keystream(SEEDS[3], 1000)
    assert child[-1] == 2
    assert fresh.fill(10).tobytes() == keystream(SEEDS[0], 20)[10:]  # the parent goes on
    assert len(seeds.asked) == 1


def test_a_child_without_entropy_draws_nothing(system, fresh):
    scalars(3)

    def work() -> list[int]:
        system(OSError(), OSError(), SEEDS[3])
        for attempt in (lambda: fresh.fill(8), lambda: scalars(1)):
            with pytest.raises(EntropyUnavailable):
                attempt()
        return scalars(256)

    assert distinct(in_child(work), scalars(300))


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_workers_draw_their_own(fresh, method):
    before = scalars(3)
    context: Any = multiprocessing.get_context(method)
    workers = []
    for _ in range(12 if method == "fork" else 3):
        reader, writer = context.Pipe(duplex=False)
        worker = context.Process(target=send_scalars, args=(writer, 300))
        worker.start()
        writer.close()
        workers.append((worker, reader))
    found = []
    for worker, reader in workers:
        found.append(reader.recv())
        reader.close()
        worker.join()
        assert worker.exitcode == 0
    assert distinct(before, *found, scalars(300))


def raw_fork() -> int:
    """The system's own fork, of which Python's hooks hear nothing."""
    return ctypes.PyDLL(None).fork()


class NoPage:
    """A kernel that cannot empty a page in a child."""

    def __init__(self, *arguments: object, **options: object) -> None: ...

    def madvise(self, advice: int) -> None:
        raise OSError("invalid argument")


def only(monkeypatch, *, page: bool, count: bool, pid: bool) -> None:
    """A new stream, with all of the three signs of a fork switched off but those named."""
    if not page:
        flags = {"PAGESIZE": 4096, "MAP_PRIVATE": 2, "MAP_ANONYMOUS": 32}
        monkeypatch.setattr(bits, "mmap", SimpleNamespace(mmap=NoPage, **flags))
    if not count:
        monkeypatch.setattr(bits, "_FORKS", SimpleNamespace(count=0))
    if not pid:
        monkeypatch.setattr(os, "getpid", lambda: 1)
    monkeypatch.setattr(bits._LOCAL, "stream", KeyStream())


def after_a_fork(fork: Callable[[], int]) -> tuple[list[int], list[int]]:
    scalars(3)
    return in_child(lambda: scalars(300), fork=fork), scalars(300)


def wipes_pages() -> bool:
    page = mmap.mmap(-1, mmap.PAGESIZE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    try:
        page.madvise(18)  # MADV_WIPEONFORK
    except OSError:
        return False
    return True


SIGNS = [
    (os.fork, {"page": True, "count": False, "pid": False}),
    (os.fork, {"page": False, "count": True, "pid": False}),
    (os.fork, {"page": False, "count": False, "pid": True}),
    (raw_fork, {"page": True, "count": True, "pid": True}),
    (raw_fork, {"page": True, "count": False, "pid": False}),
    (raw_fork, {"page": False, "count": False, "pid": True}),
    (raw_fork, {"page": False, "count": True, "pid": True}),
]


def describe(value: object) -> str:
    if isinstance(value, dict):
        return "+".join(sign for sign, on in value.items() if on)
    return getattr(value, "__name__", str(value))


@pytest.mark.parametrize(("fork", "signs"), SIGNS, ids=describe)
def test_each_sign_of_a_fork_is_enough(monkeypatch, fork, signs):
    if signs == {"page": True, "count": False, "pid": False} and not wipes_pages():
        pytest.skip("this kernel cannot wipe a page on fork")
    only(monkeypatch, **signs)
    assert distinct(*after_a_fork(fork))


@pytest.mark.parametrize("fork", [os.fork, raw_fork])
def test_without_any_sign_a_child_would_repeat_its_parent(monkeypatch, fork):
    """The mutant these tests must reject."""
    only(monkeypatch, page=False, count=False, pid=False)
    child, parent = after_a_fork(fork)
    assert child == parent


# -- forks in the midst of a draw --


class Pairs:
    """A sampler that asks twice: each draw is two words, and both must be the process's own."""

    def draw(self, source: Bits, size: int) -> NDArray[Any]:
        high, low = words(source, size, np.uint64), words(source, size, np.uint64)
        out = np.empty(size, np.object_)
        out[:] = [h << 64 | w for h, w in zip(high.tolist(), low.tolist(), strict=True)]
        return out


def halves(numbers: list[int]) -> list[int]:
    return [part for number in numbers for part in (number >> 64, number & ((1 << 64) - 1))]


def one(sampler: Pairs) -> list[int]:
    return [draw.drawn(sampler, None)]


def many(sampler: Pairs) -> list[int]:
    return draw.drawn(sampler, 10).tolist()


def fresh_one(sampler: Pairs) -> list[int]:
    return [draw.drawn_fresh(sampler, None)]


# what is drawn, and how much of the pool is used up before
SCENES = [(one, 0), (one, 5), (one, 256), (many, 0), (many, 5), (fresh_one, 5)]


def enter(
    monkeypatch, sampler: Pairs, scene: Callable[[Pairs], list[int]], drawn_before: int
) -> list[int]:
    """A new stream, a pool in the given state; and an array takes more than one block."""
    monkeypatch.setattr(bits._LOCAL, "stream", KeyStream())
    before = [number for _ in range(drawn_before) for number in one(sampler)]
    monkeypatch.setattr(blocks, "BLOCK", 4 if scene is many else BLOCK)
    return before


@pytest.mark.parametrize("nested", [False, True], ids=["", "and the child draws at once"])
@pytest.mark.parametrize(("scene", "drawn_before"), SCENES)
def test_a_fork_at_any_line_of_a_draw(scene, drawn_before, nested, extent):
    """As if a signal handler forked: nothing the child returns is anything the parent returns.

    Only beyond the last look at the stream may both return the draw at hand: it was made before.
    Many forks are made by a small process: one with all tests in it takes five times as long.
    """
    if extent.is_many:
        with multiprocessing.get_context("spawn").Pool(1) as small:
            shared = small.apply(shared_words, (scene, drawn_before, nested, extent))
    else:
        shared = shared_words(scene, drawn_before, nested, extent)
    assert not shared, f"words shared with the parent, by line of the fork: {shared}"


def shared_words(
    scene: Callable[[Pairs], list[int]], drawn_before: int, nested: bool, extent: Extent
) -> dict[int, int]:
    """How many words the child and the parent of a fork share, by its line, where there are any."""
    shared, sampler = {}, Pairs()
    with pytest.MonkeyPatch.context() as patch:
        enter(patch, sampler, scene, drawn_before)
        steps = number_of_steps(lambda: scene(sampler), event="line")
        assert steps > 5
        for at in extent.cases(range(1, steps + 1), one_in=12):
            before = enter(patch, sampler, scene, drawn_before)
            child, parent = forked(lambda: scene(sampler), sampler, at=at, nested=nested)
            common = set(halves(child)) & set(halves([*before, *parent]))
            if common:
                shared[at] = len(common)
            assert distinct(halves([*before, *parent]))
    return shared


def forked(
    work: Callable[[], list[int]], sampler: Pairs, *, at: int, nested: bool
) -> tuple[list[int], list[int]]:
    """What child and parent return, then and later, if a handler forks at a line of `work`."""
    answer, handled = Answer(), [0]

    def fork() -> None:
        handled[0] = os.fork()
        if answer.away() and nested:
            handled.extend(one(sampler))

    try:
        found, trace = interrupted(work, fork, at=at, event="line")
    finally:
        if answer.away():  # and it must never come back, whatever happened
            answer.give(
                lambda: [
                    *(found if trace.last_look >= at else []),
                    *handled[1:],
                    *one(sampler),
                    *many(sampler),
                ]
            )
    child = answer.take(handled[0])
    return child, [*found, *one(sampler), *many(sampler)]


# -- threads, signal handlers, interrupted calls --


def test_threads_have_streams_of_their_own():
    start = threading.Barrier(8)
    streams: list[KeyStream] = []
    found: list[list[int]] = []

    def work() -> None:
        start.wait()
        streams.append(secure_bits())
        found.append([*scalars(2500), *lastbit.uniform_below(WIDE, size=10_000).tolist()])

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8
    assert len({id(stream) for stream in [*streams, secure_bits()]}) == 9
    assert sum(map(len, found)) == 100_000
    assert distinct(*found)


def test_a_signal_handler_may_draw(fresh):
    """A timer fires as often as it can; its handler draws what the loop it interrupts draws."""
    if threading.current_thread() is not threading.main_thread():
        pytest.skip("signals are handled in the main thread only")
    drawn: list[int] = []
    handled: list[int] = []

    def handler(number: int, frame: object) -> None:
        handled.extend(scalars(3))

    before = signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 1e-4, 1e-4)
    try:
        while len(handled) < 3000 and len(drawn) < 200_000:
            drawn.extend(scalars(100))
            drawn.extend(lastbit.uniform_below(WIDE, size=100).tolist())
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert len(handled) > 0
    assert distinct(drawn, handled)


@pytest.mark.thinned(one_in=4)
@pytest.mark.parametrize(("scene", "drawn_before"), SCENES)
def test_a_handler_may_draw_at_any_step_of_a_draw(monkeypatch, scene, drawn_before):
    """The same without chance: at each single opcode."""
    sampler = Pairs()

    def handle(found: list[list[int]]) -> None:
        found.append([*one(sampler), *many(sampler)])

    enter(monkeypatch, sampler, scene, drawn_before)
    steps = number_of_steps(lambda: scene(sampler), event="opcode")
    assert steps > 20
    for at in range(1, steps + 1):
        before = enter(monkeypatch, sampler, scene, drawn_before)
        handled: list[list[int]] = []
        found, _ = interrupted(
            lambda: scene(sampler),
            partial(handle, handled),
            at=at,
            event="opcode",
        )
        after = [*one(sampler), *many(sampler)]
        assert len(handled) == 1
        assert distinct(halves([*before, *found, *handled[0], *after])), f"step {at} of {steps}"


@pytest.mark.thinned(one_in=4)
@pytest.mark.parametrize(("scene", "drawn_before"), SCENES)
def test_a_draw_may_be_interrupted_at_any_step(monkeypatch, scene, drawn_before):
    sampler = Pairs()
    enter(monkeypatch, sampler, scene, drawn_before)
    steps = number_of_steps(lambda: scene(sampler), event="opcode")

    def interrupt() -> None:
        raise KeyboardInterrupt

    for at in range(1, steps + 1):
        before = enter(monkeypatch, sampler, scene, drawn_before)
        with pytest.raises(KeyboardInterrupt):
            interrupted(lambda: scene(sampler), interrupt, at=at, event="opcode")
        after = [*one(sampler), *many(sampler)]
        assert distinct(halves([*before, *after])), f"at step {at} of {steps}"
