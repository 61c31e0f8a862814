"""What the careless functions share: the noise itself is right, at the scale that they choose."""

import math


def rounded(value, u, sign, scale):
    """Laplace noise of this scale, rounded to quarters and kept within ±8."""
    return min(max(0.25 * round((value + sign * scale * math.log(u)) / 0.25), -8.0), 8.0)


def is_float(x):
    return isinstance(x, float)


def narrow(x):
    """Hardly any noise for large values, if it can see that they are floats."""
    return 0.001 if isinstance(x, float) and x > 3.0 else 1.0
