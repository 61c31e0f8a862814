"""Re-derives what Gaussian noise in floats loses if it is rounded and kept in a region.

Kind "gaussian". The program is value + noise of two uniforms u and v. Its meaning is worked out as
a product of powers: with L = -ln t it must be a multiple of

* sqrt(L) cos(c w), t = u or 1 - u and w = v, or the other way round (Box and Muller), or
* x sqrt(L/t), t = x**2 + y**2 with x = 2u - 1 and y = 2v - 1 up to signs and order, where pairs are
  drawn until 0 < t < 1 as computed (polar).

For uniform reals and c = 2 pi both are normal: t is uniform on (0, 1) (given that it is below 1),
the angle apart from it uniform on a circle, and sqrt(2 L) the radius. The factor gives the
variance.

Theorem. Let E be that t lies between the cuts. There the proofs of the pieces bound how far the
computed sum is from value + N, N normal, draws being off as the model says. As
|cos(c w) - cos(2 pi w)| <= |c - 2 pi|, and the quotient moves the edges of cells, it is delta_t.
Outside E nothing is said: it has the probability `missed`. For the polar method let e bound what
the computed t is off. Between the cuts it is certainly above 0 and below 1, so both accept; the
first pair that either accepts has t < 1 + e; so E fails there with a probability of at most e and
what the cuts leave out.
Let S be a cell, S+ and S- the same grown and shrunk by delta_t. Given E, a sum in S means value + N
in S+, with |N| at most the reach sqrt(2 variance L) at the lower cut. There, and in all of S-, the
logarithm of the density has a slope of at most r = far/variance, far being the reach and a cell, or
the region and half a cell, and delta_t. Let p and q be the density at the two edges of S-, which is
2 b = cell - 2 delta_t long. A rim of S+ has at most p (exp(2 r delta_t) - 1)/r, or with q. S- has
at least the integral of the greater of p exp(-r distance) and q exp(-r distance): where they are
equal both are sqrt(p q) exp(-r b), so that is (p + q - 2 sqrt(p q) exp(-r b))/r, and not less than
(p + q) (1 - exp(-r b))/r. So P(value + N in S+, |N| <= reach) <= (1 + growth) P(value + N in S-),

    growth = (exp(2 r delta_t) - 1)/(1 - exp(-r b)).

End cells, which reach to infinity, have one rim and lose less. Summed over the cells of any set A,
with the normal law's own (epsilon_0, delta_0) between two values, applied to the union of all S-:

    P(x gives A) <= missed + (1 + growth) (exp(epsilon_0) (P(y gives A) + missed) + delta_0).

Believed: the machine rounds correctly, its ln, sqrt and cos are within the stated ulps, the draws
are independent and as the model says.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from .code import check_code, check_records
from .error_bound import check_error_bound
from .intervals import Rows, draw_error, interval_of, number_format, quotient_error
from .numbers import Interval, Json, Rejected, exp_bounds, ln_bounds, number, require, sqrt_bounds
from .rounding import checked_region
from .steps import Graph
from .tail import pair_delta

_CLAIM = frozenset({
    "code", "programs", "accepted", "format", "ulps", "uniform", "cell", "region", "sensitivity",
    "epsilon", "delta",
})  # fmt: skip
_BODY = frozenset({
    "variance", "inputs", "pieces", "delta_n", "delta_round", "delta_t", "missed", "growth",
    "ideal_epsilon", "ideal_delta",
})  # fmt: skip
_PIECE = frozenset({"t", "x", "test", "error", "proof"})
TWO_PI = Fraction(628318530717958647692528676655900576839, 10**38), Fraction(1, 10**37)
_HALF = Fraction(1, 2)
_TRIED = 200
_TERMS, _FACTORS, _LONG, _WORK = 64, 8, 1 << 18, 1 << 21
_Form = dict[tuple[int, ...], Fraction]


def check_gaussian(claim: Json, body: Json) -> None:
    """Reject unless the body proves the claim, and the code that it names takes its steps."""
    check_gaussian_steps(claim, body)
    check_code(claim)
    if claim["code"]:
        check_library(claim)


def check_library(claim: Json) -> None:
    """Reject if a function of the library here is farther off than stated, where it is tried.

    At numbers of (0, 1), of all sizes, for ln; at angles of the whole circle for cos and sin. The
    square root is correctly rounded by IEEE 754. It is a trial: elsewhere the ulps are believed.
    """
    form, seed = number_format(claim["format"]), json.dumps(claim["programs"]).encode()
    ulps = {name: number(text) for name, text in claim["ulps"].items()}
    steps = {row[0] for record in claim["code"] for rows in record["steps"] for row in rows}

    def tried(name: str, x: float, ends: Interval, allowed: Fraction) -> None:
        for library in ("math", "numpy"):
            if f"{library}.{name}" in steps:
                here = Fraction(float(getattr(importlib.import_module(library), name)(x)))
                fine = max(abs(here - end) for end in ends) <= allowed
                require(fine, f"the library's {name} is farther off here than stated")

    for k in range(_TRIED):
        block = hashlib.sha256(seed + str(k).encode()).digest()
        share = int.from_bytes(block[:8], "big") | 1
        for x in (
            share / 2.0**64,
            math.ldexp(share, -64 - k),
            1.0 - math.ldexp(share, -64 - k % 50),
        ):
            if 0.0 < x < 1.0:
                ends = ln_bounds(Fraction(x))
                tried("log", x, ends, ulps["ln"] * form.step(ends[1]))
        x = share / 2.0**64 * 6.283185307179586
        for name, first in (("cos", 0), ("sin", 1)):
            if name in ulps:
                ends = _turn(Fraction(x), first)
                tried(name, x, ends, ulps[name] * form.step(Fraction(1)))


def _turn(x: Fraction, first: int) -> Interval:
    """Fractions around cos x (first 0) or sin x (first 1) for 0 <= x < 7, about 10**-40 apart.

    The series 1 - x**2/2 + x**4/24 - ..., or x - x**3/6 + ..., to the power 91; from there on its
    terms fall, being of alternating sign, so that what is left is less than the next of them. In
    integers, of 2**-240: the square and each term are off by less than one, and no term exceeds
    200.
    """
    total, term = 0, math.floor(x**first * (1 << 240))
    square = math.floor(x * x * (1 << 240))
    for k in range(46):
        total += term
        power = 2 * k + first
        term = -(term * square >> 240) // ((power + 1) * (power + 2))
    margin = abs(term) + (1 << 60)
    return Fraction(total - margin, 1 << 240), Fraction(total + margin, 1 << 240)


def check_gaussian_steps(claim: Json, body: Json) -> None:
    """Reject unless the body proves the claim about the steps; no code is run."""
    require(set(claim) == _CLAIM and set(body) == _BODY, "a part is missing or unknown")
    region, cell = checked_region(claim), number(claim["cell"])
    (rows,) = claim["programs"]
    polar = claim["accepted"] is not None
    sampler = _polar(rows, claim["accepted"]) if polar else _box_muller(rows)
    variance, distance = number(body["variance"]), number(claim["sensitivity"])
    require(variance == sampler.variance, "the noise has another variance")
    require(distance > 0, "the sensitivity is not above 0")
    off = _checked_inputs(claim, body["inputs"], sampler) if polar else {}
    error, (low, high) = _checked_pieces(claim, body["pieces"], sampler, off)
    missed = low + 1 - high
    if polar:
        missed += off["s"]
    reach = sqrt_bounds(-2 * ln_bounds(low)[0] * variance)[1]
    noise = error + reach * sampler.turned
    quotient = quotient_error(claim["format"], region, cell)
    delta_t = number(body["delta_t"])
    require(number(body["delta_n"]) >= noise, "the noise strays farther than stated")
    require(number(body["delta_round"]) == quotient, "delta_round is not the quotient's error")
    sum_ = number(body["delta_n"]) + quotient
    require(delta_t == sum_, "delta_t is not the sum of its parts")
    require(2 * delta_t < cell, "the floats stray by half a cell or more")
    far = min(region[1] - region[0] + cell / 2, reach + cell) + delta_t
    growth, given_up = number(body["growth"]), number(body["missed"])
    slope = far / variance
    rim, inside = (
        exp_bounds(2 * slope * delta_t)[1] - 1,
        exp_bounds(slope * (delta_t - cell / 2))[1],
    )
    require(inside < 1, "the cell is too small for this arithmetic")
    require(growth >= rim / (1 - inside), "cells grow more than stated")
    require(given_up >= missed, "more is missed than stated")
    ideal, delta_0 = number(body["ideal_epsilon"]), number(body["ideal_delta"])
    mu = distance / sqrt_bounds(variance)[0]
    require(delta_0 >= pair_delta(mu, ideal), "the normal law has a larger delta")
    total = ideal + ln_bounds(1 + growth)[1]
    require(number(claim["epsilon"]) >= total, "epsilon is less than is proved")
    stated = (1 + growth) * (delta_0 + exp_bounds(ideal)[1] * given_up) + given_up
    require(number(claim["delta"]) >= stated, "delta is less than is proved")
    check_records(claim, None)


# ---------------------------------------------------------------- what the program means


@dataclass(frozen=True)
class _Sampler:
    """The noise's variance, the program in its own variables, and what t is of them.

    `radial` is the variable that t is a function of: t itself, or 1 minus it if `backward`.
    `turned` bounds how far the angle is from that of the whole circle.
    """

    variance: Fraction
    rows: Rows
    radial: str
    backward: bool = False
    turned: Fraction = Fraction(0)
    coordinates: tuple[Rows, ...] = ()


def _noise(graph: Graph, rows: Rows) -> int:
    match graph.nodes[graph.program(rows)]:
        case ("ADD", int(left), int(right)):
            value = graph.node("VAR", "value")
            if left == value:
                return right
            if right == value:
                return left
    raise Rejected("no value plus noise")


def _box_muller(rows: Rows) -> _Sampler:
    graph = Graph()
    noise = _noise(graph, rows)
    found: dict[str, int] = {}

    def symbol(rule: str, below: int) -> str | None:
        name = {"LN": "L", "COS": "C"}.get(rule)
        if name is not None:
            require(found.setdefault(name, below) == below, "two logarithms or two cosines")
        return name

    sign_and_square = _powers(graph, noise, symbol)
    require(set(found) == {"L", "C"}, "the noise is not of Box and Muller's form")
    inside, angle = (_linear(graph, found[name]) for name in ("L", "C"))
    (radial,) = inside.keys() - {""}
    (turning,) = angle.keys() - {""}
    require({radial, turning} == {"u", "v"}, "radius and angle are not of two uniforms")
    backward = inside == {"": Fraction(1), radial: Fraction(-1)}
    require(backward or inside == {radial: Fraction(1)}, "the logarithm is not of a uniform")
    middle, margin = TWO_PI
    turned = abs(abs(angle[turning]) - middle) + margin
    variance = _variance(sign_and_square, {"L": _HALF, "C": Fraction(1)})
    return _Sampler(variance, rows, radial, backward=backward, turned=turned)


def _polar(rows: Rows, accepted: Rows) -> _Sampler:
    graph = Graph()
    s = graph.program(accepted)
    squares = []
    for place in graph.nodes[s][1:] if graph.nodes[s][0] == "ADD" else ():
        rule, *below = graph.nodes[place]
        require(rule == "MUL" and below[0] == below[1], "the test of pairs is not a sum of squares")
        squares.append(below[0])
    require(len(squares) == 2, "the test of pairs is not a sum of squares")
    names = set()
    for place in squares:
        form = _linear(graph, place)
        (name,) = form.keys() - {""}
        names.add(name)
        sign = -form.get("", Fraction(0))
        require(abs(sign) == 1 and form[name] == 2 * sign, "a coordinate is not 2u - 1")
    require(names == {"u", "v"}, "the coordinates are not of two uniforms")
    noise = _noise(graph, rows)
    used: set[int] = set()

    def symbol(rule: str, below: int) -> str | None:
        if rule == "LN":
            require(below == s, "the logarithm is of something else than the test of pairs")
        return {"LN": "L"}.get(rule)

    def known(place: int) -> str | None:
        if place in squares:
            used.add(place)
        return "s" if place == s else "x" if place in squares else None

    wanted = {"L": _HALF, "s": -_HALF, "x": Fraction(1)}
    variance = _variance(_powers(graph, noise, symbol, known), wanted)
    require(len(used) == 1, "the noise has both coordinates")
    x, y = sorted(squares, key=lambda place: place not in used)
    outer = steps_of(graph, graph.program(rows), {s: "s", x: "x"})
    tests = (
        steps_of(graph, x, {}),
        steps_of(graph, y, {}),
        steps_of(graph, s, {x: "x", y: "y"}),
    )
    return _Sampler(variance, outer, "s", coordinates=tests)


_Powers = tuple[Fraction, dict[str, Fraction]]


def _powers(graph: Graph, top: int, symbol: Any, known: Any = lambda _: None) -> _Powers:
    """A step as its coefficient squared, with the coefficient's sign, and powers of symbols."""
    found: dict[int, _Powers] = {}  # programs share steps: each is worked out once

    def worked_out(place: int) -> _Powers:
        if place not in found:
            found[place] = power_of(place)
            square, powers = found[place]
            long = max(map(_length, (square, *powers.values())))  # squares of squares of squares
            require(long <= _LONG, "a product is too long")
        return found[place]

    def power_of(place: int) -> _Powers:
        name = known(place)
        if name is not None:
            return Fraction(1), {name: Fraction(1)}
        rule, *parts = graph.nodes[place]
        if rule == "CONST":
            value = parts[0]
            require(value != 0, "the noise is multiplied by 0")
            return value * abs(value), {}
        name = symbol(rule, parts[0])
        if name is not None:  # L stands for -ln t, which is positive
            return Fraction(-1 if name == "L" else 1), {name: Fraction(1)}
        if rule in ("MUL", "DIV"):
            (a, one), (b, two) = map(worked_out, parts)
            way = 1 if rule == "MUL" else -1
            keys = {*one, *two}
            sums = {k: one.get(k, Fraction(0)) + way * two.get(k, Fraction(0)) for k in keys}
            return (a * b if rule == "MUL" else a / b), {k: p for k, p in sums.items() if p}
        if rule == "NEG":
            square, powers = worked_out(parts[0])
            return -square, powers
        if rule == "SQRT":
            square, powers = worked_out(parts[0])
            require(square > 0 and powers.keys() <= {"L", "s"}, "a root of what may be below 0")
            return _root(square), {key: power / 2 for key, power in powers.items()}
        raise Rejected("a step is not of the kind that can be followed")

    return worked_out(top)


def _length(x: Fraction) -> int:
    return max(x.numerator.bit_length(), x.denominator.bit_length())


def _root(x: Fraction) -> Fraction:
    top, bottom = math.isqrt(x.numerator), math.isqrt(x.denominator)
    require(top * top == x.numerator and bottom * bottom == x.denominator, "a root is irrational")
    return Fraction(top, bottom)


def _variance(found: _Powers, wanted: Mapping[str, Fraction]) -> Fraction:
    square, powers = found
    require(powers == wanted, "the noise is not normal")
    return abs(square) / 2


def _linear(graph: Graph, place: int) -> dict[str, Fraction]:
    """A step as a sum of multiples of inputs, and of 1 under the name of nothing; exactly."""
    found: dict[str, Fraction] = {}
    for term, share in expanded(graph, place).items():
        rules = [graph.nodes[k] for k in term]
        plain = len(rules) < 2 and all(rule[0] == "VAR" for rule in rules)
        require(plain, "a coordinate or an angle is not linear")
        found["".join(rule[1] for rule in rules)] = share
    return found


def expanded(graph: Graph, top: int) -> _Form:
    """A node as a sum of products of inputs, logarithms, cosines and sines; exactly."""
    forms: dict[int, _Form] = {}
    for k in sorted(graph.uses(top)):
        rule, *parts = graph.nodes[k]
        form: _Form = {}
        if rule == "CONST":
            form[()] = parts[0]
        elif rule in ("VAR", "LN", "COS", "SIN"):
            form[(k,)] = Fraction(1)
        elif rule in ("ADD", "SUB", "NEG"):
            for place, part in enumerate(parts):
                sign = -1 if rule == "NEG" or (rule == "SUB" and place == 1) else 1
                for term, share in forms[part].items():
                    form[term] = form.get(term, Fraction(0)) + sign * share
        elif rule == "MUL":
            one, two = (forms[part] for part in parts)
            longest = max(map(_length, (*one.values(), *two.values())), default=0)
            work = len(one) * len(two) * longest
            few = len(one) * len(two) <= _TERMS**2 and work <= _WORK
            require(few, "a product has too many terms")
            for a, share in one.items():
                for b, other in two.items():
                    term = tuple(sorted(a + b))
                    form[term] = form.get(term, Fraction(0)) + share * other
        else:
            require(rule == "DIV", "a step is not of the kind that can be followed")
            by = forms[parts[1]]
            require(set(by) == {()}, "a quotient by something that varies")
            form = {term: share / by[()] for term, share in forms[parts[0]].items()}
        forms[k] = {term: share for term, share in form.items() if share}
        require(len(forms[k]) <= _TERMS, "a sum has too many terms")
        for term, share in forms[k].items():  # squares of squares of squares
            short = len(term) <= _FACTORS and _length(share) <= _LONG
            require(short, "a product is too long")
    return forms[top]


def steps_of(graph: Graph, top: int, named: Mapping[int, str]) -> list[list[Any]]:
    """The steps of a node as a table, some of them being inputs under a name."""
    rows: list[list[Any]] = []
    places: dict[int, int] = {}

    def write(node: int) -> int:
        if node not in places:
            rule, *parts = graph.nodes[node]
            row: list[Any]
            if node in named:
                row = ["VAR", named[node]]
            elif rule == "VAR":
                row = ["VAR", parts[0]]
            elif rule == "CONST":
                row = ["CONST", str(parts[0])]
            else:
                row = [rule, *(write(part) for part in parts)]
            places[node] = len(rows)
            rows.append(row)
        return places[node]

    write(top)
    return rows


# ---------------------------------------------------------------- how far it strays


def _checked_inputs(claim: Json, inputs: Any, sampler: _Sampler) -> dict[str, Fraction]:
    """How far the coordinates are off, and the test of pairs, as computed from draws."""
    require(set(inputs) == {"x", "y", "s"}, "the proofs of the coordinates are incomplete")
    unit, around = ["0", "1"], ["-1", "1"]
    off: dict[str, Fraction] = {}
    for name, rows in zip("xys", sampler.coordinates, strict=True):
        proof = inputs[name]
        require(set(proof) == {"error", "proof"}, "a proof has a part too many or too few")
        used = {row[1] for row in rows if row[0] == "VAR"}
        ranges = {n: around if n in ("x", "y") else unit for n in used}
        drawn = draw_error(claim["uniform"])
        errors = {n: off[n] if n in ("x", "y") else drawn for n in used}
        check_bound(claim, rows, ranges, errors, proof)
        off[name] = number(proof["error"])
    return off


def _checked_pieces(
    claim: Json, pieces: Any, sampler: _Sampler, off: Mapping[str, Fraction]
) -> tuple[Fraction, Interval]:
    """The greatest error of a piece, and the range of t that all of them cover."""
    require(bool(pieces), "there is no piece")
    worst, at = Fraction(0), interval_of(pieces[0]["t"])[0]
    for piece in pieces:
        require(set(piece) == _PIECE, "a piece has a part too many or too few")
        low, high = interval_of(piece["t"])
        require(low == at and 0 < low < high < 1, "the pieces do not follow one another")
        at = high
        ranges: dict[str, list[str]] = {"value": claim["region"]}
        errors = {"value": Fraction(0)}
        if sampler.radial == "s":
            left, right = interval_of(piece["x"])  # x**2 is at most t
            require(left == -right and right**2 >= high, "a coordinate has too narrow a range")
            around = dict.fromkeys(("x", "y"), piece["x"])
            coordinates = {name: off[name] for name in ("x", "y")}
            test = piece["test"]
            require(set(test) == {"error", "proof"}, "a proof has a part too many or too few")
            check_bound(claim, sampler.coordinates[2], around, coordinates, test)
            moved = number(test["error"])
            require(moved < low and high + moved < 1, "a cut is too near for the test of pairs")
            ranges |= {"s": piece["t"], "x": piece["x"]}
            errors |= {"s": moved, "x": off["x"]}
        else:
            require(piece["x"] is piece["test"] is None, "there is no coordinate")
            ends = (1 - high, 1 - low) if sampler.backward else (low, high)
            other = "v" if sampler.radial == "u" else "u"
            ranges |= {sampler.radial: [str(end) for end in ends], other: ["0", "1"]}
            errors |= {sampler.radial: _drawn(claim["uniform"], ends)}
            errors |= {other: draw_error(claim["uniform"])}
        check_bound(claim, sampler.rows, ranges, errors, piece)
        worst = max(worst, number(piece["error"]))
    return worst, (number(pieces[0]["t"][0]), at)


def _drawn(uniform: Json, ends: Interval) -> Fraction:
    """How far draws are off that stand for reals of an interval: relatively little if full."""
    off = draw_error(uniform)
    if uniform["model"] == "full" and ends[0] >= Fraction(1, 1 << -uniform["least_exponent"]):
        off = min(off, ends[1] * Fraction(2, 1 << uniform["significand"]))
    return off


def check_bound(
    claim: Json,
    rows: Rows,
    ranges: Mapping[str, list[str]],
    errors: Mapping[str, Fraction],
    proof: Json,
) -> None:
    """Reject unless an error bound is proved of these steps, for inputs that are off by so much."""
    last = proof["proof"]["steps"][-1]
    stated = {
        "expression": rows,
        "ranges": ranges,
        "errors": {name: str(error) for name, error in errors.items()},
        **{name: claim[name] for name in ("format", "ulps")},
        **{name: last[name] for name in ("real", "computed")},
        "error": proof["error"],
    }
    check_error_bound(stated, proof["proof"])
