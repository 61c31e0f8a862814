"""`lastbit verify`: what float code truly loses, with a certificate that the checker accepts.

Somebody's function is judged by its exact law for pairs of inputs, or by a proof for a whole
region; the mechanisms that lastbit ships have proofs of their own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import wraps
from pathlib import Path
from types import MappingProxyType
from typing import Any

import click

from lastbit.checker import beliefs
from lastbit.cli.check import PROBED
from lastbit.cli.files import check_folder, save
from lastbit.cli.loading import THE_FUNCTION, Loaded, current_folder, loaded, named
from lastbit.cli.options import (
    FILE,
    Decorator,
    Group,
    exact_number,
    group,
    json_option,
    option,
    refusal,
)
from lastbit.cli.output import Facts, Heading, show, show_json, waiting
from lastbit.errors import LastbitError, NotMonotone, TooManyOutputs
from lastbit.exact import exact_text, floor_log2, nearest, positive, probability, rounded_up, upper
from lastbit.report import claim_of, only_probed
from lastbit.verify import (
    Code,
    ExactLoss,
    FullPrecision,
    Grid,
    Refutation,
    RoundingAnalysis,
    certificate,
    certified_function,
    certified_planar_code,
    coupled,
    derived_loss,
    exact_loss,
    gaussian_certificate,
    largest_region,
    least_cell,
    polar_certificate,
    polar_laplace_certificate,
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
SIGNIFICANDS: Mapping[str, int] = MappingProxyType(
    {"binary64": 53, "binary32": 24, "binary16": 11, "extended80": 64, "binary128": 113}
)
KINDS: Mapping[str, str] = MappingProxyType(
    {"certificate": "certificate", "html": "page", "latex": "LaTeX"}
)
LOGARITHM_ULPS = 6  # unit_exponential is within 6u relatively, which is at most 6 ulps
DRAW_BITS = 52  # its uniform is within 2**-52 of a real one, as this model's is
STANDS_FOR = (
    "RoundedLaplace takes these steps. Its uniform is within a factor of 1 ± 2**-52 of a uniform "
    "real number, and its logarithm within 6 ulps. Their docstrings prove that; it is not checked "
    "here. Its logarithm need not be monotone: its error is relative, so what lies beyond "
    "a cut stays there."
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
            known = [name for name in self.list_commands(ctx) if name != CODE]
            remedy = f"name your own function as module:function, or say {', '.join(known)}"
            raise refusal("the mechanism", "is unknown", remedy)
        return super().resolve_command(ctx, args)


def answered(words: str) -> Decorator:
    """A command with the options that say where things go: its outcome is written and printed."""

    def wrap(command: Callable[..., Outcome]) -> Callable[..., Any]:
        @option("--certificate", "Where the certificate goes; lastbit check reads.", FILE)
        @option("--html", "Where a page with the proof goes.", FILE)
        @option("--latex", "Where the proof goes as LaTeX.", FILE)
        @json_option
        @wraps(command)
        def run(*, as_json: bool, **said: Any) -> None:
            files = {kind: said.pop(kind) for kind in KINDS}
            check_files(files)
            with waiting(words), current_folder():
                _answer(command(**said), files, as_json=as_json)

        return run

    return wrap


def uniform_option(usual: str) -> Decorator:
    """The option that says how uniforms are drawn."""
    words = (
        "How u is drawn: with all bits of floats, or in multiples of 2**-53 like random.random(). "
        "open leaves 0 out."
    )
    return option("--uniform", words, tuple(UNIFORMS), default=usual)


parameter_option = option(
    "--parameter",
    "A parameter that the function takes by name; may be repeated.",
    "NAME=NUMBER",
    dest="parameters",
    multiple=True,
)
region_option = option("--region", "Results are moved to these ends.", nargs=2, metavar="LOW HIGH")


@group("verify snapping --epsilon 0.7 --bound 32", Targets)
def verify() -> None:
    """What float code truly loses, with a certificate.

    Name one of the shipped mechanisms, or a function of your own as module:function. Before a
    function, write cases for a loss of each output. Write gaussian for normal noise, polar for
    noise of the plane, and program if it draws, compares and chooses. The exit status is 0 if the
    promise holds, 1 if not, 2 if nothing could be found out.
    """


@verify.command(CODE, example="module:function --epsilon 1 --certificate out.json")
@option("--epsilon", "The loss that is promised.", required=True)
@option("--sensitivity", "How far apart two neighbouring values can be.", default="1")
@option(
    "--inputs",
    "Two values to tell apart; may be repeated. By default, a few pairs.",
    nargs=2,
    multiple=True,
    metavar="X Y",
)
@option(
    "--grid",
    "The result is rounded to multiples of L: asks for a proof, for all values of --region.",
    dest="cell",
    metavar="L",
)
@region_option
@uniform_option("full")
@parameter_option
@option(
    "--split",
    "A uniform between 0 and 1 at which the output turns; may be repeated.",
    dest="splits",
    multiple=True,
    metavar="U",
)
@answered("looking for the loss")
def function(
    epsilon: Fraction,
    sensitivity: Fraction,
    inputs: tuple[tuple[Fraction, Fraction], ...],
    cell: Fraction | None,
    region: tuple[Fraction, Fraction] | None,
    uniform: str,
    parameters: tuple[str, ...],
    splits: tuple[Fraction, ...],
) -> Outcome:
    """Your own float code.

    It is called as function(value, u), or as function(value, u, sign) with a fair sign.

    The module is looked for as Python does, and in the current folder. Its code is run: name only
    modules that you would run.

    Without --grid the function is called, and the exact probabilities of its outputs are worked out
    for pairs of values. Either two values and outputs refute the promise, or it holds for these
    values. With --grid and --region it is followed step by step, and the loss is proved for all
    values. Then it is also called, at edges of the grid, ends and many other points. It must do
    what was followed, to the last bit. Code that catches exceptions, keeps something between calls
    or asks a value for more than arithmetic is refused.
    """
    positive(epsilon, "epsilon")
    positive(sensitivity, "sensitivity")
    if (cell is None) != (region is None):
        missing = "--grid" if cell is None else "--region"
        raise refusal(missing, "is missing", "pass --grid and --region together")
    if cell is not None and (inputs or splits):
        problem = "has no meaning with --grid, which is about all values"
        raise refusal("--inputs or --split", problem, "leave it out")
    code = loaded(click.get_current_context().info_name or "", _numbers(parameters))
    drawn = UNIFORMS[uniform]
    if cell is not None and region is not None:
        analysis, rounds = certified_function(
            code.code, sensitivity=sensitivity, cell=cell, region=region, uniform=drawn
        )
        return _by_rounding(code.code.name, epsilon, cell, analysis, rounds)
    pieces = tuple(
        float(probability(u, "--split", zero=False, one=False, remedy="pass, say, 0.5"))
        for u in splits
    )
    settings = {"uniform": drawn, "signs": code.signs, "pieces": pieces}
    return _by_exact_law(code, pairs_of(inputs, sensitivity), epsilon, settings)


@verify.command(example="snapping --epsilon 0.7 --bound 32")
@option("--epsilon", "The loss of the noise, before floats are counted.", required=True)
@option("--bound", "Values and results lie within ±bound.", required=True)
@option(
    "--format",
    "The floats that the mechanism computes with.",
    tuple(SIGNIFICANDS),
    dest="form",
    default="binary64",
)
@answered("deriving the loss")
def snapping(epsilon: Fraction, bound: Fraction, form: str) -> Outcome:
    """The snapping mechanism, for all inputs.

    Values are those of a query that one person moves by at most 1.
    """
    bits, exact = SIGNIFICANDS[form], []
    for number, name in ((epsilon, "epsilon"), (bound, "bound")):
        step = Fraction(2) ** (floor_log2(positive(number, name)) - bits + 1)
        exact.append(round(number / step) * step)  # the nearest of the format, ties to even
    found = snapping_bound(epsilon=exact[0], bound=exact[1], format=form)
    worst = max(found.cases, key=lambda case: found.cases[case])
    words = [
        f"The worst case of the proof is {worst}, with {rounded_up(found.units, 5)} units of "
        f"2**-{bits}. Paper 002 states {rounded_up(found.published, 5)}.",
        "ε is that of the noise (inner_epsilon of Snapping); Snapping(epsilon=...) lowers it "
        "so that the floats are paid for too.",
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


@verify.command(example="rounding --epsilon 1 --sensitivity 1 --grid 1/16 --region -100 100")
@option(
    "--epsilon",
    "The loss of the noise in exact arithmetic: its scale is sensitivity/epsilon.",
    required=True,
)
@option("--sensitivity", "How far one person can move the value.", required=True)
@option("--grid", "Results are multiples of L.", dest="cell", metavar="L")
@region_option
@option(
    "--target",
    "The loss that is allowed, floats counted. Without --grid or without --region, the least "
    "grid or the largest region is looked for.",
)
@answered("deriving the loss")
def rounding(**said: Any) -> Outcome:
    """Laplace noise in floats, rounded and truncated, as RoundedLaplace adds it."""
    return rounding_outcome(**said)


@verify.command(example="gaussian noise:normal --epsilon 1 --grid 1 --region -100 100")
@click.argument("function", metavar=CODE.upper())
@option("--epsilon", "The loss at which delta is asked for.", required=True)
@option("--sensitivity", "How far apart two neighbouring values can be.", default="1")
@option("--grid", "Results are multiples of L.", dest="cell", metavar="L", required=True)
@option("--region", "Results are moved to these ends.", nargs=2, metavar="LOW HIGH", required=True)
@option(
    "--accepted",
    "For the polar method, the code of the number that a pair must have between 0 and 1.",
    CODE.upper(),
)
@uniform_option("grid53")
@parameter_option
@answered("deriving the loss")
def gaussian(
    function: str, accepted: str | None, uniform: str, parameters: tuple[str, ...], **said: Any
) -> Outcome:
    """Your own Gaussian noise in floats, with its delta.

    FUNCTION is called as function(u, v) with two fresh uniforms. It computes noise by Box and
    Muller's or by the polar method. lastbit proves the delta at this epsilon, for all values of the
    region. The noise is added, the sum rounded to the grid and moved to the region. Its code is
    followed and run, as that of verify module:function with --grid is.
    """
    given = _numbers(parameters)
    found = gaussian_certificate(
        _code(function, given),
        accepted=None if accepted is None else _code(accepted, given),
        uniform=UNIFORMS[uniform],
        **said,
    )
    _check_named(found.code)
    return _proved(found.certificate(), f"{function}, ε = {exact_text(said['epsilon'])}")


_RECTANGLE = "X_LOW X_HIGH Y_LOW Y_HIGH"


@verify.command(
    example="polar noise:planar --sensitivity 200 --grid 4 --region -1000 1000 -1000 1000"
)
@click.argument("function", metavar=CODE.upper())
@option("--sensitivity", "How far apart two neighbouring points can be.", required=True)
@option(
    "--grid", "Coordinates are multiples of L, unless the code rounds.", dest="cell", metavar="L"
)
@option("--region", "Beyond these, outside is told.", nargs=4, metavar=_RECTANGLE, required=True)
@option("--values", "Where points lie; by default in the region.", nargs=4, metavar=_RECTANGLE)
@uniform_option("grid53")
@parameter_option
@answered("deriving the loss")
def polar(
    function: str,
    sensitivity: Fraction,
    cell: Fraction | None,
    region: tuple[Fraction, ...],
    values: tuple[Fraction, ...] | None,
    uniform: str,
    parameters: tuple[str, ...],
) -> Outcome:
    """Your own noise of the plane in floats, of a radius and an angle.

    FUNCTION is called as function(u, v, w) with three fresh uniforms, and returns two numbers. They
    are a radius, the sum of two logarithms, times cosine and sine of an angle. lastbit proves the
    loss for all points of the region. The noise is added, both sums are rounded to the grid, and
    points beyond the region are reported as outside. Without --grid it is called as function(x, y,
    u, v, w) and returns both sums rounded. Its code is followed and run, as that of verify
    module:function with --grid is.
    """
    given: dict[str, Any] = {
        "region": (region[:2], region[2:]),
        "values": None if not values else (values[:2], values[2:]),
        "uniform": UNIFORMS[uniform],
        "sensitivity": sensitivity,
    }
    code = _code(function, _numbers(parameters))
    if cell is None:
        found = certified_planar_code(code, **given)
    else:
        found = polar_certificate(code, cell=cell, **given)
    _check_named(found.code)
    return _proved(found.certificate(), f"{function}, rate {exact_text(found.rate)}")


@verify.command(
    "polar-laplace",
    example="polar-laplace --epsilon 1 --within 200 --grid 4 --half-width 2000 --inputs 1000",
)
@option("--epsilon", "The loss at the distance --within, floats counted.", required=True)
@option("--within", "The distance at which that is lost.", default="1")
@option("--grid", "Coordinates are multiples of L, a power of two.", dest="cell", required=True)
@option("--half-width", "Beyond it in a coordinate, outside is told.", required=True)
@option("--inputs", "Points are moved to this distance; by default --half-width.")
@answered("deriving the loss")
def polar_laplace(**said: Any) -> Outcome:
    """The planar mechanism that lastbit ships, PolarLaplace.

    Points lie around (0, 0), and so does the region.
    """
    from lastbit.mechanisms import PolarLaplace  # with numpy, where asked for

    mechanism = PolarLaplace(**said)
    found = polar_laplace_certificate(mechanism)
    words = f"The noise has the rate {rounded_up(mechanism.rate, 6)}, so that the floats are paid."
    return _proved(found.certificate(), f"PolarLaplace, ε = {exact_text(said['epsilon'])}", words)


@verify.command(example="cases noise:rounded --epsilon 1.01")
@click.argument("function", metavar=CODE.upper())
@option("--epsilon", "The loss that is promised.", required=True)
@option("--sensitivity", "How far apart two neighbouring values can be.", default="1")
@region_option
@option("--ln-ulps", "The logarithm is within so many ulps.", default="1", dest="ulps")
@uniform_option("full")
@parameter_option
@answered("deriving the loss")
def cases(
    function: str,
    epsilon: Fraction,
    ulps: Fraction,
    uniform: str,
    parameters: tuple[str, ...],
    **said: Any,
) -> Outcome:
    """Your own rounded noise by a logarithm, case by case.

    FUNCTION is called as function(value, u), or with a fair sign as a third argument. It adds noise
    by ln u to its value in one addition and rounds the sum. It clamps the sum, or --region does.
    The loss is derived for all values and for each output; the page and the LaTeX show every case.
    Its code is followed and run, as that of verify module:function with --grid is.
    """
    positive(epsilon, "epsilon")
    named_, drawn = _code(function, _numbers(parameters)), UNIFORMS[uniform]
    found = derived_loss(named_, uniform=drawn, ulps={"ln": ulps}, **said)
    _check_named(found.code)
    proof, promise = found.certificate(), exact_text(epsilon)
    if found.epsilon <= epsilon:
        return _proved(proof, f"{function}, ε = {promise}")
    words = (f"That is more than {promise}: widen the noise, or promise more.",)
    title = f"ABOVE ε: {function} is certified, but for {claim_of(proof).verdict}"
    return Outcome(certificate=proof, title=title, word="above", status=1, words=words)


@verify.command(example="program votes:noisy_max --epsilon 1 --inputs 5")
@click.argument("function", metavar=CODE.upper())
@option("--epsilon", "The loss that is promised.", required=True)
@option("--inputs", "How many inputs the program is followed for.", int, required=True)
@option(
    "--neighbours",
    "Whether each input differs, one, or each the same way, up or down.",
    ("each", "one", "same"),
    default="each",
)
@option("--sensitivity", "How far an input can differ.", default="1")
@option("--grid", "Inputs, numbers and noise are multiples of L.", default="1", metavar="L")
@option("--bound", "Inputs lie within ±bound.", default=str(1 << 40))
@option(
    "--value",
    "A value that inputs can have, where draws are uniform; may be repeated.",
    dest="values",
    multiple=True,
)
@answered("looking for a coupling")
def program(function: str, inputs: int, values: tuple[Fraction, ...], **said: Any) -> Outcome:
    """Your own program that draws, compares and puts out.

    FUNCTION is called as function(run, inputs). It draws by run.laplace(scale) or run.uniform(), or
    rounds run.sign() * (scale * run.ln(run.uniform())) by run.round_to(noise, step). It chooses by
    run.largest(values) and puts out by run.emit(value). It is followed for every way that its
    comparisons can go, and a coupling of two runs is looked for. What is refused is not refuted:
    another proof may exist.
    """
    named_ = _code(function, {}).function
    found = coupled(named_, inputs=inputs, values=values or None, **said)
    _check_named(found.code)
    count = "one input" if inputs == 1 else f"{inputs} inputs"
    words = () if found.values else (f"The cost of its proof is {exact_text(found.cost)}.",)
    return _proved(found.certificate(), f"{function}, {count}", *words)


def _proved(proof: Mapping[str, Any], title: str, *words: str) -> Outcome:
    verdict = f"CERTIFIED {claim_of(proof).verdict}"
    return Outcome(certificate=proof, title=title, verdict=verdict, words=words)


def _code(name: str, parameters: Mapping[str, float]) -> Code:
    """Code by its name, if there is a function of that name."""
    if not callable(named(name)):
        problem, remedy = "is not there: the module has no such function", "name one that it has"
        raise refusal(THE_FUNCTION, problem, remedy)
    return Code(name, **parameters)


def _check_named(code: object) -> None:
    if not code:
        raise refusal(
            THE_FUNCTION,
            "cannot be named in a certificate: its name leads to another function, or its "
            "source is not there",
            "name the function itself, in a module with its source",
        )


def _numbers(parameters: tuple[str, ...]) -> dict[str, float]:
    """The parameters of a function, each the float nearest to what was written."""
    found: dict[str, float] = {}
    for given in parameters:
        name, sign, number = given.partition("=")
        if not sign or not name.isidentifier() or name in found:
            problem = "is not written as name=number, or names one twice"
            raise refusal("--parameter", problem, "write, say, --parameter scale=2")
        found[name] = nearest(exact_number(number, f"--parameter {name}"))
    return found


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
    for name, path in given:
        check_folder(path, name)
    if len({path.absolute() for _, path in given}) < len(given):
        raise refusal(given[-1][0], "names a file twice", "name different files")


def write_files(proof: Mapping[str, Any], files: Mapping[str, Path | None]) -> dict[str, str]:
    """Write what was asked for: the certificate, the page and the LaTeX."""
    given = {kind: path for kind in KINDS if (path := files.get(kind)) is not None}
    if not given:
        return {}
    from lastbit.report import certificate_latex, certificate_page  # with charts, where asked for

    kept = files.get("certificate")
    contents: dict[str, Callable[[], str]] = {
        "certificate": lambda: text_of(proof),
        "html": lambda: certificate_page(proof, file=None if kept is None else kept.name),
        "latex": lambda: certificate_latex(proof),
    }
    for kind, path in given.items():
        save(path, contents[kind](), f"--{kind}")
    return {kind: str(path) for kind, path in given.items()}


def _answer(outcome: Outcome, files: Mapping[str, Path | None], *, as_json: bool) -> None:
    """Write, print, and end with the status; no certificate exists that the checker rejects."""
    proof = outcome.certificate
    written = write_files(proof, files)
    if as_json:
        parts = {name: proof[name] for name in ("kind", "claim", "assumptions", "digest")}
        show_json({"verdict": outcome.word, **parts, "written": written})
    else:
        claim = claim_of(proof)
        verdict = [outcome.verdict] * bool(outcome.verdict) + [PROBED] * only_probed(proof)
        last = "Pass --certificate to keep the proof."
        if "certificate" in written:
            last = (
                "Anybody can check it again, and read on which assumptions it holds: lastbit check "
                f"{written['certificate']}"
            )
        show(
            Heading(outcome.title, "; ".join(verdict)),
            *claim.sentences,
            *outcome.words,
            Facts([*claim.facts, *((KINDS[kind], path) for kind, path in written.items())]),
            f"Accepted by the independent checker. {last}",
        )
    click.get_current_context().exit(outcome.status)


def pairs_of(
    given: Sequence[tuple[Fraction, Fraction]], sensitivity: Fraction
) -> list[tuple[float, float]]:
    """The pairs of inputs to try: those given, or a few as far apart as the sensitivity allows."""
    pairs = [(_float(x), _float(y)) for x, y in given]
    if any(x == y or abs(Fraction(x) - Fraction(y)) > sensitivity for x, y in pairs):
        problem = "are equal as floats, or further apart than --sensitivity"
        raise refusal("--inputs", problem, "pass neighbours, or a larger --sensitivity")
    if given:
        return pairs
    apart = _float(sensitivity)
    for x in (0.0, -apart / 2, apart / 3, 10 * apart):
        y = x + apart
        while Fraction(y) - Fraction(x) > sensitivity:
            y = math.nextafter(y, -math.inf)
        if y > x:
            pairs.append((x, y))
    return pairs


def _float(number: Fraction) -> float:
    try:
        value = float(number)
    except OverflowError:
        value = math.inf
    if math.isinf(value) or (number and abs(value) < 2.0**-1000):
        raise refusal("--inputs or --sensitivity", "is beyond floats", "pass moderate numbers")
    return value


def _by_exact_law(
    function: Loaded,
    pairs: Sequence[tuple[float, float]],
    epsilon: Fraction,
    settings: Mapping[str, Any],
) -> Outcome:
    """The worst pair: refuted if it loses more than epsilon, else within it for these pairs."""
    name, promise = function.code.name, exact_text(epsilon)
    worst: ExactLoss | Refutation | None = None
    undecided = False
    for x, y in pairs:
        found = _loss(function, x, y, **settings)
        undecided = undecided or found is None
        if found is not None and (worst is None or _size(found) > _size(worst)):
            worst = found
        if worst is not None and worst.infinite:
            break
    if worst is not None and (worst.loss is None or worst.loss > epsilon):
        return Outcome(
            certificate=worst.certificate(function.code),
            title=f"REFUTED: {name} loses more than ε = {promise}",
            word="refuted",
            status=1,
        )
    if worst is None or undecided or isinstance(worst, Refutation):
        raise LastbitError(
            f"nothing is proved: the function has too many outputs to list. None that was tried "
            f"loses more than {promise}; pass other --inputs, or --grid and --region"
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


def _loss(function: Loaded, x: float, y: float, **settings: Any) -> ExactLoss | Refutation | None:
    """What a pair loses, exactly if its outputs can be listed; None if that stays undecided."""
    try:
        try:
            return exact_loss(function, x, y, most_cells=MOST_CELLS, **settings)
        except TooManyOutputs:
            return refute(function, x, y, **settings)
    except NotMonotone as turn:
        if turn.between is None:
            raise
        one, other = turn.between
        raise LastbitError(
            f"the output turns between the uniforms {one!r} and {other!r}; pass --split with "
            "the points between which it rises or falls"
        ) from turn


def _size(found: ExactLoss | Refutation) -> Fraction | float:
    return math.inf if found.loss is None else found.loss.ends[1]


def _by_rounding(
    name: str, epsilon: Fraction, cell: Fraction, found: RoundingAnalysis, rounds: bool
) -> Outcome:
    """The loss proved if the function's result is rounded to the cell and kept in the region."""
    if found.cell not in (cell, Fraction(nearest(cell))):
        problem = f"is not what the code rounds to, {exact_text(found.cell)}"
        raise refusal("--grid", problem, "pass that, or leave the rounding out of the code")
    _check_named(found.named)
    promise, ideal, excess = *map(exact_text, (epsilon, found.ideal)), rounded_up(found.excess, 4)
    words = []
    if not rounds:
        words.append(
            "The code itself does not round. The proof is of its result rounded to the nearest "
            f"multiple of {exact_text(cell)}, and then moved into the region."
        )
    elif found.values != found.region:
        low, high = map(exact_text, found.values)
        words.append(f"The promise is about values in [{low}, {high}] alone; clamp others first.")
    if found.epsilon <= epsilon:
        verdict = f"CERTIFIED ε ≤ {ideal} + {excess}"
        title = f"{name}, ε = {promise}"
        return Outcome(certificate=found.certificate(), title=title, verdict=verdict, words=words)
    words.append(
        f"The noise itself costs {ideal}, the floats {excess}: together more than {promise}. Widen "
        "the noise a little, or promise a little more."
    )
    title = f"ABOVE ε: {name} is certified, but for ε = {ideal} + {excess}"
    return Outcome(
        certificate=found.certificate(), title=title, word="above", status=1, words=words
    )


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
    if region is not None and region[0] != -region[1]:
        problem = "is not symmetric, and RoundedLaplace keeps results within ±bound"
        raise refusal("--region", problem, "pass, say, --region -100 100")
    if cell is not None and any(n & (n - 1) for n in (cell.numerator, cell.denominator)):
        raise refusal("--grid", "is not a power of two", "pass, say, 1/16")

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

    if cell is not None and region is not None:
        found = certified(cell, region)
    elif target is not None and region is not None:
        found = least_cell(lambda step: certified(step, region), epsilon=target, region=region)
    elif target is not None and cell is not None:
        found = largest_region(lambda end: certified(cell, (-end, end)), epsilon=target, cell=cell)
    else:
        remedy = "pass both, or one of them and --target"
        raise refusal("--grid and --region", "are not both given", remedy)
    from lastbit.mechanisms import rounded_bounds  # loads the accountants, for this command alone

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
    kind, claim, body = replace(found, code=()).statement()
    return certificate(kind, claim, [*beliefs(kind, claim), STANDS_FOR], body)
