"""The whole server on a small table: real desk, real gate, real sockets."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from lastbit.serve.catalogue import Catalogue
from lastbit.serve.desk import Desk
from lastbit.serve.settings import Settings
from lastbit.serve.store import Store
from tests.serve.desks import written
from tests.serve.serving import Serving, served


@contextmanager
def asking(folder: Path, *names: str, **settings: Any) -> Iterator[Serving]:
    """A server of these tables (visits), with slots of a second; `ana` may ask."""
    cards = written(folder, *names)
    chosen = {"slot": 1.0, **settings}
    told = Settings(cards=cards, state=folder / "state", **chosen)
    store = Store(told.state)
    desk = Desk(Catalogue(told, store), store, told)
    ledger = desk.catalogue.ledger
    with served(folder, cards, ledger=ledger, desk=desk, **chosen) as server:
        yield server
