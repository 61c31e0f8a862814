"""`lastbit help`: what can be asked of a table, on one page; or the help of a command."""

from __future__ import annotations

import click

from lastbit.cli.options import command, refusal
from lastbit.cli.output import Columns, Heading, show

TOPICS = (("queries",),)

SHAPE = (
    ("SELECT", "keys and aggregates; rows are never shown"),
    ("FROM visits", "the table of the card"),
    ("JOIN regions USING (region)", "with a public table of the card, on equal columns"),
    ("JOIN labs USING (patient_id)", "with a private table of the card, on the unit"),
    ("WHERE wait > 10", "any condition on one row"),
    ("FROM (SELECT *, cost / 2 AS half ...)", "columns computed row by row; WITH as well"),
    ("FROM (SELECT patient_id, COUNT(*) AS k ... GROUP BY patient_id)", "one row for each unit"),
    ("GROUP BY region, month(day)", "names, expressions, places (1, 2) or ALL"),
    ("HAVING n > 100", "on what is released, after the noise: free"),
    ("ORDER BY n DESC LIMIT 10", "likewise"),
)
AGGREGATES = (
    ("COUNT(*), COUNT(x)", "rows; rows in which x has a value"),
    ("COUNT(DISTINCT patient_id)", "privacy units; or different values of another column"),
    ("SUM, AVG, VARIANCE, STDDEV", "of numbers within bounds"),
    ("MEDIAN(x), QUANTILE_CONT(x, 0.9)", "a value near that rank; MIN and MAX near the ends"),
    ("HISTOGRAM(x, 0, 18, 65)", "rows in each range"),
    ("CORR(y, x), REGR_SLOPE(y, x), ...", "of two columns within bounds"),
    ("100 * SUM(a) / COUNT(*), ROUND(...)", "formulas over aggregates: free"),
    ("... FILTER (WHERE urgent), COUNT_IF", "of the rows for which it is true"),
)
ROWS = (
    ("numbers", "+ - * / %, power, abs, floor, ceil, round, sqrt, ln, exp, clamp, bin"),
    ("comparisons", "= <> < <= > >=, BETWEEN, IN (...), IS NULL, LIKE, ILIKE, starts_with"),
    ("logic", "AND, OR, NOT, CASE, IF, COALESCE, NULLIF, least, greatest"),
    ("texts", "lower, upper, trim, length, substring, ||, CONCAT, contains"),
    ("dates", "year ... hour, EXTRACT, date_trunc('month', d), strftime, date_diff"),
    ("types", "CAST(x AS BIGINT), DOUBLE, TEXT, DATE, BOOLEAN; what does not fit is missing"),
)
INSTEAD = (
    ("SELECT *, SELECT DISTINCT", "COUNT(*) with GROUP BY"),
    ("AVG(wait) without bounds", "AVG(clamp(wait, 0, 240)), or bounds on the card"),
    ("GROUP BY a number or a time", "bin(x, 0, 10, 20), CAST(x AS BIGINT), month(d)"),
    ("IN (SELECT ...), EXISTS", "a join with a public table"),
    ("OVER (...), QUALIFY", "quantiles, GROUP BY"),
    ("UNION, ROLLUP, CUBE", "several questions"),
)


@command("help queries")
@click.argument("topic", nargs=-1)
@click.pass_context
def help(context: click.Context, topic: tuple[str, ...]) -> None:
    """What can be asked, and the help of a command.

    TOPIC is queries, or the name of a command, such as card new. Without one, the commands are
    listed.
    """
    parent = context.parent
    assert parent is not None and isinstance(parent.command, click.Group)
    if topic in TOPICS:
        _queries()
        return
    found: click.Command | None = parent.command
    place = parent
    for name in topic:
        found = found.get_command(place, name) if isinstance(found, click.Group) else None
        if found is None:
            raise refusal("the topic", "is not known", "write queries, or the name of a command")
        place = click.Context(found, info_name=name, parent=place)
    click.echo(place.get_help())


def _queries() -> None:
    show(
        Heading("What can be asked", "one SELECT"),
        Columns(("a question", ""), SHAPE),
        Heading("What is released of a group"),
        Columns(("aggregate", ""), AGGREGATES),
        "Numbers need bounds: those on the card, or clamp(x, low, high) in the question.",
        Heading("Expressions over a row"),
        Columns(("", ""), ROWS),
        Heading("What is refused, and what comes nearest"),
        Columns(("refused", "instead"), INSTEAD),
        "In Python the same is lb.table(...).where(...).group_by(...).agg(n=lb.count()).",
    )
