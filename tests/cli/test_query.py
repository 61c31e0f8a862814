"""`lastbit query`: the answer and its error bars, paid once; a refusal costs nothing."""

from __future__ import annotations

import json
import os
from fractions import Fraction
from pathlib import Path

import pytest

from lastbit.cli.query import _weights
from lastbit.errors import InvalidParameter
from lastbit.ledger.ledger import Ledger
from lastbit.privacy import GaussianCost, GaussianFilter, MomentCost
from lastbit.tables.plan.cost import Cost
from tests.cli.running import lastbit, read, refused, succeeded

CANARY = 731_094_736_281  # long: pages hold digests, in which a short one may stand
CARD = """
[table]
name = "visits"
source = "visits.csv"
neighbours = "add-remove"
[unit]
column = "patient"
max_rows = 3
max_groups = 2
[budget]
epsilon = 2
delta = 1e-6
[ledger]
path = "visits.ledger"
[columns.patient]
type = "integer"
[columns.region]
type = "text"
keys = ["North", "East", "South"]
[columns.ward]
type = "text"
[columns.cost]
type = "number"
bounds = [0, 500]
"""
BY_REGION = "SELECT region, COUNT(*) AS n, AVG(cost) AS cost FROM visits GROUP BY region"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    lines = ["patient,region,ward,cost"]
    regions = ("North", "East", "South")
    for i in range(3000):
        lines.append(f"{i // 3},{regions[i // 3 % 3]},ward{i % 2},{i % 400}")
    lines.append(f"{CANARY},Nowhere{CANARY},Ward{CANARY},{CANARY}")
    Path("visits.csv").write_text("\n".join(lines) + "\n", "utf-8")
    Path("visits.toml").write_text(CARD, "utf-8")
    return tmp_path


def spent() -> Cost | MomentCost | GaussianCost:
    return Ledger.open("visits.ledger").spent("visits")


def test_an_answer_has_error_bars_a_price_and_a_budget():
    page = succeeded("query", "visits.toml", BY_REGION, "--epsilon", "1")
    lines = page.splitlines()
    assert lines[0].startswith("n, cost by region") and lines[0].endswith("ε = 1")
    assert lines[2].split() == ["region", "n", "noise", "cost", "noise"]
    assert [line.split()[0] for line in lines[3:6]] == ["North", "East", "South"]
    assert all(line.count("±") + line.count(" to ") == 2 for line in lines[3:6])
    assert "epsilon = 1 differential privacy for one patient more or less" in page
    assert "1 spent, 1 left of 2" in page and "- Each noise ± covers noise only" in page
    assert spent() == Cost(epsilon=Fraction(1))


def test_the_same_question_is_free_and_gives_the_same_numbers():
    first = read("query", "visits.toml", BY_REGION, "--epsilon", "1")
    again = read("query", "visits.toml", BY_REGION, "--epsilon", "1")
    assert first["charged"] and not again["charged"]
    assert first["answer"] == again["answer"] and spent() == Cost(epsilon=Fraction(1))
    page = succeeded("query", "visits.toml", BY_REGION, "--epsilon", "1")
    assert "recorded, no charge" in page and "when it was first asked" in page
    fresh = read("query", "visits.toml", BY_REGION, "--epsilon", "1", "--fresh")
    assert fresh["charged"] and spent() == Cost(epsilon=Fraction(2))


def test_counts_are_near_the_truth():
    rows = read("query", "visits.toml", BY_REGION, "--epsilon", "1")["answer"]["rows"]
    for row in rows:
        assert abs(row["cells"][0]["value"] - 1000) < 300  # scale 9: 300 is 33 scales


def test_explain_and_dry_run_read_and_charge_nothing(folder):
    os.unlink("visits.csv")
    plan = succeeded("query", "visits.toml", BY_REGION, "--epsilon", "1", "--explain")
    assert "not yet paid" in plan and "Laplace, scale " in plan
    assert "Nothing has been read or charged." in plan
    check = succeeded("query", "visits.toml", BY_REGION, "--epsilon", "1", "--dry-run")
    assert "It can be asked" in check and "1 spent, 1 left of 2" in check
    assert read("query", "visits.toml", BY_REGION, "--epsilon", "1", "--dry-run")["plan"]
    assert not (folder / "visits.ledger").exists()


def test_the_statement_is_printed_for_review(folder):
    os.unlink("visits.csv")
    asked = "query", "visits.toml", BY_REGION, "--epsilon", "1", "--print-sql"
    own = succeeded(*asked)
    assert own.startswith("-- DuckDB, dialect 1: as lastbit runs it; lastbit_table stands")
    assert read(*asked) == {"dialect": "duckdb", "certified": True, "sql": own.removesuffix("\n")}
    for name in ("postgres", "spark"):
        first = succeeded(*asked, "--dialect", name).partition("\n")[0]
        assert first.endswith("dialect 1: the source is on duckdb")
    for name in ("bigquery", "snowflake", "trino", "databricks"):  # engines that lastbit never ran
        words = refused(*asked, "--dialect", name)
        assert "is not one of" in words and "spark" in words
    tables = "query", "visits.toml", "--marginals", "region", "--epsilon", "1", "--print-sql"
    assert "GROUPING SETS" in succeeded(*tables)
    assert "is for --print-sql" in refused(*asked[:-1], "--dialect", "spark")
    assert not (folder / "visits.ledger").exists()


def test_json_of_a_plan_has_the_price_of_the_profile_too():
    Path("visits.toml").write_text(CARD.replace("max_rows = 3\n", ""), "utf-8")
    found = read("query", "visits.toml", BY_REGION, "--epsilon", "1", "--dry-run")
    assert found["plan"]["cost"]["epsilon"] == "9/10" and found["profile"]["epsilon"] == "1/10"
    assert found["account"]["next"]["cost"]["epsilon"] == "1"


def test_a_dry_run_refuses_what_the_budget_does_not_allow():
    assert "is left" in refused("query", "visits.toml", BY_REGION, "--epsilon", "3", "--dry-run")
    assert not Path("visits.ledger").exists()
    assert "Laplace" in succeeded("query", "visits.toml", BY_REGION, "--epsilon", "3", "--explain")


def test_files_are_written(folder):
    price = ("--epsilon", "1/2", "--report", "r.html")
    succeeded("query", "visits.toml", BY_REGION, *price, "--out", "a.csv")
    succeeded("query", "visits.toml", BY_REGION, *price, "--out", "a.json")
    succeeded("query", "visits.toml", BY_REGION, *price, "--out", "a.parquet")
    head, *rows = (folder / "a.csv").read_text("utf-8").splitlines()
    assert (
        head.startswith("region,n,n_se,n_low,n_high,n_whole_low,n_whole_high,cost")
        and len(rows) == 3
    )
    record = json.loads((folder / "a.json").read_text("utf-8"))
    assert record["entry"]["sequence"] == 5 and len(record["rows"]) == 3
    page = (folder / "r.html").read_text("utf-8")
    assert page.startswith("<!doctype html>") and "1.5 left of 2" in page
    assert (folder / "a.parquet").stat().st_size > 0 and spent() == Cost(epsilon=Fraction(1, 2))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--epsilon", "1", "--out", "a.xls"), "--out has a name of no known kind"),
        (("--epsilon", "1", "--out", "no/a.csv"), "--out names the folder no"),
        (("--epsilon", "1", "--report", "no/a.html"), "--report names the folder no"),
        (("--epsilon", "1", "--report", "."), "--report cannot be written"),
        (("--epsilon", "1", "--out", "x.json", "--report", "x.json"), "named twice"),
        (("--epsilon", "1", "--weights", "n"), "--weights is not a list"),
        (("--epsilon", "1", "--weights", "n=0"), "weights"),
        (("--epsilon", "1", "--weights", "other=1"), "weights"),
        (("--epsilon", "-1"), "--epsilon"),
        (("--epsilon", "nan"), "--epsilon"),
        ((), "--epsilon"),
        (("--rho", "1"), "--rho is not what this table is paid in"),
        (("--epsilon", "1", "--delta", "2"), "--delta"),
        (("--epsilon", "5"), "Nothing was charged"),
    ],
)
def test_a_refusal_charges_nothing_and_says_how_on(arguments, said):
    assert said in refused("query", "visits.toml", BY_REGION, *arguments)
    assert not Path("visits.ledger").exists() or spent() == Cost()


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM visits",
        "SELECT patient FROM visits",
        "SELECT SUM(patient) AS s FROM visits",
        "SELECT COUNT(*) AS n FROM elsewhere",
        "SELECT nothing FROM visits",
        "DROP TABLE visits",
        "not sql at all (",
        "",
        "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward",  # needs a delta
    ],
)
def test_a_question_without_a_private_answer_charges_nothing(sql):
    message = refused("query", "visits.toml", sql, "--epsilon", "1")
    assert ";" in message and str(CANARY) not in message
    assert not Path("visits.ledger").exists()


def test_a_failing_engine_charges_nothing_and_tells_nothing():
    lines = Path("visits.csv").read_text("utf-8").splitlines()
    lines[500] = f"x{CANARY},{CANARY},{CANARY},{CANARY},{CANARY},{CANARY}"
    Path("visits.csv").write_text("\n".join(lines), "utf-8")
    result = lastbit("query", "visits.toml", BY_REGION, "--epsilon", "1")
    assert str(CANARY) not in result.output
    assert result.exit_code in (0, 2)
    assert result.exit_code == 0 or spent() == Cost()
    os.unlink("visits.csv")
    assert str(CANARY) not in refused("query", "visits.toml", BY_REGION, "--epsilon", "1/2")


def test_keys_of_the_data_are_found_privately_or_not_at_all():
    sql = "SELECT ward, COUNT(DISTINCT patient) AS n FROM visits GROUP BY ward"
    page = succeeded("query", "visits.toml", sql, "--epsilon", "1", "--delta", "1e-6")
    assert "ward0" in page and "ward1" in page and str(CANARY) not in page


def test_a_histogram_is_drawn():
    sql = "SELECT HISTOGRAM(cost, 0, 100, 200, 400) AS cost FROM visits"
    page = succeeded("query", "visits.toml", sql, "--epsilon", "1")
    assert "cost [0, 100)" in page and "█████" in page


def test_the_statement_may_come_from_standard_input():
    assert "n, cost by region" in succeeded(
        "query", "visits.toml", "-", "--epsilon", "1", given=BY_REGION
    )


def test_counts_can_be_made_consistent():
    sql = "SELECT region, COUNT(*) AS n FROM visits GROUP BY region"
    found = read("query", "visits.toml", sql, "--epsilon", "1", "--consistent")["answer"]
    counts = [row["cells"][0]["value"] for row in found["rows"]]
    assert sum(counts) == found["totals"][0] and min(counts) >= 0
    report = ("--consistent", "--report", "r.html")
    page = succeeded("query", "visits.toml", sql, "--epsilon", "1", *report)
    assert f"in all   {sum(counts):,} n" in page
    assert f"n in all: {sum(counts):,}" in Path("r.html").read_text("utf-8")


def test_a_file_that_cannot_be_written_after_all_does_not_lose_the_answer(monkeypatch):
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("lastbit.release.answer.Answer.to_csv", full)
    result = lastbit("query", "visits.toml", BY_REGION, "--epsilon", "1", "--out", "a.csv")
    assert result.exit_code == 2 and "North" in result.stdout
    assert "the answer is recorded" in " ".join(result.stderr.split())
    assert spent() == Cost(epsilon=Fraction(1))


def test_whoever_is_not_named_may_not_ask():
    Path("visits.toml").write_text(CARD + '[access]\nusers = ["somebody else"]\n', "utf-8")
    assert "does not name" in refused("query", "visits.toml", BY_REGION, "--epsilon", "1")
    assert not Path("visits.ledger").exists()


def test_weights_are_read_exactly():
    assert _weights("n=2, cost = 1/3") == {"n": Fraction(2), "cost": Fraction(1, 3)}
    assert _weights("a=b=1") == {"a=b": Fraction(1)}
    assert _weights("balanced") == "balanced" and _weights(None) is None
    with pytest.raises(InvalidParameter):
        _weights("n=1,n=2")
    page = succeeded(
        "query", "visits.toml", BY_REGION, "--epsilon", "1", "--weights", "balanced", "--explain"
    )
    assert "not yet paid" in page


def test_whatever_is_no_card_leads_to_one():
    said = refused("query", "visits.csv", BY_REGION, "--epsilon", "1")
    assert "lastbit card new visits.csv" in said and "TOML" not in said
    Path("visits.toml").write_text(CARD.replace("max_rows = 3", 'max_rows = "decide"') + "what = 1")
    lines = lastbit("query", "visits.toml", BY_REGION, "--epsilon", "1").stderr.splitlines()
    told = [line for line in lines if line.startswith("  line ")]
    assert len(told) == 2 and told[0].startswith("  line 8: unit.max_rows is still to be decided")


def test_options_are_called_by_their_names():
    said = refused("query", "visits.toml", BY_REGION)
    assert "--epsilon is missing" in said


def test_questions_in_python_are_told_in_the_books():
    import lastbit as lb

    lb.table("visits.toml").group_by("region").agg(n=lb.count()).release(epsilon="1/4")
    for page in (succeeded("budget", "visits.toml"), succeeded("ledger", "log", "visits.ledger")):
        assert "(no SQL) n by region" in page


def test_under_the_gaussian_filter_rho_pays_for_gaussian_noise_alone(folder):
    card = CARD.replace("delta = 1e-6\n", 'delta = 1e-6\naccounting = "gaussian"\n')
    Path("visits.toml").write_text(card, "utf-8")
    asked = ("query", "visits.toml", BY_REGION, "--rho", "0.001")
    assert "It can be asked" in succeeded(*asked, "--dry-run")
    page = succeeded(*asked, "--out", "a.json", "--report", "page.html")
    assert "; Gaussian" in page and "plain sum  ρ 0.001" in page
    assert "ACCEPTED" in succeeded("check", "a.json")
    assert "Odometer" in Path("page.html").read_text("utf-8")
    ranks = ("query", "visits.toml", "SELECT MEDIAN(cost) AS m FROM visits")
    for more in ((), ("--dry-run",), ("--explain",)):
        told = " ".join(refused(*ranks, "--rho", "0.001", *more).split())
        assert "pays for Gaussian noise alone" in told
    mixed = "SELECT COUNT(*) AS n, MEDIAN(cost) AS m FROM visits"
    assert "pays for Gaussian noise alone" in " ".join(
        refused("query", "visits.toml", mixed, "--rho", "0.001").split()
    )
    succeeded(*ranks, "--epsilon", "0.1")
    ledger = Ledger.existing("visits.ledger")
    spent, kept = ledger.spent("visits"), ledger.accounts()[0].filter
    assert isinstance(kept, GaussianFilter)
    assert spent == kept.price(rho="0.001") + kept.price(epsilon="0.1")
    assert ledger.problems() == []
    state = read("budget", "visits.toml")["accounts"][0]
    assert state["kind"] == "gaussian" and "order" not in state["filter"]
    assert "by the Gaussian filter" in " ".join(succeeded("ledger", "log", "visits.ledger").split())
    told = " ".join(refused("query", "visits.toml", BY_REGION, "--rho", "0.5").split())
    assert "the filter of visits leaves at most epsilon = " in told and "or rho = " in told


def test_under_the_filter_every_kind_of_price_is_paid_from_one_account(folder):
    card = CARD.replace("delta = 1e-6\n", 'delta = 1e-6\naccounting = "filter"\n')
    Path("visits.toml").write_text(card, "utf-8")
    page = succeeded("query", "visits.toml", BY_REGION, "--epsilon", "0.1")
    assert "0.1 spent, 1.9 left of 2" in page and "ε 0.1 would take ε 0.1; " in page
    asked = ("query", "visits.toml", "SELECT COUNT(*) AS n FROM visits")
    assert "plain sum  ε 0.1, ρ 0.005" in succeeded(*asked, "--rho", "0.005")
    keys = "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward"
    succeeded(
        "query", "visits.toml", keys, "--epsilon", "0.1", "--delta", "1e-8", "--out", "a.json"
    )
    assert "ACCEPTED" in succeeded("check", "a.json")
    assert "It can be asked" in succeeded(*asked, "--epsilon", "0.2", "--dry-run")
    told = " ".join(refused(*asked, "--epsilon", "2").split())
    assert "the filter of visits leaves at most epsilon = " in told
    assert "delta kept for such answers" in " ".join(
        refused("query", "visits.toml", keys, "--epsilon", "0.1", "--delta", "1e-6").split()
    )
    succeeded(*asked, "--epsilon", "0.1", "--report", "page.html")
    assert "by the filter" in Path("page.html").read_text("utf-8")
    ledger = Ledger.existing("visits.ledger")
    assert ledger.problems() == []
    found = ledger.spent("visits")
    assert (found.epsilon, found.delta, found.rho) == (
        Fraction(3, 10),
        Fraction(1, 10**8),
        Fraction(1, 200),
    )


def test_a_price_for_an_accuracy(folder):
    """Shown beforehand at no charge, then paid; what cannot be promised is refused."""
    asked = ("query", "visits.toml", BY_REGION)
    plan = succeeded(*asked, "--within", "40", "--explain")
    assert "at a price of" in plan and "ε = 0.3" in plan and "Nothing has been read" in plan
    account = json.loads(succeeded(*asked, "--within", "n=40", "--json"))["account"]
    spent = Fraction(account["spent"]["epsilon"])
    assert Fraction(1, 2) < spent < 1 and spent * 1000 % 1 == 0
    for wrong in ("cost=5", "n=40,cost=5", "n", "n=0", "-1", "x=1"):
        assert refused(*asked, "--within", wrong)
    assert refused(*asked, "--within", "40", "--epsilon", "1")
    assert "budget" in refused(*asked, "--within", "1")  # the least price is more than is left


def test_quantiles_without_intervals(folder):
    sql = "SELECT MEDIAN(cost) AS middle FROM visits"
    whole = json.loads(
        succeeded("query", "visits.toml", sql, "--epsilon", "1", "--explain", "--json")
    )
    bare = json.loads(
        succeeded(
            "query", "visits.toml", sql, "--epsilon", "1", "--no-intervals", "--explain", "--json"
        )
    )
    assert len(whole["plan"]["parts"]) == 3
    assert [part["epsilon"] for part in bare["plan"]["parts"]] == ["1"]
    answer = succeeded("query", "visits.toml", sql, "--epsilon", "1", "--no-intervals", "--json")
    (cell,) = json.loads(answer)["answer"]["rows"][0]["cells"]
    assert cell["value"] is not None and cell["low"] is None and cell["high"] is None
    shown = succeeded(
        "query", "visits.toml", sql, "--epsilon", "1", "--no-intervals", "--report", "page.html"
    )
    assert "middle" in shown and Path("page.html").exists()
