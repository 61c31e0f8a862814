"""Pages: one HTML shell, one style sheet, and templates that escape all they are given.

A page is one file without script, font or picture from elsewhere. It follows the reader's light or
dark scheme, fits a phone, and prints. What it quotes is somebody else's: keys, names and sentences
are escaped by the templates, and letters that steer a terminal or turn the reading around are
replaced, so that a hostile certificate or table is a readable page and nothing more.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from lastbit.report.charts import FONT, INSIDE_A_PAGE, colours, template

if TYPE_CHECKING:
    from jinja2 import Environment


def rendered(template: str, **values: Any) -> Markup:
    """A template filled in; only values that are `Markup` already are not escaped."""
    return Markup(_environment().get_template(template).render(values))


@cache
def _environment() -> Environment:
    # late: a query in a terminal needs no page, and this is a tenth of its time
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    environment = Environment(
        loader=FunctionLoader(template),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_readable,
        keep_trailing_newline=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals.update(
        light=_variables(dark=False),
        dark=_variables(dark=True),
        font=Markup(FONT),
        charts=Markup(INSIDE_A_PAGE),
    )
    return environment


def _variables(*, dark: bool) -> Markup:
    return Markup("; ").join(Markup(f"--{name}: {c}") for name, c in colours(dark).items())


def _readable(value: object) -> object:
    """Text without control characters and without letters that nobody sees; lines are kept."""
    if isinstance(value, Markup) or not isinstance(value, str) or value.isprintable():
        return value
    kept = (c if c.isprintable() or c in "\n\t" else "\ufffd" for c in value)
    return "".join(kept)
