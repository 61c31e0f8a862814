"""`lastbit query`: a question in SQL about the table of a data card, and its private answer."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from lastbit import report as reports
from lastbit.cli.allowance import allowance_words, own_allowance
from lastbit.cli.ledger import account_of, budget_rows, ledger_of_card
from lastbit.cli.options import PATH, command, exact_number, flag, json_option, option, refusal
from lastbit.cli.output import (
    WIDTH,
    Columns,
    Facts,
    Heading,
    Part,
    printable,
    show,
    show_json,
    waiting,
)
from lastbit.cli.remote import OrRemote, budget_at, remote_table_at, token_option
from lastbit.errors import InvalidParameter, LastbitError
from lastbit.files import Spared, same_place, written_over
from lastbit.ledger import Account, Allowance, Connections, check_output, spared_by
from lastbit.release import (
    Answer,
    Marginals,
    MarginalsQuestion,
    Table,
    check_kept,
    made_up_answer,
    plan_words,
    price_rows,
)
from lastbit.report import (
    EMPTY,
    MOST_NOTES,
    UNTOUCHED,
    account_json,
    allowance_json,
    cross_table,
    marginal_tables,
    more_words,
    notes_of,
    price as price_words,
    table_of,
    title_of,
    totals_of,
    whole_sentences,
)
from lastbit.tables import (
    Cost,
    MarginalsPlan,
    Plan,
    printed_statement,
    progress,
    read_card,
    rows_of,
)

if TYPE_CHECKING:  # what speaks to servers is slow to load
    from lastbit.release import RemoteTable

DIALECTS = ("duckdb", "postgres", "spark")
KINDS = (".csv", ".parquet", ".json")
NOTES = ("three", "all")
MOST_ROWS = 60
_MOST_TABLES = 12
MOST_LETTERS = 1 << 20  # of SQL from standard input; of so many, all are refused
ROOM = 76  # a table is set in by two blanks on either side


@command('query visits.toml "SELECT region, COUNT(*) AS n FROM visits GROUP BY region" --epsilon 1')
@click.argument("card", type=OrRemote(PATH), metavar="CARD|ADDRESS")
@click.argument("sql", required=False)
@option("--epsilon", "The price of the whole answer: 1, 0.5, 1/3 ...")
@option("--delta", "For undeclared keys, and Gaussian noise: 1e-9.")
@option("--rho", "The price, where the table is paid in concentrated privacy.")
@option(
    "--weights",
    "How the price is shared out: n=2,cost=1, or balanced to make the worst error small.",
    "balanced|NAME=NUMBER,...",
)
@option(
    "--within",
    "Instead of a price: the least that keeps the ± of counts and sums within this.",
    "NUMBER|NAME=NUMBER,...",
)
@option(
    "--marginals",
    "Instead of SQL: all one- and two-way tables of these columns, at one price.",
    "NAME,...",
)
@option("--pairs", "With --marginals: how many two-way tables, chosen privately.", click.INT)
@option("--out", "Write .csv, .parquet, or .json for lastbit check.", PATH)
@option("--report", "Write an HTML page with charts.", PATH)
@option("--title", "What the page is called; else by the question.", "TEXT")
@flag("--explain", "Show the plan and the errors to expect, and stop.")
@flag("--print-sql", "Show the statement that the engine would run, and stop.")
@option("--dialect", "With --print-sql: as another engine would run it.", DIALECTS)
@flag("--dry-run", "Check question, price and budget, and stop.")
@flag("--made-up", "Answer about rows made up from the card, for free: nothing is read.")
@flag("--fresh", "Pay for new noise though an answer is recorded.")
@flag("--consistent", "Make counts whole and add up to their total.")
@flag("--simultaneous", "Intervals of counts and sums that hold all together.")
@flag("--kept", "Also estimate the share of rows counted, for 5 % more.")
@flag("--no-intervals", "Quantiles without noise intervals: all of the price buys their values.")
@option("--notes", "How many notes below the answer: three, or all.", NOTES, default=NOTES[0])
@token_option
@json_option
def query(
    card: Path | str,
    sql: str | None,
    weights: str | None,
    within: str | None,
    marginals: str | None,
    pairs: int | None,
    out: Path | None,
    report: Path | None,
    title: str | None,
    explain: bool,
    print_sql: bool,
    dialect: str | None,
    dry_run: bool,
    made_up: bool,
    fresh: bool,
    consistent: bool,
    simultaneous: bool,
    kept: bool,
    no_intervals: bool,
    notes: str,
    token_file: Path | None,
    as_json: bool,
    **price: Fraction | None,
) -> None:
    """Ask a table in SQL: a private answer with error bars.

    CARD describes the table; SQL is one SELECT (- reads it from standard input). Every number comes
    with its noise (±), and the whole interval where that is known. The price is for the whole
    answer. The ledger of the card records it before a row is read, and the answer before it is
    shown. The same question to the same data is answered again at no charge. A refused question
    costs nothing. One that fails or is interrupted while the data are read stays charged, and is
    free when asked again.

    With --marginals the answer is all tables of one and of two of these columns. They agree: rows
    and columns of two-way tables add up to one-way tables. Their keys must be declared or public;
    numbers go into bins, band=bin(age, 0, 18, 65).

    With --explain, --dry-run or --print-sql nothing is read from the table and nothing is charged.
    Nor is it with --made-up: the answer is as noisy, and about rows made up from the card.

    ADDRESS is that of a table that a server has: https://stats.example.org/visits. Its answer is
    checked by lastbit's own checker, and compared with what was asked, before it is shown.
    """
    if (sql is None) == (marginals is None):
        remedy = "pass one SELECT, or --marginals region,old"
        raise refusal("SQL", "or --marginals, exactly one, is needed", remedy)
    statement = sys.stdin.read(MOST_LETTERS) if sql == "-" else sql
    asked: dict[str, Any] = {"weights": _weights(weights), **price}
    wanted = _within(within)
    table: Table | RemoteTable
    if isinstance(card, str):
        here = {"--marginals": marginals, "--pairs": pairs, "--dialect": dialect, "--kept": kept}
        here |= {"--print-sql": print_sql, "--dry-run": dry_run, "--no-intervals": no_intervals}
        for name in _given({**here, "--made-up": made_up, "--simultaneous": simultaneous}):
            raise refusal(name, "is not for tables of a server", "leave it out")
        _check_files(out, report, title, {"the token": [str(token_file)] if token_file else []})
        table = remote_table_at(card, token_file)
    else:
        if token_file is not None:
            raise refusal("--token-file", "is for https:// addresses", "leave it out")
        table = Table(rows=rows_of(read_card(card)))
        _check_files(out, report, title, {**spared_by(table.card), "the card": [str(card)]})
    if made_up and (fresh or kept or out is not None or report is not None):
        remedy = "leave out --fresh, --kept, --out and --report"
        raise refusal("--made-up", "gives no answer that could be bought or kept", remedy)
    if dialect is not None and not print_sql:
        raise refusal("--dialect", "is for --print-sql", "leave it out")
    question: Table | RemoteTable | MarginalsQuestion
    if marginals is not None and isinstance(table, Table):
        given = {"--within": within, "--no-intervals": no_intervals, "--kept": kept}
        given |= {"--simultaneous": simultaneous}
        for name in _given(given):
            raise refusal(name, "does not go with --marginals", "leave it out")
        if out is not None and out.suffix.lower() == ".parquet":
            raise refusal("--out", "cannot hold several tables", "end it in .csv or .json")
        question = table.marginals(_marginal_columns(marginals), pairs=pairs)
    else:
        if pairs is not None:
            raise refusal("--pairs", "is for --marginals", "leave it out")
        question = replace(table.sql(statement or ""), intervals=not no_intervals)
        asked["within"] = wanted
        check_kept(kept, question.draft.query, question.card)
    if explain and not isinstance(question, Table | MarginalsQuestion):
        _show_remote_plan(question, asked, as_json=as_json)
        return
    if print_sql or explain or dry_run or made_up:
        assert isinstance(question, Table | MarginalsQuestion)  # of servers these are refused
        plan = question.plan(**asked)
        if print_sql:
            written = printed_statement(plan, dialect)
            engine = dialect or plan.card.source.engine
            said = {"dialect": engine, "certified": True, "sql": written}
            show_json(said) if as_json else click.echo(written)
        elif made_up and not (explain or dry_run):
            made = made_up_answer(plan, table.card, sql=statement)
            if isinstance(question, Table) and isinstance(made, Answer):
                made = replace(made, view=question.view)
            whole = consistent and isinstance(plan, Plan)  # marginals agree already
            shown = made.consistent() if whole else made
            _show_answer(shown, {}, None, notes=notes, as_json=as_json)
        else:
            _show_plan(plan, asked, explain=explain, as_json=as_json)
        return
    if not isinstance(question, MarginalsQuestion):  # whose tables agree in any case
        asked["consistent"] = consistent
    if isinstance(question, Table):
        asked |= {"kept": kept, "simultaneous": simultaneous}
    with Connections().lasting() as connections:
        if isinstance(question, Table | MarginalsQuestion):
            asked["ledger"] = ledger_of_card(question.card, connections)
        with _words_on_interrupts(), waiting("asking") as tell, progress(tell):
            answer = question.release(fresh=fresh, **asked)
        state, rows, account = _budget_of(table, answer, connections)
    _show_answer(answer, state, rows, notes=notes, as_json=as_json)
    _write(answer, account, out=out, report=report, title=title)


def _given(options: Mapping[str, Any]) -> list[str]:
    return [name for name, value in options.items() if value]


def _check_files(out: Path | None, report: Path | None, title: str | None, spared: Spared) -> None:
    """Refuse what could not be written before anything is paid."""
    if out is not None and out.suffix.lower() not in KINDS:
        remedy = f"end it in {', '.join(KINDS[:-1])} or {KINDS[-1]}; Excel opens .csv"
        raise refusal("--out", "has a name of no known kind", remedy)
    for name, path in (("--out", out), ("--report", report)):
        if path is not None:
            check_output(name, path, spared)
    if title is not None and (report is None or not title.strip()):
        raise refusal("--title", "is for a page", "name the page by --report, and write a title")
    if out is not None and report is not None and same_place(out, report):
        raise refusal("--out", "names a file that is named twice", "name several")


@contextmanager
def _words_on_interrupts() -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt:
        words = "Interrupted. What was charged stays charged (lastbit budget shows it), and to ask"
        click.echo(f"{words}\nthe same again is free as long as the data are the same.", err=True)
        raise


def _show_answer(
    answer: Answer | Marginals,
    state: Mapping[str, Any],
    budget: Sequence[tuple[str, str]] | None,
    *,
    notes: str,
    as_json: bool,
) -> None:
    part = answer.part if isinstance(answer, Answer) else None
    if as_json:
        shown = {} if part is None else {"shown": part}
        show_json({"charged": answer.charged, "answer": answer.record, **shown, **state})
    else:
        page = _answer_page(part or answer.record, budget, charged=answer.charged)
        show(*page, *_notes_part(part or answer.record, notes))


def _budget_of(
    table: Table | RemoteTable, answer: Answer | Marginals, connections: Connections
) -> tuple[Mapping[str, Any], list[tuple[str, str]], Mapping[str, Any] | None]:
    """What is left after an answer: as JSON, in words, and for its page."""
    if isinstance(table, Table):
        books, account = account_of(table.card, connections)
        share = own_allowance(books, account.name)
        paid = Cost.from_json(answer.record["cost"])
        said, rows = _budget_words(account, paid, share)
        return {"account": account_json(account), **said}, rows, account_json(account, paid)
    try:
        said, rows = budget_at(table)
        return said, rows, said["accounts"][0]
    except LastbitError:  # an answer that is paid for is shown all the same
        return {}, [], None


def _budget_words(
    account: Account, cost: Cost, share: Allowance | None
) -> tuple[dict[str, Any], list[tuple[str, str]]]:
    """The allowance as JSON, where there is one; it and the account in words."""
    if share is None:
        return {}, budget_rows(account, cost)
    rows = [*budget_rows(account, cost), ("allowance", allowance_words(share))]
    return {"allowance": allowance_json(share)}, rows


def _show_remote_plan(table: RemoteTable, asked: Mapping[str, Any], *, as_json: bool) -> None:
    """What the client plans, and what the server says of it."""
    shown = table.preview(**asked)
    if as_json:
        show_json(shown)
        return
    plan = table.plan(**asked)
    if plan is None:
        heading = Heading(printable(shown["title"], WIDTH - 16), "not yet paid")
        rows = [(printable(name, 20), printable(words)) for name, words in shown["facts"]]
        page: tuple[Part, ...] = heading, Facts(rows)
    else:
        page = _plan_page(plan, _prices(plan, asked))
    show(*page, Facts([("server", printable(str(table.server))), *table.state(shown)]))


def _prices(plan: Plan, asked: Mapping[str, Any]) -> list[tuple[str, ...]]:
    return price_rows(plan.query, plan.card, delta=asked["delta"], weights=asked["weights"])


def _marginal_columns(text: str) -> dict[str, str]:
    """The columns of tables, by name: region,old or band=bin(age, 0, 18, 65)."""
    columns: dict[str, str] = {}
    depth, item = 0, ""
    for letter in text + ",":
        depth += (letter == "(") - (letter == ")")
        if letter != "," or depth:
            item += letter
            continue
        name, equals, expression = (part.strip() for part in item.partition("="))
        if not (equals and name.isidentifier()):
            name = expression = item.strip()
        if name in columns:
            raise refusal("--marginals", "names a column twice", "name each once")
        if name:
            columns[name] = expression
        item = ""
    if not columns:
        raise refusal("--marginals", "names no column", "write --marginals region,old")
    return columns


def _weights(text: str | None) -> dict[str, Fraction] | Literal["balanced"] | None:
    """Weights as they were written: n=2,cost=1."""
    if text is None:
        return None
    if text == "balanced":
        return "balanced"
    return _by_name(text, "--weights", "write --weights n=2,cost=1, or --weights balanced")


def _within(text: str | None) -> Fraction | dict[str, Fraction] | None:
    """One number, or numbers by name: n=100,cost=5."""
    if text is None:
        return None
    if "=" not in text:
        return exact_number(text.strip(), "--within")
    return _by_name(text, "--within", "write --within 100, or --within n=100,cost=5")


def _by_name(text: str, option: str, remedy: str) -> dict[str, Fraction]:
    found: dict[str, Fraction] = {}
    for part in text.split(","):
        name, equals, number = part.rpartition("=")
        if not equals or not name.strip() or name.strip() in found:
            raise refusal(option, "is not a list of names and numbers", remedy)
        found[name.strip()] = exact_number(number.strip(), option)
    return found


def _show_plan(
    plan: Plan | MarginalsPlan, asked: Mapping[str, Any], *, explain: bool, as_json: bool
) -> None:
    if explain and not as_json:
        show(*_plan_page(plan, _prices(plan, asked) if isinstance(plan, Plan) else ()))
        return
    books, account = account_of(plan.card)
    after, share = account, None
    before = plan.before if isinstance(plan, Plan) else Cost()
    whole = plan.cost + before
    if not explain:  # refuses a price that the budget or the allowance does not allow
        after = account if before == Cost() else account.charged(before, gaussian_noise=True)
        after = after.charged(plan.cost, gaussian_noise=plan.gaussian_noise)
        share = own_allowance(books, account.name, whole)
    said, rows = _budget_words(after, whole, share)
    if as_json:
        state = {"account": account_json(account, whole), **said}
        first = {} if before == Cost() else {"profile": before.to_json()}
        show_json({"plan": plan.to_json(), "digest": plan.digest, **first, **state})
    else:
        show(
            Heading("It can be asked", price_words(whole.to_json())),
            Facts([("promise", plan.guarantee), *rows]),
            f"The budget is shown as it would be afterwards. {UNTOUCHED}",
        )


def _plan_page(
    plan: Plan | MarginalsPlan, prices: Sequence[tuple[str, ...]] = ()
) -> tuple[Part, ...]:
    """What will be done, at which price and with which error."""
    words, verdict = plan_words(plan), "not yet paid"
    heading = Heading(printable(words.title, WIDTH - 2 - len(verdict)), verdict)
    table = Columns(words.table[0], words.table[1:])
    others = [Columns(prices[0], prices[1:])] if prices else []
    return heading, Facts(words.facts), table, *others, UNTOUCHED


def _write(
    answer: Answer | Marginals,
    state: Mapping[str, Any] | None,
    *,
    out: Path | None,
    report: Path | None,
    title: str | None,
) -> None:
    """Write what was asked for; the answer is paid and kept, whatever happens here."""
    option = "--out"
    try:
        if out is not None:
            kind = out.suffix.lower().removeprefix(".")
            getattr(answer, f"to_{kind}")(out)  # the ending is one of KINDS
        option = "--report"
        if report is not None:
            shown = None if isinstance(answer, Marginals) else answer.part
            written_over(report, reports.page(shown or answer.record, title=title, account=state))
    except (OSError, InvalidParameter) as error:
        reason = getattr(error, "strerror", None) or "the disk or the folder refuses it"
        remedy = "ask the same again: the answer is recorded, and that costs nothing"
        raise refusal(option, f"could not be written ({reason})", remedy) from None


def _answer_page(
    record: Mapping[str, Any], budget: Sequence[tuple[str, str]] | None, *, charged: bool
) -> list[Part]:
    """Numbers with their ±, the price, what is left; without a budget for made-up rows."""
    paid = price_words(record["cost"])
    verdict = paid if charged else "made up, free" if budget is None else "recorded, no charge"
    parts: list[Part] = [Heading(printable(title_of(record), WIDTH - 2 - len(verdict)), verdict)]
    if "marginals" in record["plan"]:
        parts += _marginals_parts(record)
    elif record["rows"]:
        table = table_of(record, width=ROOM, most=MOST_ROWS)
        parts.append(Columns(table.headings, table.rows, numbers=table.numbers))
        if table.left_out:
            where = "" if budget is None else ": --out answer.csv has them all"
            parts.append(f"... and {table.left_out:,} more groups{where}")
    else:
        parts.append(EMPTY)
    parts += _paragraph(whole_sentences(record), "  ")
    facts = [("in all", f"{total} {name}") for name, total in totals_of(record)]
    facts.append(("promise", str(record["guarantee"])))
    if not charged and budget is not None:
        facts.append(("paid", f"{paid}, when it was first asked"))
    if record.get("entry") is not None:
        facts.append(("ledger", f"entry {record['entry']['sequence']}"))
    return [*parts, Facts([*facts, *(budget or ())])]


def _notes_part(record: Mapping[str, Any], most: str) -> list[Part]:
    """The first notes, and a line that says how many more there are; or all notes."""
    notes = notes_of(record)
    if most == "all" or not more_words(notes):
        return _paragraph(notes, "- ")
    (first,) = _paragraph(notes[:MOST_NOTES], "- ")
    return [f"{first}\n  {more_words(notes)}: --notes all"]


def _paragraph(sentences: Sequence[str], mark: str) -> list[Part]:
    """Sentences below each other, each folded to the width; nothing where there are none."""
    folded = (
        textwrap.fill(printable(one, 1000), ROOM, initial_indent=mark, subsequent_indent="  ")
        for one in sentences
    )
    return ["\n".join(folded)] if sentences else []


def _marginals_parts(record: Mapping[str, Any]) -> Iterator[Part]:
    """A table for each marginal that fits the width: whole counts, with their sums."""
    tables = marginal_tables(record)
    for names, keys, rows in tables[:_MOST_TABLES]:
        head, *lines = cross_table(names, keys, rows)
        wide = sum(max(map(len, column)) + 2 for column in zip(head, *lines, strict=True))
        if wide > ROOM:
            title = printable(" by ".join(names), 40)
            yield f"{title}: {len(rows):,} cells, too wide; --out or --report has them"
        else:
            yield Columns(head, lines, numbers=range(1, len(head)))
    if len(tables) > _MOST_TABLES:
        yield f"... and {len(tables) - _MOST_TABLES} more tables: --out tables.csv has them all"
