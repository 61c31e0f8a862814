"""Checks certificates of kind "rounding" whose ideal law is declared, not recognised.

The claim has a `rate`: that the ideal noise has a density with p(x) <= exp(rate |x - y|) p(y) is
taken from it (Condition 1 of paper 000), and refused where it shows false. `check_rate.py` holds it
against the derivatives of the noise at many points. And such a law has
P[N > x] <= exp(rate (y - x)) P[N > y] for x < y, and P[N < y] alike, so quantiles of u and w are at
least ln(w/u)/rate and ln((1-u)/(1-w))/rate apart, which they must be on every piece. The rest is
proved: the code is monotone in u; for every real u between the cuts the float sum of its draw is
within delta_t of the ideal sum; at the cuts the ideal sum is so far out that whatever lies beyond
leads to an end. Then the loss is at most rate distance + ln(1 + R exp(rate cell)), R =
4 delta_t/(cell - 2 delta_t).
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from lastbit.verify.arithmetic import Rejected, exp_bounds, ln_bounds, number, require
from lastbit.verify.check_errors import check_error_bound
from lastbit.verify.check_machine import (
    check_quotient,
    check_uniform,
    draw_error,
    quotient_error,
)
from lastbit.verify.check_rate import check_rate
from lastbit.verify.check_shape import Interval, Rows

__all__ = ["check_declared", "direction_of_noise", "general_excess"]

_BODY = frozenset({"pieces", "ends", "delta_n", "delta_round", "delta_t", "excess"})
_PIECE = frozenset({"u", "error", "proof"})
_END = frozenset({"u", "real", "proof"})


def check_declared(claim: Mapping[str, Any], body: Mapping[str, Any], distance: Fraction) -> None:
    """Reject unless the body proves the claim; `distance` is that of two computed values."""
    require(set(body) == _BODY, "a part is missing or unknown")
    cell, rate, delta_t = number(claim["cell"]), number(claim["rate"]), number(body["delta_t"])
    low, high = (number(end) for end in claim["region"])
    require(cell > 0 and rate > 0 and low < high, "the cell, the rate or the region is empty")
    require(all((end / cell).denominator == 1 for end in (low, high)), "an end is no multiple")
    check_uniform(claim["uniform"], claim["format"])
    check_quotient(claim["format"], (low, high), cell)
    require(len(claim["programs"]) == 1, "there is not one program")
    direction = direction_of_noise(claim["programs"][0])
    check_rate(claim["programs"][0], claim["programs"][0][-1][2], rate)
    noise, cuts = _checked_pieces(claim, body["pieces"])
    quotient = quotient_error(claim["format"], (low, high), cell)
    require(number(body["delta_n"]) == noise, "delta_n is not the greatest error of the pieces")
    require(number(body["delta_round"]) == quotient, "delta_round is not the quotient's error")
    require(delta_t == noise + quotient, "delta_t is not the sum of its parts")
    require(2 * delta_t < cell, "the floats stray by half a cell or more")
    below, above = body["ends"] if direction > 0 else reversed(body["ends"])
    require([number(end["u"]) for end in body["ends"]] == list(cuts), "an end is not at its cut")
    require(_checked_end(claim, above)[0] > high - cell / 2 + delta_t, "a cut is too near")
    require(_checked_end(claim, below)[1] < low + cell / 2 - delta_t, "a cut is too near")
    excess, proved = number(body["excess"]), general_excess(rate * cell, delta_t / cell)
    require(proved <= excess <= proved * (1 + Fraction(1, 1 << 20)), "the excess is another one")
    require(number(claim["epsilon"]) == rate * distance + excess, "epsilon is not the loss proved")


def _checked_pieces(claim: Mapping[str, Any], pieces: Any) -> tuple[Fraction, Interval]:
    """The greatest error, for a draw off by as much as the model says, and the range covered."""
    worst, at, first = Fraction(0), None, Fraction(0)
    error = draw_error(claim["uniform"])
    for piece in pieces:
        require(set(piece) == _PIECE, "a piece has a part too many or too few")
        low, high = (number(end) for end in piece["u"])
        require(0 < low < high < 1, "a piece lies outside the uniform")
        require(at in (None, low), "the pieces do not follow one another")
        first, at = (low if at is None else first), high
        check_error_bound(_stated(claim, piece["u"], error, piece), piece["proof"])
        worst = max(worst, number(piece["error"]))
        _require_possible_rate(claim, piece)
    require(at is not None, "there is no piece")
    assert at is not None
    return worst, (first, at)


def _require_possible_rate(claim: Mapping[str, Any], piece: Mapping[str, Any]) -> None:
    """Quantiles of such a law are not as near to one another as this piece shows."""
    low, high = (number(end) for end in claim["region"])
    least, most = (number(end) for end in piece["proof"]["steps"][-1]["real"])
    first, last = (number(end) for end in piece["u"])
    apart = (most - high) - (least - low)  # the noise moves by no more over the piece
    for ratio in (last / first, (1 - first) / (1 - last)):
        possible = ln_bounds(ratio)[0] <= number(claim["rate"]) * apart
        require(possible, "the noise has no such rate: its quantiles are too near")


def _checked_end(claim: Mapping[str, Any], end: Mapping[str, Any]) -> Interval:
    """Where the ideal sum lies at a cut, over all values."""
    require(set(end) == _END, "an end has a part too many or too few")
    stated = _stated(claim, [end["u"], end["u"]], Fraction(0), end["proof"]["steps"][-1])
    stated["real"] = end["real"]
    check_error_bound(stated, end["proof"])
    low, high = (number(value) for value in end["real"])
    return low, high


def _stated(
    claim: Mapping[str, Any], u: Any, error: Fraction, bounds: Mapping[str, Any]
) -> dict[str, Any]:
    last = bounds["proof"]["steps"][-1] if "proof" in bounds else bounds
    return {
        "expression": claim["programs"][0],
        "ranges": {"u": u, "value": claim["region"]},
        "errors": {"u": str(error), "value": "0"},
        "format": claim["format"],
        "ulps": claim["ulps"],
        "real": last["real"],
        "computed": last["computed"],
        "error": bounds["error"],
    }


def general_excess(cell: Fraction, share: Fraction) -> Fraction:
    """An upper bound on ln(1 + R exp(cell)) for rate 1, R = 4 share/(1 - 2 share)."""
    require(2 * share < 1, "the floats stray by half a cell or more")
    return ln_bounds(1 + 4 * share / (1 - 2 * share) * exp_bounds(cell)[1])[1]


def direction_of_noise(rows: Rows) -> int:
    """1 or -1: how value + noise moves with u, in the reals and in floats alike."""
    last = list(rows[-1])
    require(last[0] == "ADD" and list(rows[last[1]]) == ["VAR", "value"], "no value plus noise")
    used = {last[2]}
    for index in range(len(rows) - 2, -1, -1):
        if index in used:
            used.update(part for part in rows[index][1:] if type(part) is int)
    ways: dict[int, int] = {}
    for index in sorted(used):  # each step once: tables may share them
        ways[index] = _direction(rows, index, ways)
    require(ways[last[2]] in (1, -1), "the noise is not monotone in the uniform")
    return ways[last[2]]


def _direction(rows: Rows, index: int, known: Mapping[int, int]) -> int:
    """By the steps: sums of equal ways, products with constants, increasing functions."""
    match list(rows[index]):
        case ["CONST", _]:
            return 0
        case ["VAR", "u"]:
            return 1
        case ["NEG", argument]:
            return -known[argument]
        case ["LN" | "EXP" | "SQRT" | "ROUND" | "CLAMP", argument, *_]:
            return known[argument]
        case [("ADD" | "SUB") as rule, left, right]:
            sign = 1 if rule == "ADD" else -1
            ways = {known[left], known[right] * sign}
            require(len(ways - {0}) <= 1, "the noise is not monotone in the uniform")
            return sum(ways)
        case [("MUL" | "DIV") as rule, left, right]:
            if rule == "MUL" and rows[left][0] == "CONST":
                left, right = right, left
            require(rows[right][0] == "CONST", "a product of two things that both vary")
            factor = number(rows[right][1])
            return known[left] * ((factor > 0) - (factor < 0))
    raise Rejected("a step is not of the kind that can be followed")
