"""From a sampler to one draw, an array or a stream: shapes, types, blocks, pools."""

import inspect
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st
from numpy.typing import NDArray

import lastbit
from lastbit.errors import InvalidParameter
from lastbit.sampling import bits, blocks, draw
from lastbit.sampling.bits import Bits, KeyStream, words
from lastbit.sampling.blocks import BLOCK, drawn_with
from lastbit.sampling.deterministic import Counting, Replay, Seeded
from lastbit.sampling.draw import cached, drawn, drawn_fresh, stream

INTEGERS: dict[str, Callable[..., Any]] = {
    "uniform_below": lambda **size: lastbit.uniform_below(1000, **size),
    "uniform_below, odd": lambda **size: lastbit.uniform_below(10**18 + 1, **size),
    "geometric": lambda **size: lastbit.geometric(5, **size),
    "geometric, large": lambda **size: lastbit.geometric(10**6, **size),
    "discrete_laplace": lambda **size: lastbit.discrete_laplace("1/2", **size),
    "discrete_laplace, large": lambda **size: lastbit.discrete_laplace(10**6, **size),
    "discrete_gaussian": lambda **size: lastbit.discrete_gaussian(variance=2, **size),
    "discrete_gaussian, large": lambda **size: lastbit.discrete_gaussian(variance=10**8, **size),
    "standard_deviation": lambda **size: lastbit.discrete_gaussian(standard_deviation=2, **size),
    "choice": lambda **size: lastbit.choice([1, 2, "1/3"], **size),
    "choice_exp": lambda **size: lastbit.choice_exp([1, 2, "1/3"], rate=2, **size),
}
COINS: dict[str, Callable[..., Any]] = {
    "bernoulli": lambda **size: lastbit.bernoulli("1/3", **size),
    "bernoulli, never": lambda **size: lastbit.bernoulli(0, **size),
    "bernoulli, always": lambda **size: lastbit.bernoulli(1, **size),
    "bernoulli_exp": lambda **size: lastbit.bernoulli_exp("1/3", **size),
}
WIDE: dict[str, Callable[..., Any]] = {
    "uniform_below": lambda **size: lastbit.uniform_below(2**80 + 1, **size),
    "uniform_below, a power": lambda **size: lastbit.uniform_below(2**80, **size),
    "geometric": lambda **size: lastbit.geometric(2**80, **size),
    "discrete_laplace": lambda **size: lastbit.discrete_laplace(2**80, **size),
    "discrete_gaussian": lambda **size: lastbit.discrete_gaussian(variance=2**160, **size),
}
ALL = [
    *((name, sample, int, np.dtype(np.int64)) for name, sample in INTEGERS.items()),
    *((name, sample, bool, np.dtype(np.bool_)) for name, sample in COINS.items()),
    *((f"{name}, wide", sample, int, np.dtype(np.object_)) for name, sample in WIDE.items()),
]
every_sampler = pytest.mark.parametrize(
    ("sample", "scalar", "dtype"), [row[1:] for row in ALL], ids=[row[0] for row in ALL]
)

SIZES: list[tuple[Any, tuple[int, ...]]] = [
    (0, (0,)),
    (1, (1,)),
    (3, (3,)),
    ((), ()),
    ((0,), (0,)),
    ((0, 3), (0, 3)),
    ((3, 0), (3, 0)),
    ((2, 3), (2, 3)),
    ((2, 1, 3), (2, 1, 3)),
    (np.int64(4), (4,)),
    (np.uint8(4), (4,)),
    ((np.int64(2), np.int32(3)), (2, 3)),
]


@every_sampler
def test_one_draw_is_a_python_number(sample, scalar, dtype):
    for _ in range(3):
        assert type(sample()) is scalar
        assert type(sample(size=None)) is scalar


@every_sampler
@pytest.mark.parametrize(("size", "shape"), SIZES, ids=[repr(size) for size, _ in SIZES])
def test_shapes_and_types(sample, scalar, dtype, size, shape):
    array = sample(size=size)
    assert isinstance(array, np.ndarray)
    assert array.shape == shape
    assert array.dtype == dtype
    if dtype == np.object_:
        assert all(type(number) is int for number in array.ravel().tolist())


@every_sampler
def test_arrays_are_the_callers_own(sample, scalar, dtype):
    first = sample(size=5)
    before = first.copy()
    second = sample(size=5)
    second[:] = second[::-1].copy()
    assert (first == before).all()
    assert first.flags.writeable


def test_wide_draws_do_reach_beyond_int64():
    """Each of 40 stays within with probability below 2**-16: all do with less than 2**-600."""
    for name in ("uniform_below", "uniform_below, a power", "geometric", "discrete_laplace"):
        assert max(abs(number) for number in WIDE[name](size=40).tolist()) >= 2**63


def test_an_unknown_sampler_type_is_not_needed():
    """The size is looked at before anything is drawn."""
    with pytest.raises(InvalidParameter, match="size"):
        drawn(Ramp(), -1)


# -- blocks --


class Ramp:
    """0, 1, 2, ... over all its calls, and the sizes it was asked for."""

    def __init__(self) -> None:
        self.asked: list[int] = []

    def draw(self, source: Bits, size: int) -> NDArray[np.int64]:
        start = sum(self.asked)
        self.asked.append(size)
        return np.arange(start, start + size)


@pytest.mark.parametrize(
    "count",
    [
        0,
        1,
        BLOCK - 1,
        BLOCK,
        BLOCK + 1,
        2 * BLOCK,
        2 * BLOCK + 1,
        3 * BLOCK + 5,
    ],
)
def test_blocks_make_up_the_whole(count):
    ramp = Ramp()
    out = drawn_with(ramp, Seeded(1), count)
    assert (out == np.arange(count)).all()
    assert out.size == count
    assert sum(ramp.asked) == count
    assert max(ramp.asked) <= BLOCK
    assert len(ramp.asked) == max(1, -(-count // BLOCK))


@pytest.mark.parametrize("count", [BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK + 5])
def test_every_place_of_every_block_is_filled(count):
    """A place left out would hold what memory held; 64 bits repeat with probability < 2**-28."""
    out = lastbit.uniform_below(2**62, size=count)
    assert out.shape == (count,)
    assert np.unique(out).size == count
    assert lastbit.discrete_laplace(3, size=(count, 1)).shape == (count, 1)


def test_many_dimensions_over_many_blocks():
    ramp = Ramp()
    out = drawn(ramp, (3, BLOCK // 2, 2))
    assert (out == np.arange(3 * BLOCK).reshape(3, BLOCK // 2, 2)).all()


class Widening:
    """int64 at first; from some call on Python integers, for once too large."""

    def __init__(self, wide_from: int) -> None:
        self._calls = 0
        self._wide_from = wide_from

    def draw(self, source: Bits, size: int) -> NDArray[Any]:
        self._calls += 1
        if self._calls <= self._wide_from:
            return np.full(size, self._calls)
        out = np.empty(size, np.object_)
        out[:] = [2**70 + self._calls] * size
        return out


@pytest.mark.parametrize("wide_from", [0, 1, 2, 3])
def test_a_block_beyond_int64_widens_the_whole(monkeypatch, wide_from):
    monkeypatch.setattr(blocks, "BLOCK", 4)
    out = drawn_with(Widening(wide_from), Seeded(1), 14)
    calls = [1] * 4 + [2] * 4 + [3] * 4 + [4] * 2
    assert out.tolist() == [call if call <= wide_from else 2**70 + call for call in calls]
    assert out.dtype == np.object_


def test_a_wide_block_then_a_narrow_one(monkeypatch):
    monkeypatch.setattr(blocks, "BLOCK", 2)

    class Narrowing:
        calls = 0

        def draw(self, source: Bits, size: int) -> NDArray[Any]:
            self.calls += 1
            return np.full(size, self.calls, np.object_ if self.calls == 1 else np.int64)

    out = drawn_with(Narrowing(), Seeded(1), 5)
    assert out.tolist() == [1, 1, 2, 2, 3]
    assert all(type(number) is int for number in out.tolist())


# -- pools --


@pytest.fixture
def fresh(monkeypatch) -> KeyStream:
    new = KeyStream()
    monkeypatch.setattr(bits._LOCAL, "stream", new)
    return new


class Words:
    """64 random bits, and how often it drew."""

    def __init__(self) -> None:
        self.asked: list[int] = []

    def draw(self, source: Bits, size: int) -> NDArray[np.uint64]:
        self.asked.append(size)
        return words(source, size, np.uint64)


def test_single_draws_are_made_ahead(fresh):
    sampler = Words()
    found = [drawn(sampler, None) for _ in range(1000)]
    assert len(set(found)) == 1000
    assert all(type(number) is int for number in found)
    ahead = sampler.asked[0]
    assert ahead > 1
    assert sampler.asked == [ahead] * -(-1000 // ahead)


def test_a_sampler_used_once_draws_nothing_ahead(fresh):
    sampler = Words()
    found = [drawn_fresh(sampler, None) for _ in range(10)]
    assert sampler.asked == [1] * 10
    assert len(set(found)) == 10
    assert drawn_fresh(sampler, (2, 3)).shape == (2, 3)


def test_arrays_do_not_take_from_the_pool(fresh):
    sampler = Words()
    first = drawn(sampler, None)
    array = drawn(sampler, 300).tolist()
    rest = [drawn(sampler, None) for _ in range(300)]
    assert len({first, *array, *rest}) == 601


def test_pools_do_not_mix(fresh):
    """Draws of one law never come out of another's pool."""
    found = [
        (lastbit.uniform_below(10), 10 + lastbit.uniform_below(1), lastbit.uniform_below(2**62))
        for _ in range(600)
    ]
    assert {low for low, _, _ in found} == set(range(10))  # fails by chance: 10 * 0.9**600 < 2**-87
    assert {one for _, one, _ in found} == {10}
    assert len({high for _, _, high in found}) == 600


def test_samplers_beyond_the_most_pools(fresh):
    """Pools are given up, never handed out twice."""
    samplers = [Words() for _ in range(200)]
    found = [drawn(sampler, None) for _ in range(5) for sampler in samplers]
    assert len(set(found)) == 1000
    assert 1 <= held() <= draw._MOST_POOLS


def held() -> int:
    """How many pools the stream of this thread holds."""
    source = bits.secure_bits()
    return len(source.life().pools)


def test_few_samplers_keep_their_pools(fresh):
    samplers = [Words() for _ in range(draw._MOST_POOLS)]
    for _ in range(5):
        for sampler in samplers:
            drawn(sampler, None)
    assert all(len(sampler.asked) == 1 for sampler in samplers)


def test_equal_parameters_share_their_tables():
    calls: list[object] = []

    def prepare(parameter: object) -> object:
        calls.append(parameter)
        return parameter

    def looked_up(parameter: Any) -> object:
        hash(parameter)
        return prepare(parameter)

    looked_up.__wrapped__ = prepare  # type: ignore[attr-defined]
    assert cached(looked_up, 3) == 3
    assert cached(looked_up, [3]) == [3]  # what cannot be looked up goes past the cache
    assert calls == [3, [3]]


def test_one_and_true_do_not_share_tables():
    """1 == True and their hashes agree; a cache that forgets types would let True pass."""
    assert lastbit.uniform_below(1) == 0
    assert lastbit.bernoulli(1) is True
    lastbit.discrete_laplace(1)
    for sample in (lastbit.uniform_below, lastbit.bernoulli, lastbit.discrete_laplace):
        with pytest.raises(InvalidParameter):
            sample(True)


# -- streams --


@pytest.mark.parametrize(
    ("total", "block"), [(0, 5), (1, 5), (5, 5), (6, 5), (23, 5), (3, 1), (np.int64(7), np.int8(3))]
)
def test_streams_add_up(total, block):
    pieces = list(stream(lastbit.discrete_laplace, 5, total=total, block=block))
    sizes = [piece.size for piece in pieces]
    assert sum(sizes) == total
    assert all(size == block for size in sizes[:-1])
    assert all(0 < size <= block for size in sizes)


@pytest.mark.evidence
def test_a_stream_in_its_usual_blocks():
    total = 3 * BLOCK + 17
    pieces = list(stream(lastbit.uniform_below, 2**62, total=total))
    assert [piece.size for piece in pieces] == [BLOCK] * 3 + [17]
    assert np.unique(np.concatenate(pieces)).size == total  # by chance not, with < 2**-27


def test_a_stream_draws_only_what_is_asked_for():
    asked: list[int] = []

    def sample(parameter: str, *, size: int) -> NDArray[np.int64]:
        assert parameter == "p"
        asked.append(size)
        return np.zeros(size, np.int64)

    pieces: Iterator[NDArray[Any]] = stream(sample, "p", total=10**15, block=3)
    assert asked == []
    next(pieces)
    next(pieces)
    assert asked == [3, 3]


@given(st.integers(0, 200), st.integers(1, 60))
def test_any_stream_adds_up(total, block):
    def sample(*, size: int) -> NDArray[np.int64]:
        return np.zeros(size, np.int64)

    assert sum(piece.size for piece in stream(sample, total=total, block=block)) == total


# -- the sources that are not random --


def test_deterministic_sources_repeat_themselves():
    assert Seeded(5).fill(50).tolist() == Seeded(5).fill(50).tolist()
    assert Seeded(5).fill(50).tolist() != Seeded(6).fill(50).tolist()
    counting = Counting(Replay([np.arange(3, dtype=np.uint16), np.zeros(1, np.uint8)]))
    assert counting.fill(6).view(np.uint16).tolist() == [0, 1, 2]
    assert (counting.bytes, counting.requests) == (6, 1)
    with pytest.raises(AssertionError, match="the tape holds 1"):
        counting.fill(2)


def public_functions() -> list[Callable[..., Any]]:
    rooms = [lastbit, lastbit.sampling]
    names = [(room, name) for room in rooms for name in room.__all__]
    return [f for f in (getattr(room, name) for room, name in names) if inspect.isfunction(f)]


@pytest.mark.parametrize("function", public_functions(), ids=lambda function: function.__name__)
def test_no_public_function_takes_a_source_of_bits(function):
    for parameter in inspect.signature(function).parameters.values():
        text = f"{parameter.name}: {parameter.annotation}"
        assert not any(word in text for word in ("Bits", "bits", "KeyStream", "seed", "rng")), text
    # to public functions, which refuse what they do not know
    passes_on = function in (
        lastbit.stream,
        lastbit.distance_to_instability,
        lastbit.calibrated,
        lastbit.private_median,
        lastbit.private_quantile,
        lastbit.private_trimmed_mean,
        lastbit.private_variance,
    )
    assert passes_on or not any(
        parameter.kind is parameter.VAR_KEYWORD
        for parameter in inspect.signature(function).parameters.values()
    )


def test_there_are_public_functions_to_check():
    assert {"uniform_below", "choice_exp", "stream"} <= {f.__name__ for f in public_functions()}


def test_the_namespace_does_not_lead_to_a_predictable_source():
    """In a new process: here the tests themselves have imported it."""
    program = """
import sys
import lastbit, lastbit.exact, lastbit.laws, lastbit.sampling
from lastbit import *
lastbit.discrete_gaussian(variance=5)
lastbit.choice_exp([1, 2])
assert "lastbit.sampling.deterministic" not in sys.modules
for room in (lastbit, lastbit.exact, lastbit.laws, lastbit.sampling):
    for name in ("deterministic", "Seeded", "Replay", "Counting", "KeyStream"):
        assert not hasattr(room, name), (room, name)
    assert "Bits" not in room.__all__, room
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=120)
