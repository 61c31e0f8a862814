"""A deployment on paper: the checklist of SP 800-226, and an entry for a public registry.

The card, the ledger and the certificates of its answers say most of what reviewers ask about a
deployment. What they say is filled in, with its source beside it; what only people can answer stays
an open line. Nothing of the data is in either paper, and no released number: questions, mechanisms,
prices and what the card declares. Losses are rounded up.

Source   NIST SP 800-226 (Near, Darais, Lefkovitz, Howarth 2025), the components of its pyramid from
         top to bottom, the questions in our words; the schema of the Differential Privacy
         Deployments Registry (Ghazi, Nanayakkara, Vadhan 2025), as it was in July 2026
Checked  tests/report/test_deployment.py
"""

from __future__ import annotations

import json
import re
import textwrap
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from types import MappingProxyType
from typing import Any, TypeAlias

from markupsafe import Markup

from lastbit.exact import rounded_up
from lastbit.ledger import Account, Ledger, exported
from lastbit.privacy import ZCDP, ApproxDP, PureDP, posterior_bounds
from lastbit.report.cells import Record
from lastbit.report.page import CURRENCIES, amount, listed, price, printable, rendered
from lastbit.report.plan import (
    bounding_sentences,
    composition_sentence,
    plan_rows,
    price_warnings,
    title_of,
)
from lastbit.tables import DataCard

Judge: TypeAlias = Callable[[Record], str | None]

_WIDTH = 78
_DIGITS = 7
_MARKDOWN = re.compile(r"([\\`*_\[\]<>|#])")
_COMPARED = Fraction(1, 10**5)
_VARIANTS: Mapping[str, str] = MappingProxyType(
    {
        "pure": "Pure DP",
        "approx": "Approximate DP",
        "zcdp": "Zero-concentrated DP",
        "filter": "Approximate DP",
        "gaussian": "Approximate DP",
    }
)
_SUMS = "The prices of all answers add up (sequential composition); the ledger refuses an answer "
_SUMS += "that would exceed the budget."
_FILTER = "All answers together stay within the budget by the {} filter, also where questions and "
_FILTER += (
    "prices are chosen by earlier answers; the ledger refuses an answer that would exceed it."
)
_EXACT = (
    "Noise is drawn as whole numbers on a public grid, from its exact law; there is no "
    "floating-point number between the draw and the release. Random bits are AES-256 in counter "
    "mode, with keys of the operating system; no seed can be set."
)
_CLOCK = (
    "The price is committed before a row is read, every row takes the same operations, and no "
    "error shows a value. How long an answer takes is covered by no ε; lastbit serve gives "
    "answers at the ends of public time slots."
)
_CENTRAL = (
    "Central: the steward, who holds the table and runs lastbit, is trusted; readers of answers "
    "and analysts who ask are not."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """An answer in the ledger; `problem` is why the independent checker does not accept it."""

    entry: int
    when: str
    price: str
    fingerprint: str
    record: Record
    problem: str | None

    @property
    def title(self) -> str:
        """What was asked, in a line; of an answer that is not accepted, its entry alone."""
        return f"entry {self.entry}" if self.problem else title_of(self.record)


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployment:
    """What is on record of a table: its card, its account, and every answer that was given."""

    card: DataCard
    account: Account
    answers: tuple[Answered, ...]
    unanswered: int
    problems: tuple[str, ...]
    head: str | None
    roles: Mapping[str, int]
    cautions: tuple[str, ...] = ()

    @property
    def accepted(self) -> tuple[Answered, ...]:
        """The answers whose certificates the independent checker accepts."""
        return tuple(one for one in self.answers if one.problem is None)

    @property
    def unit(self) -> str:
        """What the privacy unit is called."""
        return "row" if self.card.unit is None else printable(self.card.unit, 60)


def deployment_of(
    card: DataCard,
    account: Account,
    ledger: Ledger | None,
    judged: Judge,
    cautions: tuple[str, ...] = (),
) -> Deployment:
    """What is on record; `judged` is the independent checker, which this room may not import."""
    if ledger is None:
        return Deployment(
            card=card,
            account=account,
            answers=(),
            unanswered=0,
            problems=(),
            head=None,
            roles={},
            cautions=cautions,
        )
    return Deployment(
        card=card,
        account=account,
        answers=tuple(_answers(ledger, account.name, judged)),
        unanswered=len(ledger.unanswered(account.name)),
        problems=tuple(ledger.problems()),
        head=ledger.head,
        roles=Counter(one.role for one in ledger.principals() if one.role),
        cautions=cautions,
    )


def _answers(ledger: Ledger, account: str, judged: Judge) -> Iterator[Answered]:
    paid: dict[str, Mapping[str, str]] = {}
    for entry in exported(ledger):
        told = entry["fields"]
        if told["account"] != account:
            continue
        if told["kind"] == "reserved":
            paid[entry["hash"]] = told["cost"]
        elif told["kind"] in ("settled", "charge"):
            record = entry["record"] if isinstance(entry["record"], Mapping) else {}
            yield Answered(
                entry=told["sequence"],
                when=told["when"][:10],
                price=price(paid.get(told.get("reservation") or "", told["cost"] or {})),
                fingerprint=str(told["fingerprint"]),
                record=record,
                problem=judged(record),
            )


# ---------------------------------------------------------------- the checklist


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """A question; what is `known` of it and from where; what is left to `people`, if anything."""

    question: str
    known: str = ""
    source: str = ""
    people: str = ""


Sections: TypeAlias = tuple[tuple[str, tuple[Item, ...]], ...]


def checklist(about: Deployment) -> Sections:
    """The components of the pyramid of SP 800-226 from top to bottom, each with its questions."""
    parts: tuple[tuple[str, Callable[[Deployment], Iterator[Item]]], ...] = (
        ("ε and the other privacy parameters", _parameters),
        ("Unit of privacy", _unit),
        ("Other releases of the same data", _others),
        ("Utility", _utility),
        ("Bias", _bias),
        ("Algorithms and correctness", _algorithms),
        ("Query model and threat model", _models),
        ("Side channels", _channels),
        ("Security and access control", _access),
        ("Data collection", _collection),
    )
    return tuple((title, tuple(items(about))) for title, items in parts)


def checklist_markdown(about: Deployment) -> str:
    """The checklist as a Markdown task list: a box is ticked where nothing is left to people."""
    sections = checklist(about)
    lines = [f"# Checklist: {_plain(about.card.name)}", "", *_wrapped(_preface(sections)), ""]
    for title, items in sections:
        lines += [f"## {title}", ""]
        for item in items:
            box = " " if item.people else "x"
            words = f"- [{box}] **{_plain(item.question)}** {_plain(item.known)}".rstrip()
            if item.source:
                words += f" *({item.source})*"
            lines += _wrapped(words, "  ")
            if item.people:
                lines += _wrapped(f"  **Open:** {_plain(item.people)}", "  ")
        lines.append("")
    return "\n".join(lines)


def checklist_page(about: Deployment) -> Markup:
    """The checklist as a page that prints."""
    sections = checklist(about)
    title = f"Checklist: {printable(about.card.name, 60)}"
    return rendered("checklist.html", title=title, preface=_preface(sections), sections=sections)


def _preface(sections: Sections) -> str:
    items = [item for _, found in sections for item in found]
    left = sum(1 for item in items if item.people)
    return (
        f"Ordered by the components of NIST SP 800-226. {len(items) - left} of {len(items)} lines "
        f"are filled in from the card, the ledger and the certificates; {left} are for people."
    )


def _plain(text: str) -> str:
    return _MARKDOWN.sub(r"\\\1", printable(text, 4000))


def _wrapped(text: str, indent: str = "") -> list[str]:
    return textwrap.wrap(
        text, _WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )


def _parameters(about: Deployment) -> Iterator[Item]:
    budget = about.account.budget
    assert budget is not None  # `lastbit report` refuses a card without one
    paid = {name: str(getattr(budget, name)) for name, _ in CURRENCIES}
    yield Item(
        question="What do all answers together promise?",
        known=f"{_VARIANTS[budget.kind]} with {price(paid)}.",
        source="card, ledger",
    )
    spent = {name: str(getattr(about.account.spent, name)) for name, _ in CURRENCIES}
    yield Item(
        question="What has been spent so far?",
        known=f"{price(spent)} by plain sums, in {_many(len(about.answers), 'answer')}."
        + (f" Charged and not answered: {about.unanswered}." if about.unanswered else ""),
        source="ledger",
    )
    yield Item(
        question="How do the prices of several answers add up?",
        known=_composition(about),
        source="card",
        people=" ".join(about.cautions),
    )
    if budget.kind == "pure":
        _, most = posterior_bounds("0.01", PureDP(budget.epsilon))
        told = amount(100 * Fraction(most), up=True, digits=3)
        there = about.card.neighbours.relation == "add-remove"
        fact = "one more is in the table" if there else "the rows of this one are certain ones"
        yield Item(
            question="What can be learned about one unit at most?",
            known=f"Somebody who knows all other units, and thought it 1 % likely that {fact}, "
            f"thinks it at most {told} % likely after all answers.",
            source="derived",
        )
    if budget.kind == "zcdp":
        same = ZCDP(budget.rho).to(ApproxDP, delta=_COMPARED).epsilon
        yield Item(
            question="What is that as (ε, δ), to compare?",
            known=f"ε = {rounded_up(Fraction(same), 4)} at δ = 1e-5.",
            source="derived",
        )
    yield Item(
        question="Why these parameters?",
        known=" ".join(price_warnings(paid)),
        people="Say who decided on them, on which grounds, and when they are reviewed.",
    )


def _composition(about: Deployment) -> str:
    kept = about.account.budget
    name = {"filter": "moment", "gaussian": "Gaussian"}.get("" if kept is None else kept.kind)
    return _SUMS if name is None else _FILTER.format(name)


def _unit(about: Deployment) -> Iterator[Item]:
    card, unit = about.card, about.unit
    if card.unit is None:
        whose, bound = "One row: each row is declared to be a different person.", "1 row."
    else:
        whose = f"One {unit}, with all its rows."
        bound = f"{_many(card.max_rows, 'row')} in all; where there are more, each counts for less."
        if card.max_groups is not None and not card.max_groups_assumed:
            bound += f" Undeclared keys: {_many(card.max_groups, 'group')}."
    whose += "".join(
        f" Also its rows in {printable(name, 60)}, of which a join uses at most {table.max_rows:,}."
        for name, table in card.private.items()
    )
    yield Item(question="Whose data is protected?", known=whose, source="card")
    yield Item(question="Which tables are neighbours?", known=_neighbours(about), source="card")
    yield Item(question="For how much does one unit count at most?", known=bound, source="card")
    yield Item(
        question="Is the unit the person to be protected?",
        people="Say whether a person can have several ids, whether several share one, and which "
        "harms the unit does not cover.",
    )


def _neighbours(about: Deployment) -> str:
    if about.card.neighbours.relation == "add-remove":
        return (
            f"Add-remove: one {about.unit} more or less, with all its rows. Whether it is there "
            "at all is hidden."
        )
    return (
        f"Change-one: the same units, and one {about.unit} has other rows. What they say is "
        "hidden; the number of units is public."
    )


def _others(about: Deployment) -> Iterator[Item]:
    public = [printable(name, 60) for name in about.card.public]
    yield Item(
        question="What is shown without noise?",
        known=_unprotected(about)
        + (f" Public tables that are joined as they are: {listed(public)}." if public else ""),
        source="card",
    )
    shared = about.card.account is not None
    yield Item(
        question="What else is published about the same people?",
        known=f"The account {printable(about.account.name, 60)} is shared by every table whose "
        "card names it, and its budget holds for all of them together."
        if shared
        else "The budget is this table's own: answers about other tables are not counted in it.",
        source="card",
        people="List other releases of these data, with or without noise; losses add up.",
    )


def _unprotected(about: Deployment) -> str:
    words = "Of the data, nothing. What the card declares is public: columns, types, bounds, keys."
    if about.card.neighbours.relation == "change-one":
        words += " So is the number of units."
    return words


def _utility(about: Deployment) -> Iterator[Item]:
    for one in about.accepted:
        rows = "; ".join(f"{row.what}: {row.error}" for row in plan_rows(one.record) if row.price)
        yield Item(
            question=f"How far off is \u201c{one.title}\u201d?",
            known=f"In 95 % of releases: {rows}. Price: {one.price}.",
            source=f"certificate, entry {one.entry}",
        )
    yield Item(
        question="Are the answers good enough for their use?",
        people="Say which error would be too large for a decision, and who was asked.",
    )


def _bias(about: Deployment) -> Iterator[Item]:
    bounded = [printable(n, 60) for n, c in about.card.columns.items() if c.bounds is not None]
    sentences = {words: None for one in about.accepted for words in bounding_sentences(one.record)}
    if bounded:
        sentences[f"Values beyond their bounds count as the nearer bound: {listed(bounded)}."] = (
            None
        )
    yield Item(
        question="Which steps move answers in one direction?",
        known=" ".join(sentences) or "None on record.",
        source="card, certificates",
    )
    yield Item(
        question="Whom does the error concern most?",
        known="Noise is as large for a small group as for a large one; keys of few units are not "
        "shown unless they are declared.",
        source="lastbit",
        people="Name groups for which the answers are too inaccurate, and what is done about it.",
    )


def _algorithms(about: Deployment) -> Iterator[Item]:
    yield Item(
        question="Which mechanisms ran?",
        known=_mechanisms(about) or "None yet.",
        source="certificates",
    )
    rejected = [one for one in about.answers if one.problem is not None]
    yield Item(
        question="Are their prices proved?",
        known=f"The independent checker accepts the certificates of {_accepted(about)}: "
        "sensitivity, noise and price are derived a second time.",
        source="lastbit check",
        people=" ".join(f"Entry {one.entry} is not accepted: {one.problem}." for one in rejected),
    )
    yield Item(question="How is floating point kept out?", known=_EXACT, source="lastbit")
    made = sorted({printable(one.record.get("lastbit", "?"), 20) for one in about.accepted})
    yield Item(
        question="Which versions were used?",
        known=f"lastbit {listed(made)}." if made else "",
        source="answers" if made else "",
        people="" if made else "Nothing was answered yet.",
    )
    yield Item(
        question="Were bounds, keys and contribution bounds chosen without looking at the data?",
        people="Say where each comes from; what was tuned on the data must be in the ledger.",
    )


def _accepted(about: Deployment) -> str:
    return f"{len(about.accepted)} of {_many(len(about.answers), 'answer')}"


def _mechanisms(about: Deployment) -> str:
    found = {
        words: None
        for one in about.accepted
        for words in (
            *(f"{row.noise} for {row.what.strip()}." for row in plan_rows(one.record)),
            composition_sentence(one.record),
        )
    }
    return " ".join(found)


def _models(about: Deployment) -> Iterator[Item]:
    yield Item(
        question="Are questions fixed in advance, or asked one after another?",
        known=f"{_many(len(about.answers), 'answer')} so far; further questions are answered "
        "until the budget is spent, and refused then.",
        source="ledger",
        people="Say whether analysts may ask questions of their own, and for how long.",
    )
    yield Item(
        question="Who is trusted with what?",
        known=_CENTRAL,
        source="lastbit",
        people="Name these parties, and say why the assumptions hold for them.",
    )


def _channels(_: Deployment) -> Iterator[Item]:
    yield Item(
        question="What can be seen besides the answers?",
        known=_CLOCK,
        source="lastbit",
        people="Say who can measure how long an answer takes, or read the machine's memory.",
    )


def _access(about: Deployment) -> Iterator[Item]:
    users = about.card.users
    may = "Everybody who can read the files." if users is None else f"{len(users)} named users."
    roles = [_many(number, str(role)) for role, number in sorted(about.roles.items())]
    yield Item(
        question="Who may ask?",
        known=may + (f" In the ledger: {listed(roles)}." if roles else ""),
        source="card, ledger",
        people="Name who may read the table itself, and how that is enforced and logged.",
    )
    if about.head is not None:
        damage = " ".join(f"{printable(words)}." for words in about.problems)
        yield Item(
            question="Are the books whole?",
            known="" if damage else f"Every entry fits; the head is {about.head}.",
            source="" if damage else "lastbit ledger verify",
            people=damage or "Say where heads are noted that nobody here can rewrite.",
        )
    yield Item(
        question="How are the data protected where they are stored and computed on?",
        people="Say how they are encrypted, backed up and deleted; a breach voids the promise.",
    )


def _collection(about: Deployment) -> Iterator[Item]:
    names = [printable(name, 60) for name in about.card.columns]
    yield Item(
        question="Which columns can be asked about?",
        known=f"{listed(names)}." if names else "None.",
        source="card",
    )
    yield Item(
        question="Must each of them be collected, and for how long kept?",
        people="Say what each is needed for, and when it is deleted.",
    )


def _many(count: int, noun: str) -> str:
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


# ---------------------------------------------------------------- the entry of a registry

_OPEN = "to be filled in"


def registry_entry(about: Deployment) -> str:
    """An entry for the Differential Privacy Deployments Registry, as YAML, of status Draft.

    What is on record is filled in; an empty text with a comment is for people.
    """
    return "\n".join(_yaml(_entry(about))) + "\n"


def _entry(about: Deployment) -> dict[str, Any]:
    card, year = about.card, min(one.when for one in about.answers)[:4]
    slug = re.sub(r"\W+", "-", printable(card.name, 60).lower()).strip("-")
    asked = dict.fromkeys(one.title for one in about.accepted)
    return {
        "url_slug": f"{slug}-{year}",
        "status": "Draft",
        "tier": 3,
        "deployment": {
            "basic": {
                "name": printable(card.name, 60),
                "data_curators": [""],
                "intended_use": "",
                "data_product_type": "Summary statistics",
                "data_product_region": "",
                "description": f"Answers about the table {printable(card.name, 60)}: "
                + "; ".join(asked),
                "publication_date": min(one.when for one in about.answers),
            },
            "dp_variant": {
                "variant_name": _variant(about),
                "data_domain": "Tables with the columns "
                + listed([f"{printable(n, 60)} ({c.type})" for n, c in card.columns.items()]),
                "unprotected_quantities": _unprotected(about),
            },
            "privacy_loss": _loss(about),
            "deployment_model": _model(about),
            "accounting": {
                "post_processing": _processing(about),
                "composition": _composition(about),
            },
            "implementation": {
                "preprocessing_and_hyperparameter_tuning": "",
                "mechanisms": f"{_mechanisms(about)} {_EXACT} {_CLOCK}",
                "justification": "",
            },
            "administrative": {
                "sources": "",
                "notes": f"An independent checker accepts the certificates of {_accepted(about)}. "
                f"The ledger's head: {about.head}",
                "registry_authors": [""],
            },
        },
    }


def _variant(about: Deployment) -> str:
    assert about.account.budget is not None
    return _VARIANTS[about.account.budget.kind]


def _loss(about: Deployment) -> dict[str, Any]:
    kept, unit = about.account.budget, about.unit
    spent = {name: str(getattr(about.account.spent, name)) for name, _ in CURRENCIES}
    bound = f"One {unit} counts for at most {_many(about.card.max_rows, 'row')}."
    return {
        "privacy_unit": "Row-level" if about.card.unit is None else f"{unit}-level",
        "privacy_unit_details": f"{_neighbours(about)} {bound}",
        "privacy_parameters": {
            name: getattr(kept, name) for name, _ in CURRENCIES if getattr(kept, name)
        },
        "privacy_parameters_details": "The budget of all answers together, rounded up. Spent so "
        f"far, by plain sums: {price(spent)}.",
    }


def _model(about: Deployment) -> dict[str, Any]:
    once = len(about.answers) == 1
    changing = len({one.fingerprint for one in about.answers}) > 1
    asking = about.card.users is not None or bool(about.roles)
    return {
        "model_name": "Central",
        "actors": _CENTRAL,
        "release_type": "One release" if once else "Many releases",
        "release_type_details": "A fixed budget for all releases; it is not renewed by itself.",
        "data_source_type": "Dynamic" if changing else "Static",
        "access_type": "Interactive" if asking else "Non-interactive",
        "access_type_details": "",
    }


def _processing(about: Deployment) -> str:
    made = {
        row["name"]
        for one in about.accepted
        for row in one.record["asked"]["query"].get("derived", ())
    }
    words = (
        f"Computed from released numbers: {listed(sorted(map(printable, made)))}." if made else ""
    )
    return words or "Rounding for display; none that is on record otherwise."


def _yaml(value: Mapping[str, Any], indent: str = "") -> Iterator[str]:
    for name, one in value.items():
        if isinstance(one, Mapping):
            yield f"{indent}{name}:"
            yield from _yaml(one, indent + "  ")
        elif isinstance(one, list):
            yield f"{indent}{name}:"
            yield from (f"{indent}  - {_scalar(item)}" for item in one)
        elif isinstance(one, str) and len(one) > _WIDTH - len(indent) - len(name) - 4:
            yield f"{indent}{name}: >-"
            yield from textwrap.wrap(
                printable(" ".join(one.split()), 1 << 16),
                _WIDTH,
                initial_indent=f"{indent}  ",
                subsequent_indent=f"{indent}  ",
                break_long_words=False,
                break_on_hyphens=False,
            )
        else:
            yield f"{indent}{name}: {_scalar(one)}"


def _scalar(value: str | int | Fraction) -> str:
    if isinstance(value, Fraction):  # YAML 1.1 takes 1e-6 for a text, and 1.0e-6 for a number
        number = rounded_up(value, _DIGITS)
        return number if "." in number else number.replace("e", ".0e")
    if not value:
        return f'""  # {_OPEN}'
    return json.dumps(value, ensure_ascii=False)
