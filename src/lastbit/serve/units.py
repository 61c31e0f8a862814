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

from lastbit.addresses import is_address
from lastbit.errors import InvalidParameter
from lastbit.serve.settings import LOOPBACK, Settings
from lastbit.tables import read_card

SLACK = 1 << 30
"""Bytes beside the workers: the server itself, the child that plans, SQLite."""
SOCKET = Path("/run/lastbit/socket")

_SYSTEMD = """\
# /etc/systemd/system/lastbit.service
#   useradd --system --home-dir {state} --shell /usr/sbin/nologin lastbit
#   install --directory --owner lastbit --group lastbit --mode 0700 {state}
#   usermod --append --groups lastbit caddy     (so that the proxy may open the socket)
#   systemctl daemon-reload && systemctl enable --now lastbit
[Unit]
Description=lastbit serve: private answers about {tables}
After=network.target

[Service]
Type=exec
User=lastbit
Group=lastbit
ExecStart={command}
Restart=on-failure
RestartSec=5
# Questions that run may end, at most four slots. One that is killed runs again at the next start.
KillMode=mixed
TimeoutStopSec={patience}
{folders}
UMask=0077
MemoryMax={memory}
TasksMax=256
LimitCORE=0

NoNewPrivileges=yes
ProtectSystem=strict
ProtectHome={home}
PrivateTmp=yes
PrivateDevices=yes
ProtectClock=yes
ProtectControlGroups=yes
ProtectHostname=yes
ProtectKernelLogs=yes
ProtectKernelModules=yes
ProtectKernelTunables=yes
ProtectProc=invisible
CapabilityBoundingSet=
AmbientCapabilities=
LockPersonality=yes
RemoveIPC=yes
RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
SystemCallArchitectures=native
SystemCallFilter=@system-service
SystemCallFilter=~@privileged
SystemCallErrorNumber=EPERM
{network}
[Install]
WantedBy=multi-user.target
"""
_LOOPBACK_ONLY = """\
# Where a table or the ledger is on a database server, allow its address too.
IPAddressDeny=any
IPAddressAllow=localhost
"""

_CADDY = """\
# /etc/caddy/Caddyfile
{{
	servers {{
		max_header_size 16KiB
		timeouts {{
			read_header 10s
			read_body 10s
			idle 2m
		}}
	}}
}}

# No log of requests here: the server writes its own, without one-time codes.
{site} {{
	header Strict-Transport-Security "max-age=31536000"
	request_body {{
		max_size {body}KiB
	}}
{sign_on}	reverse_proxy {upstream}
}}
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

_CONTAINER = """\
# Containerfile: podman build --tag lastbit-serve .
# Cards, data and state stay outside of the image; a proxy of the host opens the socket:
#   podman run --rm --read-only --cap-drop all --security-opt no-new-privileges \\
#     --memory {memory} --tmpfs /tmp --userns keep-id:uid=10001,gid=10001 \\
#     --volume ./cards:/cards:ro --volume ./state:/state --volume ./socket:{run} \\
#     lastbit-serve
# The ledger must not be in the image or on /cards: say path = "/state/NAME.ledger" on the cards.
FROM python:3.12-slim
RUN pip install --no-cache-dir "lastbit[serve]" \\
 && useradd --system --uid 10001 --home-dir /state --shell /usr/sbin/nologin lastbit \\
 && install --directory --owner lastbit --group lastbit --mode 0750 /state {run}
USER lastbit
WORKDIR /cards
VOLUME /state
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=30s --timeout=5s CMD {health}
ENTRYPOINT {entrypoint}
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
    return _SYSTEMD.format(
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
    return _CADDY.format(
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
    return _CONTAINER.format(
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
