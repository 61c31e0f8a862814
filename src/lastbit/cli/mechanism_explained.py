"""What `lastbit mechanism` explains: the law, the theorem, the noise, the error, an example.

Everything here is worked out from public parameters. The data is never looked at: probabilities are
shown for a true value that is called x, so an explanation may be published with the release.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from lastbit.cli.options import title
from lastbit.cli.output import Columns, Facts, Heading, Part, Words
from lastbit.exact import Ball, certain, exact_text, rounded_up
from lastbit.laws import OnGrid
from lastbit.mechanisms import (
    AboveThreshold,
    Exponential,
    Gaussian,
    Histogram,
    Laplace,
    PermuteAndFlip,
    RandomizedResponse,
    ReportNoisyMax,
    ThresholdedHistogram,
)

BETAS = ("0.05", "0.01")
Selection = Exponential | PermuteAndFlip | ReportNoisyMax


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """A mechanism in the words and numbers of a page; `errors` are (beta, bound) pairs."""

    name: str
    guarantee: Any
    law: str
    theorem: str
    source: str
    facts: tuple[tuple[str, str], ...]
    errors: tuple[tuple[str, str], ...]
    error_words: str
    table: Columns | None
    caption: str

    @property
    def summary(self) -> str:
        """One line for a reader of nothing but the release."""
        return f"{title(self.guarantee)}; {self._bars()[0][1]}"

    def _bars(self) -> list[tuple[str, str]]:
        levels = [exact_text(100 * (1 - Fraction(beta))) for beta, _ in self.errors]
        return [
            (f"error, {level} %", self.error_words.format(bound=bound, level=level))
            for level, (_, bound) in zip(levels, self.errors, strict=True)
        ]

    def page(self, *, drawn: bool) -> tuple[Part, ...]:
        """The explanation, and whether anything was drawn."""
        facts = (
            ("law", self.law),
            ("theorem", self.theorem),
            ("source", self.source),
            *self.facts,
            ("guarantee", title(self.guarantee)),
            ("neighbours", str(self.guarantee.neighbours)),
            *self._bars(),
        )
        note = (
            "All of this follows from the public parameters alone; only the release below has seen "
            "the data, and it costs the guarantee once."
            if drawn
            else "Nothing was drawn and nothing was spent: no data was given."
        )
        table = () if self.table is None else (Words(self.caption), self.table)
        heading = Heading(self.name.replace("-", " "), title(self.guarantee).partition(", ")[2])
        return heading, Facts(facts), *table, Words(note)


# -- noise added to numbers --


def laplace(mechanism: Laplace) -> Explanation:
    """Discrete Laplace noise."""
    return Explanation(
        name="laplace",
        guarantee=mechanism.guarantee,
        law="x + X, P[X = k] proportional to exp(-|k|/scale)" + _on(mechanism),
        theorem="inputs at most s apart cost ε = s/scale, exactly",
        source="Dwork, McSherry, Nissim, Smith 2006; Ghosh et al. 2009",
        facts=(
            ("sensitivity", exact_text(mechanism.sensitivity)),
            ("noise scale", exact_text(mechanism.scale)),
            *_grid(mechanism),
        ),
        errors=_bounds(mechanism.accuracy),
        error_words="{level} % of the releases are off by at most {bound}",
        **_neighbours(mechanism, math.floor(mechanism.lattice.l1_steps(mechanism.sensitivity))),
    )


def gaussian(mechanism: Gaussian) -> Explanation:
    """Discrete Gaussian noise."""
    raw = mechanism.guarantee_at(mechanism.sensitivity)
    curve = (
        ()
        if mechanism.target is not None
        else (("ε at δ = 1e-9", f"{rounded_up(mechanism.epsilon('1e-9'))}, by the exact curve"),)
    )
    return Explanation(
        name="gaussian",
        guarantee=mechanism.guarantee,
        law="x + X, P[X = k] proportional to exp(-k²/(2 variance))" + _on(mechanism),
        theorem="inputs at most s apart are (s²/(2 variance))-zCDP, exactly",
        source="Canonne, Kamath, Steinke 2020, Theorems 7 and 14",
        facts=(
            ("sensitivity", exact_text(mechanism.sensitivity)),
            ("deviation", f"{rounded_up(mechanism.standard_deviation_upper)}, rounded up"),
            *_grid(mechanism),
            *((("method", mechanism.method),) if mechanism.method else ()),
            ("as zCDP", f"ρ = {_brief(raw.rho)}"),
            *curve,
        ),
        errors=_bounds(mechanism.accuracy),
        error_words="{level} % of the releases are off by at most {bound}",
        **_neighbours(mechanism, math.floor(mechanism.lattice.l2_steps(mechanism.sensitivity))),
    )


def histogram(mechanism: Histogram) -> Explanation:
    """Counts of declared keys."""
    return Explanation(
        name="histogram",
        guarantee=mechanism.guarantee,
        law="each declared key's count + X, P[X = k] proportional to exp(-|k|/scale)",
        theorem="a person moves the counts by at most s together: ε = s/scale, exactly",
        source="Dwork, McSherry, Nissim, Smith 2006",
        facts=(
            ("keys", f"{len(mechanism.keys)} declared, {mechanism.keys_per_person} a person"),
            ("sensitivity", exact_text(Fraction(mechanism.sensitivity))),
            ("noise scale", exact_text(mechanism.scale)),
        ),
        errors=_bounds(lambda beta: mechanism.accuracy(beta, keys=len(mechanism.keys))),
        error_words="in {level} % of the releases no key is off by more than {bound}",
        caption="One key that x people have, and the same with one person more:",
        table=_pairs(mechanism.law(0).probability, mechanism.per_key, Fraction),
    )


def _on(mechanism: Laplace | Gaussian) -> str:
    return ", k in steps of the grid" if mechanism.lattice.rounds else ", k a whole number"


def _grid(mechanism: Laplace | Gaussian) -> tuple[tuple[str, str], ...]:
    if not mechanism.lattice.rounds:
        return ()
    return (("grid", f"{exact_text(mechanism.lattice.step)}; the rounding to it is counted"),)


def _neighbours(mechanism: Laplace | Gaussian, moved: int) -> dict[str, Any]:
    step, law = mechanism.lattice.step, mechanism.law(0)

    def chance(k: int) -> Ball:
        return law.probability(k * step) if isinstance(law, OnGrid) else law.probability(k)

    apart = "as far as one person can move it" + (
        ", rounding included" if mechanism.lattice.rounds else ""
    )
    return {
        "caption": f"The true value x, and another one y = x + s, {apart}:",
        "table": _pairs(chance, moved, lambda k: k * step),
    }


def _pairs(chance: Callable[[int], Ball], moved: int, value: Callable[[int], Fraction]) -> Columns:
    """Outputs near x: their exact probabilities from x and from x + s, and the ratio."""
    unit = max(moved, 1)
    outputs = range(-2 * unit, 3 * unit + 1, unit)
    rows = [(_place(value(k)), chance(k), chance(k - moved)) for k in outputs]
    return _ratios(("output", "P if the truth is x", f"P if it is {_place(value(moved))}"), rows)


def _ratios(headings: tuple[str, str, str], rows: list[tuple[str, Ball, Ball]]) -> Columns:
    """Two probabilities of each output, and the first over the second."""
    cells = [(name, certain(p), certain(q), _ratio(p, q)) for name, p, q in rows]
    return Columns((*headings, "ratio"), cells, numbers=(1, 2, 3))


def _place(distance: Fraction) -> str:
    if distance == 0:
        return "x"
    text = exact_text(abs(distance))
    short = text if len(text) <= 12 else f"{float(abs(distance)):.6g}"
    return f"x {'-' if distance < 0 else '+'} {short}"


def _ratio(first: Ball, second: Ball) -> str:
    try:
        return certain(first / second)
    except ArithmeticError:
        return "-"


# -- a person's own answer --


def randomized_response(mechanism: RandomizedResponse) -> Explanation:
    """Answers perturbed one by one."""
    keep, count = mechanism.keep, mechanism.categories
    other = (1 - keep) / (count - 1)
    same, rest = Ball.of(keep), Ball.of(other)
    rows = [("0", same, rest), ("1", rest, same)]
    if count > 2:
        rows.append(("any other", rest, rest))
    return Explanation(
        name="randomized-response",
        guarantee=mechanism.guarantee,
        law="the answer itself with probability keep, else any other, all alike",
        theorem="the likelihood ratio is keep (k-1)/(1-keep) ≤ e^ε for k categories",
        source="Warner 1965; paper 003, section 2.3",
        facts=(
            ("categories", f"{count:,}"),
            ("keep", f"{certain(Ball.of(keep), 12)}, a fraction rounded down, never up"),
            (
                "the same as",
                f"the truth with probability {certain(Ball.of(mechanism.truth_probability))}, "
                "else any category by lot",
            ),
        ),
        errors=_bounds(lambda beta: mechanism.accuracy(beta, answers=100)),
        error_words="of 100 answers at most {bound} are changed, in {level} % of the polls",
        caption="Two people, whose answers are 0 and 1:",
        table=_ratios(("output", "P if the answer is 0", "P if it is 1"), rows),
    )


# -- a candidate --


def selection(name: str, mechanism: Selection, count: int | None) -> Explanation:
    """The three mechanisms that pick a candidate."""
    laws = {
        "exponential": (
            "P[i] proportional to exp(rate u_i)",
            "McSherry, Talwar 2007",
        ),
        "permute-and-flip": (
            "in a random order, the first i whose coin exp(rate (u_i - max u)) falls heads",
            "McKenna, Sheldon 2020",
        ),
        "report-noisy-max": (
            "the i with the greatest u_i + G_i, G_i geometric of the scale; ties to the first",
            "Dwork, Roth 2014, section 3.3; Ding et al. 2021",
        ),
    }
    law, source = laws[name]
    strength = (
        ("noise scale", exact_text(mechanism.scale))
        if isinstance(mechanism, ReportNoisyMax)
        else ("rate", exact_text(mechanism.rate))
    )
    number = count if count is not None else 100
    moves = 1 if mechanism.monotone else 2
    return Explanation(
        name=name,
        guarantee=mechanism.guarantee,
        law=law,
        theorem=f"utilities that move by at most s cost ε = {'s' if moves == 1 else '2s'}"
        + ("/scale" if isinstance(mechanism, ReportNoisyMax) else " × rate")
        + (", as all move one way" if mechanism.monotone else ""),
        source=source,
        facts=(
            ("sensitivity", exact_text(mechanism.sensitivity)),
            strength,
            ("candidates", f"{number:,}" + ("" if count is not None else ", say")),
        ),
        errors=_bounds(lambda beta: mechanism.accuracy(beta, candidates=number)),
        error_words="in {level} % of the releases the pick is at most {bound} below the best",
        caption="The better of two candidates, and the same with one person against it:",
        table=_leads(mechanism, moves),
    )


def _leads(mechanism: Selection, moves: int) -> Columns:
    unit = mechanism.sensitivity
    if isinstance(mechanism, ReportNoisyMax):  # its utilities lie on a lattice
        step = mechanism.lattice.step
        unit = max(math.floor(unit / step), 1) * step

    def picked(lead: int) -> Ball:
        return mechanism.law([Fraction(0), lead * unit]).probability(1)

    rows = [(_brief(k * unit), picked(k), picked(k - moves)) for k in (0, 1, 2, 4, 8)]
    return _ratios(("leads by", "P[it is picked]", "P with one against"), rows)


# -- keys from the data, and a threshold --


def thresholded_histogram(mechanism: ThresholdedHistogram) -> Explanation:
    """Counts of undeclared keys."""
    bar = mechanism.threshold
    near = sorted({1, 2, bar // 2, bar - 1, bar, bar + 1, 2 * bar} - {0})
    rows = []
    for count in near:
        law = mechanism.law(count)
        rows.append((f"{count:,}", certain(law.released), certain(law.suppressed)))
    return Explanation(
        name="thresholded-histogram",
        guarantee=mechanism.guarantee,
        law="a key with n ≥ 1 people gets n + X and is shown iff that reaches the threshold",
        theorem="keys that one person alone has are shown with probability δ at most",
        source="Korolova et al. 2009; paper 003, section 3",
        facts=(
            ("keys a person", str(mechanism.keys_per_person)),
            ("noise scale", exact_text(mechanism.scale)),
            ("threshold", f"{bar:,}, the least for this δ"),
            ("exact δ", f"{rounded_up(mechanism.delta)}, rounded up"),
        ),
        errors=_bounds(mechanism.accuracy),
        error_words="the noise of a key is at most {bound} in {level} % of the releases",
        caption="What becomes of a key that this many people have:",
        table=Columns(("people", "P[it is shown]", "P[it is not]"), tuple(rows), numbers=(0, 1, 2)),
    )


def above_threshold(mechanism: AboveThreshold, queries: int | None) -> Explanation:
    """The sparse vector technique."""
    number = queries if queries else 100
    return Explanation(
        name="above-threshold",
        guarantee=mechanism.guarantee,
        law="answer i is above iff v_i + N_i ≥ threshold + R: one R for all, a new N_i for each",
        theorem="all answers together cost ε; only "
        f"those above count, and they are at most {mechanism.count}",
        source="Lyu, Su, Li 2017; Dwork, Roth 2014, section 3.6",
        facts=(
            ("sensitivity", exact_text(mechanism.sensitivity)),
            ("threshold", exact_text(mechanism.threshold)),
            ("scale of R", exact_text(mechanism.threshold_scale)),
            ("scale of N", exact_text(mechanism.query_scale)),
            ("queries", f"{number:,}" + ("" if queries else ", say")),
        ),
        errors=_bounds(lambda beta: mechanism.accuracy(beta, queries=number)),
        error_words="in {level} % of the runs every answer is right up to {bound}",
        caption="One query, as its value lies to the threshold t, and one person more:",
        table=_crossings(mechanism),
    )


def _crossings(mechanism: AboveThreshold) -> Columns | None:
    """P[above] near the threshold; None where the sum over R would be long."""
    if mechanism.lattice.rounds or mechanism.threshold_scale > 200:
        return None
    moved = math.floor(mechanism.sensitivity)
    reach = max(math.ceil(mechanism.threshold_scale + mechanism.query_scale), 1)
    bar = math.ceil(mechanism.threshold)

    def above(value: int) -> Ball:
        return mechanism.law([bar + value], precision=64)[(True,)]

    near = (-2 * reach, -reach, 0, reach, 2 * reach)
    rows = [(_place(Fraction(k)).replace("x", "t"), above(k), above(k + moved)) for k in near]
    cells = [(name, certain(p), certain(q), _ratio(q, p)) for name, p, q in rows]
    return Columns(("value", "P[above]", "P with one more", "ratio"), cells, numbers=(1, 2, 3))


# -- numbers --


def _bounds(accuracy: Callable[[str], Any]) -> tuple[tuple[str, str], ...]:
    return tuple((beta, _bound(accuracy(beta))) for beta in BETAS)


def _bound(error: float | int | Fraction) -> str:
    return rounded_up(error if isinstance(error, float) else Fraction(error))


def _brief(number: Fraction | float) -> str:
    text = exact_text(number)
    return rounded_up(number) if text.endswith("...") or len(text) > 14 else text
