"""No error names a command, a name, a field or a page that is not there."""

from collections import Counter

import pytest

from tests.docs.remedies import (
    EVERYWHERE,
    PATTERNS,
    Mention,
    arguments,
    mentions,
    other_texts,
    problem_of,
    remedies,
)

FEWEST = 400
"""How many things remedies name that are looked for, at least: a floor. Raise it."""


def test_what_remedies_name_is_there():
    named = [(m, text) for text in remedies() for m in mentions(text)]
    named += [(Mention("parameter", name), name) for name in arguments()]
    named += [(m, text) for text in other_texts() for m in mentions(text, EVERYWHERE)]
    wrong = {f"{problem} ({text[:90]})" for m, text in named if (problem := problem_of(m))}
    assert not wrong
    assert len(named) >= FEWEST, Counter(m.kind for m, _ in named)


WRONG = {
    "run lastbit ledgr verify": "command",
    "let a steward run lastbit user invite": "command",
    "lastbit budget card.toml shows it, or lastbit user add --rights all": "command",
    "pass --epsilons-of 3": "option",
    "pip install 'lastbit[oracle]'": "package",
    "pip install sqlalchemy": "package",
    "see docs/theory/no-such-page.md": "page",
    "write .agg(n=lb.number_of())": "python",
    "compute it with lastbit.exact.refined_away": "python",
    "pass Budgets(...)": "class",
    "use Region.box(edges) of Regions.box(edges)": "class",
    "call reopen_all(name) first": "function",
    "pass maximum_rows=20": "parameter",
    'declare accounting = "ledger"': "field",
    "write max_row = 20": "field",
    "add [ledgers]": "section",
    "write QUANTILES(x, 0.9)": "SQL",
    "group by CAST(x AS NOTHING)": "SQL",
    "pass ADD_OR_REMOVE": "constant",
    "set LASTBIT_SECRET_TOKEN": "constant",
}


@pytest.mark.parametrize("remedy", WRONG)
def test_a_remedy_that_names_what_is_not_there_is_seen(remedy):
    wrong = {m.kind for m in mentions(remedy) if problem_of(m)}
    assert WRONG[remedy] in wrong


def test_every_kind_is_tried_on_a_wrong_one():
    assert set(WRONG.values()) == set(PATTERNS)
    assert problem_of(Mention("page", "docs/ledger.md")) is None
