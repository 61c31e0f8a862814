"""Targets whose law is known, right ones and wrong ones, from a seeded generator."""

from fractions import Fraction

import numpy as np

from lastbit.audit.targets.target import Target


def generator(seed=1):
    return np.random.default_rng(seed)


def float_laplace(scale=1.0, claimed=None, seed=1):
    """The textbook's noise, in floats."""
    draw = generator(seed)
    return Target(
        name="float Laplace",
        release=lambda value, size: draw.laplace(value, scale, size),
        claimed=Fraction(1) / Fraction(scale) if claimed is None else claimed,
        scale=scale,
    )


def grid_laplace(scale=1.0, claimed=1, step=2.0**-10, seed=1):
    """Noise rounded to a grid that does not depend on the value: post-processing of real noise."""
    draw = generator(seed)
    return Target(
        name="Laplace on a grid",
        release=lambda value, size: np.rint(draw.laplace(value, scale, size) / step) * step,
        claimed=claimed,
        scale=scale,
        step=step,
    )


def sometimes(leaky, sound, share, seed=2):
    """A target that leaks in a share of its releases only."""
    draw = generator(seed)

    def release(value, size):
        return np.where(
            draw.random(size) < share, leaky.release(value, size), sound.release(value, size)
        )

    return Target(
        name="sometimes leaky",
        release=release,
        claimed=sound.claimed,
        sensitivity=sound.sensitivity,
        values=sound.values,
        scale=sound.scale,
        step=sound.step,
    )
