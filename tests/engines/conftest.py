"""Servers that the tests of all engines share."""

from tests.engines import servers

postgres = servers.postgres
