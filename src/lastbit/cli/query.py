"""`lastbit query`: a question in SQL about the table of a data card, and its private answer."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from lastbit import report as reports
from lastbit.cli.allowance import allowance_words, own_allowance
from lastbit.cli.ledger import account_of, budget_rows, ledger_of_card
from lastbit.cli.marginals import marginals_parts, marginals_plan
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
from lastbit.cli.remote import OrRemote, budget_at, opened, released_remotely, token_option
from lastbit.errors import InvalidParameter, LastbitError
from lastbit.files import Spared, same_place, written_over
from lastbit.ledger import Allowance, Ledger, Session, check_output, spared_by
from lastbit.release import (
    Answer,
    Marginals,
    check_kept,
    made_up_answer,
    planned_within,
    price_rows,
    released,
    released_marginals,
    with_kept,
)
from lastbit.report import (
    EMPTY,
    UNTOUCHED,
    account_json,
    allowance_json,
    marginals_page,
    notes_of,
    plan_words,
    price as price_words,
    table_of,
    title_of,
    totals_of,
)
from lastbit.tables import (
    Cost,
    MarginalsPlan,
    Plan,
    parsed,
    printed_statement,
    progress,
    read_card,
)

if TYPE_CHECKING:  # what speaks to servers is slow to load
    from lastbit.release import RemoteTable

DIALECTS = ("duckdb", "postgres", "spark")
KINDS = (".csv", ".parquet", ".json")
MOST_ROWS = 60
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
@flag("--kept", "Buy the share of rows that count too, for a twentieth of the price besides.")
@flag("--no-intervals", "Quantiles without 95 % intervals: all of the price buys their values.")
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
    kept: bool,
    no_intervals: bool,
    token_file: Path | None,
    as_json: bool,
    **price: Fraction | None,
) -> None:
    """Ask a table in SQL: a private answer with error bars.

    CARD describes the table; SQL is one SELECT (- reads it from standard input). Every number comes
    with its 95 % interval. The price is for the whole answer; it is written into the ledger of the
    card before a row is read, and the answer before it is shown. The same question to the same data
    is answered again at no charge. What is refused charges nothing; what fails or is interrupted
    while the data are read stays charged, and to ask the same again is free.

    With --marginals the answer is all tables of one and of two of these columns, which agree: rows
    and columns of two-way tables add up to one-way tables. Their keys must be declared or public;
    numbers go into bins, band=bin(age, 0, 18, 65).

    With --explain, --dry-run or --print-sql nothing is read from the table and nothing is charged.
    Nor is it with --made-up: the answer is of the same form and as noisy, and about rows that are
    made up from the card.

    ADDRESS is that of a table that a server has: https://stats.example.org/visits. Its answer is
    checked by lastbit's own checker, and compared with what was asked, before it is shown.
    """
    if (sql is None) == (marginals is None):
        remedy = "pass one SELECT, or --marginals region,old"
        raise refusal("SQL", "or --marginals, exactly one, is needed", remedy)
    statement = sys.stdin.read(MOST_LETTERS) if sql == "-" else sql
    asked: dict[str, Any] = {"weights": _weights(weights), **price}
    if isinstance(card, str):
        given = {"--marginals": marginals, "--pairs": pairs, "--dialect": dialect, "--kept": kept}
        given |= {"--print-sql": print_sql, "--dry-run": dry_run, "--no-intervals": no_intervals}
        given["--made-up"] = made_up
        for name in (name for name, value in given.items() if value):
            raise refusal(name, "is not for tables of a server", "leave it out")
        token = [] if token_file is None else [str(token_file)]
        _check_files(out, report, title, {"the token": token})
        wanted = _within(within)
        remote = opened(card, token_file).sql(statement or "")
        if explain:
            _show_remote_plan(remote, wanted, asked, as_json=as_json)
            return
        with _told_of_interrupts():
            found = released_remotely(remote, fresh, wanted, asked)
        found = found.consistent() if consistent else found
        said, rows = _told_budget(remote)
        _show_answer(found, said, rows, as_json=as_json)
        state = said["accounts"][0] if said else None
        _write(found, state, out=out, report=report, title=title)
        return
    if token_file is not None:
        raise refusal("--token-file", "is for https:// addresses", "leave it out")
    table = read_card(card)
    _check_files(out, report, title, {**spared_by(table), "the card": [str(card)]})
    if made_up and (fresh or kept or out is not None or report is not None):
        remedy = "leave out --fresh, --kept, --out and --report"
        raise refusal("--made-up", "gives no answer that could be bought or kept", remedy)
    if dialect is not None and not print_sql:
        raise refusal("--dialect", "is for --print-sql", "leave it out")
    plan: Plan | MarginalsPlan
    prices: list[tuple[str, ...]] = []
    if statement is None:
        _check_for_marginals(out, within=within, no_intervals=no_intervals, kept=kept)
        plan = marginals_plan(table, marginals or "", pairs=pairs, **asked)
    elif pairs is not None:
        raise refusal("--pairs", "is for --marginals", "leave it out")
    else:
        question = parsed(statement, table)
        if no_intervals:
            question = question.without_intervals()
        check_kept(kept, question, table)
        plan = planned_within(question, table, _within(within), **asked)
        if explain or dry_run:
            prices = price_rows(question, table, delta=price["delta"], weights=asked["weights"])
    if print_sql:
        _show_statement(plan, dialect, as_json=as_json)
        return
    if explain or dry_run:
        _show_plan(plan, prices, explain=explain, as_json=as_json)
        return
    if made_up:
        _show_made_up(made_up_answer(plan, table, sql=statement), consistent, as_json=as_json)
        return
    with Session().lasting() as session:
        with _told_of_interrupts(), waiting("asking") as tell, progress(tell):
            ledger = ledger_of_card(table, session)
            answer = _released(plan, ledger, fresh=fresh, consistent=consistent, sql=statement)
            if isinstance(answer, Answer):
                ledger = ledger or ledger_of_card(table, session)  # which may be new
                answer = with_kept(answer, plan.query, table, ledger=ledger, kept=kept)
        books, account = account_of(table, session)
        share, paid = own_allowance(books, account.name), _paid(answer.record)
    state = {"account": account_json(account), **_share(share)}
    _show_answer(answer, state, [*budget_rows(account, paid), *_own(share)], as_json=as_json)
    _write(answer, account_json(account, paid), out=out, report=report, title=title)


def _check_files(out: Path | None, report: Path | None, title: str | None, spared: Spared) -> None:
    """Refuse what could not be written before anything is paid."""
    if out is not None and out.suffix.lower() not in KINDS:
        remedy = f"end it in {', '.join(KINDS[:-1])} or {KINDS[-1]}"
        raise refusal("--out", "has a name of no known kind", remedy)
    for name, path in (("--out", out), ("--report", report)):
        if path is not None:
            check_output(name, path, spared)
    if title is not None and (report is None or not title.strip()):
        raise refusal("--title", "is for a page", "name the page by --report, and write a title")
    if out is not None and report is not None and same_place(out, report):
        raise refusal("--out", "names a file that is named twice", "name several")


@contextmanager
def _told_of_interrupts() -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt:
        words = "Interrupted. What was charged stays charged (lastbit budget shows it), and to ask"
        click.echo(f"{words}\nthe same again is free as long as the data are the same.", err=True)
        raise


def _show_answer(
    answer: Answer | Marginals,
    state: Mapping[str, Any],
    budget: Sequence[tuple[str, str]],
    *,
    as_json: bool,
) -> None:
    part = answer.shown if isinstance(answer, Answer) else None
    if as_json:
        shown = {} if part is None else {"shown": part}
        show_json({"charged": answer.charged, "answer": answer.record, **shown, **state})
    else:
        show(*_answer_page(part or answer.record, budget, charged=answer.charged))


def _told_budget(table: RemoteTable) -> tuple[dict[str, Any], list[tuple[str, str]]]:
    """What is left, if the server says so: an answer that is paid for is shown all the same."""
    try:
        return budget_at(table)
    except LastbitError:
        return {}, []


def _show_remote_plan(
    table: RemoteTable, within: Any, asked: Mapping[str, Any], *, as_json: bool
) -> None:
    """What the client plans, and what the server says of it."""
    shown = table.preview(within=within, **asked)
    if as_json:
        show_json(shown)
        return
    plan = table.plan(within=within, **asked)
    if plan is None:
        heading = Heading(printable(shown["title"], WIDTH - 16), "not yet paid")
        rows = [(printable(name, 20), printable(words)) for name, words in shown["facts"]]
        page: tuple[Part, ...] = heading, Facts(rows)
    else:
        delta, weights = asked["delta"], asked["weights"]
        page = _plan_page(plan, price_rows(plan.query, table.card, delta=delta, weights=weights))
    show(*page, Facts([("server", printable(str(table.server))), *table.state(shown)]))


def _show_made_up(answer: Answer, consistent: bool, *, as_json: bool) -> None:
    whole = consistent and "marginals" not in answer.record["plan"]  # which agree already
    record = (answer.consistent() if whole else answer).record
    if as_json:
        show_json({"charged": False, "answer": record})
    else:
        show(*_answer_page(record, None, charged=False))


def _check_for_marginals(
    out: Path | None, *, within: str | None, no_intervals: bool, kept: bool
) -> None:
    given = {"--within": within is not None, "--no-intervals": no_intervals, "--kept": kept}
    for name in (name for name, is_given in given.items() if is_given):
        raise refusal(name, "does not go with --marginals", "leave it out")
    if out is not None and out.suffix.lower() == ".parquet":
        raise refusal("--out", "cannot hold several tables", "end it in .csv or .json")


def _released(
    plan: Plan | MarginalsPlan,
    ledger: Ledger | None,
    *,
    fresh: bool,
    consistent: bool,
    sql: str | None,
) -> Answer | Marginals:
    if isinstance(plan, MarginalsPlan):  # its tables agree, whether --consistent is given or not
        return released_marginals(plan, ledger=ledger, fresh=fresh)
    return released(
        plan.query, plan.card, plan, ledger=ledger, fresh=fresh, consistent=consistent, sql=sql
    )


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


def _show_statement(plan: Plan | MarginalsPlan, dialect: str | None, *, as_json: bool) -> None:
    written = printed_statement(plan, dialect)
    if as_json:
        name = dialect or plan.card.source.engine
        show_json({"dialect": name, "certified": True, "sql": written})
    else:
        click.echo(written)


def _show_plan(
    plan: Plan | MarginalsPlan, prices: list[tuple[str, ...]], *, explain: bool, as_json: bool
) -> None:
    books, account = account_of(plan.card)
    after, share = account, None
    if not explain:  # refuses a price that the budget or the allowance does not allow
        after = account.charged(plan.cost, gaussian_noise=plan.gaussian_noise)
        share = own_allowance(books, account.name, plan.cost)
    if as_json:
        state = {"account": account_json(account, plan.cost), **_share(share)}
        show_json({"plan": plan.to_json(), "digest": plan.digest, **state})
    elif explain:
        show(*_plan_page(plan, prices))
    else:
        show(
            Heading("It can be asked", price_words(plan.cost.to_json())),
            Facts([("promise", plan.guarantee), *budget_rows(after, plan.cost), *_own(share)]),
            f"The budget is shown as it would be afterwards. {UNTOUCHED}",
        )


def _share(share: Allowance | None) -> dict[str, Any]:
    return {} if share is None else {"allowance": allowance_json(share)}


def _own(share: Allowance | None) -> list[tuple[str, str]]:
    return [] if share is None else [("allowance", allowance_words(share))]


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
            if isinstance(answer, Marginals):
                page = marginals_page(answer.record, title=title, account=state)
            else:
                page = reports.page(answer.shown or answer.record, title=title, account=state)
            written_over(report, page)
    except (OSError, InvalidParameter) as error:
        reason = getattr(error, "strerror", None) or "the disk or the folder refuses it"
        remedy = "ask the same again: the answer is recorded, and that costs nothing"
        raise refusal(option, f"could not be written ({reason})", remedy) from None


def _paid(record: Mapping[str, Any]) -> Cost:
    """What an answer cost: the price to count further answers with."""
    return Cost(**{name: Fraction(amount) for name, amount in record["cost"].items()})


def _answer_page(
    record: Mapping[str, Any], budget: Sequence[tuple[str, str]] | None, *, charged: bool
) -> list[Part]:
    """Numbers with their ±, the price, what is left, notes; without a budget for made-up rows."""
    paid = price_words(record["cost"])
    verdict = paid if charged else "made up, free" if budget is None else "recorded, no charge"
    parts: list[Part] = [Heading(printable(title_of(record), WIDTH - 2 - len(verdict)), verdict)]
    if "marginals" in record["plan"]:
        parts += marginals_parts(record, width=ROOM)
    elif record["rows"]:
        table = table_of(record, width=ROOM, most=MOST_ROWS)
        parts.append(Columns(table.headings, table.rows, numbers=table.numbers))
        if table.left_out:
            where = "" if budget is None else ": --out answer.csv has them all"
            parts.append(f"... and {table.left_out:,} more groups{where}")
    else:
        parts.append(EMPTY)
    facts = [("in all", f"{total} {name}") for name, total in totals_of(record)]
    facts.append(("promise", str(record["guarantee"])))
    if not charged and budget is not None:
        facts.append(("paid", f"{paid}, when it was first asked"))
    if record.get("entry") is not None:
        facts.append(("ledger", f"entry {record['entry']['sequence']}"))
    parts.append(Facts([*facts, *(budget or ())]))
    notes = [
        textwrap.fill(printable(note, 1000), ROOM, initial_indent="- ", subsequent_indent="  ")
        for note in notes_of(record)
    ]
    return [*parts, "\n".join(notes)] if notes else parts
