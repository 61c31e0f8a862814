"""The fused operation that the interpreter is given, against rational numbers."""

import random
from fractions import Fraction

import numpy as np

from tests.evidence import Extent
from tests.training.gpu.fused import fused


def test_the_fused_operation_rounds_once(extent: Extent) -> None:
    """Also where the sum nearly cancels, or lies next to the middle between two floats."""
    chance = random.Random(1)
    triples = []
    for _ in range(extent.number(4_000, 200_000)):
        x, y = (chance.uniform(-2, 2) * 2.0 ** chance.randint(-30, 30) for _ in "xy")
        away = chance.choice((0, 0, 1, -53, 53, -54, 54, 20, -108))
        z = chance.choice((1.0, -1.0)) * x * y * 2.0**away
        if chance.random() < 0.3:  # short factors: exact ties and exact results
            x, y, z = (float(np.float32(number)) for number in (x, y, z))
        triples.append((x, y, z if chance.random() < 0.9 else chance.choice((0.0, 3 * 2.0**51))))
    got = fused(*(np.array(column) for column in zip(*triples, strict=True)))
    for (x, y, z), value in zip(triples, got.tolist(), strict=True):
        assert value == float(Fraction(x) * Fraction(y) + Fraction(z)), (x, y, z)
    unfused = [x * y + z for x, y, z in triples]
    assert sum(a != b for a, b in zip(unfused, got.tolist(), strict=True)) > len(triples) // 10
