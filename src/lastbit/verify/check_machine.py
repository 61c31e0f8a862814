"""The machine as certificates describe it: its format, its uniform generator, its quotient."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from lastbit.verify.arithmetic import number, require
from lastbit.verify.check_formats import number_format

__all__ = ["check_quotient", "check_uniform", "draw_error", "holds", "quotient_error", "spread"]

Model = Mapping[str, Any]


def check_uniform(uniform: Model, form: Model) -> None:
    """Every float of the model must be one of the format."""
    number_format(form)
    if uniform["model"] == "full":
        require(set(uniform) == {"model", "significand", "least_exponent"}, "the model is unknown")
        bits, least = uniform["significand"], uniform["least_exponent"]
        require(type(bits) is int and type(least) is int and bits >= 1, "the model is unknown")
        require("binary" in form, "full precision needs binary floats")
        require(bits <= form["binary"][0], "u is no float")
        require(form["binary"][1] <= least <= -1, "u is no float")
    else:
        require(set(uniform) == {"model", "bits", "offset", "first"}, "the model is unknown")
        bits, offset = uniform["bits"], number(uniform["offset"])
        first = uniform["first"]
        require(type(first) is int and first in (0, 1), "the model is unknown")
        require(uniform["model"] == "grid" and type(bits) is int, "the model is unknown")
        require(offset in (0, Fraction(1, 2), 1) and 1 <= bits <= 4000, "the model is unknown")
        require(holds(form, (offset or Fraction(1)) / (1 << bits)), "u is no float")
        require(
            holds(form, 1 - (1 - offset if offset < 1 else 1) / Fraction(1 << bits)),
            "u is no float",
        )


def holds(form: Model, x: Fraction) -> bool:
    """Whether a number belongs to the format."""
    return number_format(form).holds(x)


def draw_error(uniform: Model) -> Fraction:
    """How far a draw can be from the real number it stands for.

    A full-precision draw is that number rounded down, or up to the least normal float. A grid is
    off by its step or half of it; without its first point the others are spread over (0, 1) anew,
    which moves them by up to a step more.
    """
    if uniform["model"] == "full":
        return max(Fraction(1, 1 << uniform["significand"]), _least(uniform))
    offset = number(uniform["offset"])
    off = 1 + offset if uniform["first"] else max(offset, 1 - offset)
    return off * Fraction(1, 1 << uniform["bits"])


def spread(
    uniform: Model, alpha: Fraction, beta: Fraction, cut: Fraction
) -> tuple[Fraction, Fraction]:
    """For t = alpha + beta u: from where on its draw t' reaches the cut, and then max t/t', t'/t.

    A full-precision draw is relatively near if t is proportional to u. Otherwise t and t' are apart
    by beta times what draws are off, and their quotient is farthest from 1 at the cut.
    """
    if uniform["model"] == "full" and alpha == 0:
        require(cut >= _least(uniform) * beta, "a cut lies below the least u")
        ratio = 1 + Fraction(2, 1 << uniform["significand"])
        return cut * ratio, ratio
    boundary = cut + abs(beta) * draw_error(uniform)
    return boundary, boundary / cut


def _least(uniform: Model) -> Fraction:
    return Fraction(1, 1 << -uniform["least_exponent"])


def quotient_error(form: Model, region: tuple[Fraction, Fraction], cell: Fraction) -> Fraction:
    """How far the rounding of sum/cell can move the edge of a cell; none for a power of two.

    The machine divides by the number c of its format nearest to the cell L. The quotient x/c times
    L is off by x (L/c - 1), and its rounding by half a step, or relatively by 2**-bits, times L.
    """
    ends = max(abs(region[0]), abs(region[1])) + cell
    near = number_format(form).nearest(cell)
    require(near > 0, "the cell is 0 in this format")
    grown = cell / near
    off = ends * abs(grown - 1)
    if "fixed" in form:
        return off + cell * Fraction(1, 2 << form["fixed"][0])
    power = cell.numerator & (cell.numerator - 1) == cell.denominator & (cell.denominator - 1) == 0
    return off if power else off + ends * grown / (1 << form["binary"][0])


def check_quotient(form: Model, region: tuple[Fraction, Fraction], cell: Fraction) -> None:
    """No quotient by the cell overflows, up to one cell beyond the region."""
    most = max(abs(region[0]), abs(region[1])) / cell + 2  # the machine's cell may be smaller
    require(most <= number_format(form).largest, "the quotient by the cell may overflow")
