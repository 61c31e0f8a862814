"""A deployment on paper: what is on record of a table, and the checklist of SP 800-226.

The card, the ledger and the certificates of its answers say most of what reviewers ask about a
deployment. What they say is filled in, with its source beside it; what only people can answer stays
an open line. Nothing of the data is in it, and no released number: questions, mechanisms, prices
and what the card declares. Losses are rounded up.

Source   NIST SP 800-226 (Near, Darais, Lefkovitz, Howarth 2025), the components of its pyramid from
         top to bottom, the questions in our words
Checked  tests/report/test_deployment.py
"""

from __future__ import annotations

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
from lastbit.ledger import Account, Ledger
from lastbit.privacy import ZCDP, ApproxDP, PureDP, posterior_bounds
from lastbit.report.page import CURRENCIES, amount, listed, price, printable, rendered
from lastbit.report.plan import (
    PlanFacts,
    Reading,
    Record,
    bound_words,
    many,
    price_warnings,
    read_record,
    title_of,
    unit_word,
)
from lastbit.report.register import Judge, answers_in
from lastbit.tables import DataCard

WIDTH = 78
_MARKDOWN = re.compile(r"([\\`*_\[\]<>|#])")
_COMPARED = Fraction(1, 10**5)
VARIANTS: Mapping[str, str] = MappingProxyType(
    {
        "pure": "Pure DP",
        "approx": "Approximate DP",
        "zcdp": "Zero-concentrated DP",
        "filter": "Approximate DP",
        "gaussian": "Approximate DP",
    }
)
_SUMS = (
    "The prices of all answers add up (sequential composition). The ledger refuses an answer that "
    "would exceed the budget."
)
_FILTER = (
    "All answers together stay within the budget by the {} filter, even if earlier answers decide "
    "questions and prices. The ledger refuses an answer that would exceed it."
)
EXACT = (
    "Noise is drawn from its exact law, as whole numbers on a public grid. No floating-point "
    "number stands between the draw and the release. Random bits are AES-256 in counter "
    "mode, with keys of the operating system; no seed can be set."
)
PREPARED = (
    "The card lets rows be prepared: a second copy lies in a folder for its owner alone. "
    "lastbit card unprepare removes it."
)
CLOCK = (
    "The price is committed before a row is read. Every row takes the same operations, and no "
    "error shows a value. No ε covers how long an answer takes; lastbit serve gives answers at "
    "the ends of public time slots."
)
CENTRAL = (
    "Central: the steward, who holds the table and runs lastbit, is trusted. Readers of answers "
    "and analysts who ask are not."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """An answer in the ledger; `problem` is why the independent checker does not accept it."""

    entry: int
    when: str
    price: str
    fingerprint: str
    problem: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted(Answered):
    """An answer whose certificate the independent checker accepts, and what is known of it."""

    reading: Reading
    facts: PlanFacts

    @property
    def title(self) -> str:
        """What was asked, in a line."""
        return title_of(self.reading)


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployment:
    """What is on record of a table: its card, its account, and every answer that was given."""

    card: DataCard
    account: Account
    answers: tuple[Answered, ...] = ()
    elsewhere: tuple[Accepted, ...] = ()
    """Answers about other tables that the account has paid for."""
    unanswered: int = 0
    problems: tuple[str, ...] = ()
    head: str | None = None
    roles: tuple[tuple[str, int], ...] = ()
    cautions: tuple[str, ...] = ()

    @property
    def accepted(self) -> tuple[Accepted, ...]:
        """The answers whose certificates the independent checker accepts."""
        return tuple(one for one in self.answers if isinstance(one, Accepted))

    @property
    def unit(self) -> str:
        """What the privacy unit is called."""
        return unit_word(self.card.unit)


def deployment_of(
    card: DataCard,
    account: Account,
    ledger: Ledger | None,
    judged: Judge,
    cautions: tuple[str, ...] = (),
) -> Deployment:
    """What is on record; `judged` is the independent checker, which this room may not import."""
    if ledger is None:
        return Deployment(card=card, account=account, cautions=cautions)
    unanswered: set[str] = set()
    found = [_answered(*one, judged) for one in answers_in(ledger, unanswered, account.name)]
    elsewhere = [
        one for one in found if isinstance(one, Accepted) and one.reading.plan.table != card.name
    ]
    return Deployment(
        card=card,
        account=account,
        answers=tuple(one for one in found if one not in elsewhere),
        elsewhere=tuple(elsewhere),
        unanswered=len(unanswered),
        problems=tuple(ledger.problems()),
        head=ledger.head,
        roles=tuple(sorted(Counter(p.role for p in ledger.principals() if p.role).items())),
        cautions=cautions,
    )


def _answered(told: Record, paid: Record, record: Record, judged: Judge) -> Answered:
    known: Any = {
        "entry": told["sequence"],
        "when": told["when"][:10],
        "price": "" if paid["cost"] is None else price(paid["cost"]),
        "fingerprint": str(told["fingerprint"]),
    }
    problem = judged(record)
    if problem is not None:
        return Answered(**known, problem=problem)
    reading = read_record(record)
    return Accepted(**known, reading=reading, facts=reading.facts)


# ---------------------------------------------------------------- the checklist


@dataclass(frozen=True, slots=True)
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
        text, WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )


def _parameters(about: Deployment) -> Iterator[Item]:
    budget = about.account.budget
    assert budget is not None  # `lastbit report` refuses a card without one
    paid = {name: str(getattr(budget, name)) for name, _ in CURRENCIES}
    yield Item(
        "What do all answers together promise?",
        known=f"{VARIANTS[budget.kind]} with {price(paid)}.",
        source="card" if about.head is None else "card, ledger",
    )
    if about.head is None:  # nothing spent, or a ledger that was lost: the card cannot tell
        absent = "There is no ledger where the card says; if there were answers, find theirs."
        yield Item("What has been spent so far?", people=absent)
    else:
        yield Item(
            "What has been spent so far?",
            known=f"{price(about.account.spent.to_json())} by plain sums, in "
            f"{many(len(about.answers) + len(about.elsewhere), 'answer')}."
            + (f" Charged and not answered: {about.unanswered}." if about.unanswered else ""),
            source="ledger",
        )
    yield Item(
        "How do the prices of several answers add up?",
        known=composition_words(about),
        source="card",
        people=" ".join(about.cautions),
    )
    if budget.kind == "pure":
        _, most = posterior_bounds("0.01", PureDP(budget.epsilon))
        told = amount(100 * Fraction(most), up=True, digits=3)
        there = about.card.neighbours.relation == "add-remove"
        fact = "one more is in the table" if there else "the rows of this one are certain ones"
        yield Item(
            "What can be learned about one unit at most?",
            known=f"Suppose somebody knows all other units, and thinks it 1 % likely that {fact}. "
            f"After all answers they think it at most {told} % likely.",
            source="derived",
        )
    if budget.kind == "zcdp":
        same = ZCDP(budget.rho).to(ApproxDP, delta=_COMPARED).epsilon
        yield Item(
            "What is that as (ε, δ), to compare?",
            known=f"ε = {rounded_up(Fraction(same), 4)} at δ = 1e-5.",
            source="derived",
        )
    yield Item(
        "Why these parameters?",
        known=" ".join(price_warnings(paid)),
        people="Say who decided on them, on which grounds, and when they are reviewed.",
    )


def composition_words(about: Deployment) -> str:
    """How the prices of the account's answers add up."""
    kept = about.account.budget
    name = {"filter": "moment", "gaussian": "Gaussian"}.get("" if kept is None else kept.kind)
    return _SUMS if name is None else _FILTER.format(name)


def _unit(about: Deployment) -> Iterator[Item]:
    card, unit = about.card, about.unit
    bound = bound_words(card.unit, card.max_rows)
    if card.max_rows_open:
        bound = "Chosen for each question from a private profile of the table."
    whose = "One row: each row is declared to be a different person."
    if card.unit is not None:
        whose = f"One {unit}, with all its rows."
        if card.max_groups is not None and not card.max_groups_assumed:
            bound += f" Undeclared keys: {many(card.max_groups, 'group')}."
    if card.through:
        names = listed([printable(one.name, 60) for one in card.through])
        whose += f" Rows are its own if they reach it through {names}."
    whose += "".join(
        f" Also its rows in {printable(name, 60)}, of which a join uses at most {table.max_rows:,}."
        for name, table in card.private.items()
    )
    yield Item("Whose data is protected?", known=whose, source="card")
    yield Item("Which tables are neighbours?", known=neighbour_words(about), source="card")
    yield Item("For how much does one unit count at most?", known=bound, source="card")
    yield Item(
        "Is the unit the person to be protected?",
        people="Say whether a person can have several ids, whether several share one, and which "
        "harms the unit does not cover.",
    )


def neighbour_words(about: Deployment) -> str:
    """Which tables are neighbours, and what that hides."""
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
        "What is shown without noise?",
        known=unprotected_words(about)
        + (f" Public tables that are joined as they are: {listed(public)}." if public else ""),
        source="card",
    )
    tables = sorted({printable(one.reading.plan.table, 60) for one in about.elsewhere})
    shared = about.card.account is not None or bool(tables)
    yield Item(
        "What else is published about the same people?",
        known=f"The account {printable(about.account.name, 60)} is shared by every table whose "
        "card names it. Its budget holds for all of them together."
        + (f" It has paid for answers about {listed(tables)}." if tables else "")
        if shared
        else "The budget is this table's own: answers about other tables are not counted in it.",
        source="card",
        people="List other releases of these data, with or without noise; losses add up.",
    )


def unprotected_words(about: Deployment) -> str:
    """What is public about the table."""
    words = "Of the data, nothing. What the card declares is public: columns, types, bounds, keys."
    if about.card.neighbours.relation == "change-one":
        words += " So is the number of units."
    return words


def _utility(about: Deployment) -> Iterator[Item]:
    for one in about.accepted:
        rows = "; ".join(f"{row.what}: {row.error}" for row in one.facts.rows if row.price)
        yield Item(
            f"How far off is \u201c{one.title}\u201d?",
            known=f"In 95 % of releases: {rows}. Price: {one.price}.",
            source=f"certificate, entry {one.entry}",
        )
    yield Item(
        "Are the answers good enough for their use?",
        people="Say which error would be too large for a decision, and who was asked.",
    )


def _bias(about: Deployment) -> Iterator[Item]:
    bounded = [printable(n, 60) for n, c in about.card.columns.items() if c.bounds is not None]
    sentences = {words: None for one in about.accepted for words in one.facts.limits}
    if bounded:
        sentences[f"Values beyond their bounds count as the nearer bound: {listed(bounded)}."] = (
            None
        )
    yield Item(
        "Which steps move answers in one direction?",
        known=" ".join(sentences) or "None on record.",
        source="card, certificates",
    )
    yield Item(
        "Whom does the error concern most?",
        known="Noise is as large for a small group as for a large one. Undeclared keys of few "
        "units are not shown.",
        source="lastbit",
        people="Name groups for which the answers are too inaccurate, and what is done about it.",
    )


def _algorithms(about: Deployment) -> Iterator[Item]:
    if not about.answers:
        yield Item("Which mechanisms ran?", people="No answer is on record yet.")
    else:
        ran = mechanism_words(about) or "None."
        yield Item("Which mechanisms ran?", known=ran, source="certificates")
        rejected = [one for one in about.answers if one.problem is not None]
        yield Item(
            "Are their prices proved?",
            known=f"The independent checker accepts the certificates of {accepted_words(about)}: "
            "sensitivity, noise and price are derived a second time.",
            source="lastbit check",
            people=" ".join(
                f"Entry {one.entry} is not accepted: {one.problem}." for one in rejected
            ),
        )
    yield Item("How is floating point kept out?", known=EXACT, source="lastbit")
    made = sorted({printable(one.reading.record.get("lastbit", "?"), 20) for one in about.accepted})
    yield Item(
        "Which versions were used?",
        known=f"lastbit {listed(made)}." if made else "",
        source="answers" if made else "",
        people="" if made else "Nothing was answered yet.",
    )
    yield Item(
        "Were bounds, keys and contribution bounds chosen without looking at the data?",
        people="Say where each comes from; what was tuned on the data must be in the ledger.",
    )


def accepted_words(about: Deployment) -> str:
    """Of how many answers the independent checker accepts the certificates."""
    return f"{len(about.accepted)} of {many(len(about.answers), 'answer')}"


def mechanism_words(about: Deployment) -> str:
    """Every mechanism that ran, and how their prices add up, each said once."""
    found = {
        words: None
        for one in about.accepted
        for words in (
            *(f"{row.noise} for {row.what.strip()}." for row in one.facts.rows),
            one.facts.composition,
        )
    }
    return " ".join(found)


def _models(about: Deployment) -> Iterator[Item]:
    yield Item(
        "Are questions fixed in advance, or asked one after another?",
        known=("" if about.head is None else f"{many(len(about.answers), 'answer')} so far. ")
        + "Further questions are answered until the budget is spent, and refused then.",
        source="card" if about.head is None else "ledger",
        people="Say whether analysts may ask questions of their own, and for how long.",
    )
    yield Item(
        "Who is trusted with what?",
        known=CENTRAL,
        source="lastbit",
        people="Name these parties, and say why the assumptions hold for them.",
    )


def _channels(_: Deployment) -> Iterator[Item]:
    yield Item(
        "What can be seen besides the answers?",
        known=CLOCK,
        source="lastbit",
        people="Say who can measure how long an answer takes, or read the machine's memory.",
    )


def _access(about: Deployment) -> Iterator[Item]:
    users = about.card.users
    may = "Everybody who can read the files." if users is None else f"{len(users)} named users."
    if about.roles:
        may = "Stewards of the ledger, and analysts with an allowance"
        may += "." if users is None else f", of those the {len(users)} users that the card names."
    roles = [many(number, role) for role, number in about.roles]
    yield Item(
        "Who may ask?",
        known=may + (f" In the ledger: {listed(roles)}." if roles else ""),
        source="card" if about.head is None else "card, ledger",
        people="Name who may read the table itself, and how that is enforced and logged.",
    )
    if about.head is not None:
        damage = " ".join(f"{printable(words)}." for words in about.problems)
        yield Item(
            "Are the books whole?",
            known="" if damage else f"Every entry fits; the head is {about.head}.",
            source="" if damage else "lastbit ledger verify",
            people=damage or "Say where heads are noted that nobody here can rewrite.",
        )
    yield Item(
        "How are the data protected where they are stored and computed on?",
        known="" if about.card.prepared is None else PREPARED,
        source="" if about.card.prepared is None else "card",
        people="Say how they are encrypted, backed up and deleted; a breach voids the promise.",
    )


def _collection(about: Deployment) -> Iterator[Item]:
    names = [printable(name, 60) for name in about.card.columns]
    yield Item(
        "Which columns can be asked about?",
        known=f"{listed(names)}." if names else "None.",
        source="card",
    )
    yield Item(
        "Must each of them be collected, and for how long kept?",
        people="Say what each is needed for, and when it is deleted.",
    )
