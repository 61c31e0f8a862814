"""`lastbit query`: a question in SQL about the table of a data card, and its private answer."""

from __future__ import annotations

import sys
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from lastbit.cli.numbers import EXACT, exact_number
from lastbit.cli.refusals import option_names
from lastbit.errors import InvalidParameter
from lastbit.ledger import one_connection
from lastbit.places import exists

if TYPE_CHECKING:
    from lastbit.ledger import Account
    from lastbit.release import Answer
    from lastbit.tables import DataCard, Plan

KINDS = (".csv", ".parquet", ".json")


@click.command(
    epilog='Example: lastbit query visits.toml "SELECT region, COUNT(*) AS n FROM visits '
    'GROUP BY region" --epsilon 1'
)
@click.argument("card", type=click.Path(path_type=Path))
@click.argument("sql")
@click.option("--epsilon", type=EXACT, help="The price of the whole answer: 1, 0.5, 1/3 ...")
@click.option(
    "--delta", type=EXACT, help="For keys that only the data knows, and Gaussian noise: 1e-9."
)
@click.option(
    "--rho", type=EXACT, help="The price, where the table is paid in concentrated privacy."
)
@click.option(
    "--weights",
    metavar="balanced|NAME=NUMBER,...",
    help="How the price is shared out: n=2,cost=1, or balanced to make the worst error small.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    help="Write .csv, .parquet, or .json for lastbit check.",
)
@click.option("--report", type=click.Path(path_type=Path), help="Write an HTML page with charts.")
@click.option("--explain", is_flag=True, help="Show the plan and the errors to expect, and stop.")
@click.option("--dry-run", is_flag=True, help="Check question, price and budget, and stop.")
@click.option("--fresh", is_flag=True, help="Pay for new noise though an answer is recorded.")
@click.option("--consistent", is_flag=True, help="Make counts whole and add up to their total.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@one_connection()
def query(
    card: Path,
    sql: str,
    epsilon: Fraction | None,
    delta: Fraction | None,
    rho: Fraction | None,
    weights: str | None,
    out: Path | None,
    report: Path | None,
    explain: bool,
    dry_run: bool,
    fresh: bool,
    consistent: bool,
    as_json: bool,
) -> None:
    """Ask a table in SQL: a private answer with error bars.

    CARD describes the table; SQL is one SELECT (- reads it from standard input). Every number comes
    with its 95 % interval. The price is for the whole answer; it is written into the ledger of the
    card before a row is read, and the answer before it is shown. The same question to the same data
    is answered again at no charge. What is refused charges nothing; what fails or is interrupted
    while the data are read stays charged, and to ask the same again is free.

    With --explain or --dry-run nothing is read from the table and nothing is charged.
    """
    from lastbit.tables import parsed, planned, read_card

    text = _statement(sql)
    with option_names():
        table = read_card(card)
        _check_files(out, report, card, table)
        question = parsed(text, table)
        plan = planned(
            question, table, epsilon=epsilon, delta=delta, rho=rho, weights=_weights(weights)
        )
    if explain or dry_run:
        _show_plan(plan, table, explain=explain, as_json=as_json)
        return
    answer, charged = _asked(plan, table, text, fresh=fresh, consistent=consistent)
    _show_answer(answer, table, charged=charged, as_json=as_json)
    _write(answer, table, out=out, report=report)


# ---------------------------------------------------------------- before anything is read


def _statement(sql: str) -> str:
    return sys.stdin.read() if sql == "-" else sql


def _weights(text: str | None) -> dict[str, Fraction] | Literal["balanced"] | None:
    """Weights as they were written: n=2,cost=1."""
    if text is None:
        return None
    if text == "balanced":
        return "balanced"
    found: dict[str, Fraction] = {}
    for part in text.split(","):
        name, equals, number = part.rpartition("=")
        if not equals or not name.strip() or name.strip() in found:
            raise InvalidParameter(
                "--weights",
                problem="is no list of names and numbers",
                remedy="write --weights n=2,cost=1, or --weights balanced",
            )
        found[name.strip()] = exact_number(number.strip(), "--weights")
    return found


def _check_files(out: Path | None, report: Path | None, card: Path, table: DataCard) -> None:
    """Refuse what could not be written, or must not be written over; before anything is paid."""
    from lastbit.ledger import check_output, spared_by
    from lastbit.places import same_place

    if out is not None and out.suffix.lower() not in KINDS:
        raise InvalidParameter(
            "--out",
            problem="has a name of no known kind",
            remedy=f"end it in {', '.join(KINDS[:-1])} or {KINDS[-1]}",
        )
    spared = {**spared_by(table), "the card": [str(card)]}
    for option, path in (("--out", out), ("--report", report)):
        if path is not None:
            check_output(option, path, spared)
    if out is not None and report is not None and same_place(out, report):
        raise InvalidParameter(
            "--out", problem="names a file that is named twice", remedy="name several"
        )


def _show_plan(plan: Plan, card: DataCard, *, explain: bool, as_json: bool) -> None:
    from lastbit.cli.ledger_view import account_json
    from lastbit.cli.page import show, show_json
    from lastbit.cli.query_view import plan_parts, price_parts

    account = _account(card)
    if not explain:
        account.charged(plan.cost)  # refuses a price that the budget does not allow
    if as_json:
        state = account_json(account)
        show_json({"plan": plan.to_json(), "digest": plan.digest, "account": state})
        return
    show(*(plan_parts(plan) if explain else price_parts(plan, account)))


# ---------------------------------------------------------------- the answer


def _asked(
    plan: Plan, card: DataCard, text: str, *, fresh: bool, consistent: bool
) -> tuple[Answer, bool]:
    """The answer, and whether it was charged just now, or earlier."""
    from lastbit.cli.waiting import waiting
    from lastbit.ledger import Ledger
    from lastbit.release import released

    last = _last_entry(card)
    try:
        with option_names(), waiting("asking"):
            answer = released(plan.query, card, plan, fresh=fresh, consistent=consistent, sql=text)
    except KeyboardInterrupt:
        words = "Interrupted. What was charged stays charged (lastbit budget shows it), and to ask"
        click.echo(f"{words}\nthe same again is free as long as the data are the same.", err=True)
        raise
    entry = answer.record.get("entry")
    if entry is None or card.ledger is None:
        return answer, True
    if entry["sequence"] <= last:
        return answer, False
    books = Ledger.existing(card.ledger)
    return answer, books.paid_at(books.entry(entry["sequence"])) > last


def _last_entry(card: DataCard) -> int:
    from lastbit.ledger import Ledger

    if card.ledger is None or not exists(card.ledger):
        return 0
    return Ledger.existing(card.ledger).entries(last=1)[0].sequence


def _account(card: DataCard) -> Account:
    """The account of the table as it is now; a ledger that is not there yet is not made."""
    from lastbit.ledger import Account, Ledger

    if card.ledger is None or not exists(card.ledger):
        return Account(name=card.name, budget=card.budget)
    accounts = Ledger.existing(card.ledger).accounts()
    new = Account(name=card.name, budget=card.budget)
    return next((account for account in accounts if account.name == card.name), new)


def _show_answer(answer: Answer, card: DataCard, *, charged: bool, as_json: bool) -> None:
    from lastbit.cli.ledger_view import account_json
    from lastbit.cli.page import show, show_json
    from lastbit.cli.query_view import answer_parts

    account = _account(card)
    if as_json:
        state = account_json(account)
        show_json({"charged": charged, "answer": answer.record, "account": state})
        return
    show(*answer_parts(answer.record, account, charged=charged))


def _write(answer: Answer, card: DataCard, *, out: Path | None, report: Path | None) -> None:
    """Write what was asked for; the answer is paid and kept, whatever happens here."""
    from lastbit.cli.ledger_view import account_json
    from lastbit.places import written_over
    from lastbit.report import page

    option = "--out"
    try:
        if out is not None:
            _written(answer, out)
        option = "--report"
        if report is not None:
            written_over(report, page(answer.record, account=account_json(_account(card))))
    except (OSError, InvalidParameter) as error:
        reason = getattr(error, "strerror", None) or "the disk or the folder refuses it"
        raise InvalidParameter(
            option,
            problem=f"could not be written ({reason})",
            remedy="ask the same again: the answer is recorded, and that costs nothing",
        ) from None


def _written(answer: Answer, out: Path) -> None:
    match out.suffix.lower():
        case ".csv":
            answer.to_csv(out)
        case ".parquet":
            answer.to_parquet(out)
        case _:
            answer.to_json(out)
