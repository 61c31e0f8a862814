"""The exact samplers against numpy's floating-point ones, the cipher below them, and the peers.

numpy is the default generator (PCG64) in its normal use: float64 out, not private, not secure.
lastbit's draws are int64, exact, from AES-256-CTR. Vectors have 10^6 elements.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from measure import Call, Measurement, Step, Target, least, repeated
from sampling_parallel import streaming, threads
from sampling_peers import against_peers, candidates

import lastbit as lb
from lastbit.sampling.bits import secure_bits

TITLE = "Exact samplers: time of one draw"
SIZE = 10**6
SCALAR_CALLS = 10_000

LAPLACE = ((1, 0.5), (10, 0.5), (100, 0.5), (1000, 0.5), (10**6, 1), (2**40, 1.5))
GAUSSIAN = ((1, 1), (10, 1), (100, 1), (1000, 2), (10**6, 4), (2**40, 4))
NAMES = {10**6: "10^6", 2**40: "2^40"}


def steps(*, peers: bool) -> list[Step]:
    """Everything this benchmark measures, in the order of the table."""
    own = [
        Step(title="discrete_laplace", run=laplace),
        Step(title="discrete_gaussian", run=gaussian),
        Step(title="other laws", run=other_laws),
        Step(title="scalar draws", run=scalars),
        Step(title="preparing new scales", run=preparation),
        Step(title="a stream of 10^8 draws", run=streaming),
        Step(title="two threads", run=threads),
        Step(title="the cipher below", run=floor),
    ]
    return [*own, *against_peers()] if peers else own


# ---------------------------------------------------------------- vectors


def laplace() -> list[Measurement]:
    generator = np.random.default_rng()
    return [
        against(
            partial(lb.discrete_laplace, scale, size=SIZE),
            partial(generator.laplace, scale=scale, size=SIZE),
            section="discrete_laplace, 10^6 draws",
            what=f"scale {NAMES.get(scale, scale)}",
            reference_name="numpy laplace",
            target=Target(limit=limit, of="ratio"),
        )
        for scale, limit in LAPLACE
    ]


def gaussian() -> list[Measurement]:
    generator = np.random.default_rng()
    return [
        against(
            partial(lb.discrete_gaussian, standard_deviation=scale, size=SIZE),
            partial(generator.normal, scale=scale, size=SIZE),
            section="discrete_gaussian, 10^6 draws",
            what=f"σ = {NAMES.get(scale, scale)}",
            reference_name="numpy normal",
            target=Target(limit=limit, of="ratio"),
        )
        for scale, limit in GAUSSIAN
    ]


def other_laws() -> list[Measurement]:
    generator = np.random.default_rng()
    row = partial(against, section="other laws, 10^6 draws", reference_name="numpy")
    weights = generator.integers(1, 1000, 1000)
    shares = weights / weights.sum()
    scores = candidates()
    return [
        row(
            partial(lb.bernoulli, "1/3", size=SIZE),
            lambda: generator.random(SIZE) < 1 / 3,
            what='bernoulli("1/3")',
            target=Target(limit=2),
        ),
        row(
            partial(lb.geometric, 100, size=SIZE),
            partial(generator.geometric, -np.expm1(-1 / 100), size=SIZE),
            what="geometric(100)",
        ),
        row(
            partial(lb.uniform_below, 6, size=SIZE),
            partial(generator.integers, 6, size=SIZE),
            what="uniform_below(6)",
        ),
        row(
            partial(lb.uniform_below, 10**18, size=SIZE),
            partial(generator.integers, 10**18, size=SIZE),
            what="uniform_below(10^18)",
        ),
        row(
            partial(lb.choice, weights, size=SIZE),
            partial(generator.choice, weights.size, p=shares, size=SIZE),
            what="choice, 1000 weights",
        ),
        row(
            partial(lb.choice_exp, scores, rate="1/10"),
            lambda: np.argmax(scores / 10 + generator.gumbel(size=scores.size)),
            what="choice_exp, per candidate",
            count=scores.size,
        ),
    ]


def against(ours: Call, reference: Call, *, count: int = SIZE, **row: Any) -> Measurement:
    """Both calls in turns, in time per draw."""
    our_time, reference_time = least(ours, reference)
    return Measurement(ours=our_time / count, reference=reference_time / count, **row)


# ---------------------------------------------------------------- one at a time


def scalars() -> list[Measurement]:
    generator = np.random.default_rng()
    pairs: dict[str, tuple[Call, Call]] = {
        "discrete_laplace(10)": (partial(lb.discrete_laplace, 10), generator.laplace),
        "discrete_gaussian(σ = 10)": (
            partial(lb.discrete_gaussian, standard_deviation=10),
            generator.normal,
        ),
        'bernoulli("1/3")': (partial(lb.bernoulli, "1/3"), generator.random),
        "uniform_below(6)": (partial(lb.uniform_below, 6), partial(generator.integers, 6)),
    }
    return [
        against(
            repeated(ours, SCALAR_CALLS),
            repeated(reference, SCALAR_CALLS),
            count=SCALAR_CALLS,
            section="one scalar call",
            what=what,
            reference_name="numpy",
            target=Target(limit=3_000),
        )
        for what, (ours, reference) in pairs.items()
    ]


def preparation() -> list[Measurement]:
    """A call with a scale never seen before: the slowest of several scales, and the next call."""
    row = partial(Measurement, section="first call with a new scale")
    laws = {
        "Laplace, scale near 2^40": (_laplace_of, 2**40),
        "Gaussian, σ near 127": (_gaussian_of, 127),
        "Gaussian, σ near 2^40": (_gaussian_of, 2**40),
    }
    rows = []
    for what, (draw, size) in laws.items():
        fresh = max(first_use(draw, size) for _ in range(8))
        rows.append(row(what=what, ours=fresh, target=Target(limit=20e6)))
    (again,) = least(partial(_laplace_of, 2**40))
    return [*rows, row(what="Laplace, scale 2^40, again", ours=again)]


def first_use(draw: Callable[[str], object], size: int) -> float:
    """Nanoseconds of a first draw at a random scale near `size`.

    Each spelling of the number is new to the caches; the least of them is free of the machine's
    noise.
    """
    digits = f"{size}.{int.from_bytes(os.urandom(3)):08d}1"
    spellings = iter(digits + "0" * zeros for zeros in range(8))
    return least(lambda: draw(next(spellings)), repeats=7)[0]


def _laplace_of(scale: Any) -> object:
    return lb.discrete_laplace(scale, size=1)


def _gaussian_of(deviation: Any) -> object:
    return lb.discrete_gaussian(standard_deviation=deviation, size=1)


# ---------------------------------------------------------------- below


def floor() -> list[Measurement]:
    """Eight random bytes, in requests of a megabyte: lastbit's stream, its cipher, the system."""
    size = 1 << 20
    zeros, buffer = bytes(size), bytearray(size + 16)
    cipher = Cipher(algorithms.AES(os.urandom(32)), modes.CTR(bytes(16))).encryptor()
    bits = secure_bits()
    ours, bare, system = least(
        lambda: bits.fill(size),
        lambda: cipher.update_into(zeros, buffer),
        lambda: os.urandom(size),
    )
    row = partial(Measurement, section="8 random bytes", ours=8 * ours / size)
    return [
        row(what="against bare AES-256-CTR", reference=8 * bare / size),
        row(what="against os.urandom", reference=8 * system / size),
    ]
