"""Who acts as whom: tokens, sessions, links and the proxy's header."""

from __future__ import annotations

import itertools
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import given, settings as examples, strategies as st

from lastbit.errors import InvalidParameter, NotAllowed
from lastbit.ledger import ROLES, Ledger
from lastbit.serve.identity import COOKIE, OF_TABLES, Action, Gate, Identity
from lastbit.serve.questions import Refusal
from lastbit.serve.routes import RIGHTS, Right
from lastbit.serve.settings import Settings
from lastbit.serve.store import Store
from lastbit.tables import Budget
from tests.serve.serving import NAMES

DAY = 86_400


class Clock:
    def __init__(self) -> None:
        self.now = 1_700_000_000.0

    def __call__(self) -> float:
        return self.now


@dataclass
class Place:
    gate: Gate
    ledger: Ledger
    clock: Clock


def place(folder: Path, *, principals: bool = True, **told: Any) -> Place:
    ledger, clock = Ledger.open(folder / "ledger"), Clock()
    if principals:
        for role in ROLES:
            ledger.set_principal(NAMES[role], role, by=NAMES["steward"])
    settings = Settings(cards=(folder / "x.toml",), state=folder / "state", **told)
    return Place(Gate(Store(folder / "state"), ledger, settings, clock=clock), ledger, clock)


@pytest.fixture
def here(tmp_path: Path) -> Place:
    return place(tmp_path)


def scope(path: str, *headers: tuple[str, str], unix: bool = False) -> dict[str, Any]:
    found = [(name.lower().encode(), value.encode("latin-1")) for name, value in headers]
    return {"path": path, "headers": found, "state": {"unix": unix}}


def by_token(gate: Gate, token: str) -> Identity | None:
    return gate.identity_of(scope("/api/v1/tables", ("Authorization", f"Bearer {token}")))


def by_cookie(gate: Gate, *secrets: str) -> Identity | None:
    return gate.identity_of(scope("/", *(("Cookie", f"{COOKIE}={secret}") for secret in secrets)))


def signed_in(here: Place, name: str) -> str:
    return here.gate.link_used(here.gate.link_made(name).removeprefix("/link/"))


def forgotten(here: Place) -> None:
    """As if the second were over for which roles are remembered."""
    here.gate._read = None


# ---------------------------------------------------------------- tokens


def test_a_token_acts_as_its_principal_with_the_rights_of_the_role(here: Place) -> None:
    for role in ROLES:
        token, line = here.gate.token_made(NAMES[role], name="x", days=1)
        found = by_token(here.gate, token)
        assert found is not None
        assert (found.principal, found.role, found.via) == (NAMES[role], role, "token")
        assert found.rights == RIGHTS[role] == line.rights
        assert found.tables is None


@pytest.mark.parametrize(
    "sent",
    [
        "{}x",
        "x{}",
        " {}.",
        "{} {}",
        "",
        "lbt_",
        "lbt_" + "A" * 43,
        "lbt_" + "A" * 100_000,
        "lbt_" + "A" * 42 + "\u00e9",
        "' OR 1=1 --",
        "lbt_%",
    ],
)
def test_nothing_but_the_token_itself_will_do(here: Place, sent: str) -> None:
    token, _ = here.gate.token_made("ana", name="x", days=1)
    assert by_token(here.gate, sent.replace("{}", token)) is None
    for place_, letter in itertools.product((4, 20, 46), "aZ_"):
        other = token[:place_] + letter + token[place_ + 1 :]
        assert other == token or by_token(here.gate, other) is None


def test_each_way_in_has_its_own_door(here: Place) -> None:
    """Cookies do not count for programs, nor tokens for pages; two of a kind are none."""
    token, _ = here.gate.token_made("ana", name="x", days=1)
    secret = signed_in(here, "ana")
    find = here.gate.identity_of
    bearer, cookie = ("Authorization", f"Bearer {token}"), ("Cookie", f"{COOKIE}={secret}")
    assert find(scope("/api/v1/tables", bearer)) and find(scope("/", cookie))
    assert find(scope("/api/v1/tables", cookie)) is None
    assert find(scope("/", bearer)) is None
    assert find(scope("/api/v1/tables", bearer, bearer)) is None
    assert find(scope("/", cookie, cookie)) is None
    assert by_cookie(here.gate, f"{secret}; {COOKIE}=x") is None
    assert by_cookie(here.gate, f"x; {COOKIE}={secret}") is None
    assert by_cookie(here.gate, token) is None and by_cookie(here.gate, token[4:]) is None
    assert by_token(here.gate, secret) is None and by_token(here.gate, f"lbt_{secret}") is None
    assert find(scope("/", ("Cookie", f"a=b; {COOKIE}={secret}; c=d"))) is not None
    for header in (f"Basic {token}", token, f"Bearer{token}", f"Bearer\t{token}"):
        assert find(scope("/api/v1/tables", ("Authorization", header))) is None


def test_the_store_has_digests_alone(here: Place) -> None:
    """Somebody who reads the file has nothing to sign in with."""
    token, _ = here.gate.token_made("ana", name="x", days=1)
    path = here.gate.link_made("otto")
    secrets = (token, token[4:], path.removeprefix("/link/"), signed_in(here, "ana"))
    held = "\n".join(here.gate.store.connection().iterdump())
    assert not [secret for secret in secrets if secret in held]
    digests = [row[0] for row in here.gate.store.connection().execute("SELECT digest FROM tokens")]
    assert all(by_token(here.gate, digest) is None for digest in digests)


def test_secrets_have_256_bits_and_differ(here: Place) -> None:
    from lastbit.serve.identity import _secret

    made = {_secret() for _ in range(2000)}
    assert len(made) == 2000
    assert {len(one) for one in made} == {43}
    assert {one[-1] for one in made} <= set("AEIMQUYcgkosw048")  # 4 bits, and 2 of padding


def test_a_token_expires(here: Place) -> None:
    token, line = here.gate.token_made("ana", name="x", days=2)
    here.clock.now = line.expires - 1
    assert by_token(here.gate, token) is not None
    here.clock.now = line.expires
    assert by_token(here.gate, token) is None
    with pytest.raises(Refusal, match="not a token"):
        here.gate.session_of(token)


@pytest.mark.parametrize("days", [0, -1, 367, 10**9])
def test_a_token_lives_for_days_up_to_a_year(here: Place, days: int) -> None:
    with pytest.raises(Refusal, match="days"):
        here.gate.token_made("ana", name="x", days=days)


@pytest.mark.parametrize("name", ["", "  ", "a\nb", "a\x00", "x" * 101, "\u202e"])
def test_a_token_is_named_in_printable_words(here: Place, name: str) -> None:
    with pytest.raises(Refusal, match="printable"):
        here.gate.token_made("ana", name=name, days=1)


def test_revoked_at_the_next_request_with_all_that_came_of_it(here: Place) -> None:
    """What a token made, what that made, and the sessions begun by each of them."""
    gate = here.gate
    other, _ = gate.token_made("ana", name="other", days=1)
    first, line = gate.token_made("ana", name="first", days=10)
    second, _ = gate.token_made(_there(by_token(gate, first)), name="second", days=5)
    session = gate.session_of(second)
    third, _ = gate.token_made(_there(by_cookie(gate, session)), name="third", days=5)
    deepest = gate.session_of(third)
    assert by_token(gate, third) and by_cookie(gate, deepest)
    gate.token_revoked(line.id, _there(by_token(gate, other)))
    assert not any(by_token(gate, one) for one in (first, second, third))
    assert not any(by_cookie(gate, one) for one in (session, deepest))
    assert by_token(gate, other)
    with pytest.raises(Refusal, match="not a token"):
        gate.session_of(third)


def test_a_revoked_token_makes_no_other_however_late(here: Place) -> None:
    """The identity was found before the revocation, and is used after it."""
    gate = here.gate
    token, line = gate.token_made("ana", name="x", days=1)
    late, session = _there(by_token(gate, token)), gate.session_of(token)
    later = _there(by_cookie(gate, session))
    gate.token_revoked(line.id, late)
    for maker in (late, later):
        with pytest.raises(Refusal, match="ended"):
            gate.token_made(maker, name="y", days=1)
    link = signed_in(here, "ana")
    ended = _there(by_cookie(gate, link))
    gate.session_ended(ended)
    with pytest.raises(Refusal, match="ended"):
        gate.token_made(ended, name="y", days=1)


def test_who_was_removed_meanwhile_makes_no_token(here: Place) -> None:
    """And added again: the identity is of before, and so is its session."""
    token, _ = here.gate.token_made("ana", name="x", days=1)
    late = [
        _there(by_cookie(here.gate, signed_in(here, "ana"))),
        _there(by_token(here.gate, token)),
    ]
    for role in (None, "analyst"):
        here.ledger.set_principal("ana", role, by="stella")
    for maker in late:
        with pytest.raises(Refusal, match="ended"):
            here.gate.token_made(maker, name="y", days=1)


@pytest.mark.parametrize("role", ["", "admin", "Steward"])
def test_roles_are_those_of_the_ledger(here: Place, role: Any) -> None:
    steward = _there(by_cookie(here.gate, signed_in(here, "stella")))
    with pytest.raises(InvalidParameter, match="role"):
        here.gate.principal_set("eve", role, by=steward)


def test_who_may_revoke(here: Place) -> None:
    gate = here.gate
    _, mine = gate.token_made("ana", name="x", days=1)
    auditor = _there(by_token(gate, gate.token_made("otto", name="x", days=1)[0]))
    with pytest.raises(Refusal, match="no such token") as refused:
        gate.token_revoked(mine.id, auditor)
    with pytest.raises(Refusal, match="no such token") as unknown:
        gate.token_revoked("nothing", auditor)
    assert str(refused.value) == str(unknown.value)  # not even whether it is there
    own_only = gate.token_made("stella", name="x", days=1, rights=["self"])[0]
    with pytest.raises(Refusal, match="no such token"):
        gate.token_revoked(mine.id, _there(by_token(gate, own_only)))
    gate.token_revoked(
        mine.id, _there(by_token(gate, gate.token_made("stella", name="x", days=1)[0]))
    )
    assert gate.tokens("ana")[0].revoked is not None


def test_there_are_not_endless_tokens(here: Place) -> None:
    lines = [here.gate.token_made("ana", name=str(i), days=1)[1] for i in range(100)]
    with pytest.raises(Refusal, match="revoke one"):
        here.gate.token_made("ana", name="x", days=1)
    here.gate.token_revoked(lines[0].id, _there(by_cookie(here.gate, signed_in(here, "ana"))))
    here.gate.token_made("ana", name="x", days=1)
    assert [line.name for line in here.gate.tokens("ana")][:2] == ["x", "99"]


def test_tokens_that_have_ended_do_not_pile_up(here: Place) -> None:
    alive, _ = here.gate.token_made("ana", name="kept", days=1)
    by = _there(by_token(here.gate, alive))
    for _ in range(105):
        _, line = here.gate.token_made("ana", name="short", days=1)
        here.gate.token_revoked(line.id, by)
    here.gate.token_made("ana", name="last", days=1)
    assert len(here.gate.tokens("ana")) == 102
    assert by_token(here.gate, alive) == by


_RIGHTS = st.none() | st.frozensets(st.sampled_from(get_args(Right)))
_TABLES = st.none() | st.frozensets(st.sampled_from(["visits", "costs", "wards"]))
_WISH = st.tuples(_RIGHTS, _TABLES, st.integers(1, 20), st.booleans())


@examples(max_examples=60)
@given(role=st.sampled_from(ROLES), wishes=st.lists(_WISH, min_size=1, max_size=5))
def test_restrictions_only_remove(
    tmp_path_factory: pytest.TempPathFactory, role: str, wishes: list[Any]
) -> None:
    """Along any chain of tokens that make tokens, by sessions or not: never a right, a table or a
    second more than the one before, nor than the role."""
    here = place(tmp_path_factory.mktemp("restrictions"))
    gate = here.gate
    maker: Identity = _there(by_cookie(gate, signed_in(here, NAMES[role])))
    ends = float("inf")
    for rights, tables, days, by_session in wishes:
        within = maker.tables if tables is None else tables
        wanted = maker.rights if rights is None else rights
        wanted &= wanted if within is None else OF_TABLES
        asked_more = not wanted <= maker.rights or (
            maker.tables is not None and tables is not None and not tables <= maker.tables
        )
        try:
            token, line = gate.token_made(maker, name="x", days=days, rights=rights, tables=tables)
        except Refusal as refused:
            assert refused.status == 403 and asked_more
            continue
        assert not asked_more
        found = _there(
            by_cookie(gate, gate.session_of(token)) if by_session else by_token(gate, token)
        )
        assert found.rights <= maker.rights <= RIGHTS[role]
        assert found.rights == wanted
        assert found.tables == within
        assert maker.tables is None or (found.tables is not None and found.tables <= maker.tables)
        assert line.expires <= ends
        maker, ends = found, line.expires


def test_a_new_role_gives_no_old_token_more(here: Place) -> None:
    token, _ = here.gate.token_made("ana", name="x", days=1)
    steward = _there(by_cookie(here.gate, signed_in(here, "stella")))
    here.gate.principal_set("ana", "steward", by=steward)
    found = by_token(here.gate, token)
    assert found is None or found.rights <= RIGHTS["analyst"]


def test_a_store_that_gives_more_than_the_role_is_not_believed(here: Place) -> None:
    """As after an update by which a role has less."""
    token, _ = here.gate.token_made("ana", name="x", days=1)
    secret = here.gate.session_of(token)
    with here.gate.store.transaction() as rows:
        rows.execute("UPDATE tokens SET rights = ?", ('["browse", "users", "ledger"]',))
    for found in (by_token(here.gate, token), by_cookie(here.gate, secret)):
        assert _there(found).rights == frozenset(["browse"])


def test_rights_are_those_of_the_role_now(here: Place) -> None:
    """A role that is taken on the command line counts within the second."""
    here.ledger.set_principal("sam", "steward", by="stella")
    token, _ = here.gate.token_made("sam", name="x", days=1)
    secret = signed_in(here, "sam")
    here.ledger.set_principal("sam", "auditor", by="stella")
    forgotten(here)
    for found in (by_token(here.gate, token), by_cookie(here.gate, secret)):
        assert found is None or found.rights <= RIGHTS["auditor"]
    here.ledger.set_principal("sam", None, by="stella")
    forgotten(here)
    assert by_token(here.gate, token) is None and by_cookie(here.gate, secret) is None


def test_the_chain_is_read_for_roles_when_they_change(
    here: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Charges and budgets do not cost a reading of the whole; another chain does."""
    reads, whole = [], Ledger.principals

    def counted(ledger: Ledger) -> Any:
        reads.append(ledger)
        return whole(ledger)

    monkeypatch.setattr(Ledger, "principals", counted)

    def role(name: str) -> str | None:
        forgotten(here)
        found = here.gate._principal(name)
        return None if found is None else found.role

    assert (role("ana"), role("ana"), len(reads)) == ("analyst", "analyst", 1)
    budget = Budget(epsilon=Fraction(1))
    here.ledger.account("visits", budget)
    copy = tmp_path / "copy"
    copy.write_bytes((tmp_path / "ledger").read_bytes())
    for number in range(3):
        here.ledger.accept_data("visits", "visits", f"{number}", who="stella")
        assert (role("ana"), len(reads)) == ("analyst", 1)
    here.ledger.accept_data("visits", "visits", "3", who="stella")
    here.ledger.set_principal("ana", "auditor", by="stella")
    here.ledger.accept_data("visits", "visits", "4", who="stella")
    assert (role("ana"), role("ana"), len(reads)) == ("auditor", "auditor", 2)
    (tmp_path / "ledger").write_bytes(copy.read_bytes())  # a backup is restored: it is shorter
    assert (role("ana"), len(reads)) == ("analyst", 3)
    here.ledger.set_principal("ana", None, by="stella")
    for number in range(5):  # and another chain, as long as it was
        here.ledger.accept_data("visits", "visits", f"other {number}", who="stella")
    assert (role("ana"), len(reads)) == (None, 4)


@pytest.mark.parametrize("here_or_there", ["in the server", "on the command line"])
def test_removed_and_added_again(here: Place, here_or_there: str) -> None:
    """Nothing that was made before comes back to life, though nobody tried it in between."""
    steward = _there(by_cookie(here.gate, signed_in(here, "stella")))
    token, _ = here.gate.token_made("ana", name="x", days=1)
    secret, link = signed_in(here, "ana"), here.gate.link_made("ana")
    for role in (None, "analyst"):
        if here_or_there == "in the server":
            here.gate.principal_set("ana", role, by=steward)
        else:
            here.ledger.set_principal("ana", role, by="stella")
    forgotten(here)
    assert by_token(here.gate, token) is None and by_cookie(here.gate, secret) is None
    with pytest.raises(Refusal, match="link"):
        here.gate.link_used(link.removeprefix("/link/"))


@pytest.mark.parametrize("rights", [["users"], sorted(RIGHTS["steward"] - {"audit"})])
def test_a_restricted_token_makes_nobody_of_more_rights(here: Place, rights: list[Any]) -> None:
    """Else it could make a steward, or a link for one, and sign in as that."""
    token, _ = here.gate.token_made("stella", name="x", days=1, rights=rights)
    short = _there(by_token(here.gate, token))
    before = here.ledger.principals()
    for name, role in (("eve", "steward"), ("ana", "steward"), ("eve", "auditor")):
        with pytest.raises(Refusal, match="restricted"):
            here.gate.principal_set(name, role, by=short)  # type: ignore[arg-type]
    with pytest.raises(Refusal, match="restricted"):
        here.gate.link_made("stella", by=short)
    tables, _ = here.gate.token_made("stella", name="x", days=1, tables=["visits"])
    with pytest.raises(Refusal, match="restricted"):
        here.gate.link_made("ana", by=_there(by_token(here.gate, tables)))
    assert here.ledger.principals() == before
    assert len(rights) == 1 or here.gate.link_made("ana", by=short)
    here.gate.principal_set("ana", None, by=short)  # to take is not to give


# ---------------------------------------------------------------- links and sessions


def test_a_link_is_used_once_and_not_by_looking(here: Place) -> None:
    code = here.gate.link_made("ana").removeprefix("/link/")
    assert here.gate.link_found(code) == "ana" == here.gate.link_found(code)
    secret = here.gate.link_used(code)
    assert _there(by_cookie(here.gate, secret)).principal == "ana"
    for use in (here.gate.link_used, here.gate.link_found):
        with pytest.raises(Refusal) as refused:
            use(code)
        assert refused.value.status == 404


def test_sixteen_at_once_use_one_link(here: Place) -> None:
    code = here.gate.link_made("ana").removeprefix("/link/")

    def used(_: int) -> bool:
        try:
            here.gate.link_used(code)
        except Refusal:
            return False
        return True

    with ThreadPoolExecutor(16) as pool:
        assert sum(pool.map(used, range(16))) == 1


def test_links_expire_and_guesses_are_refused(here: Place) -> None:
    code = here.gate.link_made("ana").removeprefix("/link/")
    for guess in ("", "A" * 43, code[:-1], code + "A", "../" + code):
        with pytest.raises(Refusal):
            here.gate.link_used(guess)
    here.clock.now += 3600
    with pytest.raises(Refusal):
        here.gate.link_used(code)


def test_the_first_steward_and_no_second(tmp_path: Path) -> None:
    here = place(tmp_path, principals=False)
    links = [here.gate.link_made(None).removeprefix("/link/") for _ in range(3)]
    assert here.gate.link_found(links[0]) is None
    for bad in (None, "", "a b", "a/b", "..", "a\r\nb", "x" * 65):
        with pytest.raises(Refusal, match="name"):
            here.gate.link_used(links[0], bad)
    assert here.ledger.principals() == ()
    secret = here.gate.link_used(links[0], "ada")
    assert _there(by_cookie(here.gate, secret)).role == "steward"
    assert [(one.name, one.role) for one in here.ledger.principals()] == [("ada", "steward")]
    for code, name in ((links[0], "eve"), (links[1], "eve"), (links[2], "ada")):
        with pytest.raises(Refusal):
            here.gate.link_used(code, name)
    with pytest.raises(Refusal):
        here.gate.link_made(None)
    assert len(here.ledger.principals()) == 1


def test_a_first_steward_whom_another_server_made_first(tmp_path: Path) -> None:
    """The ledger itself refuses a second first one, and then the link is not used up in vain."""
    here = place(tmp_path, principals=False)
    code = here.gate.link_made(None).removeprefix("/link/")
    whole = here.gate._check_first
    here.ledger.set_principal("ada", "steward", by="ada")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Gate, "_check_first", lambda self: None)  # it looked just before
        for name in ("eve", "ada"):
            with pytest.raises(NotAllowed):
                here.gate.link_used(code, name)
    with pytest.raises(Refusal):
        whole()
    assert [one.name for one in here.ledger.principals()] == ["ada"]
    sessions = here.gate.store.connection().execute("SELECT COUNT(*) FROM sessions").fetchone()
    assert sessions[0] == 0


def test_a_session_is_new_at_each_sign_in(here: Place) -> None:
    """Fixation: no secret that anybody knew before is ever taken for a session."""
    token, _ = here.gate.token_made("ana", name="x", days=1)
    made = {here.gate.session_of(token), here.gate.session_of(token), signed_in(here, "ana")}
    assert len(made) == 3
    here.gate.session_ended(_there(by_cookie(here.gate, sorted(made)[0])))
    assert [by_cookie(here.gate, one) is not None for one in sorted(made)] == [False, True, True]
    here.gate.all_ended("ana")
    assert not any(by_cookie(here.gate, one) for one in made)
    assert by_token(here.gate, token) is None


def test_a_session_ends_by_itself(here: Place) -> None:
    secret = signed_in(here, "ana")
    here.clock.now += 12 * 3600 - 1
    assert by_cookie(here.gate, secret)
    here.clock.now += 1
    assert by_cookie(here.gate, secret) is None
    signed_in(here, "otto")
    (left,) = here.gate.store.connection().execute("SELECT COUNT(*) FROM sessions").fetchone()
    assert left == 1  # those that are over are swept away


def test_there_are_not_endless_sessions(here: Place) -> None:
    token, _ = here.gate.token_made("ana", name="x", days=1)
    other = signed_in(here, "otto")
    made = [here.gate.session_of(token) for _ in range(53)]
    assert [by_cookie(here.gate, one) is not None for one in made] == [False] * 3 + [True] * 50
    assert by_cookie(here.gate, other)


def test_sessions_are_listed_and_ended_by_their_owner_alone(here: Place) -> None:
    token, line = here.gate.token_made("ana", name="laptop", days=1)
    by_link, by_its = signed_in(here, "ana"), here.gate.session_of(token)
    stella = signed_in(here, "stella")
    ana = _there(by_cookie(here.gate, by_link))
    newest, oldest = here.gate.sessions(ana)
    assert (newest.token, newest.current, oldest.token, oldest.current) == (
        *("laptop", False),
        *(None, True),
    )
    assert by_its not in str(newest) and newest.id not in by_its
    for other in (_there(by_cookie(here.gate, stella)), ana):
        wrong = newest.id if other is not ana else "x"
        with pytest.raises(Refusal, match="You have no such session"):
            here.gate.session_revoked(wrong, other)
    assert by_cookie(here.gate, by_its) is not None
    here.gate.session_revoked(newest.id, ana)
    assert by_cookie(here.gate, by_its) is None and by_cookie(here.gate, by_link) is not None
    here.gate.session_of(token)
    assert len(here.gate.sessions(ana)) == 2
    here.gate.token_revoked(line.id, ana)
    assert here.gate.sessions(ana) == [oldest]  # a session of a revoked token acts as nobody
    here.gate.session_revoked(oldest.id, ana)
    assert by_cookie(here.gate, by_link) is None


def test_a_session_has_what_its_token_has(here: Place) -> None:
    token, _ = here.gate.token_made(
        "stella", name="x", days=1, rights=["browse", "self"], tables=["visits"]
    )
    found = _there(by_cookie(here.gate, here.gate.session_of(token)))
    assert found.rights == frozenset(["browse", "self"]) and found.tables == frozenset(["visits"])
    here.clock.now += DAY / 2 + 1
    again = here.gate.session_of(token)
    here.clock.now += DAY / 2
    assert by_cookie(here.gate, again) is None  # the token is over, though the session is not


# ---------------------------------------------------------------- the proxy


def test_the_proxys_header_over_the_unix_socket_alone(tmp_path: Path) -> None:
    told: dict[str, Any] = {"socket": tmp_path / "s", "origin": "https://stats.example.org"}
    here = place(tmp_path, trusted_header="X-Remote-User", **told)
    find = here.gate.identity_of
    named = ("X-Remote-User", "ana")
    found = _there(find(scope("/", named, unix=True)))
    assert (found.principal, found.via, found.rights) == ("ana", "proxy", RIGHTS["analyst"])
    assert find(scope("/api/v1/tables", named, unix=True)) is None
    assert find(scope("/", ("X_Remote_User", "stella"), unix=True)) is None
    cookie = ("Cookie", f"{COOKIE}={signed_in(here, 'otto')}")
    assert _there(find(scope("/", named, cookie, unix=True))).principal == "ana"
    assert find(scope("/", ("X-Remote-User", "eve"), cookie, unix=True)) is None
    for nobody in ("", "eve", "ANA", "ana,stella", "ana "):
        assert find(scope("/", ("X-Remote-User", nobody), unix=True)) is None
    with pytest.raises(Refusal) as refused:
        find(scope("/", named))
    assert refused.value.status == 400
    with pytest.raises(Refusal):
        find(scope("/", named, ("x-remote-user", "stella"), unix=True))


def test_the_header_is_nothing_where_it_is_not_configured(tmp_path: Path) -> None:
    here = place(tmp_path, socket=tmp_path / "s", origin="https://stats.example.org")
    for name in ("X-Remote-User", "Remote-User", "X-Forwarded-User"):
        assert here.gate.identity_of(scope("/", (name, "stella"), unix=True)) is None


# ---------------------------------------------------------------- the audit log


def test_the_audit_log_says_who_did_what_and_no_secret(here: Place) -> None:
    gate = here.gate
    token, line = gate.token_made("ana", name="laptop", days=1)
    secret = gate.session_of(token)
    who = _there(by_cookie(gate, secret))
    gate.audit(who, "asked", "visits")
    gate.session_ended(who)
    link = gate.link_made("ana", by=who)
    lines = gate.audit_lines()
    assert [(one["principal"], one["action"], one["subject"]) for one in lines] == [
        ("ana", "link made", "ana"),
        ("ana", "signed out", None),
        ("ana", "asked", "visits"),
        ("ana", "signed in", None),
        ("ana", "token made", line.id),
    ]
    assert gate.audit_lines(before=lines[-1]["sequence"]) == []
    assert len(gate.audit_lines(most=2)) == 2
    told = repr([tuple(one) for one in lines])
    assert not any(one in told for one in (token, token[4:], secret, link[6:]))


def test_actions_are_those_of_the_list(here: Place) -> None:
    for action in get_args(Action):
        here.gate.audit(None, action, None)
    with pytest.raises(InvalidParameter, match="action"):
        here.gate.audit(None, "looked at 73211", None)  # type: ignore[arg-type]
    assert len(here.gate.audit_lines()) == len(get_args(Action))


def test_the_last_use_is_written_once_a_minute(here: Place) -> None:
    token, line = here.gate.token_made("ana", name="x", days=1)
    who = _there(by_token(here.gate, token))
    assert here.gate.tokens("ana")[0].used is None
    here.gate.seen(who)
    first = here.gate.tokens("ana")[0].used
    assert first == line.made
    here.clock.now += 59
    here.gate.seen(who)
    assert here.gate.tokens("ana")[0].used == first
    here.clock.now += 1
    here.gate.seen(who)
    assert here.gate.tokens("ana")[0].used == first + 60


def _there(found: Identity | None) -> Identity:
    assert found is not None
    return found
