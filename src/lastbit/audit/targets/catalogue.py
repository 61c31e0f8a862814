"""Ready-made targets by the name of their library."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType

from lastbit.audit.targets.lastbit import (
    own_answer_targets,
    own_noise_targets,
    own_point_targets,
    own_sampler_targets,
)
from lastbit.audit.targets.libraries import (
    diffprivlib_targets,
    opendp_targets,
    pydp_targets,
    tumult_targets,
)
from lastbit.audit.targets.numpy import numpy_targets
from lastbit.audit.targets.target import SumTarget, Target
from lastbit.errors import InvalidParameter


def _own() -> Iterator[Target | SumTarget]:
    yield from own_noise_targets()
    yield from own_point_targets()
    yield from own_answer_targets()
    yield from own_sampler_targets()


LIBRARIES: Mapping[str, Callable[[], Iterator[Target | SumTarget]]] = MappingProxyType(
    {
        "lastbit": _own,
        "numpy": numpy_targets,
        "diffprivlib": diffprivlib_targets,
        "opendp": opendp_targets,
        "pydp": pydp_targets,
        "tumult": tumult_targets,
    }
)


def targets(library: str) -> tuple[Target | SumTarget, ...]:
    """Everything of one library that is ready to be attacked.

    >>> [target.name for target in targets("numpy")][:2]
    ['numpy Laplace, scale 1', 'numpy Laplace, scale 10']
    """
    if library not in LIBRARIES:
        raise InvalidParameter(
            "library", problem="is not on the shelf", remedy=f"pass one of {', '.join(LIBRARIES)}"
        )
    return tuple(LIBRARIES[library]())
