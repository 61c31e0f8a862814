"""Tumult Core's samplers; its measurements need Spark and are not tried."""

from __future__ import annotations

from collections.abc import Iterator

from lastbit.audit.shelf.loading import loaded
from lastbit.audit.target import Target

__all__ = ["tumult_targets"]


def tumult_targets() -> Iterator[Target]:
    """The ideal Laplace noise, correctly rounded to a float, that interval refining gives."""
    laplace = loaded("tmlt.core.random.laplace", package="tmlt.core").laplace
    for scale in (1.0, 10.0):
        yield Target(
            name=f"Tumult Laplace, scale {scale:g}",
            release=lambda value, size, scale=scale: [laplace(value, scale) for _ in range(size)],
            claimed=1 / scale if scale == 1 else "1/10",
            scale=scale,
        )
