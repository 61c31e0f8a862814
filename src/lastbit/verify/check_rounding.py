"""Checks certificates of kind "rounding": float noise that is rounded and truncated.

The claim: for values at most `sensitivity` + 2 `query_error` apart in the region, the loss of

    clamp(round(sum(value, u) / cell) * cell) to the region

is at most `epsilon`, where u is drawn by the `uniform` model and `programs` holds the steps of
`sum` (one table, or two: for a fair sign + and -). The proof is docs/theory/rounding.md. It is
worked out anew here: what the steps mean (`check_shape`), how far the floats stray on every piece
(`check_errors`), how far the generator does, that beyond the cuts both sums lie beyond the same
end, and what all this costs. Believed: correctly rounded + - * /, a monotone logarithm with the
error stated in `ulps`, and a result of the right sign where the logarithm of 0 arises or a sum
overflows beyond the cuts (an infinity; in fixed point the greatest number). A claim with a `rate`
declares its ideal law instead of having it recognised: `check_declared.py`. Where the claim names
code, that this code is here, is unchanged and takes these steps is seen to by `check_code.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from lastbit.verify.arithmetic import exp_bounds, ln_bounds, number, require
from lastbit.verify.check_code import check_code, check_records
from lastbit.verify.check_declared import check_declared
from lastbit.verify.check_errors import check_error_bound
from lastbit.verify.check_machine import (
    check_quotient,
    check_uniform,
    holds,
    quotient_error,
    spread,
)
from lastbit.verify.check_shape import Interval, shape, steady

__all__ = ["check_rounding", "check_rounding_steps", "laplace_excess"]

_MACHINE = frozenset({"programs", "format", "ulps", "uniform", "cell", "region"})
_CLAIM = _MACHINE | {"code", "sensitivity", "query_error", "epsilon"}
_BODY = frozenset({"scale", "branches", "delta_n", "delta_round", "delta_t", "excess", "query"})
_BRANCH = frozenset({"program", "interval", "cut", "omega", "pieces"})
_PIECE = frozenset({"u", "error", "proof"})
HALF = Fraction(1, 2)


@dataclass(frozen=True, slots=True)
class _Setting:
    """What is claimed, as numbers, and the noise scale that the programs will turn out to have."""

    claim: Mapping[str, Any]
    region: Interval
    cell: Fraction
    scale: Fraction
    delta_t: Fraction

    @property
    def far(self) -> Fraction:
        """Noise beyond this leads from every value to an end, whatever strays by delta_t."""
        return self.region[1] - self.region[0] - self.cell / 2 + self.delta_t


def check_rounding(claim: Mapping[str, Any], body: Mapping[str, Any]) -> None:
    """Reject unless the body proves the claim, and the code that it names takes its steps."""
    check_rounding_steps(claim, body)
    check_code(claim)


def check_rounding_steps(claim: Mapping[str, Any], body: Mapping[str, Any]) -> None:
    """Reject unless the body proves the claim about the steps; no code is run."""
    require("code" in claim, "it does not say which code it is about; verify the code again")
    _check_proof(claim, body)
    check_records(claim, body["query"])


def _check_proof(claim: Mapping[str, Any], body: Mapping[str, Any]) -> None:
    if "rate" in claim:
        require(set(claim) == _CLAIM | {"rate"}, "a part is missing or unknown")
        rest = {name: part for name, part in body.items() if name != "query"}
        check_declared(claim, rest, _checked_distance(claim, body["query"]))
        return
    require(set(claim) == _CLAIM and set(body) == _BODY, "a part is missing or unknown")
    region = _interval(claim["region"])
    cell, scale, delta_t = number(claim["cell"]), number(body["scale"]), number(body["delta_t"])
    setting = _Setting(claim, region, cell, scale, delta_t)
    require(cell > 0 and scale > 0 and delta_t >= 0, "the cell or the scale is not above 0")
    require(
        all((end / cell).denominator == 1 for end in region), "an end is no multiple of the cell"
    )
    check_uniform(claim["uniform"], claim["format"])
    check_quotient(claim["format"], region, cell)
    branches = body["branches"]
    _check_law(setting, branches)
    omega, noise = Fraction(0), Fraction(0)
    for branch in branches:
        require(set(branch) == _BRANCH, "a branch has a part too many or too few")
        omega = max(omega, _checked_tail(setting, branch))
        noise = max(noise, _checked_pieces(setting, branch))
    quotient = quotient_error(claim["format"], region, cell)
    require(number(body["delta_n"]) == noise, "delta_n is not the greatest error of the pieces")
    require(number(body["delta_round"]) == quotient, "delta_round is not the quotient's error")
    require(delta_t == omega + noise + quotient, "delta_t is not the sum of its parts")
    require(2 * delta_t < cell, "the floats stray by half a cell or more")
    excess = number(body["excess"])
    _require_just_above(excess, laplace_excess(cell / scale, delta_t / scale), "the excess")
    distance = _checked_distance(claim, body["query"])
    require(number(claim["epsilon"]) == distance / scale + excess, "epsilon is not the loss proved")


def _check_law(setting: _Setting, branches: Sequence[Mapping[str, Any]]) -> None:
    """The ideal noise is Laplace: on each side -ln t is exponential, t uniform on (0, 1).

    One program has its sides at (0, 1/2) and (1/2, 1), of two programs each has one on (0, 1). A
    draw may fall on the other side of 1/2: that moves the noise little only if it is 0 there.
    """
    programs = setting.claim["programs"]
    found = [(branch["program"], _interval(branch["interval"])) for branch in branches]
    wanted: list[tuple[int, Interval]] = [(0, (Fraction(0), HALF)), (0, (HALF, Fraction(1)))]
    if len(programs) == 2:
        wanted = [(k, (Fraction(0), Fraction(1))) for k in (0, 1)]
    require(len(programs) in (1, 2) and found == wanted, "the sides do not make up the uniform")
    found_sides = [_side(setting, branch) for branch in branches]
    if len(programs) == 1:
        middle = {alpha + beta * HALF for _, alpha, beta in found_sides}
        require(middle == {1}, "the noise is not 0 where its sides meet")
    factors = [factor for factor, _, _ in found_sides]
    require(sorted(factors) == [-setting.scale, setting.scale], "the noise is not Laplace noise")


def _side(setting: _Setting, branch: Mapping[str, Any]) -> tuple[Fraction, Fraction, Fraction]:
    """k, alpha, beta: the sum is value + k ln(alpha + beta u) on this side."""
    rows, interval = setting.claim["programs"][branch["program"]], _interval(branch["interval"])
    whole = shape(rows, interval, setting.region)
    require(
        whole.value == 1 and not whole.constant and not whole.slope, "no sum of value and noise"
    )
    require(whole.log is not None, "there is no noise")
    assert whole.log is not None
    factor, alpha, beta = whole.log
    require(
        {alpha + beta * end for end in interval} == {0, 1}, "the logarithm's range is not (0, 1)"
    )
    require(whole.direction == (1 if factor * beta > 0 else -1), "the code is not monotone")
    return whole.log


def _checked_tail(setting: _Setting, branch: Mapping[str, Any]) -> Fraction:
    """What the generator moves the noise by; beyond the cut both sums lie beyond the same end."""
    _, alpha, beta = _side(setting, branch)
    rows, interval = setting.claim["programs"][branch["program"]], _interval(branch["interval"])
    cut, form = number(branch["cut"]), setting.claim["format"]
    require(interval[0] < cut < interval[1], "a cut lies outside its side")
    steady(rows, interval, setting.region, (cut, -alpha / beta), lambda x: holds(form, x))
    boundary, ratio = spread(setting.claim["uniform"], alpha, beta, alpha + beta * cut)
    require(boundary < 1, "a cut leaves nothing of its side")
    omega = number(branch["omega"])
    _require_just_above(omega, setting.scale * ln_bounds(ratio)[1], "the generator's error")
    require(-setting.scale * ln_bounds(boundary)[1] > setting.far, "a cut is not far enough out")
    return omega


def _checked_pieces(setting: _Setting, branch: Mapping[str, Any]) -> Fraction:
    """The greatest error of the computed sum between the cut and the middle."""
    _, alpha, beta = _side(setting, branch)
    cut, middle = number(branch["cut"]), (1 - alpha) / beta
    at, end = min(cut, middle), max(cut, middle)
    worst = Fraction(0)
    for piece in branch["pieces"]:
        require(set(piece) == _PIECE, "a piece has a part too many or too few")
        low, high = _interval(piece["u"])
        require(low == at and high <= end, "the pieces do not follow one another")
        at = high
        stated = {
            "expression": setting.claim["programs"][branch["program"]],
            "ranges": {"u": piece["u"], "value": setting.claim["region"]},
            "errors": {"u": "0", "value": "0"},
            **{name: setting.claim[name] for name in ("format", "ulps")},
            **{name: piece["proof"]["steps"][-1][name] for name in ("real", "computed")},
            "error": piece["error"],
        }
        check_error_bound(stated, piece["proof"])
        worst = max(worst, number(piece["error"]))
    require(at == end, "the pieces do not reach the end")
    return worst


def _checked_distance(claim: Mapping[str, Any], query: Any) -> Fraction:
    """How far apart two computed values can be: the sensitivity and the query's error, twice."""
    distance, error = number(claim["sensitivity"]), number(claim["query_error"])
    require(distance > 0 and error >= 0, "a distance is not above 0")
    if query is None:
        require(error == 0, "nothing is known of the query's error")
    else:
        require(set(query) == {"claim", "body"}, "the query's proof is incomplete")
        stated = query["claim"]
        require(stated["error"] == claim["query_error"], "another error of the query is proved")
        for part in ("format", "ulps"):
            require(stated[part] == claim[part], "the query runs on another machine")
        check_error_bound(stated, query["body"])
    return distance + 2 * error


def _require_just_above(stated: Fraction, proved: Fraction, what: str) -> None:
    """Not below what is proved; and hardly above, or the figures are not those of this claim."""
    require(stated >= proved, f"{what} is larger than stated")
    require(stated <= proved * (1 + Fraction(1, 1 << 20)), f"{what} is that of other parameters")


def laplace_excess(cell: Fraction, stray: Fraction) -> Fraction:
    """An upper bound on ln(sinh((cell + 2 stray)/2) / sinh((cell - 2 stray)/2)), for scale 1."""
    require(cell > 2 * stray, "the floats stray by half a cell or more")
    wide, narrow = exp_bounds(-cell - 2 * stray)[0], exp_bounds(-cell + 2 * stray)[1]
    require(narrow < 1, "the cell is too small for this arithmetic")
    return 2 * stray + ln_bounds((1 - wide) / (1 - narrow))[1]


def _interval(pair: Any) -> Interval:
    require(isinstance(pair, list), "an interval is no list")
    low, high = (number(end) for end in pair)
    require(low < high, "an interval is empty")
    return low, high
