"""Texts for those who run a server for good: a systemd unit, a Caddyfile, a Containerfile.

Each is made of the settings of this very command line, so that what is printed and what was tried
are the same server. Nothing is written or started: `lastbit serve ... --print systemd > FILE`.

Rights. The service has a user of its own, which writes the state folder and the ledger and reads
the data; analysts have no account on the machine. Only the proxy reaches the socket (group
`lastbit`, mode 0660), so a header that names who signed in can come from the proxy alone.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

from lastbit.doors import content
from lastbit.errors import InvalidParameter
from lastbit.place_names import is_address
from lastbit.serve.settings import LOOPBACK, Settings
from lastbit.tables import read_card

SLACK = 1 << 30
"""Bytes beside the workers: the server itself, the child that plans, SQLite."""
SOCKET = Path("/run/lastbit/socket")
_LOOPBACK_ONLY = """\
# Where a table or the ledger is on a database server, allow its address too.
IPAddressDeny=any
IPAddressAllow=localhost
"""
_SIGN_ON = """\
	# Your single sign-on says who it is. What a browser sends under this name is dropped first.
	route {{
		request_header -{header}
		forward_auth localhost:9091 {{
			uri /api/authz/forward-auth
			copy_headers Remote-User>{header}
		}}
	}}
"""
_HEALTH = """\
import http.client, socket
it = http.client.HTTPConnection('localhost', timeout=4)
it.sock = socket.socket(socket.AF_UNIX)
it.sock.connect('{socket}')
it.request('GET', '/healthz', headers={{'Host': '{host}'}})
raise SystemExit(it.getresponse().status != 200)"""


def systemd(settings: Settings) -> str:
    """A unit with no rights but those that the server needs."""
    ledgers = (read_card(card).ledger for card in settings.cards)
    written = {settings.state.absolute()}
    written |= {Path(at).absolute().parent for at in ledgers if at and not is_address(at)}
    folders = [f"ReadWritePaths={_quoted(str(place))}" for place in sorted(written)]
    if settings.socket is not None and settings.socket.parent == SOCKET.parent:
        folders += ["RuntimeDirectory=lastbit", "RuntimeDirectoryMode=0750"]
    command = [sys.executable, "-m", "lastbit", *arguments(settings)]
    at_home = any(word.startswith(("/home/", "/root/")) for word in (*command, *map(str, written)))
    return content("lastbit.serve", "templates/lastbit.service").format(
        tables=", ".join(card.stem for card in settings.cards).replace("%", "%%"),
        state=_quoted(str(settings.state.absolute())),
        # of a command, systemd takes $ for a variable
        command=" ".join(_quoted(word).replace("$", "$$") for word in command),
        patience=max(90, round(4 * (settings.slot or 60)) + 30),
        folders="\n".join(folders),
        memory=_memory(settings),
        home="read-only" if at_home else "yes",
        network=_LOOPBACK_ONLY if settings.host in LOOPBACK else "",
    )


def caddy(settings: Settings) -> str:
    """A proxy that does TLS and bounds what comes in."""
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    upstream = f"{host}:{settings.port}"
    if settings.socket is not None:
        upstream = f"unix/{settings.socket.absolute()}"
    header = settings.trusted_header
    return content("lastbit.serve", "templates/Caddyfile").format(
        site=_origin(settings),
        body=max(settings.most_body >> 10, 1),
        sign_on="" if header is None else _SIGN_ON.format(header=header),
        upstream=json.dumps(upstream) if set(upstream) & set(' "{}#') else upstream,
    )


def container(settings: Settings) -> str:
    """An image of Debian's Python with lastbit in it, run by a user without rights."""
    host = _origin(settings).partition("://")[2]
    cards = tuple(Path("/cards") / card.name for card in settings.cards)
    inside = replace(settings, cards=cards, state=Path("/state"), socket=SOCKET)
    health = _HEALTH.format(socket=SOCKET, host=host).replace("\n", "; ")
    return content("lastbit.serve", "templates/Containerfile").format(
        memory=_memory(settings).lower(),
        run=SOCKET.parent,
        health=json.dumps(["python", "-c", health]),
        entrypoint=json.dumps(["lastbit", *arguments(inside)]),
    )


UNITS: Mapping[str, Callable[[Settings], str]] = MappingProxyType(
    {"systemd": systemd, "caddy": caddy, "container": container}
)


def arguments(settings: Settings) -> list[str]:
    """What to type after `lastbit` for a server with these settings; paths are absolute."""
    plain = Settings(cards=settings.cards, state=settings.state)
    words = ["serve", *(str(card.absolute()) for card in settings.cards)]
    words += ["--state", str(settings.state.absolute())]
    if settings.socket is not None:
        words += ["--socket", str(settings.socket.absolute())]
    else:
        words += ["--host", settings.host] if settings.host != plain.host else []
        words += ["--port", str(settings.port)] if settings.port != plain.port else []
    words += ["--behind-proxy"] if settings.behind_proxy else []
    words += ["--origin", settings.origin] if settings.origin is not None else []
    words += ["--trusted-header", settings.trusted_header] if settings.trusted_header else []
    words += ["--slot", f"{settings.slot:g}"] if settings.slot is not None else []
    keep = settings.keep_days
    words += ["--keep-days", str(keep)] if keep != plain.keep_days else []
    return words + (["--strict"] if settings.strict else [])


def _origin(settings: Settings) -> str:
    if settings.origin is None:
        raise InvalidParameter(
            "origin",
            problem="is missing: the proxy must know by which address browsers come",
            remedy="pass {origin}",
            origin="https://stats.example.org",
        )
    return settings.origin


def _memory(settings: Settings) -> str:
    return f"{(settings.worker_memory * len(settings.cards) + SLACK) >> 20}M"


def _quoted(text: str) -> str:
    """A word of a unit: in quotes where it needs them, with nothing that systemd would replace."""
    if not text.isprintable():
        problem, remedy = "holds a control character", "rename the file or folder"
        raise InvalidParameter("a path", problem=problem, remedy=remedy)
    plain = text.replace("%", "%%")
    if not set(plain) & set(" \"'\\;#"):
        return plain
    return '"' + plain.replace("\\", "\\\\").replace('"', '\\"') + '"'
