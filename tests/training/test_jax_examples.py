"""Gradients of single examples, whether one changes another, and batches by coins."""

import subprocess
import sys

import numpy as np
import pytest

from lastbit.errors import InvalidParameter, LastbitError
from lastbit.training import PoissonSample, training_plan
from tests.training.jax_here import jax

from lastbit.training.arrays import (  # isort: skip  # jax comes first, or the file is skipped
    batches,
    check_isolated,
    per_example_gradients,
)

jnp = jax.numpy
RNG = np.random.default_rng(5)
PARAMS = {
    "first": jnp.asarray(RNG.normal(size=(3, 16)), jnp.float32),
    "second": jnp.asarray(RNG.normal(size=(16, 4)), jnp.float32),
}


def loss(params, x, y):
    return -jax.nn.log_softmax(jnp.tanh(x @ params["first"]) @ params["second"])[y]


def batch(count=12):
    return jnp.asarray(RNG.normal(size=(count, 3)), jnp.float32), jnp.arange(count) % 4


def test_rows_are_the_gradients_of_single_examples():
    found, (x, y) = per_example_gradients(loss), batch()
    rows = found(PARAMS, x, y)
    for i in range(len(x)):
        alone = jax.grad(loss)(PARAMS, x[i], y[i])
        for name in PARAMS:
            np.testing.assert_allclose(rows[name][i], alone[name], rtol=1e-4, atol=1e-6)
    none = found(PARAMS, x[:0], y[:0])
    assert {name: part.shape for name, part in none.items()} == {
        "first": (0, 3, 16),
        "second": (0, 16, 4),
    }


def test_what_an_example_holds_changes_no_bit_of_others():
    found = per_example_gradients(loss)
    for count in (2, 3, 12, 64):
        check_isolated(lambda *rows: found(PARAMS, *rows), *batch(count))
    halves = jax.tree.map(lambda part: part.astype(jnp.bfloat16), PARAMS)
    x, y = batch(32)
    check_isolated(lambda *rows: found(halves, *rows), x.astype(jnp.bfloat16), y)


def mixed(x, y):
    """Batch normalisation, by hand."""
    return per_example_gradients(loss)(PARAMS, (x - x.mean(axis=0)) / x.std(axis=0), y)


def contaminated(x, y):
    """Equal for finite numbers: a row that is picked by products with 0 and 1."""
    return per_example_gradients(loss)(PARAMS, jnp.eye(len(x)) @ x, y)


@pytest.mark.parametrize("wrong", [mixed, contaminated])
def test_what_mixes_examples_is_seen(wrong):
    with pytest.raises(InvalidParameter, match="lets one example change the gradient of another"):
        check_isolated(wrong, *batch())
    check_isolated(wrong, *batch(1))


# ---------------------------------------------------------------- batches


@pytest.fixture
def plan():
    return training_plan(examples=20, batch=5, steps=40, noise_multiplier=1, delta="1e-5")


def test_a_batch_is_its_examples_and_then_zeros(plan, monkeypatch):
    drawn, whole = [], PoissonSample.batch

    def watched(self):
        drawn.append(whole(self))
        return drawn[-1]

    monkeypatch.setattr(PoissonSample, "batch", watched)
    x, y = np.arange(1, 41).reshape(20, 2), {"label": jnp.arange(1, 21, dtype=jnp.int32)}
    sizes = set()
    for own, labels, mask in batches(plan, x, y, multiple=4):
        numbers = drawn[-1]
        sizes.add(len(mask))
        assert len(own) == len(mask) == len(labels["label"])
        assert mask.dtype == np.bool_
        assert mask.tolist() == [i < len(numbers) for i in range(len(mask))]
        assert (own[mask] == x[numbers]).all()
        assert (labels["label"][mask] == numbers + 1).all()
        assert not own[~mask].any()
        assert not labels["label"][~mask].any()
    assert len(drawn) == plan.steps
    assert {size % 4 for size in sizes} == {0}
    assert sizes <= {4, 8, 12, 16}


def test_an_empty_batch_has_places_that_are_empty():
    plan = training_plan(examples=2, batch="1/1000", steps=3, noise_multiplier=2, delta="1e-5")
    masks = [mask for _, mask in batches(plan, np.ones((2, 3)), multiple=8)]
    assert [len(mask) for mask in masks] == [8, 8, 8]
    assert not np.any(masks)


def test_what_is_not_the_data_of_the_plan_is_refused(plan):
    for data in ((), (np.ones(19),), (np.ones(20), np.ones(21)), (np.float64(1),)):
        with pytest.raises(InvalidParameter, match="examples than the plan is for"):
            batches(plan, *data)
    for more in ({"multiple": 0}, {"steps": -1}):
        with pytest.raises(LastbitError):
            batches(plan, np.ones(20), **more)
    assert len(list(batches(plan, np.ones(20), steps=3))) == 3


def test_nothing_else_knows_jax():
    code = (
        "import sys, lastbit, lastbit.training\n"
        "lastbit.training.start_run; lastbit.training.clipped_sum; lastbit.training.arrays\n"
        "print([name for name in ('jax', 'optax', 'ml_dtypes') if name in sys.modules])\n"
        "lastbit.training.arrays.noisy_mean\n"
        "print([name for name in ('jax', 'optax') if name in sys.modules])\n"
    )
    code = code.replace("lastbit.training\n", "lastbit.training.arrays\n", 1)
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout == "[]\n['jax']\n"
