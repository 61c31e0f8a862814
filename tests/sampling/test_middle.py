"""Parabolas of the Gaussian's middle: what they decide is right, and wrong tables are caught."""

from dataclasses import dataclass, replace
from fractions import Fraction
from importlib import import_module
from typing import Any

import numpy as np
import pytest
from flint import arb, arb_series

from lastbit.exact.ball import working_precision
from lastbit.laws.ideal import IdealGaussian
from lastbit.laws.transformed import Rounded
from lastbit.sampling.deterministic import Seeded
from lastbit.sampling.middle import Middle, gaussian_middle
from lastbit.sampling.rounded import RoundedSampler
from tests.sampling.test_rounded import EVEN, edge_words, misplaced, random_words

module = import_module("lastbit.sampling.rounded")

PLACES = [(0, 5, 1), ("0.3", 1000, 1), (Fraction(1, 3), 2**24, 1), (10**12, 2**26, 1)]


@dataclass
class Quick:
    """A sampler of which only the parabolas decide."""

    law: Rounded
    middle: Middle

    def decided(self, words):
        steps = np.empty(words.size, np.int64)
        open_ = RoundedSampler(self.law).guess(words, module._line(self.law), self.middle, steps)
        return steps, ~open_


def parabolas_alone(law, middle) -> Any:
    """In the place of a sampler."""
    return Quick(law, middle)


def beside(law, cells):
    """Words beside edges of cells, within what one error of the table reaches."""
    return [w for w in edge_words(law, cells) if 1 << 59 <= w < 31 << 59]


@pytest.mark.parametrize("place", PLACES, ids=str)
def test_decided_words_lie_in_their_cells(place):
    law = Rounded(IdealGaussian(), *place)
    quick = parabolas_alone(law, gaussian_middle())
    assert misplaced(quick, law, EVEN[::4] + random_words(2_000, 1)) == 0
    assert misplaced(quick, law, beside(law, 300)) == 0
    words = np.array(random_words(4_000, 2), np.uint64)
    assert np.count_nonzero(quick.decided(words)[1]) > 0.87 * words.size


def test_a_table_that_claims_too_much_is_caught():
    law = Rounded(IdealGaussian(), Fraction(1, 3), 2**26, 1)
    middle = gaussian_middle()
    near = beside(law, 1_000)
    assert misplaced(parabolas_alone(law, middle), law, near) == 0
    assert misplaced(parabolas_alone(law, replace(middle, error=0.0)), law, near) > 0
    zero, one, two = middle.coefficients
    for mutant in ((-zero, one, two), (zero * (1 + 1e-6), one, two), (zero, one, -two)):
        assert misplaced(parabolas_alone(law, replace(middle, coefficients=mutant)), law, near) > 0


def density(law, z):
    return law.density(arb_series([arb(float(z))], 1))[0]


def test_the_error_is_that_of_the_worst_piece_and_no_more_than_twice():
    """At the ends of the outermost piece, where the third derivative is largest."""
    middle, law = gaussian_middle(), IdealGaussian()
    words = np.array([w + d for w in range(256 << 51, 260 << 51, 1 << 45) for d in (0,)], np.uint64)
    q = middle.value(words)
    with working_precision(128):
        off = [
            abs(float((law.below(arb(float(z))) - arb(w) / 2**64) / density(law, z)))
            for w, z in zip(words.tolist(), q.tolist(), strict=True)
        ]
    assert middle.error / 2 < max(off) <= middle.error


def test_words_outside_the_middle_are_left_open():
    words = np.array([0, (1 << 59) - 1, 31 << 59, 2**64 - 1], np.uint64)
    assert np.isnan(gaussian_middle().value(words)).all()
    inside = np.array([1 << 59, (31 << 59) - 1, 1 << 63, (1 << 63) - 1], np.uint64)
    assert np.isfinite(gaussian_middle().value(inside)).all()


@pytest.mark.parametrize("place", PLACES, ids=str)
@pytest.mark.parametrize("size", [1 << 12, 20_001])
def test_draws_are_the_same_with_and_without_parabolas(place, size, monkeypatch):
    law = Rounded(IdealGaussian(), *place)
    quick = RoundedSampler(law).draw(Seeded(3), size)
    monkeypatch.setattr(module, "_MANY", 1 << 60)
    assert (quick == RoundedSampler(law).draw(Seeded(3), size)).all()
