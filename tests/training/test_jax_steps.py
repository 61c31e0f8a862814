"""Each call is a step with noise of its own, and none is compiled, saved or restored."""

import copy
import pickle
from functools import lru_cache
from typing import Any

import numpy as np
import pytest

from lastbit.errors import BudgetExceeded, InvalidParameter, LastbitError
from lastbit.training import WholeClip, rounded_gaussian, start_run, training_plan
from tests.training.jax_here import jax, optax

from lastbit.training.arrays import (  # isort: skip  # jax comes first, or the file is skipped
    exact_mean,
    mean,
    noisy_mean,
    noisy_mean_of_parts,
)
from lastbit.training.arrays.clipping import whole_sum  # isort: skip

jnp = jax.numpy
PARAMS = {"bias": jnp.zeros(()), "line": jnp.zeros((2, 3))}
CLIP = WholeClip(norm=1, bound=1000)


@lru_cache
def plan(steps=6):
    return training_plan(examples=8, batch=4, steps=steps, noise_multiplier=2, delta="1e-5")


def rows(count=8, kind=jnp.float32):
    rng = np.random.default_rng(count)
    sizes = {name: (count, *part.shape) for name, part in PARAMS.items()}
    return {name: jnp.asarray(rng.normal(size=s), kind) for name, s in sizes.items()}


@pytest.fixture
def run():
    return start_run(plan())


@pytest.fixture
def silent(monkeypatch):
    """What noise was asked for; there is none."""
    asked = []

    def none(size, deviation):
        asked.append((size, deviation))
        return np.zeros(size, np.int64)

    monkeypatch.setattr(mean, "rounded_gaussian", none)
    return asked


def flat(tree):
    return np.concatenate([np.asarray(leaf, np.float64).ravel() for leaf in jax.tree.leaves(tree)])


# ---------------------------------------------------------------- the step


@pytest.mark.parametrize("kind", [jnp.bfloat16, jnp.float16, jnp.float32])
def test_a_step_is_the_whole_sum_and_noise_over_the_expected_batch(run, silent, kind):
    found = noisy_mean(rows(kind=kind), PARAMS, run, clip=CLIP)
    assert silent == [(7, 2 * CLIP.bound)]
    assert jax.tree.structure(found) == jax.tree.structure(PARAMS)
    assert {leaf.dtype for leaf in jax.tree.leaves(found)} == {jnp.dtype(kind)}
    assert [leaf.shape for leaf in jax.tree.leaves(found)] == [(), (2, 3)]
    expected = whole_sum(rows(kind=kind), CLIP) * float(CLIP.step / 4)
    assert (flat(found) == expected.astype(jnp.dtype(kind)).astype(np.float64)).all()


def test_binary64_stays_binary64(run, silent):
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    try:
        params = {"w": jnp.zeros(3)}
        found = noisy_mean({"w": jnp.ones((8, 3)) / 3}, params, run, clip=CLIP)["w"]
    finally:
        jax.config.update("jax_enable_x64", before)
    assert found.dtype == jnp.float64
    expected = whole_sum(np.ones((8, 3)) / 3, CLIP) * float(CLIP.step / 4)
    assert (np.asarray(found) == expected).all()


def test_noise_is_drawn_anew_and_after_the_step_was_taken(run, monkeypatch):
    drawn, whole = [], rounded_gaussian

    def watched(size, deviation):
        drawn.append(run.steps_taken)
        return whole(size, deviation)

    monkeypatch.setattr(mean, "rounded_gaussian", watched)
    found = [flat(noisy_mean(rows(), PARAMS, run, clip=CLIP)) for _ in range(6)]
    assert drawn == [1, 2, 3, 4, 5, 6]
    assert len({tuple(one) for one in found}) == 6
    with pytest.raises(BudgetExceeded):
        noisy_mean(rows(), PARAMS, run, clip=CLIP)
    assert len(drawn) == 6


def test_an_empty_batch_is_a_step_of_noise_alone(run):
    for empty, mask in ((rows(0), None), (rows(), np.zeros(8, np.bool_))):
        assert flat(noisy_mean(empty, PARAMS, run, norm=1, mask=mask)).any()
    assert flat(noisy_mean_of_parts([], PARAMS, run, norm=1)).any()
    assert run.steps_taken == 3


def test_parts_are_one_step_with_one_noise(run, silent):
    whole, there = rows(), np.arange(8) != 3
    pieces = [
        (jax.tree.map(lambda part, i=i: part[i : i + 4], whole), there[i : i + 4]) for i in (0, 4)
    ]
    found = noisy_mean_of_parts(iter(pieces), PARAMS, run, clip=CLIP)
    assert len(silent) == run.steps_taken == 1
    assert (flat(found) == flat(noisy_mean(whole, PARAMS, run, clip=CLIP, mask=there))).all()


def test_a_part_that_fails_takes_no_step(run):
    def parts():
        yield rows(4), None
        raise MemoryError

    with pytest.raises(MemoryError):
        noisy_mean_of_parts(parts(), PARAMS, run, norm=1)
    gone = rows()
    gone["line"].delete()
    with pytest.raises(RuntimeError, match="deleted"):
        noisy_mean(gone, PARAMS, run, norm=1)
    assert run.steps_taken == 0


# ---------------------------------------------------------------- compiled functions


def under_jit(step):
    return jax.jit(step)(rows())


def under_vmap(step):
    return jax.vmap(step)(jax.tree.map(lambda part: jnp.stack([part, part]), rows()))


def under_scan(step):
    both = jax.tree.map(lambda part: jnp.stack([part, part]), rows())
    return jax.lax.scan(lambda carry, part: (carry, step(part)), 0, both)


def under_pmap(step):
    return jax.pmap(step)(jax.tree.map(lambda part: part[None], rows()))


def under_cond(step):
    return jax.lax.cond(True, step, lambda part: PARAMS, rows())


def under_grad(step):
    return jax.grad(lambda part: flat_sum(step(part)))(rows())


def under_checkpoint(step):
    return jax.grad(lambda part: flat_sum(jax.checkpoint(step)(part)))(rows())


def flat_sum(tree):
    return sum(leaf.sum() for leaf in jax.tree.leaves(tree))


def under_shapes(step):
    return jax.eval_shape(step, rows())


def under_printing(step):
    return jax.make_jaxpr(step)(rows())


def under_tangents(step):
    return jax.jvp(step, (rows(),), (rows(),))


TRACED = [
    *(under_jit, under_vmap, under_scan, under_pmap, under_cond, under_grad, under_checkpoint),
    *(under_shapes, under_printing, under_tangents),
]


@pytest.mark.parametrize("traced", TRACED)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_nothing_is_traced(traced, run):
    transformation = exact_mean(run, norm=1)
    state = transformation.init(PARAMS)
    for step in (
        lambda part: noisy_mean(part, PARAMS, run, norm=1),
        lambda part: transformation.update(part, state, PARAMS)[0],
    ):
        with pytest.raises(InvalidParameter, match=r"traced.*outside of jit, vmap and scan"):
            traced(step)
    assert run.steps_taken == 0


def test_neither_parameters_nor_masks_are_traced(run):
    there = jnp.ones(8, bool)
    for step, given in (
        (lambda params: noisy_mean(rows(), params, run, norm=1), PARAMS),
        (lambda mask: noisy_mean(rows(), PARAMS, run, norm=1, mask=mask), there),
    ):
        with pytest.raises(InvalidParameter, match="traced"):
            jax.jit(step)(given)
    assert run.steps_taken == 0


@pytest.mark.parametrize("compiled", [jax.jit, jax.eval_shape])
def test_gradients_from_outside_are_refused_in_a_compiled_function(compiled, run):
    """Failed before: one noise was compiled in; apply_if_finite looked at raw gradients."""
    outside = rows()

    def step(*_):
        return noisy_mean(outside, PARAMS, run, norm=1)

    with pytest.raises(InvalidParameter, match="traced"):
        compiled(step)(0.0) if compiled is jax.jit else compiled(step, 0.0)
    assert run.steps_taken == 0


def test_what_refusals_are_for(run, monkeypatch):
    """Without them a compiled step has one noise for all its calls, and counts one."""
    monkeypatch.setattr(mean, "check_not_traced", lambda tree: None)
    outside = rows()
    step = jax.jit(lambda _: noisy_mean(outside, PARAMS, run, norm=1))
    assert (flat(step(0.0)) == flat(step(1.0))).all()
    assert run.steps_taken == 1


def test_wrappers_that_compile_are_refused_and_count_nothing(run):
    inner = exact_mean(run, norm=1)
    for wrapped in (
        optax.MultiSteps(inner, 2).gradient_transformation(),
        optax.apply_if_finite(inner, 3),
    ):
        with pytest.raises((LastbitError, TypeError, ValueError)):
            wrapped.update(rows(), wrapped.init(PARAMS), PARAMS)
    assert run.steps_taken == 0


# ---------------------------------------------------------------- optax


def test_a_chain_trains_and_takes_the_mask(run, silent):
    optimizer = optax.chain(exact_mean(run, clip=CLIP), optax.sgd(1.0))
    there = np.arange(8) < 3
    updates, _ = optimizer.update(rows(), optimizer.init(PARAMS), PARAMS, mask=there)
    expected = whole_sum(rows(), CLIP, there) * float(CLIP.step / 4)
    assert (flat(updates) == -expected.astype(np.float32)).all()
    assert optax.apply_updates(PARAMS, updates)["line"].shape == (2, 3)


def test_a_state_that_is_restored_undoes_no_step_and_holds_no_noise(run):
    optimizer = optax.chain(exact_mean(run, norm=1), optax.adam(0.1))
    first = optimizer.init(PARAMS)
    saved = pickle.dumps(jax.tree.map(np.asarray, first))
    assert jax.tree.leaves(first[0]) == []
    found = []
    for _ in range(4):
        updates, later = optimizer.update(rows(), pickle.loads(saved), PARAMS)
        assert jax.tree.leaves(later[0]) == []
        found.append(tuple(flat(updates)))
    assert len(set(found)) == 4
    assert (run.steps_taken, run.steps_left) == (4, 2)
    for copied in (pickle.dumps, copy.deepcopy):
        with pytest.raises((LastbitError, AttributeError, pickle.PicklingError)):
            copied(run)


def test_a_run_in_a_ledger_goes_on_where_it_was(folder):
    def opened():
        return start_run(plan(4), name="jax", ledger="training.ledger", account="demo", block=1)

    from lastbit.tables import Budget

    start_run(
        plan(4),
        name="jax",
        ledger="training.ledger",
        account="demo",
        budget=Budget(epsilon=9, delta="1e-4"),
        block=1,
    )
    for _ in range(2):
        again = opened()
        for _ in range(2):
            noisy_mean(rows(), PARAMS, again, norm=1)
    with pytest.raises(BudgetExceeded):
        noisy_mean(rows(), PARAMS, opened(), norm=1)


def test_gradients_that_would_pass_without_noise_are_refused(run):
    optimizer = optax.masked(exact_mean(run, norm=1), {"bias": False, "line": True})
    with pytest.raises(InvalidParameter, match="would pass without noise"):
        optimizer.update(rows(), optimizer.init(PARAMS), PARAMS)
    assert run.steps_taken == 0


@pytest.mark.parametrize(
    "wrong",
    [
        PARAMS["line"],  # the mean of a batch: its first axis would be taken for examples
        {"bias": jnp.ones(8), "line": jnp.ones((8, 3))},
        {"bias": jnp.ones(8), "line": jnp.ones((8, 3, 2))},
        {"line": jnp.ones((8, 2, 3))},
        {"bias": jnp.ones(8), "line": jnp.ones((8, 2, 3)), "more": jnp.ones(8)},
    ],
)
def test_rows_that_are_no_examples_are_refused(wrong, run):
    with pytest.raises(InvalidParameter, match="like the parameters"):
        noisy_mean(wrong, PARAMS, run, norm=1)
    assert run.steps_taken == 0


def test_what_does_not_fit_is_refused_before_a_step(run, monkeypatch):
    transformation = exact_mean(run, norm=1)
    with pytest.raises(InvalidParameter, match="params are missing"):
        transformation.update(rows(), transformation.init(PARAMS))
    with pytest.raises(InvalidParameter, match="more examples than the plan"):
        noisy_mean(rows(9), PARAMS, run, norm=1)
    with pytest.raises(InvalidParameter, match="more examples than the plan"):
        noisy_mean_of_parts([(rows(5), None)] * 2, PARAMS, run, norm=1)
    for more in ({}, {"norm": 1, "clip": CLIP}, {"norm": "x"}, {"clip": 1}, {"norm": jnp.ones(())}):
        with pytest.raises(LastbitError):
            exact_mean(run, **more)
    without: tuple[Any, ...] = (plan(), None, 3)
    for no_run in without:  # a plan would be a new run at every call
        with pytest.raises(LastbitError, match="start_run"):
            noisy_mean(rows(), PARAMS, no_run, norm=1)
    monkeypatch.setattr(jax, "process_count", lambda: 2)
    with pytest.raises(InvalidParameter, match="train in one process"):
        noisy_mean(rows(), PARAMS, run, norm=1)
    assert run.steps_taken == 0
    padded = rows(16)  # places are not examples
    monkeypatch.undo()
    noisy_mean(padded, PARAMS, run, norm=1, mask=np.arange(16) < 8)
    assert run.steps_taken == 1
