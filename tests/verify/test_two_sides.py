"""A fault of the prover is seen by the checker, and a fault of the checker by the prover.

Each line of FAULTS is one mistake, made once on the prover's side and once on the checker's:

- a prover with it writes a certificate that the true checker refuses, so nothing is issued;
- a checker with it is told from a true one by the certificates here: it accepts what a prover with
  the same mistake wrote, or refuses what the true prover writes.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import partial
from importlib import import_module
from typing import Any

import pytest

from lastbit.checker import (
    answer,
    composition,
    error_bound as errors,
    intervals as floats,
    law,
    loss_derivation as derived,
    problem_of,
    release,
    rounding,
    shape,
    snapping,
)
from lastbit.checker.loss_rules import Noise
from lastbit.checker.numbers import digest
from lastbit.errors import NotCertified
from lastbit.privacy import ADD_REMOVE, ZCDP, ApproxLoss, LaplaceLoss, ThresholdLoss
from lastbit.tables.card.schema import Source
from lastbit.tables.plan.plan import planned
from lastbit.verify import (
    composition as composed,
    declared,
    direction as following,
    loss_derivation as deriving,
    noise_shape,
    rounded_code,
    rounding as prover,
    snapping as snapped,
)
from lastbit.verify.error_bounds import rules, semantics
from lastbit.verify.error_bounds.formats import BINARY16, Binary
from lastbit.verify.language.expressions import Add, Variable
from lastbit.verify.loss_rules import LossRules
from lastbit.verify.running import law as laws, witness
from lastbit.verify.running.code import Code
from lastbit.verify.running.uniforms import Grid
from lastbit.verify.tracing.trace import Followed, trace
from tests.cli.running import lastbit
from tests.release.pretend import card_of, part, query_of
from tests.verify.expressions import traced
from tests.verify.rounding_examples import one_uniform

Certificate = dict[str, Any]
Patch = Callable[[pytest.MonkeyPatch], None]
TINY = Fraction(1, 1 << 60)
# the rooms show functions of these names
sealing = import_module("lastbit.verify.certificate")
certifying = import_module("lastbit.release.certifying")
releasing = import_module("lastbit.release.release")


# ---------------------------------------------------------------- honest certificates


def rounded(value: float, u: float, sign: float) -> float:
    return min(max(0.25 * round((value + sign * 2.0 * math.log(u)) / 0.25), -4.0), 4.0) + 0.0


def naive(value: float, u: float) -> float:
    return value + math.log(2 * u) if u < 0.5 else value - math.log(2 - 2 * u)


def coarse(value: float, u: float) -> float:
    """Rises with u, but one factor changes its sign: no rule proves it."""
    return round(value + 8 * (u - 0.5) * abs(u - 0.5)) + 0.0


def singling(u: float) -> float:
    """Laplace noise but for one uniform, at which it is the other way round."""
    if u <= 0:
        return -math.log(2.0)
    return math.log(2 * u) if u < 0.5 else -math.log(2 - 2 * u)


SNAPPING = Code("lastbit.mechanisms.snapping:snapped", epsilon=1.0, bound=2.0)


def error_bound() -> Certificate:
    steps, errors_of = trace(lambda x: math.log(x) * x + 0.1), {"x": Fraction(1, 1 << 40)}
    found = semantics.analyse(steps, {"x": (2, 3)}, errors=errors_of)
    return semantics.error_certificate(found, errors=errors_of)


def exact_law(code: Code = SNAPPING, **settings: Any) -> Certificate:
    return laws.exact_loss(code, 0.0, 1.0, **settings).certificate(code)


def refutation() -> Certificate:
    found = witness.refute(naive, 0.0, 1.0, signs=None)
    assert found is not None
    return found.certificate(Code("tests.verify.test_two_sides:naive"))


def snapping_bound(**changes: Any) -> Certificate:
    return snapped.snapping_bound(**dict(epsilon=0.75, bound=64) | changes).certificate()


def by_tenths(value: float, u: float, sign: float) -> float:
    return min(max(0.1 * round((value + sign * 0.7 * math.log(u)) / 0.1), -4.0), 4.0) + 0.0


def far_out(value: float, u: float, sign: float) -> float:
    return min(max(1.0 * round(value + sign * math.log(u)), -512.0), 512.0) + 0.0


def from_one(value: float, u: float, sign: float) -> float:
    """With every float u the difference is rounded."""
    return min(max(0.25 * round((value + sign * math.log(1 - u)) / 0.25), -4.0), 4.0) + 0.0


def derivation(code: Callable[..., Any] = rounded, **settings: Any) -> Certificate:
    return rounded_code.derived_loss(code, sensitivity=1, **settings).certificate()


def shorter(true: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *given: true(*given)[:-1]


def drawn_noise(noise: Callable[..., Any] = one_uniform, **changes: Any) -> Certificate:
    settings: dict[str, Any] = dict(sensitivity=1, cell="1/10", region=(-4, 4), uniform=Grid(53))
    programs = tuple(Add(Variable("value"), steps) for steps in traced(noise, "u"))
    return prover.certified_sums(programs, **settings | changes).certificate()


def declared_noise(**changes: Any) -> Certificate:
    settings: dict[str, Any] = dict(sensitivity=1, cell="1/10", region=(-4, 4), rate=1)
    settings["uniform"] = Grid(53, first=1)
    noise = lambda u: math.log(u) - math.log(1 - u)  # noqa: E731  # no name: a claim about steps
    return declared.declared_certificate(noise, **settings | changes).certificate()


def whole_code() -> Certificate:
    return rounded_code.certified_code(rounded, sensitivity=1).certificate()


def release_of(**price: Any) -> Certificate:
    query = query_of(part("count", "n"), part("mean", "m"), keys=[("region", ("north", "south"))])
    plan = planned(query, card_of(unit="person", max_rows=4), **price or dict(epsilon=1))
    return certifying.certificate_of(plan, columns=[], rows=[])


def together(**changes: Any) -> Certificate:
    """Known by its moments: zCDP is among the releases."""
    releases = 20 * LaplaceLoss("1/5") + 30 * ApproxLoss("1/10", "1/100000000")
    parts = [*releases.parts, (ZCDP("1/1000000"), 1)]
    return composed.composition_certificate(parts, **dict(delta="1e-6") | changes)


def added_up() -> Certificate:
    releases = 20 * LaplaceLoss("1/5") + 30 * ApproxLoss("1/10", "1/100000000")
    return composed.composition_certificate(releases, delta="3/10000000")


def keys_found() -> Certificate:
    found = ThresholdLoss(5, 100, 2, neighbours=ADD_REMOVE).profile
    return composed.composition_certificate(found, delta="1e-6")


def published(record: Certificate) -> Certificate:
    """A saved answer on its way out; faults of answers are put in its place."""
    return record


def saved_answer(folder: Any) -> Certificate:
    path = folder / "rows.csv"
    path.write_text("person,region,x\n1,north,3\n2,south,5\n3,south,4\n", "utf-8")
    card = dataclasses.replace(card_of(), source=Source(kind="csv", paths=(str(path),)))
    query = query_of(part("count", "n"), keys=[("region", ("north", "south"))])
    found = releasing.released(query, card, planned(query, card, epsilon=1))
    return published(dict(found.record))


# ---------------------------------------------------------------- ways to be wrong


def less(factor: Fraction) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    return lambda true: lambda *given, **named: true(*given, **named) * factor


def nothing(true: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *_, **__: None


def yes(true: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *_, **__: True


def one_less(true: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *given: true(*given) - 1


def half_bound(true: Callable[..., Any]) -> Callable[..., Any]:
    """A release of which half the moments and the losses are counted."""

    def found(*given: Any) -> Any:
        bound = true(*given)
        less = {"moment": bound.moment, "greatest": bound.greatest}
        halves = {name: None if value is None else value / 2 for name, value in less.items()}
        return dataclasses.replace(bound, **halves)

    return found


def zero(true: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *_, **__: Fraction(0)


def inward(true: Callable[..., Any]) -> Callable[..., Any]:
    def interval(*given: Any) -> Any:
        low, high = true(*given)
        return low + (high - low) * TINY, high - (high - low) * TINY

    return interval


def halved_pair(true: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *given: tuple(end / 2 for end in true(*given))


def wrong(place: Any, name: str, how: Callable[[Callable[..., Any]], Callable[..., Any]]) -> Patch:
    """Put a wrong function, made of the true one, in its place."""

    def patch(monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(place, name, how(getattr(place, name)))

    return patch


def all_of(*patches: Patch) -> Patch:
    return lambda monkeypatch: [patch(monkeypatch) for patch in patches][0]  # noqa: RUF015


def blind_to(place: Any, problem: str) -> Patch:
    """A checker that does not see one of its own reasons to refuse."""
    return wrong(
        place,
        "require",
        lambda true: lambda holds, said: None if said.startswith(problem) else true(holds, said),
    )


def by_property(owner: type, name: str, factor: Fraction) -> Patch:
    true = vars(owner)[name].fget
    return lambda m: m.setattr(owner, name, property(lambda self: true(self) * factor))


HALF, MILLIONTH = less(Fraction(1, 2)), less(Fraction(1, 10**6))


def without_carried(true: Callable[..., Any]) -> Callable[..., Any]:
    return lambda real, exact, carried, ulps, form: true(real, exact, Fraction(0), ulps, form)


def without_error(true: Callable[..., Any]) -> Callable[..., Any]:
    return lambda rule, a, form, ulps: true(
        rule, dataclasses.replace(a, error=Fraction(0)), form, ulps
    )


def half_error(true: Callable[..., Any]) -> Callable[..., Any]:
    def proved(*given: Any) -> Any:
        found = true(*given)
        return dataclasses.replace(found, error=found.error / 2)

    return proved


def moved_mass(true: Callable[..., Any]) -> Callable[..., Any]:
    """A part in 2**60 of the probability, from the first output to each of the others."""

    def found(*given: Any) -> Any:
        whole = true(*given)
        if isinstance(whole, dict):
            shares = dict(sorted(whole.items()))
            return dict(zip(shares, moved(list(shares.values())), strict=True))
        return dataclasses.replace(whole, probabilities=tuple(moved(whole.probabilities)))

    def moved(shares: Any) -> list[Fraction]:
        first, *others = shares
        return [first - len(others) * TINY, *(share + TINY for share in others)]

    return found


def least_loss(true: Callable[..., Any]) -> Callable[..., Any]:
    def found(one: Any, two: Any) -> Any:
        pairs = zip(one.outputs, one.probabilities, two.probabilities, strict=True)
        output, p, q = min(pairs, key=lambda pair: pair[1] / pair[2])
        return laws.Worst(output=output, probability=p, other=q)

    return found


def short_preimage(true: Callable[..., Any]) -> Callable[..., Any]:
    def found(self: Any, low: int, high: int) -> Any:
        return tuple(
            dataclasses.replace(p, last=p.last - 1) if p.first < p.last else p
            for p in true(self, low, high)
        )

    return found


def without_next(true: Callable[..., Any]) -> Callable[..., Any]:
    """NEXT concludes as if uniforms had no distance from one another."""

    def found(self: Any, reach: Fraction) -> Any:
        step = true(self, reach)
        if isinstance(step, dict):
            return {**step, "values": {**step["values"], "high": step["values"]["low"]}}
        values = (("low", step["low"]), ("high", step["low"]))
        return dataclasses.replace(step, values=values)

    return found


def without_delta(true: Callable[..., Any]) -> Callable[..., Any]:
    def found(self: Any, reach: Fraction, excess: Fraction) -> Any:
        step = true(self, reach, excess)
        if isinstance(step, dict):
            return {**step, "values": {"delta": "0"}}
        return dataclasses.replace(step, values=(("delta", Fraction(0)),))

    return found


def up_only(true: Callable[..., Any]) -> Callable[..., Any]:
    """A case counts how far probabilities rise, not how far they fall."""

    def found(name: str, *kinds: Any) -> Any:
        if kinds and isinstance(kinds[0], list):
            excess = max(Fraction(kind["values"]["up"]) for kind in kinds[0])
            return {**true(name, *kinds), "values": {"excess": str(excess)}}
        excess = max(kind["up"] for kind in kinds)
        return dataclasses.replace(true(name, *kinds), values=(("excess", excess),))

    return found


def double_scale(true: Callable[..., Any]) -> Callable[..., Any]:
    """Noise that is taken for twice as wide as it is."""

    def found(*given: Any) -> Any:
        whole = true(*given)
        if hasattr(whole, "logs"):
            return dataclasses.replace(whole, logs=tuple((2 * k, a, b) for k, a, b in whole.logs))
        factor, alpha, beta = whole.log
        return dataclasses.replace(whole, log=(2 * factor, alpha, beta))

    return found


def half_as_far(true: Callable[..., Any]) -> Callable[..., Any]:
    return lambda side, far, **rest: true(side, far / 2, **rest)


def other_steps(true: Callable[..., Any]) -> Callable[..., Any]:
    """The meaning of the code with half of its noise: a factor was missed."""

    def found(code: Any, *inputs: str, **named: Any) -> Any:
        return tuple(
            dataclasses.replace(one, expression=other.expression)
            for one, other in zip(
                true(code, *inputs, **named), true(twice, *inputs, **named), strict=True
            )
        )

    return found


def twice(value: float, u: float, sign: float) -> float:
    return min(max(0.25 * round((value + sign * 4.0 * math.log(u)) / 0.25), -4.0), 4.0) + 0.0


def other_record(true: Callable[..., Any]) -> Callable[..., Any]:
    """The same, and the record of its steps too: only the running code tells."""

    def found(code: Any, *inputs: str, **named: Any) -> Any:
        return tuple(
            dataclasses.replace(one, expression=other.expression, rows=other.rows)
            for one, other in zip(
                true(code, *inputs, **named), true(twice, *inputs, **named), strict=True
            )
        )

    return found


def forged(change: Callable[[Certificate, Certificate], None]) -> Patch:
    """A release whose claim and plan were changed, and all digests worked out anew."""

    def how(true: Callable[..., Any]) -> Callable[..., Any]:
        def made(kind: str, claim: Certificate, assumptions: Any, body: Certificate) -> Any:
            claim, body = dict(claim), dict(body)
            change(claim, body)
            body["plan_digest"] = digest(body["plan"])
            return true(kind, claim, assumptions, body)

        return made

    return wrong(certifying, "certificate", how)


def half(text: str) -> str:
    return str(Fraction(text) / 2)


def halve_sensitivity(claim: Certificate, body: Certificate) -> None:
    body["moves"] = {
        name: {norm: half(size) for norm, size in moved.items()}
        for name, moved in body["moves"].items()
    }
    for one in body["plan"]["parts"]:
        one["sensitivity"] = {norm: half(size) for norm, size in one["sensitivity"].items()}
        one["scale"] = half(one["scale"])


def halve_noise(claim: Certificate, body: Certificate) -> None:
    for one in body["plan"]["parts"]:
        one["scale"] = half(one["scale"])


def halve_variance(claim: Certificate, body: Certificate) -> None:
    for one in body["plan"]["parts"]:
        one["variance"] = half(one["variance"])


def forget_a_part(claim: Certificate, body: Certificate) -> None:
    cost = Fraction(claim["epsilon"]) - Fraction(body["plan"]["parts"][0]["epsilon"])
    claim["epsilon"] = body["plan"]["cost"]["epsilon"] = str(cost)


def half_moves(true: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *given: {norm: Fraction(size, 2) for norm, size in true(*given).items()}


def half_proved(true: Callable[..., Any]) -> Callable[..., Any]:
    return lambda text, proved: true(text, proved / 2)


def one_part_less(true: Callable[..., Any]) -> Callable[..., Any]:
    return lambda plan, losses: true(plan, losses[1:])


def saying(change: Callable[[Certificate], None]) -> Patch:
    """An answer whose record says something else than was certified."""

    def how(true: Callable[..., Any]) -> Callable[..., Any]:
        def changed(record: Certificate) -> Certificate:
            change(record)
            return record

        return changed

    return lambda monkeypatch: monkeypatch.setitem(globals(), "published", how(published))


def promise_half(record: Certificate) -> None:
    record["guarantee"] = record["guarantee"].replace("epsilon = 1 ", "epsilon = 0.5 ")


def change_a_count(record: Certificate) -> None:
    first, *rest = record["rows"]
    cells = [{**cell, "value": cell["value"] + 1} for cell in first["cells"]]
    record["rows"] = [{**first, "cells": cells}, *rest]


def halve_cost(record: Certificate) -> None:
    record["cost"] = {**record["cost"], "epsilon": "1/2"}


class Same(str):
    """A digest that equals every other."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = str.__hash__


def any_digest(true: Callable[..., Any]) -> Callable[..., Any]:
    return lambda values: Same()


# ---------------------------------------------------------------- the table


@dataclasses.dataclass(frozen=True)
class Fault:
    """A kind of certificate, a mistake, how it is made on each side, and where it shows."""

    kind: str
    mistake: str
    prover: Patch
    checker: Patch
    way: Callable[..., Certificate]

    def __str__(self) -> str:
        return f"{self.kind}: {self.mistake}"


def unchanged(monkeypatch: pytest.MonkeyPatch) -> None:
    """The prover takes this on trust: what it was told is wrong, not what it does."""


def drawn(mistake: str, mine: Patch, its: Patch, **how: Any) -> Fault:
    return Fault("rounding, drawn noise", mistake, mine, its, partial(drawn_noise, **how))


def of_declared(mistake: str, mine: Patch, its: Patch, **how: Any) -> Fault:
    return Fault("rounding, declared noise", mistake, mine, its, partial(declared_noise, **how))


FAULTS = (
    Fault(
        "error-bound",
        "a step's rounding halved",
        wrong(Binary, "rounding_error", HALF),
        wrong(floats.NumberFormat, "half", HALF),
        error_bound,
    ),
    Fault(
        "error-bound",
        "a rule that passes on no error",
        wrong(rules, "_approximate", without_carried),
        wrong(errors, "library", without_error),
        error_bound,
    ),
    Fault(
        "error-bound",
        "all roundings together halved",
        wrong(semantics, "mean_error", HALF),
        wrong(errors._Proof, "_mean", half_error),
        error_bound,
    ),
    Fault(
        "error-bound",
        "a logarithm's interval rounded inward",
        wrong(rules, "ln_interval", inward),
        wrong(errors, "ln", inward),
        error_bound,
    ),
    Fault(
        "law",
        "a part in 2**60 of the mass misplaced",
        wrong(laws, "_law", moved_mass),
        wrong(law, "_law", moved_mass),
        exact_law,
    ),
    Fault(
        "law",
        "the loss halved",
        wrong(laws, "_outward", halved_pair),
        wrong(law, "ln_bounds", halved_pair),
        exact_law,
    ),
    Fault(
        "law",
        "the least loss for the greatest",
        wrong(laws, "_worst", least_loss),
        blind_to(law, "another output is worse"),
        exact_law,
    ),
    Fault(
        "law",
        "monotone without a proof",
        wrong(following, "_way", yes),
        wrong(law, "check_monotone", nothing),
        partial(
            exact_law,
            Code("tests.verify.test_two_sides:coarse"),
            signs=None,
            uniform=Grid(10, offset="1/2"),
        ),
    ),
    Fault(
        "refutation",
        "a probability too large",
        wrong(witness._Code, "share", less(1 + TINY)),
        wrong(law._Code, "share", less(1 + TINY)),
        refutation,
    ),
    Fault(
        "refutation",
        "a preimage cut short",
        wrong(witness._Code, "preimage", short_preimage),
        blind_to(law, "outputs after the range"),
        refutation,
    ),
    Fault(
        "snapping",
        "no distance between uniforms",
        wrong(LossRules, "least_uniform", without_next),
        wrong(Noise, "uniforms", without_next),
        snapping_bound,
    ),
    Fault(
        "snapping",
        "half the rounding of an edge",
        wrong(LossRules, "half_ulp", HALF),
        wrong(Noise, "half_ulp", HALF),
        snapping_bound,
    ),
    Fault(
        "snapping",
        "falling probabilities not counted",
        wrong(snapped, "case_step", up_only),
        wrong(snapping, "case", up_only),
        snapping_bound,
    ),
    Fault(
        "snapping",
        "the least uniform not paid for",
        wrong(LossRules, "range", without_delta),
        wrong(Noise, "range", without_delta),
        partial(snapping_bound, epsilon=1, bound=8, format="binary16"),
    ),
    Fault(
        "derivation",
        "no distance between uniforms",
        wrong(LossRules, "least_uniform", without_next),
        wrong(Noise, "uniforms", without_next),
        derivation,
    ),
    Fault(
        "derivation",
        "half the rounding of an edge",
        wrong(LossRules, "half_ulp", HALF),
        wrong(Noise, "half_ulp", HALF),
        derivation,
    ),
    Fault(
        "derivation",
        "falling probabilities not counted",
        wrong(deriving, "case_step", up_only),
        wrong(derived, "case", up_only),
        derivation,
    ),
    Fault(
        "derivation",
        "the least uniform not paid for",
        wrong(LossRules, "range", without_delta),
        wrong(Noise, "range", without_delta),
        partial(derivation, far_out),
    ),
    Fault(
        "derivation",
        "a draw off by a millionth of its error",
        wrong(deriving, "draw_error", MILLIONTH),
        wrong(derived, "draw_error", MILLIONTH),
        partial(derivation, uniform=Grid(53, offset=1)),
    ),
    Fault(
        "derivation",
        "a chain that forgets its last number",
        wrong(deriving, "_chain", shorter),
        wrong(derived, "_chain", shorter),
        derivation,
    ),
    Fault(
        "derivation",
        "no error of the quotient",
        wrong(prover, "quotient_error", zero),
        wrong(derived, "quotient_error", zero),
        partial(derivation, by_tenths),
    ),
    Fault(
        "derivation",
        "an argument that is rounded",
        wrong(deriving, "_check_argument", nothing),
        wrong(derived, "_check_argument", nothing),
        partial(derivation, from_one),
    ),
    drawn(
        "a draw off by a millionth of its error",
        wrong(noise_shape, "draw_error", MILLIONTH),
        wrong(floats, "draw_error", MILLIONTH),
    ),
    drawn(
        "no error of the quotient",
        wrong(prover, "quotient_error", zero),
        wrong(rounding, "quotient_error", zero),
    ),
    drawn(
        "noise taken for twice as wide",
        wrong(noise_shape.Following, "whole", double_scale),
        wrong(rounding, "shape", double_scale),
    ),
    drawn(
        "a sign that rounding may change",
        wrong(noise_shape, "_is_steady", yes),
        wrong(rounding, "steady", nothing),
        region=(-3, 3),
        cell=3,
        format=BINARY16,
        uniform=Grid(11),
    ),
    drawn(
        "a uniform that is singled out",
        wrong(noise_shape, "_check_ends", nothing),
        blind_to(shape, "the code singles out"),
        noise=singling,
    ),
    drawn(
        "a cut half as far out",
        wrong(prover, "cut_beyond", half_as_far),
        by_property(rounding._Setting, "far", Fraction(1, 2)),
    ),
    drawn(
        "half the excess",
        wrong(prover, "laplace_excess", HALF),
        wrong(rounding, "laplace_excess", HALF),
    ),
    drawn(
        "half the rounding of each step",
        wrong(Binary, "rounding_error", HALF),
        wrong(floats.NumberFormat, "half", HALF),
    ),
    of_declared(
        "a draw off by a millionth of its error",
        wrong(declared, "draw_error", MILLIONTH),
        wrong(rounding, "draw_error", MILLIONTH),
    ),
    of_declared(
        "no error of the quotient",
        wrong(prover, "quotient_error", zero),
        wrong(rounding, "quotient_error", zero),
    ),
    of_declared(
        "half the excess",
        wrong(declared, "general_excess", HALF),
        wrong(rounding, "general_excess", HALF),
    ),
    of_declared(
        "a rate that the noise has not got",
        unchanged,
        all_of(
            wrong(rounding, "check_rate", nothing),
            wrong(rounding, "_require_possible_rate", nothing),
        ),
        rate="1/2",
    ),
    Fault(
        "rounding, whole code",
        "a factor of the code missed",
        wrong(rounded_code, "followed_code", other_steps),
        wrong(rounding, "check_records", nothing),
        whole_code,
    ),
    Fault(
        "rounding, whole code",
        "steps that the code does not take",
        all_of(
            wrong(rounded_code, "followed_code", other_record), wrong(Followed, "agree", nothing)
        ),
        wrong(rounding, "check_code", nothing),
        whole_code,
    ),
    Fault(
        "release",
        "half the sensitivity",
        forged(halve_sensitivity),
        wrong(release, "moves_of", half_moves),
        release_of,
    ),
    Fault(
        "release",
        "half the noise",
        forged(halve_noise),
        wrong(release, "stated", half_proved),
        release_of,
    ),
    Fault(
        "release",
        "half the variance of Gaussian noise",
        forged(halve_variance),
        wrong(release, "stated", half_proved),
        partial(release_of, rho=1),
    ),
    Fault(
        "release",
        "a part left out of the sum",
        forged(forget_a_part),
        wrong(release, "total_loss", one_part_less),
        release_of,
    ),
    Fault(
        "answer",
        "a promise of half the loss",
        saying(promise_half),
        wrong(answer, "_check_words", nothing),
        saved_answer,
    ),
    Fault(
        "answer",
        "a number changed after the release",
        saying(change_a_count),
        wrong(answer, "digest", any_digest),
        saved_answer,
    ),
    Fault(
        "composition",
        "too small a kappa",
        wrong(composed, "_log_kappa", one_less),
        wrong(composition, "_log_kappa", one_less),
        together,
    ),
    Fault(
        "composition",
        "half the moments",
        wrong(composed, "_log_moment", HALF),
        wrong(composition, "_checked", half_bound),
        together,
    ),
    Fault(
        "composition",
        "nothing told",
        wrong(composed, "_told", zero),
        wrong(composition, "_some", zero),
        partial(together, delta="1/1000000"),
    ),
    Fault(
        "composition",
        "keys that are never shown",
        wrong(composed, "_told", zero),
        wrong(composition, "_some", zero),
        keys_found,
    ),
    Fault(
        "composition",
        "half of the greatest losses",
        wrong(composed, "_greatest", HALF),
        wrong(composition, "_checked", half_bound),
        added_up,
    ),
    Fault("answer", "half the cost", saying(halve_cost), wrong(answer, "same", yes), saved_answer),
)
"""Every kind of certificate there is; the whole-code line needs no row of its own kind."""


# ---------------------------------------------------------------- both directions


@pytest.fixture
def folder(tmp_path: Any) -> Iterator[Any]:
    yield tmp_path


def made(fault: Fault, folder: Any) -> Certificate:
    return fault.way(folder) if fault.kind == "answer" else fault.way()


@pytest.fixture(scope="module")
def truths(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Fault], Certificate | None]:
    """What the true prover writes and the true checker accepts, made once for faults of one way."""
    known: dict[str, Certificate | None] = {}

    def truth_of(fault: Fault) -> Certificate | None:
        name = f"{fault.kind} {getattr(fault.way, 'args', ())} {getattr(fault.way, 'keywords', {})}"
        if name not in known:
            try:
                truth = made(fault, tmp_path_factory.mktemp("true"))
                assert problem_of(truth) is None
                known[name] = truth
            except NotCertified:  # the prover was told a falsehood: the truth has no certificate
                known[name] = None
        return known[name]

    return truth_of


def lie_of(fault: Fault, monkeypatch: pytest.MonkeyPatch, folder: Any) -> Certificate:
    """What a prover with the fault writes if nothing stops it."""
    with monkeypatch.context() as patched:
        patched.setattr(sealing, "problem_of", lambda _: None)
        fault.prover(patched)
        return made(fault, folder)


@pytest.mark.parametrize("fault", FAULTS, ids=str)
def test_each_side_notices_a_fault_of_the_other(fault, truths, monkeypatch, folder):
    lie, truth = lie_of(fault, monkeypatch, folder), truths(fault)
    assert lie != truth
    assert problem_of(lie) is not None
    with monkeypatch.context() as patched:  # nothing is issued by a prover with the fault
        fault.prover(patched)
        if fault.kind == "answer":
            assert problem_of(made(fault, folder)) is not None
        else:
            with pytest.raises(NotCertified, match="the independent checker rejects"):
                made(fault, folder)
    with monkeypatch.context() as patched:  # and a checker with the fault is told from a true one
        fault.checker(patched)
        takes_the_lie = problem_of(lie) is None
        assert takes_the_lie or (truth is not None and problem_of(truth) is not None)


@pytest.mark.parametrize(
    ("patch", "asked"),
    [
        (unchanged, ()),
        (wrong(noise_shape, "draw_error", MILLIONTH), ()),
        (wrong(prover, "laplace_excess", HALF), ()),
        (wrong(laws, "_outward", halved_pair), ("--inputs", "0", "1")),
    ],
    ids=["no fault", "draws", "excess", "loss"],
)
def test_the_command_line_writes_nothing_that_the_checker_refuses(
    patch, asked, monkeypatch, tmp_path
):
    monkeypatch.chdir(tmp_path)
    patch(monkeypatch)
    shape_of = () if asked else ("--grid", "1/4", "--region", "-4", "4")
    named = ("tests.verify.test_two_sides:rounded", "--epsilon", "0.6", *asked, *shape_of)
    result = lastbit("verify", *named, "--uniform", "grid53-open", "--certificate", "proof.json")
    if patch is unchanged:
        assert result.exit_code == 0, result.output
        assert problem_of(json.loads((tmp_path / "proof.json").read_text("utf-8"))) is None
    else:
        assert result.exit_code != 0
        assert "the independent checker rejects" in " ".join(result.output.split())
        assert not (tmp_path / "proof.json").exists()


def test_the_table_has_every_kind_of_certificate():
    kinds = {fault.kind.partition(",")[0] for fault in FAULTS}
    assert kinds == {
        "error-bound",
        "law",
        "refutation",
        "snapping",
        "derivation",
        "rounding",
        "release",
        "answer",
        "composition",
    }
