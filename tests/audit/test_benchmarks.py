"""The benchmarks are what their papers define, and the losses said of them are true."""

import math
from fractions import Fraction

import numpy as np
import pytest
from auditing.benchmarks import Benchmark, benchmark, benchmarks

from lastbit.errors import InvalidParameter
from lastbit.sampling.deterministic import Seeded
from tests.laws.frequency import assert_frequency

SIZE = 40_000


def draw(name: str, value, size: int = SIZE, seed: int = 1) -> np.ndarray:
    return benchmark(name).sampler(value, size, Seeded(seed))


def test_all_are_there():
    names = [b.name for b in benchmarks()]
    assert len(names) == len(set(names)) == 22
    assert [b.name for b in benchmarks() if b.source == "lastbit"] == [
        "exact Laplace",
        "exact histogram",
        "exact response",
    ]
    with pytest.raises(InvalidParameter):
        benchmark("nothing")


@pytest.mark.parametrize("found", benchmarks(), ids=lambda b: b.name)
def test_each_draws_as_many_as_asked(found: Benchmark):
    for x, y in found.pairs[:2]:
        for value in (x, y):
            assert len(found(value, 5)) == 5
    if found.source != "lastbit" and found.name != "snapped Laplace":
        one, two = (found.sampler(found.pairs[0][0], 7, Seeded(3)) for _ in range(2))
        assert np.array_equal(one, two)


def tail(outputs, low: float) -> int:
    return int((np.asarray(outputs).ravel() >= low).sum())


@pytest.mark.parametrize(("name", "scale"), [("float Laplace", 10.0), ("histogram 2", 0.1)])
def test_laplace_noise_has_its_scale(name, scale):
    outputs = draw(name, 1.0)
    for far in (0.0, 0.5, 2.0):
        share = math.exp(-far) / 2
        assert_frequency(tail(outputs, 1 + far * scale), trials=SIZE, probability=share)
        assert_frequency(tail(2 - outputs, 1 + far * scale), trials=SIZE, probability=share)
    # a mutant: a scale off by a tenth
    with pytest.raises(AssertionError):
        share = math.exp(-2.0 / 1.1) / 2
        assert_frequency(tail(outputs, 1 + 2 * scale), trials=SIZE, probability=share)


def test_prefix_sums_are_sums_of_noisy_entries():
    outputs = draw("prefix sums", [3.0, 4.0])
    second = outputs[:, 1] - outputs[:, 0]
    assert_frequency(tail(second, 4.0), trials=SIZE, probability=0.5)
    assert_frequency(tail(second, 14.0), trials=SIZE, probability=math.exp(-1) / 2)


def test_noisy_maxima():
    assert_frequency(
        int((draw("noisy max 1", np.zeros(5)) == 2).sum()), trials=SIZE, probability=0.2
    )
    # all noise negative, and no noise above t: independent entries
    low = int((draw("noisy max 3", np.zeros(5)) < 0).sum())
    assert_frequency(low, trials=SIZE, probability=2.0**-5)
    small = int((draw("noisy max 4", np.zeros(5)) < 20).sum())
    assert_frequency(small, trials=SIZE, probability=(1 - math.exp(-1)) ** 5)
    assert (draw("noisy max 4", np.full(5, 2.0)) >= 2).all()


def test_sparse_vectors_stop_after_their_answers():
    for name, most in (("sparse vector 1", 1), ("sparse vector 4", 1), ("sparse vector 2", 1)):
        outputs = draw(name, np.ones(10), 2000)
        assert set(np.unique(outputs)) == {-1.0, 0.0, 1.0}
        above = (outputs == 1).sum(axis=1)
        assert above.max() == most
        first = np.where(above > 0, (outputs == 1).argmax(axis=1), 10)
        assert all((outputs[i, first[i] + 1 :] == -1).all() for i in range(2000))
    parallel = draw("parallel sparse vector", np.ones(10), 2000)
    assert parallel.shape == (2000, 20)
    assert ((parallel[:, 10:] == 1).sum(axis=1) <= 2).all()
    assert (draw("sparse vector 6", np.ones(10), 2000) == 1).sum(axis=1).max() == 10


def test_the_fifth_publishes_an_order():
    outputs = draw("sparse vector 5", np.array([0.0, 2.0]), 5000)
    assert not ((outputs[:, 0] == 1) & (outputs[:, 1] == 0)).any()
    # P[0 < rho + 1 <= 2] for Laplace noise of scale 20
    between = int(((outputs[:, 0] == 0) & (outputs[:, 1] == 1)).sum())
    assert_frequency(between, trials=5000, probability=1 - math.exp(-1 / 20))
    exact = benchmark("sparse vector 5").exact
    assert exact is not None
    assert exact([0.0, 2.0], [1.0, 1.0]) == math.inf
    assert exact([1.0, 1.0], [2.0, 2.0]) == pytest.approx(0.05)
    with pytest.raises(InvalidParameter):
        exact([1.0, 1.0], [0.0, 2.0])


def test_numbers_are_published_above_only():
    outputs = draw("sparse vector 3", np.ones(10), 2000)
    answered = ~np.isin(outputs, [-1000.0, -2000.0])
    assert (answered.sum(axis=1) <= 1).all()
    numeric = draw("numerical sparse vector", np.ones(10), 2000)
    assert ((~np.isin(numeric, [0.0, -2000.0])).sum(axis=1) <= 2).all()


def test_rappor_flips_bits():
    found = benchmark("RAPPOR")
    x, y = found.pairs[0]
    outputs = draw("RAPPOR", x)
    set_bits = np.sort(outputs.mean(axis=0))
    assert (set_bits[:16] < 0.5).all()
    assert (set_bits[16:] > 0.5).all()
    for bit in outputs.T:
        share = 0.525 if bit.mean() > 0.5 else 0.475
        assert_frequency(int(bit.sum()), trials=SIZE, probability=share)
    assert found.exact is not None
    assert found.exact(x, y) == pytest.approx(8 * math.log(0.525 / 0.475), rel=1e-14)
    assert found.truth == found.epsilon
    assert found.exact(x, y) <= found.epsilon


def test_the_truncated_geometric_law_is_rational():
    found = benchmark("truncated geometric")
    outputs = draw("truncated geometric", 2)
    # P[0] = 32**2 * 33**3 / (65 * 33**4), from the paper's table
    assert_frequency(
        int((outputs == 0).sum()), trials=SIZE, probability=32**2 * 33**3 / (65 * 33**4)
    )
    assert outputs.min() == 0
    assert outputs.max() == 5
    assert found.exact is not None
    losses = [found.exact(x, y) for x, y in found.pairs] + [
        found.exact(y, x) for x, y in found.pairs
    ]
    assert max(losses) == pytest.approx(math.log(33 / 32), rel=1e-14)
    assert found.truth is not None
    assert max(losses) <= found.truth <= Fraction(1, 10)


def test_closed_losses():
    for name, loss in (("histogram 1", Fraction(1, 10)), ("histogram 2", Fraction(10))):
        found = benchmark(name)
        assert found.exact is not None
        assert [found.exact(x, y) for x, y in found.pairs] == [loss, loss]
    sums = benchmark("prefix sums")
    assert sums.exact is not None
    assert max(sums.exact(x, y) for x, y in sums.pairs) == sums.truth == 1


@pytest.mark.parametrize("name", ["snapped Laplace", "exact Laplace", "exact response"])
def test_exact_laws_come_close_to_true_claims_and_never_exceed_them(name):
    found = benchmark(name)
    assert found.correct
    assert found.exact is not None
    loss = found.exact(*found.pairs[0])
    assert loss > 0.0999
    assert Fraction(loss) <= found.epsilon
