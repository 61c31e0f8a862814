"""What the editor says of a question that is refused: by its fields, and not in Python's words."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas
import pytest

import lastbit as lb
from lastbit.errors import InvalidParameter
from lastbit.serve.planner import _refuse_errors
from lastbit.serve.planning import previewed
from lastbit.serve.problems import FIELDS, page_words, refusal_of
from lastbit.serve.questions import Question, Refusal
from tests.serve.test_pages import Page, check, site, visited

FRAME = pandas.DataFrame(
    {
        "patient": [i // 3 for i in range(90)],
        "region": [("n", "s")[i % 2] for i in range(90)],
        "cost": [float(i % 9) for i in range(90)],
        "ward": [i % 5 for i in range(90)],
    }
)
BUDGETS = {
    "pure": lb.Budget(epsilon=3),
    "approx": lb.Budget(epsilon=3, delta="1e-6"),
    "zcdp": lb.Budget(rho=3),
    "gaussian": lb.Budget(kind="gaussian", epsilon=3, delta="1e-6"),
}
SELECTS = (
    "SELECT COUNT(*) AS n FROM visits",
    "SELECT region, COUNT(*) AS n FROM visits GROUP BY region",
    "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward",
    "SELECT MEDIAN(cost) AS c FROM visits",
    "SELECT HISTOGRAM(cost, 5, 3) FROM visits",
    "SELECT QUANTILE_CONT(cost, 2) FROM visits",
    "SELECT reigon FROM visits",
    "SELECT COUNT(*) FROM other",
    "SELECT FROB(cost) FROM visits",
    "SELECT COUNT(*) AS n, FROB(n) AS f FROM visits",
    "SELECT region, COUNT(*) FROM visits GROUP BY ROLLUP(region)",
    "SELECT * FROM visits",
    "MARGINALS ward, region FROM visits",
    "SELECT COUNT(*) FROM visits; SELECT AVG(cost) FROM visits",
)
PRICES: tuple[dict[str, Any], ...] = (
    *({"epsilon": text} for text in ("0", "-1", "1e-50", "0.1234567890123456", "1e13", "1e-9")),
    *({"epsilon": "1", "delta": text} for text in ("2", "-1", "1e-50", "0.1234567890123456")),
    *({"rho": text} for text in ("0", "1", "1e-50")),
    *({"within": text} for text in ("0", "1e-50", "1e13", "-1")),
    *({"within": "5", "delta": "1e-9"}, {"epsilon": "1", "rho": "1"}, {"epsilon": "1"}),
)
PYTHON = re.compile(
    r"`|lastbit |--\w|\.\w+\(|in Python|"
    r"\b(pass|Fraction|None|lb|str|list|epsilon|delta|rho|within)\b(?! and)|\w+=|\bas exact text"
)
"""What nobody who looks at a page has to understand."""
_ABOUT_BUDGETS = ("to find them privately", "an epsilon and a delta", "give the budget a delta")


def refused(kind: str) -> dict[str, InvalidParameter]:
    """What the planner says of these questions, each message once."""
    table = lb.table(
        FRAME,
        unit="patient",
        max_rows=3,
        name="visits",
        keys={"region": ["n", "s"]},
        columns={"cost": {"type": "number", "bounds": [0, 9]}},
        budget=BUDGETS[kind],
    )
    found = {}
    for sql in SELECTS:
        for price in PRICES:
            try:
                previewed(Question(sql=sql, **price), replace(table.card), None)
            except InvalidParameter as error:
                found[str(error)] = error
    return found


@pytest.mark.parametrize("kind", BUDGETS)
def test_no_message_of_the_editor_speaks_python(kind: str) -> None:
    errors = refused(kind)
    assert len(errors) > 10
    for error in errors.values():
        words = page_words(error.said)
        for known in _ABOUT_BUDGETS:  # words for the steward, who has a card
            words = words.replace(known, "")
        assert not PYTHON.search(words), words
        assert error.problem.split(" ")[0] in words


@pytest.mark.parametrize("parameter", FIELDS)
def test_an_error_knows_its_field_also_across_processes(parameter: str) -> None:
    error = InvalidParameter(parameter, problem="is zero", remedy="pass {delta}", delta="")
    told = {"error": "InvalidParameter", "words": str(error), "said": list(error.said)}
    with pytest.raises(Refusal) as caught:
        _refuse_errors(told)
    here = refusal_of(error)
    for refusal in (caught.value, here):
        assert refusal.detail == str(error)  # programs have the names of arguments
        assert refusal.shown == f"{FIELDS[parameter][0]} is zero; write δ"
        assert refusal.field == FIELDS[parameter][1]


@pytest.mark.parametrize(
    ("changed", "field", "words"),
    [
        ({"epsilon": "x"}, "price", "ε is not a number: write 0.5, 1/3 or 1e-9."),
        ({"epsilon": "1/0"}, "price", "ε is not a number: write 0.5, 1/3 or 1e-9."),
        ({"epsilon": "9" * 61}, "price", "ε is not a number: write 0.5, 1/3 or 1e-9."),
        ({"epsilon": ""}, "price", "Say what you pay"),
        ({"delta": "tiny"}, "delta", "δ is not a number: write 0.5, 1/3 or 1e-9."),
        ({"by": "error", "within": "five"}, "within", "± is not a number"),
        ({"by": "error", "within": ""}, "within", "Say which ± you need"),
        ({"sql": " "}, "sql", "Write a question: one SELECT."),
    ],
)
def test_an_error_is_shown_once_at_its_field(
    tmp_path: Path, changed: dict[str, str], field: str, words: str
) -> None:
    form = {"sql": SELECTS[0], "by": "price", "epsilon": "1", "delta": "", **changed}
    with site(tmp_path, "visits") as server:
        whole = visited(server, "/tables/visits/preview", "analyst", form=form)
        part = visited(
            server, "/tables/visits/preview", "analyst", form={**form, "part": "preview"}
        )
    page = check(whole.text)
    assert whole.status == 422 and page.text.count(words) == 1
    invalid = [
        one.get("id")
        for tag in ("input", "textarea")
        for one in page.all(tag)
        if one.get("aria-invalid") == "true"
    ]
    assert invalid == [field]
    (notice,) = [one for one in Page(part.text).all("p") if one.get("id") == "wrong"]
    assert notice["data-field"] == field
