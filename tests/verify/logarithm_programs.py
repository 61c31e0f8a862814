"""Programs that draw noise by logarithms and round it: right ones, and wrong twins."""

from __future__ import annotations

from typing import Any


def noise(run, scale):
    return run.sign() * (scale * run.ln(run.uniform()))


def geometric(run, queries):
    run.emit(queries[0] + run.round_to(noise(run, 1.0), 1))


def snapped(run, queries):
    """The snapping mechanism, for each query."""
    for query in queries:
        total = run.clamp(query, -64, 64) + run.sign() * (run.ln(run.uniform()) / 1.0)
        run.emit(run.clamp(run.round_to(total, 1), -64, 64))


def rounded_sum(run, values):
    run.emit(run.round_to(sum(values) + noise(run, 3.0), 0.5))


def two_sided(run, values):
    """A two-sided exponential, clamped before and after."""
    total = run.clamp(values[0] + values[1], -8, 8) - noise(run, 2.0)
    run.emit(run.clamp(run.round_to(total, 0.25), -8.0, 8.0))


def snapped_threshold(run, queries):
    """What was released is compared: that costs nothing."""
    told = run.round_to(queries[0] + noise(run, 1.0), 1)
    run.emit(told)
    run.emit(1 if told >= 10 else 0)


def mixed(run, queries):
    """A limit by a logarithm, noise on the grid, and a sum that is rounded."""
    limit = 10 + run.round_to(noise(run, 4.0), 1)
    if queries[0] + run.laplace(8) >= limit:
        run.emit(run.round_to(queries[1] + noise(run, 2.0), 1))
    else:
        run.emit(0)


def unseen(run, queries):
    told = queries[0] + run.round_to(noise(run, 1.0), 1)
    run.round_to(queries[0] + noise(run, 0.25), 1)
    run.emit(told)


def to_and_fro(run, queries):
    told = run.round_to(queries[0] + noise(run, 1.0), 1)
    run.emit((told + queries[0]) - queries[0])


def two_unseen(run, queries):
    for _ in queries:
        run.round_to(noise(run, 1.0), 0.25)
        run.round_to(noise(run, 1.0), 0.25)
    run.emit(0)


RIGHT: dict[Any, dict[str, Any]] = {
    geometric: {"inputs": 1},
    snapped: {"inputs": 1, "grid": "1/1024"},
    rounded_sum: {"inputs": 3, "grid": "1/2"},
    two_sided: {"inputs": 2, "grid": "1/8"},
    snapped_threshold: {"inputs": 1, "grid": "1/4"},
    mixed: {"inputs": 2},
}


# ---------------------------------------------------------------- wrong


def little(run, queries):
    run.emit(queries[0] + run.round_to(noise(run, 0.5), 1))


def coarse(run, queries):
    """Noise of a step that is wider than the inputs': their rest is told."""
    run.emit(queries[0] + run.round_to(noise(run, 2.0), 2))


def one_sign(run, queries):
    run.emit(queries[0] + run.round_to(1.0 * run.ln(run.uniform()), 1))


def not_rounded(run, queries):
    run.emit(queries[0] + noise(run, 1.0))


def compared(run, queries):
    run.emit(1 if queries[0] + noise(run, 1.0) >= 10 else 0)


def used_twice(run, queries):
    u, s = run.uniform(), run.sign()
    run.emit(queries[0] + run.round_to(s * (1.0 * run.ln(u)), 1))
    run.emit(queries[0] + run.round_to(s * (1.0 * run.ln(u)), 1))


def uniform_told(run, queries):
    u, s = run.uniform(), run.sign()
    run.emit(queries[0] + run.round_to(s * (1.0 * run.ln(u)), 1))
    run.emit(u)


def sign_told(run, queries):
    u, s = run.uniform(), run.sign()
    run.emit(s)
    run.emit(queries[0] + run.round_to(s * (1.0 * run.ln(u)), 1))


def of_a_sum(run, queries):
    run.emit(queries[0] + run.round_to(run.sign() * run.ln(run.uniform() + 1.0), 1))


def released_twice(run, queries):
    for _ in range(2):
        run.emit(run.round_to(queries[0] + noise(run, 1.0), 1))


def doubled(run, queries):
    run.emit(run.round_to(queries[0] + queries[0] + noise(run, 1.0), 1))


def released_and_told(run, queries):
    told = run.round_to(queries[0] + noise(run, 1.0), 1)
    run.emit(told - queries[0])


def thirds(run, queries):
    run.emit(queries[0] + run.round_to(noise(run, 1.0), 3))


def clamped_bare(run, queries):
    run.emit(run.clamp(queries[0], -8, 8))


def sign_only(run, queries):
    run.emit(queries[0] + run.round_to(run.sign() * run.sign() * run.ln(run.uniform()), 1))


def scaled_draw(run, queries):
    run.emit(queries[0] + 2.0 * run.round_to(noise(run, 1.0), 1))


def with_a_draw(run, queries):
    run.emit(run.round_to(queries[0] + run.laplace(1) + noise(run, 1.0), 1))


def product(run, queries):
    run.emit(run.round_to(queries[0] + run.sign() * (run.ln(run.uniform()) * queries[0]), 1))


def clamped_far_out(run, queries):
    """Its sums are beyond 2**53 steps: they are rounded, by what was put in."""
    far = run.round_to(run.clamp(queries[0], 2.0**60, 2.0**61) + noise(run, 1.0), 1)
    run.emit((far + queries[0]) - queries[0])


WRONG: list[tuple[Any, dict[str, Any], str]] = [
    (little, {}, "^SEQ: "),
    (coarse, {}, "^EMIT: "),
    (one_sign, {}, "without one fair sign"),
    (not_rounded, {}, "does not round it"),
    (compared, {}, "does not round it"),
    (used_twice, {}, "one uniform or sign twice|without one fair sign"),
    (uniform_told, {}, "a uniform or a sign of noise that is rounded"),
    (sign_told, {}, "a uniform or a sign of noise that is rounded"),
    (of_a_sum, {}, "without one fair sign"),
    (released_twice, {}, "^SEQ: "),
    (doubled, {}, "^SEQ: "),
    (released_and_told, {}, "^EMIT: "),
    (thirds, {}, "^ROUND: "),
    (clamped_bare, {}, "round it first"),
    (sign_only, {}, "no logarithm times numbers and a sign"),
    (scaled_draw, {}, "round it first"),
    (with_a_draw, {}, "another draw"),
    (product, {}, "without one fair sign"),
    (clamped_far_out, {}, "^RANGE: "),
    (rounded_sum, {"inputs": 4, "epsilon": 2, "grid": 1}, "is not a multiple of the grid"),
]


# ---------------------------------------------------------------- calls with nonsense


def step_zero(run, queries):
    run.emit(queries[0] + run.round_to(noise(run, 1.0), 0))


def step_negative(run, queries):
    run.emit(queries[0] + run.round_to(noise(run, 1.0), -1))


def scale_zero(run, queries):
    run.emit(queries[0] + run.round_to(noise(run, 0.0), 1))


def scale_huge(run, queries):
    run.emit(queries[0] + run.round_to(noise(run, 1e300), 1))


def ends_turned(run, queries):
    run.emit(run.round_to(run.clamp(queries[0], 8, -8) + noise(run, 1.0), 1))


def nothing_to_round(run, queries):
    run.emit(run.round_to(queries[0], 1))


def divided_by_a_query(run, queries):
    """What is not used fails too, at one query."""
    _ = queries[0] / (queries[0] - 12345.0)
    run.emit(queries[0] + run.laplace(1))


def divided_by_a_draw(run, queries):
    noisy = queries[0] + run.laplace(1)
    _ = noisy / (noisy - 12345.0)
    run.emit(noisy)


def divided_by_zero(run, queries):
    run.emit(queries[0] + run.round_to(noise(run, 1.0) / 0.0, 1))


def asserting(run, queries):
    assert queries[0] >= 0
    run.emit(queries[0] + run.laplace(1))


BAD = [
    *(step_zero, step_negative, scale_zero, scale_huge, ends_turned, nothing_to_round),
    *(divided_by_a_query, divided_by_a_draw, divided_by_zero, asserting),
]
