"""Rounded float noise of any declared law: monotone code whose ideal density ratio is known."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any

from lastbit.errors import NotCertified
from lastbit.exact import Number, positive
from lastbit.privacy import PureDP
from lastbit.verify.certificate import Certified, written
from lastbit.verify.error_bounds.formats import BINARY64, Format, Interval
from lastbit.verify.error_bounds.rules import Derivation
from lastbit.verify.language.evaluation import real_value
from lastbit.verify.language.expressions import Add, Expression, Variable
from lastbit.verify.noise_shape import Unrecognised, library_grid, noise_direction
from lastbit.verify.rounding import Code, Setting, Ulps, followed_code, general_excess, setting_of
from lastbit.verify.running.uniforms import Generator, draw_error

_PRECISION = 192


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredAnalysis(Setting, Certified):
    """What rounded and truncated float noise of a declared law loses at most.

    Law      `epsilon` = rate * sensitivity + excess, excess = ln(1 + R exp(rate * cell)), R = 4
             delta_t/(cell - 2 delta_t). `pieces` bound the whole way from the real uniform to the
             float sum, so delta_n holds the generator's part too
    Theorem  docs/theory/rounding.md, the general form
    Source   paper 000, Theorem 4.5, corrected
    Checked  tests/verify/test_declared.py; the independent checker, `checker/rounding.py`
    """

    program: Expression
    rate: Fraction
    sensitivity: Fraction
    pieces: tuple[Derivation, ...]
    ends: tuple[Derivation, ...]
    code: tuple[Mapping[str, Any], ...] = ()

    @property
    def delta_n(self) -> Fraction:
        """How far the computed sum is from the ideal one, generator included."""
        return max(piece.error for piece in self.pieces)

    @property
    def delta_t(self) -> Fraction:
        return self.delta_n + self.delta_round

    @property
    def excess(self) -> Fraction:
        ratio = 4 * self.delta_t / (self.cell - 2 * self.delta_t)
        return general_excess(self.rate * self.cell, ratio)

    @property
    def epsilon(self) -> Fraction:
        return self.rate * self.sensitivity + self.excess

    @property
    def guarantee(self) -> PureDP:
        return PureDP(self.epsilon)

    def statement(self) -> tuple[str, dict[str, Any], dict[str, Any]]:
        off = {"u": draw_error(self.uniform)}
        claim = self.claim(
            [self.program],
            self.code,
            rate=self.rate,
            sensitivity=self.sensitivity,
            query_error=Fraction(0),
            epsilon=self.epsilon,
        )
        ends = []
        for end in self.ends:
            proof = self.proof(end)
            u, real = proof["claim"]["ranges"]["u"][0], proof["claim"]["real"]
            ends.append({"u": u, "real": real, "proof": proof["body"]})
        figures = ("delta_n", "delta_round", "delta_t", "excess")
        body = {name: written(getattr(self, name)) for name in figures}
        pieces = [self.piece(piece, off) for piece in self.pieces]
        return "rounding", claim, {**body, "pieces": pieces, "ends": ends, "query": None}


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
    setting = setting_of(cell, region, uniform, format, ulps, default=library_grid)
    code = followed_code(noise, "u", parameters=parameters)
    if len(code) != 1:
        raise NotCertified("code with a sign must be Laplace noise; write it with u alone")
    steps = code[0].expression
    program = Add(Variable("value"), steps)
    try:
        direction = noise_direction(steps)
    except Unrecognised as problem:
        raise NotCertified(f"the code cannot be followed (Condition 2): {problem}") from None
    off = draw_error(setting.uniform)

    def cut(far: Fraction, *, below: bool) -> Fraction:
        """A uniform near 0, or near 1, at which the ideal noise is farther out than `far`."""
        sign = -direction if below else direction

        def reaches(t: Fraction) -> bool:
            value = real_value(steps, {"u": t if below else 1 - t}, precision=_PRECISION)
            return (value.ends[0] if sign > 0 else -value.ends[1]) > far

        t = _largest(reaches, off)
        return t if below else 1 - t

    def cut_off(far: Fraction) -> tuple[tuple[tuple[Derivation, ...], ...], Fraction]:
        low, high = cut(far, below=True), cut(far, below=False)
        parts = [setting.analysed(program, {"u": u}, {"u": off}) for u in _pieces(low, high)]
        ends = [setting.analysed(program, {"u": (u, u)}) for u in (low, high)]
        return (tuple(parts), tuple(ends)), max(part.error for part in parts)

    pieces, ends = setting.stable(cut_off)
    found = DeclaredAnalysis(
        **setting.fields(),
        program=program,
        rate=positive(rate, "rate"),
        sensitivity=positive(sensitivity, "sensitivity"),
        pieces=pieces,
        ends=ends,
        code=setting.held("noise", code),
    )
    found.certificate()  # no number leaves that the checker rejects: a rate may be false
    return found


def _largest(reaches: Callable[[Fraction], bool], least: Fraction) -> Fraction:
    """The largest number of five bits below 1/2 that reaches far enough, and is not too small."""
    t = Fraction(1, 4)
    while not reaches(t):
        t /= 2
        if t <= 2 * least:
            raise NotCertified(
                "the uniform is too coarse for so wide a region; pass a smaller region or a finer "
                "uniform"
            )
    step = t / 2
    for _ in range(4):
        if reaches(t + step):
            t += step
        step /= 2
    return t


def _pieces(low: Fraction, high: Fraction) -> list[Interval]:
    """From one cut to the other, finer towards both."""

    def towards_half(t: Fraction) -> list[Fraction]:
        points = [t]
        while points[-1] * 4 < Fraction(1, 2) and len(points) < 6:
            points.append(points[-1] * 4)
        return points

    mirrored = [1 - t for t in towards_half(1 - high)]
    return list(pairwise([*towards_half(low), Fraction(1, 2), *reversed(mirrored)]))
