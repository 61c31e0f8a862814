"""What a server may be told, and the files for those who run it for good."""

import json
import re
from pathlib import Path

import pytest

from lastbit.errors import InvalidParameter
from lastbit.serve.settings import Settings
from lastbit.serve.units import UNITS, arguments, caddy, container, systemd
from tests.cli.running import lastbit, refused, succeeded

ORIGIN = "https://stats.example.org"
CARD = """\
[table]
name = "visits"
source = "visits.csv"
neighbours = "add-remove"
[unit]
column = "patient"
max_rows = 1
[budget]
epsilon = 3
[columns.patient]
type = "integer"
"""


def settings(card="/srv/visits.toml", **rest):
    return Settings(cards=(Path(card),), state=Path("/var/lib/lastbit"), **rest)


@pytest.mark.parametrize(
    ("wish", "word"),
    [
        ({"cards": ()}, "cards"),
        ({"host": "0.0.0.0"}, "behind_proxy"),
        ({"host": "::"}, "TLS"),
        ({"host": "127.0.0.1.example.org"}, "TLS"),
        ({"host": "0.0.0.0", "behind_proxy": True}, "origin"),
        ({"socket": Path("/run/s")}, "origin"),
        ({"origin": "http://stats.example.org"}, "https"),
        ({"origin": "https://stats.example.org/"}, "nothing behind"),
        ({"origin": "https://stats.example.org/x"}, "nothing behind"),
        ({"origin": "https://a@stats.example.org"}, "origin"),
        ({"origin": "https://Stats.example.org"}, "small letters"),
        ({"origin": "https://stats.example.org\n"}, "origin"),
        ({"origin": "https://"}, "origin"),
        ({"origin": "http://localhost.example.org"}, "origin"),
        ({"trusted_header": "X-Remote-User"}, "socket"),
        ({"trusted_header": "X-Remote-User", "behind_proxy": True, "origin": ORIGIN}, "socket"),
        ({"trusted_header": "Cookie", "socket": Path("/run/s"), "origin": ORIGIN}, "header"),
        ({"trusted_header": "X User", "socket": Path("/run/s"), "origin": ORIGIN}, "header"),
        ({"port": 65536}, "port"),
        ({"slot": 0.0}, "slot"),
        ({"slot": float("nan")}, "slot"),
    ],
)
def test_settings_that_would_harm_are_refused(wish, word):
    with pytest.raises(InvalidParameter, match=word):
        Settings(**{"cards": (Path("a.toml"),), "state": Path("s"), **wish})


@pytest.mark.parametrize(
    "origin",
    [ORIGIN, f"{ORIGIN}:8443", "https://stats", "https://[::1]:8000", "http://localhost:8000"],
)
def test_origins_of_browsers(origin):
    assert settings(origin=origin).address == origin


def test_the_address_has_the_port():
    assert settings().address == "http://127.0.0.1:8000"
    assert settings(host="::1", port=81).address == "http://[::1]:81"


@pytest.fixture
def card(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "visits.csv").write_text("patient\n1\n2\n")
    (tmp_path / "visits.toml").write_text(CARD)
    return "visits.toml"


@pytest.mark.parametrize("name", UNITS)
def test_units_are_printed_and_nothing_is_written(card, name):
    before = sorted(Path().iterdir())
    told = ("serve", card, "--origin", ORIGIN, "--behind-proxy", "--print", name)
    words = lastbit(*told).stdout
    assert words.startswith("#") and words.endswith("\n") and "{" not in words.split("\n")[0]
    assert sorted(Path().iterdir()) == before


def test_the_unit_takes_rights_away(tmp_path):
    home = tmp_path / "100% it's"
    home.mkdir()
    card = home / "visits.toml"
    card.write_text(CARD)
    text = systemd(settings(card, socket=Path("/run/lastbit/socket"), origin=ORIGIN))
    lines = text.splitlines()
    for line in (
        "User=lastbit",
        "NoNewPrivileges=yes",
        "ProtectSystem=strict",
        "CapabilityBoundingSet=",
        "RuntimeDirectory=lastbit",
        "MemoryMax=5120M",
        "IPAddressDeny=any",
        "ReadWritePaths=/var/lib/lastbit",
        f'ReadWritePaths="{str(home).replace("%", "%%")}"',  # the ledger is beside the card
    ):
        assert line in lines, line
    (command,) = (line for line in lines if line.startswith("ExecStart="))
    assert f'"{str(card).replace("%", "%%")}"' in command
    assert "IPAddressDeny" not in systemd(
        settings(card, host="0.0.0.0", behind_proxy=True, origin=ORIGIN)
    )
    (home / "a\nb.toml").write_text(CARD)
    with pytest.raises(InvalidParameter, match="control character"):
        systemd(settings(home / "a\nb.toml"))


def test_the_proxy_drops_what_a_browser_calls_itself():
    text = caddy(settings(socket=Path("/run/s"), origin=ORIGIN, trusted_header="X-Remote-User"))
    assert text.index("request_header -X-Remote-User") < text.index("Remote-User>X-Remote-User")
    assert "reverse_proxy unix//run/s" in text
    assert "forward_auth" not in caddy(settings(origin=ORIGIN))
    for made in (caddy, container):
        with pytest.raises(InvalidParameter, match="origin"):
            made(settings())


def test_the_container_listens_on_a_socket_and_its_words_are_json():
    text = container(settings('/srv/a "b".toml', origin=ORIGIN, slot=2.0, strict=True))
    words = {
        name: json.loads(rest) for name, rest in re.findall(r"(CMD|ENTRYPOINT) (\[.*\])", text)
    }
    assert words["ENTRYPOINT"] == [
        *("lastbit", "serve", '/cards/a "b".toml', "--state", "/state"),
        *("--socket", "/run/lastbit/socket", "--origin", ORIGIN, "--slot", "2", "--strict"),
    ]
    compile(words["CMD"][-1], "health", "exec")


@pytest.mark.parametrize(
    "wish",
    [
        {},
        {"host": "::1", "port": 0, "slot": 0.5},
        {"behind_proxy": True, "host": "0.0.0.0", "origin": ORIGIN, "strict": True},
        {"socket": Path("/run/s"), "origin": ORIGIN, "trusted_header": "X-Remote-User"},
    ],
)
def test_what_is_printed_is_the_server_that_was_asked_for(wish, monkeypatch, card):
    """The words of `arguments`, given to the command, make the same settings."""
    from lastbit.cli import serve

    told = []
    monkeypatch.setattr(serve, "run", lambda made, _: told.append(made))
    wanted = Settings(cards=(Path(card).absolute(),), state=Path("s").absolute(), **wish)
    succeeded(*arguments(wanted))
    assert told == [wanted]


def test_the_command_names_its_options(card):
    assert "--behind-proxy" in refused("serve", card, "--host", "0.0.0.0")
    assert "--socket /run/lastbit/socket" in refused("serve", card, "--trusted-header", "X-User")
    assert "--origin" in refused("serve", card, "--print", "caddy")
    Path("bad.toml").write_text("[table]\n")
    assert "bad.toml" in refused("serve", card, "bad.toml")


def test_a_missing_extra_is_named(card, monkeypatch):
    from lastbit.cli import serve

    monkeypatch.setattr(serve, "find_spec", lambda name: None)
    assert 'pip install "lastbit[serve]"' in refused("serve", card)
    assert 'pip install "lastbit[serve]"' in refused("demo", "--serve")
    assert sorted(path.name for path in Path().iterdir()) == ["visits.csv", "visits.toml"]
