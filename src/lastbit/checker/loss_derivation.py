"""Checks certificates of kind "derivation": rounded noise by ln u, derived case by case.

The claim: for values of `values` (of the region, where they are not named) at most `sensitivity`
apart, each rounded sum of a run of `outputs` loses at most what is written beside it, and all of
them at most `epsilon`, up to `delta`; for

    clamp(round(sum(value, u) / cell) * cell) to the region

with the steps of `programs`, of which a sum is one addition of the value, clamped or not, and of
noise: a chain of products and quotients of one logarithm with numbers. What the code makes of the
rounded sum costs nothing: `one_rounding.py`.

Believed is the theorem. MONOTONE: rounding never falls, so the sum passes the edge between two
outputs iff the real sum of value and noise passes a real number that does not depend on the value,
`shift` from the edge at most. So the outputs are those of the noise cut there, and
ln P[x]/P[x'] <= |x - x'|/scale + up + down, with what `loss_rules.py` says of the cell as x and as
x' meet it: outside an end or inside it; beside the cell, or in it; x below x' (docs/theory/
snapping.md). The whole derivation is written here once more, from the steps alone: which noise they
make (`shape.py`), the chain of numbers, that the logarithm's argument is exact, the distances of
all values from the edges of each run of outputs, and every number. It must be the one given.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from .code import check_code, check_records
from .intervals import (
    Rows,
    draw_error,
    interval_of,
    is_power_of_two,
    number_format,
    power,
    quotient_error,
    reached,
    require_listed,
)
from .loss_rules import Node, Noise, case, node, of, require_same
from .numbers import Interval, Json, number, require, spelled
from .rounding import checked_region
from .shape import Log, noise_chain, shape, shapes

_CLAIM = frozenset({
    "code", "programs", "format", "ulps", "uniform", "cell", "region", "sensitivity", "epsilon",
    "delta", "outputs",
})  # fmt: skip
_HALF = Fraction(1, 2)
_MOST_RUNS = 8
_LARGEST_LN = 746


def check_derived_loss(claim: Json, body: Json) -> None:
    """Reject unless the body proves the claim, and the code that it names takes its steps."""
    check_derived_loss_steps(claim, body)
    check_code(claim)


def check_derived_loss_steps(claim: Json, body: Json) -> None:
    """Reject unless the body proves the claim about the steps; no code is run."""
    fields = _CLAIM | ({"values"} if "values" in claim else set())
    require(set(claim) == fields, "a part is missing or unknown")
    require(set(body) == {"scale", "down", "derivation"}, "a part is missing or unknown")
    region, cell = checked_region(claim), number(claim["cell"])
    values = interval_of(claim["values"]) if "values" in claim else region
    inside = region[0] <= values[0] < values[1] <= region[1]
    require(inside, "a value of the claim leads out of the region")
    distance, scale = number(claim["sensitivity"]), number(body["scale"])
    require(distance > 0 and scale > 0, "a distance is not above 0")
    noise = _noise(claim, body, values, scale)
    expected = _program(noise, claim, region, values, cell, distance)
    require_same(body["derivation"], expected)
    ideal = distance / scale
    loss = ideal + of(expected, "excess")
    require(number(claim["epsilon"]) == loss, "epsilon is not the loss proved")
    require(number(claim["delta"]) == of(expected, "delta"), "delta is not the one proved")
    runs = [step for step in expected["premises"] if step["rule"] == "OUTPUT"]
    proved = [
        [step["values"]["first"], step["values"]["last"], spelled(ideal + of(step, "excess"))]
        for step in runs
    ]
    require(claim["outputs"] == proved, "an output loses something else")
    check_records(claim, None)


# ---------------------------------------------------------------- which noise the steps make


def _noise(claim: Json, body: Json, values: Interval, scale: Fraction) -> Noise:
    programs, uniform = claim["programs"], claim["uniform"]
    require_listed(uniform)
    require(isinstance(programs, list) and len(programs) in (1, 2), "there is not one program")
    one = len(programs) == 1
    intervals = (
        [(Fraction(0), _HALF), (_HALF, Fraction(1))] if one else [(Fraction(0), Fraction(1))] * 2
    )
    machine = number_format(claim["format"])
    require(not machine.fixed, "MONOTONE: the rules are for binary floats")
    logs, chains, strays = [], [], []
    for place, interval in enumerate(intervals):
        rows = programs[0 if one else place]
        log = _logarithm(rows, interval, values)
        logs.append(log)
        chains.append(_chain(rows, interval, machine.holds))
        _check_argument(rows, interval, values, uniform, machine.bits, machine.holds)
        full = uniform["model"] == "full" and log[1] == 0
        strays.append(None if full else abs(log[2]) * draw_error(uniform))
    factors = [factor for factor, _, _ in logs]
    require(sorted(factors) == [-scale, scale], "the noise is not Laplace noise of this scale")
    if one:  # where the sides meet the noise is 0
        meet = all(alpha + beta * _HALF == 1 for _, alpha, beta in logs)
        require(meet, "the noise is not 0 where its sides meet")
    down = body["down"]
    require(type(down) is int and down in (0, 1), "the downward side has no number")
    require(factors[down] > 0, "the other side is the downward one")
    require(chains[0] == chains[1], "AXUNIF: the two sides take other steps")
    ulps = number(claim["ulps"]["ln"])
    require(_HALF <= ulps <= 1 << 10, "LN: the rule is for logarithms within 1/2 to 1024 ulps")
    require(max(map(abs, values)) <= machine.largest / 4, "ADD: a sum may overflow")
    size = Fraction(1)
    for rule, factor in reversed(chains[0]):
        size = size * factor if rule == "MUL" else size / factor
        small = size * power(-machine.bits - 1) >= machine.least_normal
        require(small and size * _LARGEST_LN <= machine.largest / 4, f"{rule}: beyond the floats")
    require(size == scale, "the chain has another scale")
    every = uniform["model"] == "full"
    return Noise(
        rate=1 / scale,
        chain=chains[0],
        bits=machine.bits,
        ulps=ulps,
        drawn=uniform["significand"] if every else 0,
        least=uniform["least_exponent"] if every else 0,
        strays=strays,
    )


def _logarithm(rows: Rows, interval: Interval, values: Interval) -> Log:
    """k, alpha, beta: the sum means value + k ln(alpha + beta u) here, and moves with u so."""
    whole = shape(rows, interval, values)
    require(whole.value == 1 and not whole.slope and not whole.constant, "ADD: no value plus noise")
    require(whole.log is not None, "there is no noise")
    assert whole.log is not None
    factor, alpha, beta = whole.log
    require(
        {alpha + beta * end for end in interval} == {0, 1}, "the logarithm's range is not (0, 1)"
    )
    require(whole.direction == (1 if factor * beta > 0 else -1), "the code is not monotone")
    return whole.log


def _taken(rows: Rows, index: int, interval: Interval) -> int:
    """The step that is taken inside the interval."""
    middle = sum(interval) / 2
    while rows[index][0] == "CASES":
        _, yes, no, name, relation, bound = rows[index]
        require(name == "u", "a case depends on something else than the uniform")
        at = number(bound)
        holds = middle < at if relation == "<" else middle <= at if relation == "<=" else False
        index = yes if holds else no
    return index


def _chain(
    rows: Rows, interval: Interval, holds: Callable[[Fraction], bool]
) -> list[tuple[str, Fraction]]:
    """The numbers by which a logarithm is multiplied and divided, from the sum down."""
    top = rows[_taken(rows, len(rows) - 1, interval)]
    require(top[0] in ("ADD", "SUB"), "ADD: the last step adds no noise to the value")
    parts = [_taken(rows, part, interval) for part in top[1:]]
    drawn = [
        any(list(rows[k]) == ["VAR", "u"] for k in _used(rows, part, interval)) for part in parts
    ]
    require(sum(drawn) == 1, "ADD: the last step adds no noise to the value")
    value, at = parts[drawn.index(False)], parts[drawn.index(True)]
    while rows[value][0] == "CLAMP":
        value = _taken(rows, rows[value][1], interval)
    require(list(rows[value]) == ["VAR", "value"], "ADD: the value is computed with before")
    chain, _, _ = noise_chain(rows, at, lambda k: _taken(rows, k, interval))
    require(all(holds(factor) for _, factor in chain), "MUL: a number of noise is not a float")
    return chain


def _used(rows: Rows, top: int, interval: Interval) -> set[int]:
    """The steps that one uses inside the interval."""
    found: set[int] = set()
    todo = [_taken(rows, top, interval)]
    while todo:
        index = todo.pop()
        if index not in found:
            found.add(index)
            todo += [_taken(rows, k, interval) for k in rows[index][1:] if type(k) is int]
    return found


def _check_argument(
    rows: Rows,
    interval: Interval,
    values: Interval,
    uniform: Json,
    bits: int,
    holds: Callable[[Fraction], bool],
) -> None:
    """Reject unless every step below the logarithm is a float for every draw of the interval.

    alpha + beta u is one if it is a power of two times u; or if alpha and beta times what all draws
    are multiples of are themselves multiples of one power of two, and not above 2**bits of it.
    """
    meaning = shapes(rows, interval, values)
    grid = Fraction(0)
    if uniform["model"] == "grid":
        grid = power(-uniform["bits"]) * (_HALF if number(uniform["offset"]) == _HALF else 1)
    elif interval[0] >= _HALF:
        grid = power(-uniform["significand"])
    for index in _used(rows, len(rows) - 1, interval):
        if rows[index][0] != "LN":
            continue
        for k in reached(rows, rows[index][1]):
            if k not in meaning:
                continue  # of a case that is not taken here
            line = meaning[k]
            require(line.log is None and not line.value, "LN: of something else than the uniform")
            if not line.slope:
                require(holds(line.constant), "LN: a number is not a float")
                continue
            usual = 1 <= abs(line.slope) <= power(64)  # nothing underflows
            require(usual, "LN: the argument is rounded for some draws")
            if not line.constant and is_power_of_two(line.slope):
                continue
            require(grid > 0, "LN: the argument is rounded for some draws")
            unit = min(
                (_lowest_bit(x) for x in (line.constant, line.slope * grid) if x), default=grid
            )
            most = max(abs(line.constant + line.slope * end) for end in interval)
            require(most <= unit * power(bits), "LN: the argument is rounded for some draws")


def _lowest_bit(x: Fraction) -> Fraction:
    """The greatest power of two of which a number is a multiple."""
    require(x.denominator & (x.denominator - 1) == 0, "LN: the argument is rounded for some draws")
    return Fraction(x.numerator & -x.numerator, x.denominator)


# ---------------------------------------------------------------- the derivation, once more


@dataclass(frozen=True)
class _Cut:
    """The noise, the values, and the edges at which their sums are cut."""

    noise: Noise
    values: Interval
    distance: Fraction
    cell: Fraction
    shift: Fraction
    q: Fraction

    def end(self, name: str, index: int, outside: Fraction, inside: Fraction) -> Node:
        """An end cell: how far the values lie outside its edge, and inside."""
        kinds = []
        if outside > -self.shift:
            kinds.append(self.noise.tail(outside + self.shift))
        if inside > -self.shift:
            kinds.append(self.noise.half(inside + self.shift))
        return self.output(index, index, [case(name, kinds)])

    def inner(self, first: int, last: int) -> Node:
        """Outputs from one to another: all values may lie on either side, or between the edges."""
        lower, upper = (first - _HALF) * self.cell, (last + _HALF) * self.cell
        down, up = self.values[1] - lower + self.shift, upper - self.values[0] + self.shift
        far, wide = max(down, up), self.cell + 2 * self.shift
        around = self.noise.over(min(wide, far), self.q)
        beside = self.noise.cell(min(self.distance + wide, far), self.q)
        between = self.noise.cell(min(self.distance, far), self.q)
        cases = []
        if down > 0:
            cases.append(case("BELOW", [self.noise.cell(down, self.q)]))
        cases.append(case("OVER LEFT", [around, beside]))
        cases.append(case("BETWEEN", [between]))
        cases.append(case("OVER RIGHT", [around, beside]))
        if up > 0:
            cases.append(case("ABOVE", [self.noise.cell(up, self.q)]))
        return self.output(first, last, [*cases, case("OVER BOTH", [around])])

    def output(self, first: int, last: int, cases: Sequence[Node]) -> Node:
        excess = max(of(one, "excess") for one in cases)
        return node("OUTPUT", cases, first=first * self.cell, last=last * self.cell, excess=excess)


def _program(
    noise: Noise,
    claim: Json,
    region: Interval,
    values: Interval,
    cell: Fraction,
    distance: Fraction,
) -> Node:
    first, last = int(region[0] / cell), int(region[1] / cell)
    quotient = quotient_error(claim["format"], region, cell)
    edges = (first + _HALF) * cell, (last - _HALF) * cell
    shift = quotient + noise.half_ulp(max(map(abs, edges)) + quotient)
    require(4 * shift < cell, "MONOTONE: rounding moves edges by a quarter cell")
    q = noise.growth(cell - 2 * shift)
    cut = _Cut(noise, values, distance, cell, shift, q)
    runs = [cut.end("LOWER END", first, values[1] - edges[0], edges[0] - values[0])]
    runs += _inner_runs(cut, first + 1, last - 1)
    runs.append(cut.end("UPPER END", last, edges[1] - values[0], values[1] - edges[1]))
    excess = max(of(run, "excess") for run in runs)
    reach = max(values[1] - edges[0], edges[1] - values[0]) + shift
    last_step = noise.range(reach, distance * noise.rate + excess)
    premises = [
        node("VALUES", [], least=values[0], greatest=values[1], distance=distance),
        node("MONOTONE", [], cell=cell, shift=shift, growth=q),
        *runs,
        last_step,
    ]
    return node("PROGRAM", premises, excess=excess, delta=of(last_step, "delta"))


def _inner_runs(cut: _Cut, first: int, last: int) -> list[Node]:
    """At most eight runs of nearly equal length; neighbours of one excess are one run."""
    count = last - first + 1
    parts = min(count, _MOST_RUNS)
    runs: list[tuple[int, int, Node]] = []
    for k in range(parts):
        start, stop = first + count * k // parts, first + count * (k + 1) // parts - 1
        found = cut.inner(start, stop)
        if runs and of(runs[-1][2], "excess") == of(found, "excess"):
            start = runs.pop()[0]
            found = cut.inner(start, stop)
        runs.append((start, stop, found))
    return [found for _, _, found in runs]
