"""Functions that `torch.compile` runs as they stand.

Its compiler reads whatever a compiled function calls, numpy and the samplers included: it makes
tensors of their whole numbers, fuses their floats, and logs drawn numbers as reasons to compile
again. Proofs are about the program as it stands.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import torch

_Function = TypeVar("_Function", bound=Callable[..., Any])


def untraced(function: _Function) -> _Function:
    """The function, and all that it calls, as no compiler sees them; compiled models stay so.

    >>> untraced(abs)(-2)
    2
    """
    return cast(_Function, torch.compiler.disable(function))
