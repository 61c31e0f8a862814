"""Thirty-two clients at once for the last of it: exactly what fits is paid."""

from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from threading import Barrier

from lastbit.ledger import Limit
from tests.serve.asking import asking
from tests.serve.desks import COUNT

CLIENTS, PRICE, LEFT = 32, Fraction(1, 2), Fraction(13, 4)


def test_of_32_clients_exactly_as_many_pay_as_fit(tmp_path):
    with asking(tmp_path, most_waiting=4 * CLIENTS) as server:
        limit = Limit(epsilon=LEFT)
        server.ledger.set_allowance("patients", "ana", limit, by="stella")
        together = Barrier(CLIENTS)

        def ask(number: int):
            question = {"sql": f"{COUNT} WHERE cost < {number}", "epsilon": str(PRICE)}
            together.wait()
            return server.request(
                "POST",
                "/api/v1/tables/visits/questions",
                token=server.tokens["analyst"],
                data=question,
                headers={"Idempotency-Key": f"client-{number}"},
            )

        with ThreadPoolExecutor(CLIENTS) as pool:
            found = list(pool.map(ask, range(CLIENTS)))
        fit = LEFT // PRICE
        assert sorted({one.status for one in found}) == [202, 403]
        assert sum(one.status == 202 for one in found) == fit
        assert {one.json["type"] for one in found if one.status == 403} == {"/problems/over-budget"}
        (allowance,) = server.ledger.allowances("patients", "ana")
        assert allowance.used.epsilon == fit * PRICE <= LEFT
        assert server.ledger.spent("patients").epsilon == fit * PRICE
        paid = [entry for entry in server.ledger.entries() if entry.kind == "reserved"]
        assert len(paid) == fit and server.ledger.problems() == []
