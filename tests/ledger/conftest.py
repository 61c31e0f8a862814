"""Places for ledgers: a folder for files, and a schema in a private PostgreSQL server."""

import itertools

import pytest

from tests.engines import servers

postgres = servers.postgres
_NUMBERS = itertools.count(1)


@pytest.fixture(scope="session")
def database(postgres):
    """One for all ledgers of the tests; the superuser's address."""
    return postgres.database()


@pytest.fixture
def address(database):
    """Where there is no ledger yet."""
    return f"{database}&schema=books_{next(_NUMBERS)}"


@pytest.fixture(params=["sqlite", "postgres"])
def place(request, tmp_path):
    """Where a ledger may be made: the same contract holds in both."""
    if request.param == "sqlite":
        return tmp_path / "a.ledger"
    return request.getfixturevalue("address")
