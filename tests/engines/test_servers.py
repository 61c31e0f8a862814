"""The tests' own server: it starts, stops, survives a kill, and hides in a folder of its own."""

import stat

from tests.engines.servers import started


def test_databases_are_apart_and_empty(postgres):
    one, other = postgres.database(), postgres.database()
    with postgres.connected(one) as connection:
        connection.execute("CREATE TABLE t AS SELECT 1 AS x")
    with postgres.connected(other) as connection:
        assert connection.execute("SELECT to_regclass('public.t')").fetchone() == (None,)
        assert connection.execute("SHOW listen_addresses").fetchone() == ("",)
    assert stat.S_IMODE(postgres.data.stat().st_mode) == 0o700


def test_what_was_committed_survives_a_kill():
    server = started()
    try:
        with server.connected(server.address()) as connection:
            connection.execute("CREATE TABLE t AS SELECT 7 AS x")
        server.kill()
        server.start()
        with server.connected(server.address()) as connection:
            assert connection.execute("SELECT x FROM t").fetchone() == (7,)
    finally:
        server.remove()
    assert not server.folder.exists()
