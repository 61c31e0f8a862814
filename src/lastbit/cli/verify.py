"""`lastbit verify`: what float code truly loses, with a certificate that the checker accepts.

Somebody's function is judged by its exact law for pairs of inputs, or by a proof for a whole
region; the mechanisms that lastbit ships have proofs of their own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from types import MappingProxyType
from typing import Any

import click

from lastbit.checker import problem_of
from lastbit.cli.check import PROBED
from lastbit.cli.files import check_folder, save
from lastbit.cli.loading import THE_FUNCTION, Loaded, current_folder, loaded
from lastbit.cli.options import EXACT, FILE, Group, exact_number, json_option
from lastbit.cli.output import Facts, Heading, Words, paragraphs, show, show_json, waiting
from lastbit.errors import InvalidParameter, LastbitError, NotMonotone, TooManyOutputs
from lastbit.exact import exact_text, floor_log2, nearest, positive, probability, rounded_up, upper
from lastbit.mechanisms import rounded_bounds
from lastbit.report import certificate_latex, certificate_page, claim_of, only_probed
from lastbit.verify import (
    ExactLoss,
    FullPrecision,
    Grid,
    Refutation,
    RoundingAnalysis,
    certificate,
    certified_function,
    exact_loss,
    largest_region,
    least_cell,
    refute,
    rounding_certificate,
    snapping_bound,
    text_of,
)

CODE = "module:function"
MOST_CELLS = 4096
UNIFORMS: Mapping[str, FullPrecision | Grid] = MappingProxyType(
    {"full": FullPrecision(), "grid53": Grid(53), "grid53-open": Grid(53, first=1)}
)
SIGNIFICANDS: Mapping[str, int] = MappingProxyType({"binary64": 53, "binary32": 24, "binary16": 11})
KINDS: Mapping[str, str] = MappingProxyType(
    {"certificate": "certificate", "html": "page", "latex": "LaTeX"}
)
LOGARITHM_ULPS = 6  # unit_exponential is within 6u relatively, which is at most 6 ulps
DRAW_BITS = 52  # its uniform is within 2**-52 of a real one, as this model's is
STANDS_FOR = (
    "RoundedLaplace takes these steps: its uniform is within a factor of 1 ± 2**-52 of a "
    "uniform real number and its logarithm within 6 ulps, as proved in their docstrings and not "
    "checked here. Its logarithm need not be monotone: its error is relative, so that what lies "
    "beyond a cut stays beyond the same end."
)


class Targets(Group):
    """The shipped mechanisms by name, and anybody's function as module:function."""

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command; every name with a colon is that of a function."""
        return super().get_command(ctx, CODE if ":" in cmd_name else cmd_name)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The same, refusing unknown names with a way out."""
        if not args[0].startswith("-") and self.get_command(ctx, args[0]) is None:
            raise InvalidParameter(
                "the mechanism",
                problem="is unknown",
                remedy="name your own function as module:function, or say snapping or rounding",
            )
        return super().resolve_command(ctx, args)


def file_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options that say where things are written, and --json."""
    for option in (
        json_option,
        click.option("--latex", type=FILE, help="Where the proof goes as LaTeX."),
        click.option("--html", type=FILE, help="Where a page with the proof goes."),
        click.option(
            "--certificate", type=FILE, help="Where the certificate goes; lastbit check reads."
        ),
    ):
        command = option(command)
    return command


region_option = click.option(
    "--region", type=EXACT, nargs=2, metavar="LOW HIGH", help="Results are moved to these ends."
)


@click.group(cls=Targets, epilog="Example: lastbit verify snapping --epsilon 0.7 --bound 32")
def verify() -> None:
    """What float code truly loses, with a certificate.

    Name a function of your own as module:function, or one of the shipped mechanisms. The exit
    status is 0 if the promise holds, 1 if it is refuted or not kept, 2 if nothing could be found
    out.
    """


@verify.command(
    CODE,
    epilog="Example: lastbit verify module:function --epsilon 1 --certificate out.json",
)
@click.option("--epsilon", type=EXACT, required=True, help="The loss that is promised.")
@click.option(
    "--sensitivity",
    type=EXACT,
    default="1",
    show_default=True,
    help="How far apart two neighbouring values can be.",
)
@click.option(
    "--inputs",
    type=EXACT,
    nargs=2,
    multiple=True,
    metavar="X Y",
    help="Two values to tell apart; may be repeated. By default, a few pairs.",
)
@click.option(
    "--grid",
    "cell",
    type=EXACT,
    metavar="L",
    help="The result is rounded to multiples of L: asks for a proof, for all values of --region.",
)
@region_option
@click.option(
    "--uniform",
    type=click.Choice(tuple(UNIFORMS)),
    default="full",
    show_default=True,
    help="How u is drawn: with all bits that floats have, or as multiples of 2**-53, as "
    "random.random() does; open leaves 0 out.",
)
@click.option(
    "--parameter",
    "parameters",
    multiple=True,
    metavar="NAME=NUMBER",
    help="A parameter that the function takes by name; may be repeated.",
)
@click.option(
    "--split",
    "splits",
    type=EXACT,
    multiple=True,
    metavar="U",
    help="A uniform between 0 and 1 at which the output turns; may be repeated.",
)
@file_options
@click.pass_context
def function(
    context: click.Context,
    /,
    epsilon: Fraction,
    sensitivity: Fraction,
    inputs: tuple[tuple[Fraction, Fraction], ...],
    cell: Fraction | None,
    region: tuple[Fraction, Fraction] | None,
    uniform: str,
    parameters: tuple[str, ...],
    splits: tuple[Fraction, ...],
    as_json: bool,
    **files: Path | None,
) -> None:
    """Your own float code.

    It is called as function(value, u), or as function(value, u, sign) with a fair sign.

    The module is looked for as Python does, and in the current folder. Its code is run: name only
    modules that you would run.

    Without --grid the function is called, and the exact probabilities of its outputs are worked out
    for pairs of values: either two values and outputs are found that refute the promise, or the
    promise holds for these values. With --grid and --region it is followed step by step, and the
    loss is proved for all values. Then it is called as well, at edges of the grid, ends and many
    other points, and must do what was followed, to the last bit. Code that catches exceptions,
    keeps something between calls or asks a value for more than arithmetic is refused.
    """
    check_files(files)
    with waiting("looking for the loss"), current_folder():
        positive(epsilon, "epsilon")
        positive(sensitivity, "sensitivity")
        _check_together(cell, region, inputs, splits)
        code = loaded(context.info_name or "", _numbers(parameters))
        if cell is not None and region is not None:
            outcome = _by_rounding(code, epsilon, sensitivity, cell, region, UNIFORMS[uniform])
        else:
            pairs = pairs_of(inputs, sensitivity)
            pieces = tuple(
                float(probability(u, "--split", zero=False, one=False, remedy="pass, say, 0.5"))
                for u in splits
            )
            outcome = _by_exact_law(code, pairs, epsilon, UNIFORMS[uniform], pieces)
        _answer(outcome, files, as_json=as_json)


@verify.command(epilog="Example: lastbit verify snapping --epsilon 0.7 --bound 32")
@click.option(
    "--epsilon", type=EXACT, required=True, help="The loss of the noise, before floats are counted."
)
@click.option("--bound", type=EXACT, required=True, help="Values and results lie within ±bound.")
@click.option(
    "--format",
    "form",
    type=click.Choice(tuple(SIGNIFICANDS)),
    default="binary64",
    show_default=True,
    help="The floats that the mechanism computes with.",
)
@file_options
def snapping(
    epsilon: Fraction, bound: Fraction, form: str, as_json: bool, **files: Path | None
) -> None:
    """The snapping mechanism, for all inputs.

    Values are those of a query that one person moves by at most 1.
    """
    check_files(files)
    with waiting("deriving the loss"):
        _answer(_snapping_outcome(epsilon, bound, form), files, as_json=as_json)


@verify.command(
    epilog="Example: lastbit verify rounding --epsilon 1 --sensitivity 1 --grid 1/16 "
    "--region -100 100"
)
@click.option(
    "--epsilon",
    type=EXACT,
    required=True,
    help="The loss of the noise in exact arithmetic: its scale is sensitivity/epsilon.",
)
@click.option(
    "--sensitivity", type=EXACT, required=True, help="How far one person can move the value."
)
@click.option("--grid", "cell", type=EXACT, metavar="L", help="Results are multiples of L.")
@region_option
@click.option(
    "--target",
    type=EXACT,
    help="The loss that is allowed, floats counted. Without --grid or without --region, the least "
    "grid or the largest region is looked for.",
)
@file_options
def rounding(
    epsilon: Fraction,
    sensitivity: Fraction,
    cell: Fraction | None,
    region: tuple[Fraction, Fraction] | None,
    target: Fraction | None,
    as_json: bool,
    **files: Path | None,
) -> None:
    """Laplace noise in floats, rounded and truncated, as RoundedLaplace adds it."""
    check_files(files)
    with waiting("deriving the loss"):
        outcome = rounding_outcome(epsilon, sensitivity, cell=cell, region=region, target=target)
        _answer(outcome, files, as_json=as_json)


# ---------------------------------------------------------------- what is refused


def _check_together(
    cell: Fraction | None,
    region: tuple[Fraction, Fraction] | None,
    inputs: tuple[tuple[Fraction, Fraction], ...],
    splits: tuple[Fraction, ...],
) -> None:
    """Refuse half of --grid and --region, and options that a proof has no use for."""
    if (cell is None) != (region is None):
        raise InvalidParameter(
            "--grid" if cell is None else "--region",
            problem="is missing",
            remedy="pass --grid and --region together",
        )
    if cell is not None and (inputs or splits):
        raise InvalidParameter(
            "--inputs or --split",
            problem="has no meaning with --grid, which is about all values",
            remedy="leave it out",
        )


def _numbers(parameters: tuple[str, ...]) -> dict[str, float]:
    """The parameters of a function, each the float nearest to what was written."""
    found: dict[str, float] = {}
    for given in parameters:
        name, sign, number = given.partition("=")
        if not sign or not name.isidentifier() or name in found:
            raise InvalidParameter(
                "--parameter",
                problem="is not written as name=number, or names one twice",
                remedy="write, say, --parameter scale=2",
            )
        found[name] = nearest(exact_number(number, f"--parameter {name}"))
    return found


# ---------------------------------------------------------------- what was found


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """A certificate, the headline, one word for programs, and the exit status."""

    certificate: Mapping[str, Any]
    title: str
    verdict: str = ""
    word: str = "certified"
    status: int = 0
    words: Sequence[str] = ()


def check_files(files: Mapping[str, Path | None]) -> None:
    """Refuse folders that are not there, and one file for two things, before any work."""
    given = [(f"--{kind}", path) for kind in KINDS if (path := files.get(kind)) is not None]
    for option, path in given:
        check_folder(path, option)
    if len({path.absolute() for _, path in given}) < len(given):
        raise InvalidParameter(
            given[-1][0], problem="names a file twice", remedy="name different files"
        )


def write_files(proof: Mapping[str, Any], files: Mapping[str, Path | None]) -> dict[str, str]:
    """Write what was asked for: the certificate, the page and the LaTeX."""
    kept = files.get("certificate")
    contents: dict[str, Callable[[], str]] = {
        "certificate": lambda: text_of(proof),
        "html": lambda: certificate_page(proof, file=None if kept is None else kept.name),
        "latex": lambda: certificate_latex(proof),
    }
    written = {}
    for kind in KINDS:
        path = files.get(kind)
        if path is not None:
            save(path, contents[kind](), f"--{kind}")
            written[kind] = str(path)
    return written


def _answer(outcome: Outcome, files: Mapping[str, Path | None], *, as_json: bool) -> None:
    """Check the certificate by the independent checker, write, print, and end with the status."""
    proof = outcome.certificate
    problem = problem_of(proof)
    if problem is not None:
        raise LastbitError(f"the independent checker rejects what was found: {problem}; report it")
    written = write_files(proof, files)
    if as_json:
        parts = {name: proof[name] for name in ("kind", "claim", "assumptions", "digest")}
        show_json({"verdict": outcome.word, **parts, "written": written})
    else:
        claim = claim_of(proof)
        verdict = [outcome.verdict] if outcome.verdict else []
        verdict += [PROBED] if only_probed(proof) else []
        last = "Pass --certificate to keep the proof."
        if "certificate" in written:
            last = (
                "Anybody can check it again, and read on which assumptions it holds: lastbit check "
                f"{written['certificate']}"
            )
        show(
            Heading(outcome.title, "; ".join(verdict)),
            *paragraphs((*claim.sentences, *outcome.words)),
            Facts([*claim.facts, *((KINDS[kind], path) for kind, path in written.items())]),
            Words(f"Accepted by the independent checker. {last}"),
        )
    click.get_current_context().exit(outcome.status)


# ---------------------------------------------------------------- a function: pairs of inputs


def pairs_of(
    given: Sequence[tuple[Fraction, Fraction]], sensitivity: Fraction
) -> list[tuple[float, float]]:
    """The pairs of inputs to try: those given, or a few as far apart as the sensitivity allows."""
    if given:
        pairs = [(_float(x), _float(y)) for x, y in given]
        for x, y in pairs:
            if x == y or abs(Fraction(x) - Fraction(y)) > sensitivity:
                raise InvalidParameter(
                    "--inputs",
                    problem="are equal as floats, or further apart than --sensitivity",
                    remedy="pass neighbours, or a larger --sensitivity",
                )
        return pairs
    apart = _float(sensitivity)
    found = []
    for x in (0.0, -apart / 2, apart / 3, 10 * apart):
        y = x + apart
        while Fraction(y) - Fraction(x) > sensitivity:
            y = math.nextafter(y, -math.inf)
        if y > x:
            found.append((x, y))
    return found


def _float(number: Fraction) -> float:
    try:
        value = float(number)
    except OverflowError:
        value = math.inf
    if math.isinf(value) or (number and abs(value) < 2.0**-1000):
        raise InvalidParameter(
            "--inputs or --sensitivity", problem="is beyond floats", remedy="pass moderate numbers"
        )
    return value


def _by_exact_law(
    function: Loaded,
    pairs: Sequence[tuple[float, float]],
    epsilon: Fraction,
    uniform: FullPrecision | Grid,
    pieces: tuple[float, ...],
) -> Outcome:
    """The worst pair: refuted if it loses more than epsilon, else within it for these pairs."""
    name, promise = function.code.name, exact_text(epsilon)
    worst, undecided = _worst(function, pairs, uniform, pieces)
    if worst is not None and (worst.loss is None or worst.loss > epsilon):
        return Outcome(
            certificate=worst.certificate(function.code),
            title=f"REFUTED: {name} loses more than ε = {promise}",
            word="refuted",
            status=1,
        )
    if worst is None or undecided or isinstance(worst, Refutation):
        raise LastbitError(
            "nothing is proved: the function has too many outputs to list them all, and none was "
            f"found that loses more than {promise}; pass other --inputs, or --grid and --region "
            "for a proof about its rounded result"
        )
    tried = "this pair" if len(pairs) == 1 else f"{len(pairs)} pairs, of which this is the worst"
    return Outcome(
        certificate=worst.certificate(function.code),
        title=f"{name}, ε = {promise}",
        verdict="WITHIN ε, these inputs",
        word="within",
        words=(
            f"Tried: {tried}. That is exact for these inputs and says nothing of others. For a "
            "proof about a whole region, pass --grid and --region.",
        ),
    )


def _worst(
    function: Loaded,
    pairs: Sequence[tuple[float, float]],
    uniform: FullPrecision | Grid,
    pieces: tuple[float, ...],
) -> tuple[ExactLoss | Refutation | None, bool]:
    """What the worst pair loses, and whether one of them is undecided."""
    settings: dict[str, Any] = {"uniform": uniform, "signs": function.signs, "pieces": pieces}
    worst: ExactLoss | Refutation | None = None
    undecided = False
    for x, y in pairs:
        found: ExactLoss | Refutation | None
        try:
            try:
                found = exact_loss(function, x, y, most_cells=MOST_CELLS, **settings)
            except TooManyOutputs:
                found = refute(function, x, y, **settings)
        except NotMonotone as turn:
            if turn.between is None:
                raise
            one, other = turn.between
            raise LastbitError(
                f"the output turns between the uniforms {one!r} and {other!r}; pass --split with "
                "the points between which it rises or falls"
            ) from turn
        if found is None:
            undecided = True
            continue
        worst = found if worst is None or _worse(found, worst) else worst
        if worst.infinite:
            break
    return worst, undecided


def _worse(one: ExactLoss | Refutation, other: ExactLoss | Refutation) -> bool:
    loss, least = one.loss, other.loss
    if loss is None or least is None:
        return loss is None and least is not None
    return loss.ends[1] > least.ends[1]


# ---------------------------------------------------------------- a function: a whole region


def _by_rounding(
    function: Loaded,
    epsilon: Fraction,
    sensitivity: Fraction,
    cell: Fraction,
    region: tuple[Fraction, Fraction],
    uniform: FullPrecision | Grid,
) -> Outcome:
    """The loss proved if the function's result is rounded to the cell and kept in the region."""
    found, rounds = certified_function(
        function.code, sensitivity=sensitivity, cell=cell, region=region, uniform=uniform
    )
    if found.cell != cell:
        raise InvalidParameter(
            "--grid",
            problem=f"is not what the code rounds to, {exact_text(found.cell)}",
            remedy="pass that, or leave the rounding out of the code",
        )
    if not found.named:
        raise InvalidParameter(
            THE_FUNCTION,
            problem="cannot be named in a certificate: its name leads to another function, or its "
            "source is not there",
            remedy="name the function itself, in a module with its source",
        )
    name, promise, ideal = function.code.name, exact_text(epsilon), exact_text(found.ideal)
    excess = rounded_up(found.excess, 4)
    words = []
    if not rounds:
        words.append(
            "The code itself does not round. Proved is: round its result to the nearest multiple "
            f"of {exact_text(cell)}, then move what lies outside the region to its nearer end."
        )
    if found.epsilon <= epsilon:
        verdict = f"CERTIFIED ε ≤ {ideal} + {excess}"
        title = f"{name}, ε = {promise}"
        return Outcome(certificate=found.certificate(), title=title, verdict=verdict, words=words)
    words.append(
        f"The noise itself costs {ideal}, the floats {excess}: together more than {promise}. Widen "
        "the noise a little, or promise a little more."
    )
    return Outcome(
        certificate=found.certificate(),
        title=f"ABOVE ε: {name} is certified, but for ε = {ideal} + {excess}",
        word="above",
        status=1,
        words=words,
    )


# ---------------------------------------------------------------- shipped: snapping


def _snapping_outcome(epsilon: Fraction, bound: Fraction, form: str) -> Outcome:
    """The theorem for all inputs, with epsilon and bound as the floats nearest to what was said."""
    bits = SIGNIFICANDS[form]
    exact = [_nearest(positive(epsilon, "epsilon"), bits), _nearest(positive(bound, "bound"), bits)]
    found = snapping_bound(epsilon=exact[0], bound=exact[1], format=form)
    worst = max(found.cases, key=lambda case: found.cases[case])
    words = [
        f"The worst case of the proof is {worst}, with {rounded_up(found.units, 5)} units of "
        f"2**-{bits}. Paper 002 states {rounded_up(found.published, 5)}.",
        "ε is that of the noise (inner_epsilon of Snapping); Snapping(epsilon=...) lowers it so "
        "that the floats are paid for too.",
    ]
    if exact != [epsilon, bound]:
        words.append(f"ε and the bound are the numbers of {form} nearest to what you wrote.")
    promise = f"ε ≤ {exact_text(epsilon)} + {rounded_up(found.loss - exact[0], 4)}"
    return Outcome(
        certificate=found.certificate(),
        title=f"Snapping, ε = {exact_text(epsilon)}, bound {exact_text(bound)}",
        verdict=f"CERTIFIED {promise}" + (", δ > 0" if found.delta else ""),
        words=words,
    )


def _nearest(x: Fraction, bits: int) -> Fraction:
    """The number with this many significant bits nearest to x > 0, ties to even."""
    step = Fraction(2) ** (floor_log2(x) - bits + 1)
    return round(x / step) * step


# ---------------------------------------------------------------- shipped: rounded Laplace noise


def noise(u: Any, sign: Any, scale: Any) -> Any:
    """The noise of RoundedLaplace as it is followed: two operations and a logarithm."""
    return sign * (scale * math.log(u))


def rounding_outcome(
    epsilon: Fraction,
    sensitivity: Fraction,
    *,
    cell: Fraction | None,
    region: tuple[Fraction, Fraction] | None,
    target: Fraction | None,
) -> Outcome:
    """The certificate of RoundedLaplace's noise, at the scale sensitivity/epsilon."""
    positive(epsilon, "epsilon")
    scale = upper(positive(sensitivity, "sensitivity") / epsilon)
    if target is not None:
        positive(target, "target")
    found = _rounded(scale, sensitivity, cell, region, target)
    own = rounded_bounds(scale=found.scale, cell=found.cell, bound=found.region[1])
    more = f"{exact_text(found.ideal)} + {rounded_up(found.excess, 4)}"
    grid, bound = exact_text(found.cell), exact_text(found.region[1])
    words = [
        f"The mechanism: RoundedLaplace(sensitivity={exact_text(sensitivity)}, epsilon=..., "
        f"cell={grid}, bound={bound}), whose epsilon is the price of the whole."
    ]
    if own is not None:
        words.append(
            f"Its own proof, made for its own logarithm, counts {rounded_up(own.excess, 4)} for "
            "the floats."
        )
    if target is None or found.epsilon <= target:
        title, verdict = f"Rounded Laplace, grid {grid}, region ±{bound}", f"CERTIFIED ε ≤ {more}"
        return Outcome(certificate=_sealed(found), title=title, verdict=verdict, words=words)
    title = f"ABOVE the target: rounded Laplace noise is certified for ε = {more}"
    return Outcome(certificate=_sealed(found), title=title, word="above", status=1, words=words)


def _sealed(found: RoundingAnalysis) -> dict[str, Any]:
    """The certificate of the steps, with one assumption more: what they stand for."""
    plain = replace(found, code=()).certificate()
    assumptions = [*plain["assumptions"], STANDS_FOR]
    return certificate("rounding", plain["claim"], assumptions, plain["body"])


def _rounded(
    scale: float,
    sensitivity: Fraction,
    cell: Fraction | None,
    region: tuple[Fraction, Fraction] | None,
    target: Fraction | None,
) -> RoundingAnalysis:
    def certified(step: Fraction, ends: tuple[Fraction, Fraction]) -> RoundingAnalysis:
        return rounding_certificate(
            noise,
            sensitivity=sensitivity,
            cell=step,
            region=ends,
            uniform=FullPrecision(DRAW_BITS),
            parameters={"scale": scale},
            ulps={"ln": LOGARITHM_ULPS},
        )

    if region is not None and region[0] != -region[1]:
        raise InvalidParameter(
            "--region",
            problem="is not symmetric, and RoundedLaplace keeps results within ±bound",
            remedy="pass, say, --region -100 100",
        )
    if cell is not None and cell.numerator & (cell.numerator - 1) | (
        cell.denominator & (cell.denominator - 1)
    ):
        raise InvalidParameter("--grid", problem="is not a power of two", remedy="pass, say, 1/16")
    if cell is not None and region is not None:
        return certified(cell, region)
    if target is not None and region is not None:
        return least_cell(lambda step: certified(step, region), epsilon=target, region=region)
    if target is not None and cell is not None:
        return largest_region(lambda end: certified(cell, (-end, end)), epsilon=target, cell=cell)
    raise InvalidParameter(
        "--grid and --region",
        problem="are not both given",
        remedy="pass both, or one of them and --target",
    )
