"""Re-derives what planar Laplace noise in floats loses if it is rounded to squares.

Kind "polar". Two programs are x + noise and y + noise. Worked out as sums of products, the noises
must be k R T and +-k R T', where T and T' are cosine and sine of one angle, in either order, and R
is

* ln t + ln t', each of a uniform or of 1 minus it; the angle is 2 pi times a third, plus a
  number; or
* a drawn radius r, T and T' being a drawn cosine c and a drawn sine s ("words").

For uniform reals -(ln t + ln t') has the density r exp(-r), and C(r) = 1 - (1 + r) exp(-r) is its
cumulative: so with rate = 1/|k| the ideal point X has a density proportional to exp(-rate
distance), which costs rate times the distance of two inputs.

Theorem. Let X* be the point that the draws themselves mean and X' the computed one. At all draws X'
is within delta_n of X* in each coordinate: the proofs of logarithms, turns and sums, the angle's
2 pi counted. Let the radii of X and X* be within the reach. Then they are at most omega apart:

* two logarithms: each t is at least c = exp(-rate reach), and t and its draw have a quotient of at
  most 1 + delta_0/c (of full precision, 1 + 2**(1 - significand), the least float being below c);
* words: C**-1 is concave, then convex, so over steps of delta_0 it moves most at the start, where
  C(rate omega) >= delta_0 is asked for, or at the end, where C(rate reach) is at least delta_0
  above C(rate (reach - omega)).

The same shows that if one radius is at most reach - omega, both are within the reach. Then X and X*
are at most `moved` apart, moved**2 = omega**2 + (2 pi reach delta_0)**2. If not, both exceed
reach - omega, which is at least D + moved + sqrt(2) (delta_n + delta_round), D being the distance
from a value to the farthest point of the region's cells: so X is outside, farther than all that
strays, and X' is outside. The quotient by the cell moves edges by delta_round. So with delta_t =
moved + delta_n + delta_round, a cell S, and S+ and S- the same squares grown and shrunk by delta_t:
X' in S means X in S+, and X in S- means X' in S; so of the outside. S+ without S- has the area
8 L delta_t, S- has (L - 2 delta_t)**2, and no two of their points are more than sqrt(2) L apart: so

    P(X' in S) <= exp(rate d) (1 + R exp(rate sqrt(2) L)) P(Y' in S),

for an input Y at the distance d, with R = 8 L delta_t/(L - 2 delta_t)**2.

A point within delta_t of the border of the region lies in T+ without T- for a cell T of the ring
around it; the T- are disjoint and outside: so outside costs no more.

Believed: the machine rounds correctly, its ln, cos and sin are within the stated ulps, the draws
are independent and as the model says; of words, that the radius, cosine and sine are within the
errors stated.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from .code import check_code, check_records
from .gaussian import TWO_PI, check_bound, check_library, expanded, steps_of
from .intervals import (
    check_uniform,
    draw_error,
    interval_of,
    number_format,
    power,
    quotient_error,
    require_listed,
    size,
    uniform_range,
)
from .numbers import (
    Interval,
    Json,
    exp_bounds,
    ln_bounds,
    number,
    require,
    spelled,
    sqrt_bounds,
)
from .steps import Graph

_CLAIM = frozenset({
    "code", "programs", "format", "ulps", "uniform", "region", "values", "cell", "sensitivity",
    "rate", "excess", "epsilon",
})  # fmt: skip
_BODY = frozenset({
    "reach", "omega", "moved", "delta_n", "delta_round", "delta_t", "logs", "turns", "sums",
    "farthest",
})  # fmt: skip
_LOG, _PROOF = frozenset({"real", "error", "proof"}), frozenset({"error", "proof"})
_UNIT = ("-1", "1")


def check_polar(claim: Json, body: Json) -> None:
    """Reject unless the body proves the claim, and the code that it names takes its steps."""
    check_polar_steps(claim, body)
    check_code(claim)
    if claim["code"]:
        check_library(claim)


def check_polar_steps(claim: Json, body: Json) -> None:
    """Reject unless the body proves the claim about the steps; no code is run."""
    require(set(claim) == _CLAIM and set(body) == _BODY, "a part is missing or unknown")
    cell, rate, distance = (number(claim[name]) for name in ("cell", "rate", "sensitivity"))
    require(cell > 0 and distance > 0, "the cell or the sensitivity is not above 0")
    region, values = _rectangle(claim["region"]), _rectangle(claim["values"])
    whole = all((end / cell).denominator == 1 for side in region for end in side)
    require(whole, "an end is not a multiple of the cell")
    noise = _noise(claim["programs"])
    require(rate == noise.rate, "the noise has another rate")
    words = claim["uniform"]["model"] == "words"
    require(words == (noise.draws is None), "radius and angle are drawn in another way")
    if words:
        off = _checked_words(claim, body, noise)
    else:
        require_listed(claim["uniform"])
        check_uniform(claim["uniform"], claim["format"])
        off = _checked_parts(claim, body, noise)
    names = ("reach", "omega", "moved", "delta_n", "delta_round", "delta_t", "excess")
    stated = {name: number({**body, **claim}[name]) for name in names}
    worst = max(number(proof["error"]) for proof in body["sums"])
    rounding = max(quotient_error(claim["format"], side, cell) for side in region)
    require(stated["delta_n"] == worst, "delta_n is not the greatest error of the sums")
    require(stated["delta_round"] == rounding, "delta_round is not the quotient's error")
    sizes = [
        size(interval_of(proof["proof"]["steps"][-1]["computed"]))[1] for proof in body["sums"]
    ]
    largest = number_format(claim["format"]).largest
    require(max(sizes) / cell + 2 <= largest, "the quotient by the cell may overflow")
    _check_moves(claim["uniform"], noise, off, stated)
    delta_t = stated["moved"] + worst + rounding
    require(stated["delta_t"] == delta_t, "delta_t is not the sum of its parts")
    require(2 * delta_t < cell, "the floats stray by half a cell or more")
    across = Fraction(0)
    for (low, high), (least, most) in zip(region, values, strict=True):
        across += (max(high - least, most - low) + cell / 2) ** 2
    root = sqrt_bounds(Fraction(2))[1]
    beyond = sqrt_bounds(across)[1] + stated["omega"] + stated["moved"] + root * (worst + rounding)
    require(stated["reach"] >= beyond, "the reach ends inside the region")
    ratio = 8 * cell * delta_t / (cell - 2 * delta_t) ** 2
    loss = ln_bounds(1 + ratio * exp_bounds(rate * cell * root)[1])[1]
    require(stated["excess"] >= loss, "the excess is larger than stated")
    total = rate * distance + stated["excess"]
    require(number(claim["epsilon"]) == total, "epsilon is not the loss proved")
    check_records(claim, None)


def _rectangle(written: Any) -> tuple[Interval, Interval]:
    require(isinstance(written, list) and len(written) == 2, "a rectangle has not two sides")
    first, second = (interval_of(side) for side in written)
    require(first[0] < first[1] and second[0] < second[1], "a rectangle is empty")
    return first, second


# ---------------------------------------------------------------- what the programs mean


@dataclass(frozen=True)
class _Noise:
    """The noise's rate, the nodes of its logarithms and turns, and what they are drawn from.

    `draws` holds for each logarithm its uniform and whether it is of 1 minus it, then the angle's
    uniform; None where radius, cosine and sine are drawn. `turned` bounds how far the angle is off.
    """

    graph: Graph
    roots: list[int]
    rate: Fraction
    logs: list[int]
    turns: list[int]
    draws: list[tuple[str, bool]] | None
    turned: Fraction = Fraction(0)


def _noise(programs: Any) -> _Noise:
    require(isinstance(programs, list) and len(programs) == 2, "there are not two programs")
    graph = Graph()
    roots = [graph.program(rows) for rows in programs]
    factors: set[Fraction] = set()
    logs: set[int] = set()
    turns = []
    for root, name in zip(roots, ("x", "y"), strict=True):
        form = expanded(graph, root)
        value = graph.node("VAR", name)
        require(form.pop((value,), None) == 1, "a program is not a value and noise")
        kinds = {k: graph.nodes[k] for term in form for k in term}
        turning = [k for k, n in kinds.items() if n[0] in ("COS", "SIN") or n[1:] in _TURNS]
        require(len(turning) == 1, "a noise is not a radius times one cosine or sine")
        radial = {*kinds} - {*turning}
        wanted = {tuple(sorted((k, turning[0]))) for k in radial}
        require(bool(radial) and set(form) == wanted, "a noise is not a radius times a turn")
        require(len(set(form.values())) == 1, "the parts of a radius have different factors")
        require(not logs or logs == radial, "the coordinates have two radii")
        logs, factors = radial, factors | {abs(share) for share in form.values()}
        turns += turning
    require(len(factors) == 1, "the coordinates have two radii")
    found = _Noise(graph, roots, 1 / factors.pop(), sorted(logs), turns, None)
    if found.logs == [graph.node("VAR", "r")]:
        drawn = {graph.nodes[k] for k in turns}
        require(drawn == {("VAR", "c"), ("VAR", "s")}, "the angle of a drawn radius is not drawn")
        return found
    return _drawn(found)


_TURNS = (("c",), ("s",))


def _drawn(noise: _Noise) -> _Noise:
    """The same with its uniforms: three different ones."""
    graph = noise.graph
    rules = [graph.nodes[k][0] for k in (*noise.logs, *noise.turns)]
    require(rules[:-2] == ["LN", "LN"], "the radius is not the sum of two logarithms")
    require(sorted(rules[-2:]) == ["COS", "SIN"], "the coordinates are not of cosine and sine")
    (angle,) = {graph.nodes[k][1] for k in noise.turns}
    draws = []
    for k in noise.logs:
        form = expanded(graph, graph.nodes[k][1])
        constant = form.pop((), Fraction(0))
        ((term, slope),) = form.items()
        plain = (constant == 0 and slope == 1) or (constant == 1 and slope == -1)
        require(plain, "a logarithm is not of a uniform")
        draws.append((_uniform(graph, term), slope < 0))
    form = expanded(graph, angle)
    form.pop((), None)
    ((term, slope),) = form.items()
    draws.append((_uniform(graph, term), False))
    require(len({name for name, _ in draws}) == 3, "radius and angle are not of three uniforms")
    middle, margin = TWO_PI
    turned = abs(abs(slope) - middle) + margin
    require(turned < Fraction(1, 1000), "the angle does not turn once")
    return replace(noise, draws=draws, turned=turned)


def _uniform(graph: Graph, term: tuple[int, ...]) -> str:
    require(len(term) == 1, "a uniform is multiplied by another")
    rule, name, *_ = graph.nodes[term[0]]
    require(rule == "VAR" and name in ("u", "v", "w"), "something else than a uniform is drawn")
    return str(name)


# ---------------------------------------------------------------- how far it strays


def _checked_words(claim: Json, body: Json, noise: _Noise) -> Fraction:
    """How far words are from the reals that they begin; the sums are proved for all of them."""
    uniform = claim["uniform"]
    require(set(uniform) == {"model", "bits", "radius", "turn"}, "the model of words is unknown")
    bits = uniform["bits"]
    require(type(bits) is int and 1 <= bits <= 64, "the model of words is unknown")
    require(not claim["code"], "code that draws words cannot be followed")
    require(body["logs"] == body["turns"] == [], "there is nothing to prove of a draw")
    errors = {"r": number(uniform["radius"])}
    errors |= dict.fromkeys(("c", "s"), number(uniform["turn"]))
    require(min(errors.values()) >= 0, "an error is below 0")
    off, farthest = power(-bits - 1), number(body["farthest"])
    require(farthest > 0 and _survival(farthest)[1] <= off, "a radius lies beyond the farthest")
    _check_sums(
        claim, body, noise, {"r": ["0", body["farthest"]], "c": [*_UNIT], "s": [*_UNIT]}, errors
    )
    return off


def _checked_parts(claim: Json, body: Json, noise: _Noise) -> Fraction:
    """The same for uniforms, through the proofs of logarithms, cosine and sine."""
    draws = noise.draws or []
    require(body["farthest"] is None, "no radius is drawn")
    require(len(body["logs"]) == len(body["turns"]) == 2, "a proof is missing")
    drawn = [spelled(end) for end in uniform_range(claim["uniform"])]
    ranges, errors = {"t": [*_UNIT]}, dict[str, Fraction]()
    for letter, k, proof, draw in zip("pq", noise.logs, body["logs"], draws, strict=False):
        require(set(proof) == _LOG, "a proof has a part too many or too few")
        require(proof["proof"]["steps"][-1]["real"] == proof["real"], "a range is another")
        rows = steps_of(noise.graph, k, {})
        check_bound(claim, rows, {draw[0]: drawn}, {draw[0]: Fraction(0)}, proof)
        ranges[letter], errors[letter] = proof["real"], number(proof["error"])
    turned = []
    for k, proof in zip(noise.turns, body["turns"], strict=True):
        require(set(proof) == _PROOF, "a proof has a part too many or too few")
        angle = draws[2][0]
        rows = steps_of(noise.graph, k, {})
        check_bound(claim, rows, {angle: drawn}, {angle: Fraction(0)}, proof)
        turned.append(number(proof["error"]) + noise.turned)
    _check_sums(claim, body, noise, ranges, errors, turned)
    return draw_error(claim["uniform"])


def _check_sums(
    claim: Json,
    body: Json,
    noise: _Noise,
    ranges: dict[str, list[str]],
    errors: dict[str, Fraction],
    turned: list[Fraction] | None = None,
) -> None:
    require(isinstance(body["sums"], list) and len(body["sums"]) == 2, "a sum has no proof")
    for place, (name, proof) in enumerate(zip(("x", "y"), body["sums"], strict=True)):
        require(set(proof) == _PROOF, "a proof has a part too many or too few")
        own, off = dict(ranges), dict(errors)
        named: dict[int, str] = {}
        if turned is None:
            unused = "s" if noise.graph.nodes[noise.turns[place]] == ("VAR", "c") else "c"
            del own[unused], off[unused]
        else:
            named = {noise.turns[place]: "t", **dict(zip(noise.logs, "pq", strict=True))}
            off["t"] = turned[place]
        own[name], off[name] = claim["values"][place], Fraction(0)
        rows = steps_of(noise.graph, noise.roots[place], named)
        check_bound(claim, rows, own, off, proof)


def _check_moves(uniform: Json, noise: _Noise, off: Fraction, stated: dict[str, Fraction]) -> None:
    """Reject unless omega and moved are what draws that are off move a point by."""
    reach, omega, rate = stated["reach"], stated["omega"], noise.rate
    require(reach > 0 and min(omega, stated["moved"]) >= 0, "a distance is below 0")
    if noise.draws is None:
        require(1 - _survival(rate * omega)[1] >= off, "the least radii move more than stated")
        if omega < reach:
            risen = _survival(rate * (reach - omega))[0] - _survival(rate * reach)[1]
            require(risen >= off, "the greatest radii move more than stated")
    else:
        nearest, total = exp_bounds(-rate * reach)[0], Fraction(0)
        for _, backward in noise.draws[:2]:
            share = off / nearest
            if uniform["model"] == "full" and not backward:
                least = power(uniform["least_exponent"])
                require(nearest > least, "the reach goes beyond the least uniform")
                share = power(1 - uniform["significand"])
            total += ln_bounds(1 + share)[1]
        require(rate * omega >= total, "the radii move more than stated")
    middle, margin = TWO_PI
    turn = (middle + margin) * reach * off
    require(stated["moved"] ** 2 >= omega**2 + turn**2, "the points move more than stated")


def _survival(x: Fraction) -> Interval:
    """Fractions around (1 + x) exp(-x), which is how likely a radius of rate 1 exceeds x."""
    low, high = exp_bounds(-x)
    return (1 + x) * low, (1 + x) * high
