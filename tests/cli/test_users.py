"""`lastbit user` and `lastbit allowance`, and what other commands know of principals."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from lastbit.errors import NotAllowed
from lastbit.ledger import Ledger, inspection
from lastbit.release import answered, checked, paying, reserved
from lastbit.tables import parsed, planned, read_card
from tests.cli.running import lastbit, read, refused, succeeded
from tests.ledger import conftest as places
from tests.release import canaries

canary_folder = canaries.canary_folder
postgres, database, address = places.postgres, places.database, places.address
SQL = "SELECT COUNT(*) AS n FROM visits"
OTHER = "SELECT COUNT(*) AS n FROM visits WHERE age > 5"


@pytest.fixture(name="be")
def become(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Be somebody else: whom the operating system runs this for."""

    def be(name: str) -> None:
        for place in (paying, inspection):
            monkeypatch.setattr(place, "user_name", lambda: name)

    be("ada")
    return be


@pytest.fixture(name="team")
def team_of_three(folder: Path, be: Any) -> Any:
    succeeded("user", "add", "visits.toml", "--role", "steward")
    succeeded("user", "add", "visits.toml", "ana", "--role", "analyst")
    succeeded("user", "add", "visits.toml", "otto", "--role", "auditor")
    succeeded("allowance", "set", "visits.toml", "ana", "--epsilon", "1.5", "--per", "month")
    return be


def ask(sql: str = SQL, epsilon: str = "1", *more: str) -> tuple[str, ...]:
    return ("query", "visits.toml", sql, "--epsilon", epsilon, *more)


def books() -> Ledger:
    return Ledger.existing("visits.ledger")


# ---------------------------------------------------------------- setting up


def test_the_first_is_a_steward_and_is_told_what_changes(folder: Path, be: Any) -> None:
    assert "begin with a steward: lastbit user add" in refused(
        "user", "add", "visits.toml", "--role", "analyst"
    )
    shown = succeeded("user", "add", "visits.toml", "--role", "steward")
    assert "principal  ada" in shown and "From now on every charge" in shown
    again = succeeded("user", "add", "visits.toml", "ana", "--role", "analyst")
    assert "From now on" not in again
    assert "lastbit allowance set visits.toml ana --epsilon 1 --per month" in again


def test_who_gives_the_ledger_away_is_told(folder: Path, be: Any) -> None:
    shown = succeeded("user", "add", "visits.toml", "eve", "--role", "steward")
    assert "You are ada here, and not one of them. From here on eve decides." in shown
    assert "ada is not a steward" in refused("user", "add", "visits.toml", "--role", "steward")


def test_lists(team: Any) -> None:
    shown = succeeded("user", "list", "visits.toml")
    assert [line.split()[:2] for line in shown.splitlines()[1:]] == [
        ["ada", "steward"], ["ana", "analyst"], ["otto", "auditor"],
    ]  # fmt: skip
    assert "visits: ε 1.5 left of ε 1.5 a month" in shown
    told = read("user", "list", "visits.ledger")["principals"]
    assert [one["name"] for one in told] == ["ada", "ana", "otto"]
    assert told[1]["allowances"][0]["limit"] == {
        "epsilon": "3/2", "delta": None, "rho": None, "period": "month",
    }  # fmt: skip
    assert "ε 1.5 a month" in succeeded("allowance", "list", "visits.toml")
    assert read("allowance", "list", "visits.ledger")["allowances"] == told[1]["allowances"]
    assert read("allowance", "list", "visits.ledger", "--account", "zoo") == {"allowances": []}
    assert read("user", "show", "visits.toml", "ana") == told[1]
    assert "zoe is not a principal" in refused("user", "show", "visits.toml", "zoe")


def test_an_empty_ledger_says_so(folder: Path) -> None:
    succeeded(*ask())
    assert "has no principals" in succeeded("user", "list", "visits.toml")
    assert "There are no allowances" in succeeded("allowance", "list", "visits.toml")


@pytest.mark.parametrize("name", ["ana", "otto"])
def test_only_stewards_decide(name: str, team: Any) -> None:
    team(name)
    before = books().head
    for command in (
        ("user", "add", "visits.toml", name, "--role", "steward"),
        ("user", "remove", "visits.toml", "ada"),
        ("allowance", "set", "visits.toml", "ana", "--epsilon", "7"),
        ("allowance", "remove", "visits.toml", "ana"),
        ("budget", "visits.toml", "--set"),
        ("ledger", "accept", "visits.toml"),
    ):
        assert f"{name} is not a steward" in refused(*command)
    assert books().head == before


def test_removing(team: Any) -> None:
    succeeded("allowance", "remove", "visits.toml", "ana")
    assert "no allowance for visits" in refused("allowance", "remove", "visits.toml", "ana")
    succeeded("allowance", "set", "visits.ledger", "ana", "--account", "visits", "--rho", "1")
    succeeded("user", "remove", "visits.toml", "ana")
    assert "removed" in succeeded("user", "list", "visits.toml").splitlines()[2]
    assert books().allowances() == ()
    assert "the only steward" in refused("user", "remove", "visits.toml", "ada")
    assert books().problems() == []


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (("allowance", "set", "visits.ledger", "ana", "--epsilon", "1"), "--account is missing"),
        (("allowance", "set", "visits.toml", "ana"), "name epsilon, or rho"),
        (("allowance", "set", "visits.toml", "ana", "--epsilon", "1", "--per", "hour"), "--per"),
        (("allowance", "set", "visits.toml", "zoe", "--epsilon", "1"), "is not an analyst"),
        (("allowance", "set", "visits.toml", "otto", "--epsilon", "1"), "is not an analyst"),
        (("user", "add", "visits.toml", "zoe", "--role", "king"), "--role"),
        (("user", "remove", "visits.toml", "zoe"), "is not in the ledger"),
        (("user", "list", "gone.ledger"), "is not there"),
    ],
)
def test_slips_are_refused(given: tuple[str, ...], words: str, team: Any) -> None:
    assert words in refused(*given)


# ---------------------------------------------------------------- asking


def test_a_charge_is_by_the_user_who_runs_it(team: Any) -> None:
    team("ana")
    shown = succeeded(*ask())
    assert "allowance  ε 0.5 left of ε 1.5 a month" in shown
    assert books().entries()[-3].principal == "ana"
    found = read(*ask())
    assert found["charged"] is False and found["allowance"]["left"]["epsilon"] == "1/2"
    budget = succeeded("budget", "visits.toml")
    assert "ana      visits   ε 0.5" in budget and "  ana" in budget.splitlines()[-1]
    state = read("budget", "visits.toml")["accounts"][0]
    assert state["allowances"][0]["used"]["epsilon"] == "1"
    assert "SELECT COUNT" in succeeded("user", "show", "visits.toml", "ana")
    assert "Nothing has been asked" in succeeded("user", "show", "visits.toml", "ada")


def test_beyond_the_allowance_nothing_is_charged(team: Any) -> None:
    team("ana")
    succeeded(*ask())
    words = refused(*ask(OTHER))
    assert "Of the allowance of ana for visits only epsilon = 0.5 is left" in words
    assert refused(*ask(OTHER, "1", "--dry-run")) == words
    assert "allowance  ε 0 left" in succeeded(*ask(OTHER, "0.5", "--dry-run"))
    assert books().spent("visits").epsilon == 1
    team("ada")
    succeeded(*ask(OTHER))  # stewards have the account
    assert books().spent("visits").epsilon == 2


@pytest.mark.parametrize(("name", "words"), [("otto", "an auditor"), ("eve", "not a principal")])
def test_others_get_nothing_not_even_what_is_recorded(name: str, words: str, team: Any) -> None:
    succeeded(*ask())
    team(name)
    for more in ((), ("--dry-run",), ("--fresh",)):
        assert words in refused(*ask(SQL, "1", *more))
    assert words in refused(*ask(OTHER))
    assert books().spent("visits").epsilon == 1


def test_a_served_answer_needs_the_right_too(team: Any) -> None:
    """A cut of a recorded answer is free, and is not for everybody."""
    both = "SELECT region, COUNT(*) AS n, SUM(age) AS ages FROM visits GROUP BY region"
    one = "SELECT region, COUNT(*) AS n FROM visits GROUP BY region"
    succeeded(*ask(both, "1"))
    assert read(*ask(one, "0.4"))["charged"] is False
    team("otto")
    assert "an auditor" in refused(*ask(one, "0.4"))


def test_a_principal_must_be_named_once_there_are_some(team: Any) -> None:
    card = read_card("visits.toml")
    query = parsed(SQL, card)
    plan = planned(query, card, epsilon=1)
    checked(plan)
    with pytest.raises(NotAllowed, match="names no principal"):
        reserved(plan, books=books(), who="ada", principal=None, sql=None)
    paid = reserved(plan, books=books(), who="the service", principal="ana", sql=SQL)
    answered(plan, paid, books=books(), who="the service")
    (used,) = books().allowances("visits", "ana")
    assert used.used.epsilon == Fraction(1)
    with pytest.raises(NotAllowed, match="names no principal"):
        reserved(plan, books=books(), who="ada", principal=None, sql=None)


def test_in_a_database_it_is_who_signs_in(be: Any, request: pytest.FixtureRequest) -> None:
    address = request.getfixturevalue("address")
    ledger = Ledger.init(address)
    name = ledger.user
    assert name != "ada"
    shown = lastbit("user", "add", str(address), "--role", "steward").output
    assert f"principal  {name}" in shown, shown
    assert [one.name for one in ledger.principals()] == [name]
