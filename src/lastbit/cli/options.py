"""What people type, read exactly: numbers, guarantees, and the options that many commands share."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any, TypeAlias

import click

from lastbit.errors import InvalidParameter, LastbitError
from lastbit.exact import exact_text, rational
from lastbit.privacy import (
    ZCDP,
    ApproxDP,
    GaussianLoss,
    Guarantee,
    ProbabilisticDP,
    PureDP,
    RenyiDP,
)

Decorator: TypeAlias = Callable[[Callable[..., Any]], Callable[..., Any]]
PATH = click.Path(path_type=Path)
FILE = click.Path(dir_okay=False, path_type=Path)


def refusal(what: str, problem: str, remedy: str) -> InvalidParameter:
    """The error for something that was typed, in the three parts that every error has."""
    return InvalidParameter(what, problem=problem, remedy=remedy)


class Command(click.Command):
    """A command whose errors speak of options where the rooms below speak of arguments."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """What was typed; where it cannot be read, the error shows how the command is used."""
        try:
            return super().parse_args(ctx, args)
        except click.UsageError as error:
            if not self.epilog:
                raise
            words = f"{error.format_message()}\n{self.epilog}"
            raise click.UsageError(words, error.ctx or ctx) from None

    def invoke(self, ctx: click.Context) -> Any:
        """Run it; `epsilon ...; pass grid="auto"` becomes `--epsilon ...; pass --grid auto`.

        Only names that the command has as options are turned; any other stays as it is.
        """
        try:
            return super().invoke(ctx)
        except InvalidParameter as error:
            options = {p.name: p.opts[0] for p in self.params if p.name and p.opts}
            raise with_options(error, options) from error


def with_options(error: InvalidParameter, options: Mapping[str, str]) -> InvalidParameter:
    """The same error with arguments that are options here called so.

    >>> error = InvalidParameter("value", problem="is odd", remedy="pass {grid}", grid="auto")
    >>> with_options(error, {"grid": "--grid", "value": "--value"}).args
    ('--value is odd; pass --grid auto',)
    """
    parameter, problem, remedy, arguments = error.said
    others = {name: value for name, value in arguments.items() if name not in options}
    for name in arguments.keys() - others.keys():
        mention = f"{options[name]} {arguments[name] or ''}".rstrip()
        problem, remedy = (words.replace(f"{{{name}}}", mention) for words in (problem, remedy))
    parameter = options.get(parameter, parameter)
    return type(error)(parameter, problem=problem, remedy=remedy, **others)


_WHOLE = 1_000  # letters; a first sentence is never as long


class Group(click.Group):
    """A group of such commands, each with an example of its use."""

    command_class = Command

    def command(  # type: ignore[override]
        self, *names: str, example: str, **rest: Any
    ) -> Callable[[Callable[..., Any]], click.Command]:
        """A command of the group; the example begins with its name."""
        before = (self.epilog or "").partition(f" {self.name} ")[0]  # where the group itself is
        return super().command(*names, epilog=f"{before} {self.name} {example}", **rest)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The commands with their whole first sentence: click cuts it off in the middle."""
        commands = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        rows = [(name, one.get_short_help_str(_WHOLE)) for name, one in commands if one is not None]
        with formatter.section("Commands"):
            formatter.write_dl(rows)


def command(
    example: str, cls: type[click.Command] = Command, **rest: Any
) -> Callable[[Callable[..., Any]], click.Command]:
    """A command that stands for itself, with an example of its use."""
    return click.command(cls=cls, epilog=f"Example: lastbit {example}", **rest)


def group(example: str, cls: type[Group] = Group) -> Callable[[Callable[..., Any]], Group]:
    """A group of commands, with an example of the use of one."""
    return click.group(cls=cls, epilog=f"Example: lastbit {example}")


LARGEST = 10**1000
REMEDY = "write a number such as 3, 0.5, 1/3 or 1e-9"


def exact_number(text: str, name: str) -> Fraction:
    """The exact rational that was written, if it can also be printed."""
    try:
        number = rational(text)
    except LastbitError as error:
        problem = getattr(error, "problem", "is not a number")
        raise refusal(name, problem, REMEDY) from error
    if max(abs(number.numerator), number.denominator) >= LARGEST:
        raise refusal(name, "has more than 1000 digits", REMEDY)
    return number


def typed(number: Fraction) -> str:
    """An exact number as somebody would type it.

    >>> typed(Fraction(7, 5)), typed(Fraction(1, 10**9)), typed(Fraction(1, 3))
    ('1.4', '1e-9', '1/3')
    """
    exact = exact_text(number)
    return str(number) if exact.endswith("...") else exact


def secret_number(text: str, name: str) -> Fraction:
    """The exact rational that a datum spells; the datum itself is in no message."""
    try:
        return exact_number(text, name)
    except LastbitError:  # its message quotes the text
        pass
    raise refusal(name, "is not a finite number", REMEDY)


class Exact(click.ParamType):  # type: ignore[type-arg]  # generic from click 8.5 on
    """A number as it was written, 0.1 is one tenth; with `ends`, one of those between them."""

    name = "number"

    def __init__(
        self,
        read: Callable[[str, str], Fraction] = exact_number,
        *,
        ends: tuple[Fraction | int, Fraction | int] | None = None,
        remedy: str = "",
    ) -> None:
        self.read, self.ends, self.remedy = read, ends, remedy

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> Fraction:
        name = param.opts[0] if param is not None and param.opts else "the number"
        number = value if isinstance(value, Fraction) else self.read(str(value), name)
        if self.ends is not None and not self.ends[0] <= number <= self.ends[1]:
            ends = map(Fraction, self.ends)
            least, most = (min(str(end), exact_text(end), key=len) for end in ends)
            raise refusal(name, f"is not from {least} to {most}", self.remedy)
        return number


EXACT = Exact()
SECRET = Exact(secret_number)


def option(
    name: str, words: str, kind: Any = EXACT, *, dest: str = "", default: Any = None, **rest: Any
) -> Decorator:
    """An option with its help: an exact number, or of a kind that click has.

    A tuple of texts is a choice, a text stands for any text that is typed. A default is shown.
    """
    names = (name, dest) if dest else (name,)
    if isinstance(kind, str):
        rest["metavar"], kind = kind, str
    if default is not None:  # click takes a default of None for a value that was given
        rest |= {"default": default, "show_default": True}
    kind = click.Choice(kind) if isinstance(kind, tuple) else kind
    return click.option(*names, type=kind, help=words, **rest)


def flag(name: str, words: str, *, dest: str = "") -> Decorator:
    """A switch with its help."""
    return click.option(*((name, dest) if dest else (name,)), is_flag=True, help=words)


json_option = flag("--json", "Print JSON.", dest="as_json")


# ---------------------------------------------------------------- guarantees

# the name, its class, and the parameters in the order in which they are typed
KINDS: tuple[tuple[str, Any, tuple[str, ...]], ...] = (
    ("pure", PureDP, ("epsilon",)),
    ("approx", ApproxDP, ("epsilon", "delta")),
    ("probabilistic", ProbabilisticDP, ("epsilon", "delta")),
    ("zcdp", ZCDP, ("rho",)),
    ("renyi", RenyiDP, ("alpha", "epsilon")),
)
FORMS = 'write "pure 1", "approx 1 1e-6", "probabilistic 1 1e-6", "zcdp 0.1" or "renyi 10 0.5"'
NOISE = "gaussian"  # not a guarantee but a loss: deviation/sensitivity, for `theory compose` alone
MOST_TIMES = 100_000
TIMES = re.compile(r"^(?P<one>.*?)(\s+[x×*]\s*(?P<times>\S+))?\s*$", re.DOTALL)


def guarantee_of(text: str) -> Guarantee:
    """The guarantee that the words spell.

    >>> guarantee_of("zcdp 0.1"), guarantee_of("approx 1 1e-6")
    (ZCDP(rho='0.1'), ApproxDP(epsilon=1, delta='1e-06'))
    """
    words = text.split()
    if not words:
        raise refusal("the guarantee", "is empty", FORMS)
    kind, parameters = kind_named(words[0])
    if len(words) - 1 != len(parameters):
        needs = " and ".join(parameters)
        problem = f"has {len(words) - 1} numbers where {words[0].lower()} has {needs}"
        raise refusal(f'"{_cut(text)}"', problem, FORMS)
    where = f'in "{_cut(text)}"'
    numbers = [
        exact_number(word, f"{parameter} {where}")
        for word, parameter in zip(words[1:], parameters, strict=True)
    ]
    try:
        guarantee: Guarantee = kind(*numbers)
    except InvalidParameter as error:
        raise refusal(f"{error.parameter} {where}", error.problem, error.remedy) from error
    return guarantee


def repeated_guarantee(text: str) -> tuple[Guarantee | GaussianLoss, int]:
    """A guarantee, or Gaussian noise, and how many times it is given.

    >>> repeated_guarantee("pure 0.1 x 100"), repeated_guarantee("gaussian 10 x 50")
    ((PureDP(epsilon='0.1'), 100), (GaussianLoss(mu_squared='0.01'), 50))
    """
    match = TIMES.match(text)
    assert match is not None  # every part of the pattern may be empty
    times = match["times"]
    if times is None:
        return _release_of(text), 1
    if not re.fullmatch(r"[0-9]{1,18}", times) or not 1 <= int(times) <= MOST_TIMES:
        problem = f"is not a whole number from 1 to {MOST_TIMES:,}"
        remedy = 'write, say, "pure 0.1 x 100"; zcdp adds up, so "zcdp 10" is "zcdp 0.1 x 100"'
        raise refusal(f'the number after x in "{_cut(text)}"', problem, remedy)
    return _release_of(match["one"]), int(times)


def _release_of(text: str) -> Guarantee | GaussianLoss:
    words = text.split()
    if not words or words[0].lower() != NOISE:
        return guarantee_of(text)
    if len(words) != 2:
        problem = f"has {len(words) - 1} numbers where {NOISE} has deviation/sensitivity"
        raise refusal(f'"{_cut(text)}"', problem, 'write, say, "gaussian 10"')
    where = f'deviation in "{_cut(text)}"'
    deviation = exact_number(words[1], where)
    if deviation <= 0:
        raise refusal(where, "is not above 0", 'write, say, "gaussian 10"')
    return GaussianLoss(1 / deviation**2)


def kind_named(word: str, name: str = "the guarantee") -> tuple[Any, tuple[str, ...]]:
    """The class of a kind of guarantee, and its parameters."""
    for known, kind, parameters in KINDS:
        if word.lower() == known:
            return kind, parameters
    remedy = FORMS
    if word.lower() == NOISE:
        remedy = (
            'noise of deviation s is "zcdp 1/(2 s²)"; exactly: lastbit theory compose "gaussian 10"'
        )
    raise refusal(name, f'is of the unknown kind "{_cut(word)}"', remedy)


def spelled(guarantee: Guarantee | GaussianLoss) -> str:
    """The guarantee in the words that `repeated_guarantee` reads, cut where numbers are long.

    >>> spelled(guarantee_of("renyi 10 1/2")), spelled(GaussianLoss("4/9"))
    ('renyi 10 0.5', 'gaussian 1.5')
    """
    if isinstance(guarantee, GaussianLoss):  # 1/deviation**2, so both roots are whole
        squared = guarantee.mu_squared
        deviation = Fraction(math.isqrt(squared.denominator), math.isqrt(squared.numerator))
        return f"{NOISE} {exact_text(deviation)}"
    name, parameters = next((n, ps) for n, kind, ps in KINDS if type(guarantee) is kind)
    return " ".join((name, *(exact_text(getattr(guarantee, p)) for p in parameters)))


def title(guarantee: Guarantee) -> str:
    """What the guarantee promises, in one line: its kind by name, its numbers exactly.

    >>> title(guarantee_of("approx 1/3 1e-6"))
    'approximate differential privacy, ε = 1/3, δ = 1e-6'
    """
    kind = (type(guarantee).__doc__ or type(guarantee).__name__).splitlines()[0].rstrip(".")
    numbers = (
        f"{symbol} = {exact_text(getattr(guarantee, name))}"
        for name, symbol in guarantee.symbols.items()
    )
    return ", ".join((kind[0].lower() + kind[1:], *numbers))


def _cut(text: str) -> str:
    words = " ".join(text.split())
    return words if len(words) <= 40 else words[:37] + "..."
