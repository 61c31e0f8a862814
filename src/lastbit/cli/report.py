"""`lastbit report`: a table and its answers on paper, for reviewers and for registries."""

from __future__ import annotations

from pathlib import Path

import click

from lastbit.cli.files import save
from lastbit.cli.ledger import account_of, reopened_after, reopened_words
from lastbit.cli.options import FILE, command, flag, option, refusal
from lastbit.cli.output import waiting
from lastbit.ledger import check_output, spared_by
from lastbit.release import record_problem
from lastbit.report import checklist_markdown, checklist_page, deployment_of, registry_entry
from lastbit.tables import budgets_agree, read_card


@command("report visits.toml --checklist --out checklist.html")
@click.argument("card", type=FILE)
@flag("--checklist", "The checklist: Markdown, or a page where --out ends in .html.")
@flag("--registry", "An entry for the Differential Privacy Deployments Registry, as YAML.")
@option("--out", "Write to this new file; one that people have filled in is not replaced.", FILE)
def report(card: Path, checklist: bool, registry: bool, out: Path | None) -> None:
    """What is on record of a table, for reviewers and registries.

    Filled in from the card, the ledger and the certificates, which are all checked again. What only
    people can answer is an open line. Nothing is charged, no row is read, and no released number is
    in it. The checklist follows NIST SP 800-226, Guidelines for Evaluating Differential Privacy
    Guarantees (2025).
    """
    if checklist == registry:
        raise refusal("the report", "is not named", "pass one of --checklist and --registry")
    read = read_card(card)
    if out is not None:
        check_output("--out", out, {**spared_by(read), "the card": [str(card)]})
        if out.exists():
            raise refusal("--out", "exists, and may have been filled in", "name a new file")
    ledger, account = account_of(read)
    if account.budget is None or not budgets_agree(account.budget, read.budget):
        problem = "does not name the budget that its ledger has"
        raise refusal(str(card), problem, f"decide on one: lastbit budget {card} --set")
    before = 0 if ledger is None else reopened_after(ledger.entries(account.name))
    cautions = (reopened_words(before),) if before else ()
    with waiting("checking"):
        about = deployment_of(read, account, ledger, record_problem, cautions)
    if checklist:
        page = out is not None and out.suffix.lower() in (".html", ".htm")
        words = str(checklist_page(about)) if page else checklist_markdown(about)
    elif about.answers:
        words = registry_entry(about)
    else:
        remedy = "release one" if ledger else "release one; if there were answers, find the ledger"
        raise refusal("the registry", "has no place for a table without answers", remedy)
    if out is None:
        click.echo(words, nl=False)
    else:
        save(out, words)
        click.echo(f"{out} is written.{' Its open lines are for people.' if checklist else ''}")
