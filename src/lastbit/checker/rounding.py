"""Checks certificates of kind "rounding": float noise that is rounded and truncated.

The claim: for values at most `sensitivity` + 2 `query_error` apart in the region, or in `values`
where they are named, the loss of

    clamp(round(sum(value, u) / cell) * cell) to the region

is at most `epsilon`. The sum means a value + c + noise, with numbers a and c that lead every value
of the claim into the region: a moves what is d apart by |a| d. Here u is drawn by the `uniform`
model and `programs` holds the steps of `sum` (one table, or two: for a fair sign + and -). What the
code makes of the rounded sum costs nothing: `one_rounding.py`. The proof is
docs/theory/rounding.md. It is worked out again here: what the steps mean (`shape.py`), how far the
floats stray on every piece (`error_bound.py`), how far the generator does, that beyond the cuts
both sums lie beyond one end, and what all this costs. Believed: correctly rounded + - * /, a
monotone logarithm with the error stated in `ulps`, and a result of the right sign where the
logarithm of 0 arises or a sum overflows beyond the cuts (an infinity; in fixed point the greatest
number). Where the claim names code, `code.py` requires that this code is here, is unchanged and
takes these steps.

A claim with a `rate` declares its ideal law: that the ideal noise has a density with
p(x) <= exp(rate |x - y|) p(y) is taken from it (Condition 1 of paper 000), and refused where it
shows false: by the derivatives of the noise at many points (`check_rate`), and by its quantiles.
Such a law has P[N > x] <= exp(rate (y - x)) P[N > y] for x < y, and P[N < y] alike, so those of u
and w are at least ln(w/u)/rate and ln((1-u)/(1-w))/rate apart on every piece. The rest is proved:
the code is monotone in u; for every real u between the cuts the float sum of its draw is within
delta_t of the ideal sum; at the cuts the ideal sum is so far out that whatever lies beyond leads to
an end. Then the loss is at most rate distance + ln(1 + R exp(rate cell)), with
R = 4 delta_t/(cell - 2 delta_t).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from .code import check_code, check_records
from .error_bound import check_error_bound
from .intervals import (
    Rows,
    check_uniform,
    draw_error,
    interval_of,
    number_format,
    quotient_error,
    reached,
    spread,
)
from .numbers import Interval, Json, Rejected, exp_bounds, ln_bounds, number, require
from .shape import Log, check_rate, shape, steady

_MACHINE = frozenset({"programs", "format", "ulps", "uniform", "cell", "region"})
_CLAIM = _MACHINE | {"code", "sensitivity", "query_error", "epsilon"}
_BODY = frozenset({"scale", "branches", "delta_n", "delta_round", "delta_t", "excess", "query"})
_BRANCH = frozenset({"program", "interval", "cut", "omega", "pieces"})
_PIECE = frozenset({"u", "error", "proof"})
_DECLARED_BODY = (_BODY - {"scale", "branches"}) | {"pieces", "ends"}
_END = frozenset({"u", "real", "proof"})


def check_rounding(claim: Json, body: Json) -> None:
    """Reject unless the body proves the claim, and the code that it names takes its steps."""
    check_rounding_steps(claim, body)
    check_code(claim)


@dataclass(frozen=True, slots=True)
class _Setting:
    """What is claimed, as numbers, and the noise scale that the programs will turn out to have."""

    claim: Json
    region: Interval
    values: Interval
    cell: Fraction
    scale: Fraction
    delta_t: Fraction

    @property
    def far(self) -> Fraction:
        """Noise beyond this leads from every value to an end, whatever strays by delta_t."""
        return self.region[1] - self.region[0] - self.cell / 2 + self.delta_t


def check_rounding_steps(claim: Json, body: Json) -> None:
    """Reject unless the body proves the claim about the steps; no code is run."""
    require("code" in claim, "it does not say which code it is about; verify the code again")
    distance = _checked_distance(claim, body["query"])
    if "rate" in claim:
        _check_declared(claim, body, distance)
    else:
        _check_laplace(claim, body, distance)
    check_records(claim, body["query"])


def _check_laplace(claim: Json, body: Json, distance: Fraction) -> None:
    fields = _CLAIM | ({"values"} if "values" in claim else set())
    require(set(claim) == fields and set(body) == _BODY, "a part is missing or unknown")
    region = checked_region(claim)
    cell, scale, delta_t = number(claim["cell"]), number(body["scale"]), number(body["delta_t"])
    require(scale > 0 and delta_t >= 0, "the scale is not above 0")
    values = interval_of(claim["values"]) if "values" in claim else region
    require(values[0] < values[1], "the claim is about no values")
    setting = _Setting(claim, region, values, cell, scale, delta_t)
    branches, programs = body["branches"], claim["programs"]
    # one program has its sides at (0, 1/2) and (1/2, 1), of two programs each has one on (0, 1)
    half = Fraction(1, 2)
    wanted = [(0, (Fraction(0), half)), (0, (half, Fraction(1)))]
    if len(programs) == 2:
        wanted = [(k, (Fraction(0), Fraction(1))) for k in (0, 1)]
    found = [(branch["program"], interval_of(branch["interval"])) for branch in branches]
    require(len(programs) in (1, 2) and found == wanted, "the sides do not make up the uniform")
    read = [_side(setting, branch) for branch in branches]
    sides = [side for side, _ in read]
    (share, constant), *others = {around for _, around in read}
    require(not others, "the two sides are not around one number")
    ends = [share * end + constant for end in setting.values]
    inside = region[0] <= min(ends) and max(ends) <= region[1]
    require(inside, "a value of the claim leads out of the region")
    if len(programs) == 1:
        # a draw may fall on the other side of 1/2: that moves the noise little only if it is 0
        middle = {alpha + beta * half for _, alpha, beta in sides}
        require(middle == {1}, "the noise is not 0 where its sides meet")
    # on each side -ln t is exponential, t uniform on (0, 1)
    factors = [factor for factor, _, _ in sides]
    require(sorted(factors) == [-scale, scale], "the noise is not Laplace noise")
    omega, noise = Fraction(0), Fraction(0)
    for branch, side in zip(branches, sides, strict=True):
        require(set(branch) == _BRANCH, "a branch has a part too many or too few")
        omega = max(omega, _checked_tail(setting, branch, side))
        reach = sorted((number(branch["cut"]), (1 - side[1]) / side[2]))
        error, covered = _checked_pieces(claim, branch, Fraction(0))
        require(list(covered) == reach, "the pieces do not reach from the cut to the middle")
        noise = max(noise, error)
    _check_stray(claim, body, region, omega, noise)
    excess = number(body["excess"])
    _require_just_above(excess, laplace_excess(cell / scale, delta_t / scale), "the excess")
    loss = abs(share) * distance / scale + excess
    require(number(claim["epsilon"]) == loss, "epsilon is not the loss proved")


def checked_region(claim: Json) -> Interval:
    """The region, if its ends are multiples of the cell and all draws are numbers of the format."""
    region, cell = interval_of(claim["region"]), number(claim["cell"])
    require(region[0] < region[1], "the region is empty")
    require(cell > 0, "the cell is not above 0")
    multiples = all((end / cell).denominator == 1 for end in region)
    require(multiples, "an end is not a multiple of the cell")
    check_uniform(claim["uniform"], claim["format"])
    return region


def _check_stray(
    claim: Json, body: Json, region: Interval, omega: Fraction, noise: Fraction
) -> None:
    """How far the float sum is from the ideal one: the sum of its parts, and below half a cell."""
    cell, delta_t = number(claim["cell"]), number(body["delta_t"])
    quotient = quotient_error(claim["format"], region, cell)
    require(number(body["delta_n"]) == noise, "delta_n is not the greatest error of the pieces")
    require(number(body["delta_round"]) == quotient, "delta_round is not the quotient's error")
    require(delta_t == omega + noise + quotient, "delta_t is not the sum of its parts")
    require(2 * delta_t < cell, "the floats stray by half a cell or more")


def _side(setting: _Setting, branch: Json) -> tuple[Log, tuple[Fraction, Fraction]]:
    """(k, alpha, beta), (a, c): the sum is a value + c + k ln(alpha + beta u) on this side."""
    rows, interval = setting.claim["programs"][branch["program"]], interval_of(branch["interval"])
    whole = shape(rows, interval, setting.values)
    require(whole.value != 0 and not whole.slope, "no sum of value and noise")
    require(whole.log is not None, "there is no noise")
    assert whole.log is not None
    factor, alpha, beta = whole.log
    ends = {alpha + beta * end for end in interval}
    require(ends == {0, 1}, "the logarithm's range is not (0, 1)")
    require(whole.direction == (1 if factor * beta > 0 else -1), "the code is not monotone")
    return whole.log, (whole.value, whole.constant)


def _checked_tail(setting: _Setting, branch: Json, side: Log) -> Fraction:
    """What the generator moves the noise by; beyond the cut both sums lie beyond the same end."""
    _, alpha, beta = side
    rows, interval = setting.claim["programs"][branch["program"]], interval_of(branch["interval"])
    cut, machine = number(branch["cut"]), number_format(setting.claim["format"])
    require(interval[0] < cut < interval[1], "a cut lies outside its side")
    steady(rows, interval, setting.values, (cut, -alpha / beta), machine.holds)
    if setting.claim["uniform"]["model"] == "within":  # the proof looks at this very draw
        require(machine.holds(cut), "a cut is not a number of the format")
    boundary, ratio = spread(setting.claim["uniform"], alpha, beta, alpha + beta * cut)
    require(boundary < 1, "a cut leaves nothing of its side")
    omega = number(branch["omega"])
    _require_just_above(omega, setting.scale * ln_bounds(ratio)[1], "the generator's error")
    require(-setting.scale * ln_bounds(boundary)[1] > setting.far, "a cut is not far enough out")
    return omega


def _checked_pieces(claim: Json, branch: Json, off: Fraction) -> tuple[Fraction, Interval]:
    """The greatest error of a program, for a draw that is off by so much, and the range covered."""
    pieces = branch["pieces"]
    require(bool(pieces), "there is no piece")
    worst, at = Fraction(0), number(pieces[0]["u"][0])
    for piece in pieces:
        require(set(piece) == _PIECE, "a piece has a part too many or too few")
        low, high = interval_of(piece["u"])
        require(0 <= low < high <= 1, "a piece lies outside the uniform")
        require(low == at, "the pieces do not follow one another")
        at = high
        bounds = {**piece["proof"]["steps"][-1], "error": piece["error"]}
        stated = _stated(claim, branch.get("program", 0), piece["u"], off, bounds)
        check_error_bound(stated, piece["proof"])
        worst = max(worst, number(piece["error"]))
    return worst, (number(pieces[0]["u"][0]), at)


def _checked_distance(claim: Json, query: Any) -> Fraction:
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


def _check_declared(claim: Json, body: Json, distance: Fraction) -> None:
    """Reject unless the body proves the claim; `distance` is that of two computed values."""
    require(set(claim) == _CLAIM | {"rate"}, "a part is missing or unknown")
    require(set(body) == _DECLARED_BODY, "a part is missing or unknown")
    low, high = region = checked_region(claim)
    cell, rate, delta_t = number(claim["cell"]), number(claim["rate"]), number(body["delta_t"])
    require(rate > 0, "the rate is not above 0")
    require(len(claim["programs"]) == 1, "there is not one program")
    (rows,) = claim["programs"]
    direction = direction_of_noise(rows)
    check_rate(rows, rows[-1][2], rate)
    noise, cuts = _checked_pieces(claim, body, draw_error(claim["uniform"]))
    require(cuts[0] > 0 and cuts[1] < 1, "a piece lies outside the uniform")
    for piece in body["pieces"]:
        _require_possible_rate(claim, piece)
    _check_stray(claim, body, region, Fraction(0), noise)
    below, above = body["ends"] if direction > 0 else reversed(body["ends"])
    require([number(end["u"]) for end in body["ends"]] == list(cuts), "an end is not at its cut")
    for end in (below, above):  # where the ideal sum lies at a cut, over all values
        require(set(end) == _END, "an end has a part too many or too few")
        bounds = {**end["proof"]["steps"][-1], "real": end["real"]}
        stated = _stated(claim, 0, [end["u"], end["u"]], Fraction(0), bounds)
        check_error_bound(stated, end["proof"])
    require(number(above["real"][0]) > high - cell / 2 + delta_t, "a cut is too near")
    require(number(below["real"][1]) < low + cell / 2 - delta_t, "a cut is too near")
    excess = number(body["excess"])
    _require_just_above(excess, general_excess(rate * cell, delta_t / cell), "the excess")
    require(number(claim["epsilon"]) == rate * distance + excess, "epsilon is not the loss proved")


def _require_possible_rate(claim: Json, piece: Json) -> None:
    """Quantiles of such a law are not as near to one another as this piece shows."""
    low, high = (number(end) for end in claim["region"])
    least, most = (number(end) for end in piece["proof"]["steps"][-1]["real"])
    first, last = (number(end) for end in piece["u"])
    apart = (most - high) - (least - low)  # the noise moves by no more over the piece
    for ratio in (last / first, (1 - first) / (1 - last)):
        possible = ln_bounds(ratio)[0] <= number(claim["rate"]) * apart
        require(possible, "the noise has no such rate: its quantiles are too near")


def _stated(claim: Json, program: int, u: Any, error: Fraction, bounds: Json) -> dict[str, Any]:
    """What a proof must prove: these bounds, for this uniform and all values of the region."""
    return {
        "expression": claim["programs"][program],
        "ranges": {"u": u, "value": claim.get("values", claim["region"])},
        "errors": {"u": str(error), "value": "0"},
        **{name: claim[name] for name in ("format", "ulps")},
        **{name: bounds[name] for name in ("real", "computed", "error")},
    }


def general_excess(cell: Fraction, share: Fraction) -> Fraction:
    """An upper bound on ln(1 + R exp(cell)) for rate 1, R = 4 share/(1 - 2 share)."""
    require(2 * share < 1, "the floats stray by half a cell or more")
    return ln_bounds(1 + 4 * share / (1 - 2 * share) * exp_bounds(cell)[1])[1]


def direction_of_noise(rows: Rows) -> int:
    """1 or -1: how value + noise moves with u, in the reals and in floats alike.

    By the steps: sums of equal ways, products with constants, increasing functions.
    """
    last = list(rows[-1])
    require(last[0] == "ADD" and list(rows[last[1]]) == ["VAR", "value"], "no value plus noise")
    known: dict[int, int] = {}
    for index in reached(rows, last[2]):
        match list(rows[index]):
            case ["CONST", _]:
                known[index] = 0
            case ["VAR", "u"]:
                known[index] = 1
            case ["NEG", argument]:
                known[index] = -known[argument]
            case ["LN" | "EXP" | "SQRT" | "ROUND" | "CLAMP", argument, *_]:
                known[index] = known[argument]
            case [("ADD" | "SUB") as rule, left, right]:
                ways = {known[left], known[right] if rule == "ADD" else -known[right]}
                require(len(ways - {0}) <= 1, "the noise is not monotone in the uniform")
                known[index] = sum(ways)
            case [("MUL" | "DIV") as rule, left, right]:
                if rule == "MUL" and rows[left][0] == "CONST":
                    left, right = right, left
                require(rows[right][0] == "CONST", "a product of two things that both vary")
                factor = number(rows[right][1])
                known[index] = known[left] * ((factor > 0) - (factor < 0))
            case _:
                raise Rejected("a step is not of the kind that can be followed")
    require(known[last[2]] in (1, -1), "the noise is not monotone in the uniform")
    return known[last[2]]
