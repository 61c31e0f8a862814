"""Where the files of earlier versions lie, and what they say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.data.recorded import machine

KEPT = Path(__file__).parents[1] / "data" / "0.1"
VERSION_1 = Path(__file__).parents[1] / "ledger" / "data" / "version-1.ledger"


def read(*place: str) -> Any:
    return json.loads(KEPT.joinpath(*place).read_text("utf-8"))


def names_in(*place: str) -> list[str]:
    return sorted(path.stem for path in KEPT.joinpath(*place).glob("*.json"))


def elsewhere(*parts: str) -> list[str]:
    """What of this machine differs from that on which the files were made."""
    before, here = read("made-on.json"), machine()
    return [part for part in parts if before[part] != here[part]]
