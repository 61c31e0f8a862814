"""A table that a server has: the same questions as of one's own, asked over HTTPS.

`lb.table("https://stats.example.org/visits", token=...)` reads what the table's card declares. A
question is built and planned here, by that card and this program, and sent as SQL; its price is
known before anything is sent. The server pays and answers (`lastbit serve`).

Theorem  an answer that is given back (a) has a certificate that lastbit's own checker accepts, of a
         release, so that no code is run to check it; (b) is about the table, unit and neighbours of
         the card; (c) is the answer to the query that the question is here, or holds it
         (`recorded.py`), in the entry of the ledger that the server names; (d) has the price that
         was planned here, and no other was charged
Proof    `_check_record` refuses anything else. (c) is by the digest of the query. A question that
         groups by a column of a public table has its keys there, and one whose limits are left out
         has them from the server's profile: neither can be planned here. Its
         price is the server's preview, at most what was offered, and (c) is the server's word
Differs  that the numbers come from the data, with noise of the right law, is the server's word: no
         client could tell. What is checked is all that an honest server cannot get wrong
Theorem  one call of `release` is charged at most once, however often the connection drops
Proof    its Idempotency-Key is made once, and the server has one job for a key

Checked  tests/release/test_remote.py (against servers that lie)
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal
from urllib.parse import quote

from lastbit.arguments import check_flags
from lastbit.checker import Rejected, check_apart_from_code
from lastbit.errors import InvalidParameter, LastbitError, ServerFailed
from lastbit.exact import Number, exact_text, rational
from lastbit.reading import MOST_BYTES
from lastbit.release.answer import Answer
from lastbit.release.connection import LONGEST_WAIT, MOST_WORDS, Reply, Server
from lastbit.release.question import Question
from lastbit.release.recorded import served
from lastbit.release.steps_as_sql import statement_of, unwritable
from lastbit.release.within import Within, explanation_within, planned_within
from lastbit.sampling import secure_bits
from lastbit.servers import Secret
from lastbit.tables import (
    Cost,
    DataCard,
    Plan,
    card_from_json,
    exact_fraction,
    parsed,
    rows_of,
    told,
)

_AMOUNTS = ("epsilon", "delta", "rho")
_ASK_AGAIN = "ask again: an answer that is on record is free"
_DISTRUST = "do not use it, and tell the server's steward"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class RemoteTable(Question):
    """A table of a server, and what has been asked of it so far. Every step gives a new one.

    The steps are those of `Table`, and are written as SQL; one that cannot be is refused with its
    reason, and `sql` asks for it as one statement.

    Example  docs/api.md asks a server, step by step
    """

    server: Server

    @property
    def place(self) -> str:
        """The name of the table, and where it is."""
        return f"{self.card.name} at {self.server}"

    @property
    def question(self) -> str:
        """The SQL that is sent. Of steps it means by the card what they do, or it is refused."""
        if self.sql_text is not None:
            return self.sql_text
        draft, text = self.draft, statement_of(self)
        try:
            same = parsed(text, draft.card) == draft.query
        except LastbitError:
            same = False
        if not same:
            raise unwritable("the question", "cannot be written as SQL that means the same")
        return text

    def explain(
        self,
        *,
        epsilon: Number | None = None,
        delta: Number | None = None,
        rho: Number | None = None,
        weights: Mapping[str, Number] | Literal["balanced"] | None = None,
        within: Within | None = None,
    ) -> str:
        """What the answer would cost, how it would be made and how far off; nothing is paid.

        Planned here, by the card; what is left, and whether an answer is on record, the server
        says.
        """
        price: dict[str, Any] = {"epsilon": epsilon, "delta": delta, "rho": rho, "weights": weights}
        shown = self.preview(within=within, **price)
        plan = self.plan(within=within, **price)
        if plan is None:
            lines = [f"{name:<9} {words}" for name, words in shown["facts"]]
            text = "\n".join(map(self.server.words, [shown["title"], *lines]))
        else:
            _compare("price", _cost(shown["cost"]), plan.cost)
            text = explanation_within(plan.query, self.card, within, price)
        return "\n".join([text, *(f"{name}: {words}" for name, words in self.state(shown))])

    def preview(self, *, within: Within | None = None, **price: Any) -> dict[str, Any]:
        """What the server says before anything is paid: price, error, on record, what is left."""
        return self._preview(self._body(price, within))

    def plan(self, *, within: Within | None = None, **price: Any) -> Plan | None:
        """The plan that this program makes; None where only the server can make it.

        That is where keys are in a public table, and where a profile chooses limits.
        """
        if self.card.max_rows_open or self.draft is not self:
            return None
        query = self.query
        tables = (getattr(key.expression, "table", None) for key in query.keys)
        if any(table in self.card.public for table in tables):
            return None
        return planned_within(query, self.card, within, **price)

    def state(self, shown: Mapping[str, Any]) -> list[tuple[str, str]]:
        """What only the server knows, of a preview: on record, refused, left."""
        lines = []
        if type(shown.get("recorded")) is int:
            lines.append(("on record", f"answer {shown['recorded']}; to ask is free"))
        if isinstance(shown.get("refused"), str):
            lines.append(("refused now", shown["refused"]))
        left = shown.get("left")
        if isinstance(left, Mapping):
            amounts = {name: left.get(name) for name in _AMOUNTS}
            said = {name: text for name, text in amounts.items() if text not in (None, "0")}
            parts = [f"{name} = {_amount(text)}" for name, text in said.items()]
            lines.append(("left after it", ", ".join(parts) or "nothing"))
        return [(name, self.server.words(words)) for name, words in lines]

    def release(
        self,
        *,
        epsilon: Number | None = None,
        delta: Number | None = None,
        rho: Number | None = None,
        weights: Mapping[str, Number] | Literal["balanced"] | None = None,
        within: Within | None = None,
        fresh: bool = False,
        consistent: bool = False,
    ) -> Answer:
        """The private answer; the server charges its price exactly once, and answers in slots.

        It is checked by lastbit's own checker, and compared with what was asked, before it is given
        back. A connection that drops is tried again under the same key, so nothing is paid twice.
        """
        check_flags(fresh=fresh, consistent=consistent)
        price: dict[str, Any] = {"epsilon": epsilon, "delta": delta, "rho": rho, "weights": weights}
        body = self._body(price, within) | ({"fresh": True} if fresh else {})
        plan, view = self.plan(within=within, **price), self.view
        if plan is None:
            cost = self._price_there(body)
        else:
            cost = plan.cost
            if within is not None:  # the server finds the price too: compared before it is paid
                _compare("price", _cost(self._preview(body)["cost"]), cost)
        key = secure_bits().fill(16).tobytes().hex()
        job = self._finish_job(body, key, cost)
        if job.get("state") != "answered":
            paid = "its price stays charged" if job.get("cost") else "nothing was charged"
            raise ServerFailed(f"{self.server}: {self.server.words(job.get('reason')) or paid}")
        charged = job.get("cost") is not None
        if charged:
            _compare("price charged", _cost(job["cost"]), cost)
        number = job.get("entry")
        if type(number) is not int or number < 1:
            raise ServerFailed(f"{self.server} names no answer; {_ASK_AGAIN}")
        answers = f"/answers/{number}"
        record, _ = self._take_reply(lambda: self.server.get(answers, most=MOST_BYTES))
        shown = _check_record(record, self.card, plan, cost=cost, charged=charged, sql=body["sql"])
        if (record["entry"] or {}).get("sequence") != number:
            raise ServerFailed(f"the server shows another entry than it names; {_DISTRUST}")
        answer = Answer(record, charged=charged, shown=shown, view=view)
        return answer.consistent() if consistent else answer

    def budget(self) -> dict[str, Any]:
        """What is spent and what is left of the table's account, and of one's own allowance."""
        found = self.server.good(self.server.get("/budget"), 200)
        account = self.card.account_name
        try:
            accounts = [one for one in found["accounts"] if one["account"] == account]
            allowances = [one for one in found["allowances"] if one["account"] == account]
            for one in accounts:
                _check_amounts([one.get(part) for part in ("budget", "spent", "left", "filter")])
        except (AttributeError, LookupError, TypeError, ValueError):
            raise ServerFailed(
                f"{self.server} does not say what is left; ask its steward"
            ) from None
        return {"accounts": accounts, "allowances": allowances}

    # -- inside --

    def _body(self, price: Mapping[str, Any], within: Within | None) -> dict[str, Any]:
        """The question as it is sent: numbers as exact text, and nothing that is not said."""
        said = {**price, "within": within}
        texts = {name: _texts(value, name) for name, value in said.items() if value is not None}
        return {"sql": self.question, **texts}

    def _path(self, end: str) -> str:
        return f"/tables/{quote(self.card.name, safe='')}/{end}"

    def _preview(self, body: Mapping[str, Any]) -> dict[str, Any]:
        found = self.server.good(self.server.post(self._path("preview"), body), 200)
        try:
            _cost(found["cost"])
            facts = [(str(name), str(words)) for name, words in found["facts"]]
            return {**found, "facts": facts, "title": str(found["title"])}
        except (LookupError, TypeError, ValueError):
            raise ServerFailed(f"{self.server} sends a preview that is malformed") from None

    def _price_there(self, body: Mapping[str, Any]) -> Cost:
        """The server's price of what cannot be planned here: at most what was offered for it."""
        if "within" in body:
            problem = "cannot be promised for keys of a public table, which the server has"
            raise InvalidParameter("within", problem=problem, remedy="name a price")
        cost = _cost(self._preview(body)["cost"])
        offered = Cost(**{name: Fraction(body.get(name, 0)) for name in _AMOUNTS})
        if any(getattr(cost, name) > getattr(offered, name) for name in _AMOUNTS):
            _compare("price", cost, offered)
        return cost

    def _finish_job(self, body: Mapping[str, Any], key: str, cost: Cost) -> dict[str, Any]:
        """The job, once it is finished; looked at when slots end."""
        path = self._path("questions")
        job, wait = self._take_reply(lambda: self.server.post(path, body, key=key), 202)
        if job.get("cost") is not None:
            _compare("price charged", _cost(job["cost"]), cost)
        return self._wait_for_job(job, wait)

    def _take_reply(
        self, call: Callable[[], Reply], status: int = 200
    ) -> tuple[dict[str, Any], float | None]:
        """What the server says of a question that is sent (202), or has been: job, or answer.

        Only a refusal of one that was sent once may say that nothing was charged.
        """
        try:
            reply = call()
        except ServerFailed as error:
            failed = str(error)
        else:
            if (status == 202 and not reply.unsure) or reply.status == status:
                return self.server.good(reply, status), reply.retry_after
            said = reply.body.get("detail") if isinstance(reply.body, dict) else None
            failed = f"{self.server}: status {reply.status} {self.server.words(said)}".rstrip()
        raise ServerFailed(f"{failed}; it is unclear whether it was charged; {_ASK_AGAIN}")

    def _wait_for_job(self, job: dict[str, Any], wait: float | None) -> dict[str, Any]:
        begun = time.monotonic()
        path = f"/jobs/{quote(str(job.get('id')), safe='')}"
        while job.get("state") in ("waiting", "running"):
            slot = job.get("slot")
            whole = 4 * slot if isinstance(slot, int | float) and slot > 0 else 60.0
            pause = min(max(wait or 1.0, 0.2), LONGEST_WAIT)
            until = time.monotonic() + pause
            while (left := until - time.monotonic()) > 0:
                passed = (time.monotonic() - begun) / whole
                told(lambda: min(passed, 1.0), "waiting for the answer")  # noqa: B023  called at once
                time.sleep(min(left, 0.5))
            job, wait = self._take_reply(lambda: self.server.get(path))
        return job


def remote_table(address: str, token: Secret | None = None) -> RemoteTable:
    """The table of a server, by the card that it shows."""
    server, name = Server.at(address, token)
    found = server.good(server.get(f"/tables/{quote(name, safe='')}"), 200)
    try:
        card = card_from_json(found)
        if card.name == name:
            return RemoteTable(rows=rows_of(card), server=server)
    except InvalidParameter:
        pass  # a card that breaks the rules: whose fault that is, is not for us to quote
    raise ServerFailed(f"{server} shows no card that can be used; ask its steward")


# ---------------------------------------------------------------- comparing


def _texts(value: Any, name: str) -> Any:
    """Numbers as exact text; by name where they are; words as they are."""
    if value == "balanced":
        return value
    if isinstance(value, Mapping):
        return {str(one): str(rational(number, name)) for one, number in value.items()}
    return str(rational(value, name))


def _cost(data: Any) -> Cost:
    try:
        return Cost(**{name: exact_fraction(data[name]) for name in _AMOUNTS})
    except (LookupError, TypeError, ValueError, ArithmeticError):
        pass
    raise ServerFailed("the server names a price that is malformed; ask its steward")


def _check_amounts(data: Any) -> None:
    """Refuse texts that are no numbers, and those that would take for ever to be read as one."""
    if isinstance(data, str):
        exact_fraction(data)
    elif isinstance(data, list | dict):
        for part in data.values() if isinstance(data, dict) else data:
            _check_amounts(part)


def _compare(what: str, theirs: Cost, ours: Cost) -> None:
    if theirs != ours:
        raise ServerFailed(
            f"the {what} is {theirs} by the server and {ours} here; compare the versions of "
            f"lastbit, and tell the steward"
        )


def _check_record(
    record: dict[str, Any],
    card: DataCard,
    plan: Plan | None,
    *,
    cost: Cost,
    charged: bool,
    sql: str,
) -> dict[str, Any] | None:
    """Refuse a record that is not the answer; what is shown of it, where that is a part."""
    inner = record.get("certificate")
    kind = inner.get("kind") if isinstance(inner, dict) else None
    if kind != "release" or "rows" not in record:  # any other kind might name code to run
        raise ServerFailed(f"the server's answer has no certificate of a release; {_DISTRUST}")
    assert isinstance(inner, dict)
    try:
        check_apart_from_code(record)
    except Rejected as rejected:
        words = "".join(letter if letter.isprintable() else " " for letter in str(rejected))
        raise ServerFailed(
            f"the server's answer is rejected by the checker ({words[:MOST_WORDS]}); {_DISTRUST}"
        ) from None
    claim = inner["claim"]
    ours = {"table": card.name, "unit": card.unit, "neighbours": card.neighbours.relation}
    if any(claim.get(part) != value for part, value in ours.items()):
        raise ServerFailed(f"the server's answer is about another table; {_DISTRUST}")
    price = _cost(claim)
    asked = plan is None or claim["query"] == plan.query.digest
    if asked and price == cost:
        return None
    shown = None
    if plan is not None and not charged:  # an answer on record may hold this one
        try:
            shown = served(record, plan, sql=sql)
        except (LookupError, TypeError, ValueError, ArithmeticError, StopIteration):
            shown = None
    if shown is None and not (plan is None and not charged):
        other = "has another price than was asked" if asked else "is to another question"
        raise ServerFailed(f"the server's answer {other}; {_DISTRUST}")
    return shown


def _amount(amount: object) -> str:
    try:
        return exact_text(exact_fraction(amount))
    except (ValueError, ArithmeticError):
        return "?"
