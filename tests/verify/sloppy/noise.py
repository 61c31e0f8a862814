# mypy: ignore-errors
"""What the careless functions share: the noise itself is right, at the scale that they choose."""

import builtins
import importlib.util
import math
import os


def rounded(value, u, sign, scale):
    """Laplace noise of this scale, rounded to quarters and kept within ±8."""
    return min(max(0.25 * round((value + sign * scale * math.log(u)) / 0.25), -8.0), 8.0)


def is_float(x):
    return isinstance(x, float)


def narrow(x):
    """Hardly any noise for large values, if it can see that they are floats."""
    return 0.001 if isinstance(x, float) and x > 3.0 else 1.0


def afresh(module):
    """A module run again from its file, with nothing kept of what was called before."""
    os.environ.pop("SLOPPY_CALLS", None)
    vars(builtins).pop("sloppy", None)
    spec = importlib.util.spec_from_file_location(module.__name__, module.__file__)
    again = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(again)
    return again
