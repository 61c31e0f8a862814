"""Every call of the OpenAPI document, fuzzed by schemathesis against the whole server.

What is sent is as the schemas say, and as they do not; what comes back never is a fault of the
server, and always a status, a media type, headers and a body that the document names.
"""

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from lastbit.release import remote_table
from lastbit.serve.openapi import document
from lastbit.servers import Secret
from tests.serve.asking import asking
from tests.serve.serving import Serving

schemathesis = pytest.importorskip("schemathesis", reason="needs make serve-tests")
requests = pytest.importorskip("requests")

CHECKS = schemathesis.checks
ALL = [
    CHECKS.not_a_server_error,
    CHECKS.status_code_conformance,
    CHECKS.content_type_conformance,
    CHECKS.response_headers_conformance,
    CHECKS.response_schema_conformance,
    CHECKS.negative_data_rejection,
]
schema = schemathesis.openapi.from_dict(document())


GOOD = "SELECT region, COUNT(*) AS n FROM visits GROUP BY region"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    many = 1_000_000
    folder = tmp_path_factory.mktemp("fuzzed")
    limits = {"previews_a_minute": many, "questions_a_minute": many, "most_waiting": many}
    with asking(folder, **limits) as found:
        yield found


@pytest.fixture(scope="module")
def entry(server: Serving) -> int:
    """An answer that is there."""
    table = remote_table(f"{server.address}/visits", Secret(server.tokens["analyst"]))
    return table.sql(GOOD).release(epsilon="1").record["entry"]["sequence"]


def aimed(case: Any, entry: int) -> None:
    """Names of what is there in place of made-up ones, and half of the time a question too."""
    there: dict[str, Any] = {"table": "visits", "account": "patients"}
    if "/allowances/" in case.path:
        there["name"] = "ben"
    if "/answers/" in case.path and case.path_parameters.get("entry") == 1:
        there["entry"] = entry
    for name in set(there) & set(case.path_parameters or ()):
        case.path_parameters[name] = there[name]
    sql = case.body.get("sql") if isinstance(case.body, dict) else None
    if isinstance(sql, str) and 0 < len(sql) < 100 and len(sql) % 2:
        case.body["sql"] = GOOD


@pytest.mark.thinned(one_in=6)
@schema.parametrize()
@settings(max_examples=20, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
def test_no_call_breaks_the_document(case, server: Serving, entry: int):
    before = server.ledger.spent("patients")
    aimed(case, entry)
    with requests.Session() as session:
        session.trust_env = False
        bearer = {"Authorization": f"Bearer {server.tokens['steward']}"}
        response = case.call(base_url=server.address, headers=bearer, session=session)
        too_long = response.status_code == 413  # refused, which schemathesis does not know
        assert not too_long or len(response.request.body) > 65_536
        case.validate_response(response, checks=ALL[:-1] if too_long else ALL)
    if response.status_code >= 400:
        assert response.status_code < 500
        assert "application/problem+json" in response.headers["content-type"]
        assert server.ledger.spent("patients") == before


def test_nothing_was_broken(server: Serving):
    assert server.ledger.problems() == []
