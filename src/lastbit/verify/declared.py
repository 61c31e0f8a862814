"""Rounded float noise of any declared law: monotone code whose ideal density ratio is known."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any

from lastbit.errors import InvalidParameter, NoBound, NotCertified
from lastbit.exact import Number, positive
from lastbit.privacy import PureDP
from lastbit.verify.certificate import certified
from lastbit.verify.error_bounds.derivation import Derivation
from lastbit.verify.error_bounds.formats import BINARY64, Format
from lastbit.verify.error_bounds.intervals import Interval
from lastbit.verify.error_bounds.semantics import analyse, error_proof
from lastbit.verify.language.evaluation import real_value
from lastbit.verify.language.expressions import Add, Expression, Variable, expression_to_json
from lastbit.verify.noise_shape import (
    Generator,
    Unrecognised,
    generator_of,
    library_grid,
    noise_direction,
)
from lastbit.verify.rounding import (
    Code,
    Ulps,
    cell_of,
    check_cell,
    followed_code,
    general_excess,
    held_code,
    quotient_error,
    region_of,
)
from lastbit.verify.running.uniforms import draw_error

_PRECISION = 192
_MOST_ROUNDS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredAnalysis:
    """What rounded and truncated float noise of a declared law loses at most.

    Law      `epsilon` = rate * sensitivity + excess, excess = ln(1 + R exp(rate * cell)), R = 4
             delta_t/(cell - 2 delta_t). `pieces` bound the whole way from the real uniform to the
             float sum, so delta_n holds the generator's part too
    Theorem  docs/theory/rounding.md, the general form
    Source   paper 000, Theorem 4.5, corrected
    Checked  tests/verify/test_declared.py; the independent checker, `checker/rounding.py`
    """

    program: Expression
    format: Format
    ulps: tuple[tuple[str, Fraction], ...]
    uniform: Generator
    cell: Fraction
    region: Interval
    rate: Fraction
    sensitivity: Fraction
    pieces: tuple[Derivation, ...]
    ends: tuple[Derivation, Derivation]
    delta_round: Fraction
    code: tuple[Mapping[str, Any], ...] = ()

    @property
    def delta_n(self) -> Fraction:
        """How far the computed sum is from the ideal one, generator included."""
        return max(piece.error for piece in self.pieces)

    @property
    def delta_t(self) -> Fraction:
        """The same, with the rounding of the quotient by the cell."""
        return self.delta_n + self.delta_round

    @property
    def excess(self) -> Fraction:
        """What the floats cost."""
        ratio = 4 * self.delta_t / (self.cell - 2 * self.delta_t)
        return general_excess(self.rate * self.cell, ratio)

    @property
    def epsilon(self) -> Fraction:
        """The loss proved for the code."""
        return self.rate * self.sensitivity + self.excess

    @property
    def guarantee(self) -> PureDP:
        """What one release promises for the declared sensitivity."""
        return PureDP(self.epsilon)

    def certificate(self) -> dict[str, Any]:
        """The claim and its proof, for `lastbit.verify.check`."""
        off = {"u": draw_error(self.uniform)}
        proofs = [self._proof(piece, off) for piece in self.pieces]
        claim = {
            "code": [dict(one) for one in self.code],
            "programs": [expression_to_json(self.program)],
            "format": self.format.json(),
            "ulps": proofs[0]["claim"]["ulps"],
            "uniform": self.uniform.written(),
            "cell": str(self.cell),
            "region": [str(end) for end in self.region],
            "rate": str(self.rate),
            "sensitivity": str(self.sensitivity),
            "query_error": "0",
            "epsilon": str(self.epsilon),
        }
        figures = ("delta_n", "delta_round", "delta_t", "excess")
        body = {
            **{name: str(getattr(self, name)) for name in figures},
            "pieces": [
                {
                    "u": proof["claim"]["ranges"]["u"],
                    "error": proof["claim"]["error"],
                    "proof": proof["body"],
                }
                for proof in proofs
            ],
            "ends": [
                {
                    "u": proof["claim"]["ranges"]["u"][0],
                    "real": proof["claim"]["real"],
                    "proof": proof["body"],
                }
                for proof in (self._proof(end, {}) for end in self.ends)
            ],
            "query": None,
        }
        return certified("rounding", claim, body)

    def _proof(self, derivation: Derivation, errors: Mapping[str, Number]) -> dict[str, Any]:
        ulps = dict(self.ulps)
        claim, body = error_proof(derivation, errors=errors, format=self.format, ulps=ulps)
        return {"claim": claim, "body": body}


def declared_certificate(
    noise: Code,
    *,
    rate: Number,
    sensitivity: Number,
    cell: Number,
    region: tuple[Number, Number],
    uniform: Generator | None = None,
    parameters: Mapping[str, Any] | None = None,
    format: Format = BINARY64,
    ulps: Ulps | None = None,
) -> DeclaredAnalysis:
    """What noise of a law that you know loses, if it is rounded to the cell and kept in the region.

    `rate` is your claim: the ideal density changes by at most exp(rate d) over a distance d. It is
    held against the derivatives of the noise at many points and refused where it is false; that it
    holds everywhere stays declared. The code must be monotone in its uniform u, step by step.

    >>> import math
    >>> from lastbit.verify import Grid
    >>> def logistic(u):
    ...     return math.log(u) - math.log(1 - u)
    >>> found = declared_certificate(
    ...     logistic, rate=1, sensitivity=1, cell="1/4", region=(-8, 8), uniform=Grid(53, first=1)
    ... )
    >>> 1 < found.epsilon < 1 + Fraction(1, 10**6)
    True
    """
    size, ends = cell_of(cell), region_of(region)
    if any((end / size).denominator != 1 for end in ends):
        problem = "has an end that is no multiple of the cell"
        raise InvalidParameter("region", problem=problem, remedy="round it to one")
    code = followed_code(noise, "u", parameters=parameters)
    if len(code) != 1:
        raise NotCertified("code with a sign must be Laplace noise; write it with u alone")
    steps = code[0].expression
    program = Add(Variable("value"), steps)
    try:
        direction = noise_direction(steps)
    except Unrecognised as problem:
        raise NotCertified(f"the code cannot be followed (Condition 2): {problem}") from None
    generator = generator_of(uniform, format, default=library_grid)
    check_cell(format, ends, size)
    accuracy = {name: positive(error, "ulps") for name, error in (ulps or {}).items()}
    search = _Search(steps, program, direction, format, accuracy, generator, size, ends)
    pieces, cuts = search.stable()
    found = DeclaredAnalysis(
        program=program,
        format=format,
        ulps=tuple(sorted(accuracy.items())),
        uniform=generator,
        cell=size,
        region=ends,
        rate=positive(rate, "rate"),
        sensitivity=positive(sensitivity, "sensitivity"),
        pieces=pieces,
        ends=cuts,
        delta_round=search.quotient,
        code=held_code("noise", code, cell=size, region=ends, uniform=generator, form=format),
    )
    found.certificate()  # no number leaves that the checker rejects: a rate may be false
    return found


@dataclass(frozen=True, slots=True)
class _Search:
    """Looks for cuts beyond which the ideal noise leads to an end (Condition 3)."""

    noise: Expression
    program: Expression
    direction: int
    format: Format
    ulps: Ulps
    uniform: Generator
    cell: Fraction
    region: Interval

    @property
    def quotient(self) -> Fraction:
        return quotient_error(self.format, self.region, self.cell)

    def stable(self) -> tuple[tuple[Derivation, ...], tuple[Derivation, Derivation]]:
        stray = Fraction(0)
        for _ in range(_MOST_ROUNDS):
            far = self.region[1] - self.region[0] - self.cell / 2 + stray
            low, high = self._cut(far, below=True), self._cut(far, below=False)
            try:
                pieces = tuple(self._judged(part, draws=True) for part in _pieces(low, high))
                ends = (self._judged((low, low)), self._judged((high, high)))
            except NoBound as problem:
                raise NotCertified(f"the code has no error bound there: {problem}") from None
            delta_t = max(piece.error for piece in pieces) + self.quotient
            if 2 * delta_t >= self.cell:
                raise NotCertified(
                    "the floats stray by half a cell or more; pass a larger cell, a smaller region "
                    "or a finer uniform"
                )
            if delta_t <= stray:
                return pieces, ends
            stray = delta_t * Fraction(1025, 1024)
        raise NotCertified("the region grows with its own error (Condition 3)")

    def _cut(self, far: Fraction, *, below: bool) -> Fraction:
        """A uniform near 0, or near 1, at which the ideal noise is farther out than `far`."""
        sign = -self.direction if below else self.direction

        def reaches(t: Fraction) -> bool:
            value = real_value(self.noise, {"u": t if below else 1 - t}, precision=_PRECISION)
            return (value.ends[0] if sign > 0 else -value.ends[1]) > far

        t = _largest(reaches, draw_error(self.uniform))
        return t if below else 1 - t

    def _judged(self, u: Interval, *, draws: bool = False) -> Derivation:
        errors = {"u": draw_error(self.uniform)} if draws else {}
        ranges = {"u": u, "value": self.region}
        return analyse(self.program, ranges, errors=errors, format=self.format, ulps=self.ulps)


def _largest(reaches: Callable[[Fraction], bool], least: Fraction) -> Fraction:
    """The largest number of five bits below 1/2 that reaches far enough, and is not too small."""
    t = Fraction(1, 4)
    while not reaches(t):
        t /= 2
        if t <= 2 * least:
            raise NotCertified(
                "the uniform is too coarse for noise as far as the region is wide; pass a smaller "
                "region or a finer uniform"
            )
    step = t / 2
    for _ in range(4):
        if reaches(t + step):
            t += step
        step /= 2
    return t


def _pieces(low: Fraction, high: Fraction) -> list[Interval]:
    """From one cut to the other, finer towards both."""
    points = [low]
    while points[-1] * 4 < Fraction(1, 2) and len(points) < 6:
        points.append(points[-1] * 4)
    points.append(Fraction(1, 2))
    mirrored = [high]
    while (1 - mirrored[-1]) * 4 < Fraction(1, 2) and len(mirrored) < 6:
        mirrored.append(1 - (1 - mirrored[-1]) * 4)
    return list(pairwise([*points, *reversed(mirrored)]))
