"""Puts the pages, as they are written, into the wheel: `lastbit docs` shows them without a site."""

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class PagesHook(BuildHookInterface):  # type: ignore[type-arg]
    """What hatchling runs before it builds a wheel; an editable one has the checkout's pages."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add every page below docs/."""
        docs = Path(self.root) / "docs"
        for page in sorted(docs.rglob("*.md")) if version != "editable" else ():
            inside = page.relative_to(docs).as_posix()
            build_data["force_include"][str(page)] = f"lastbit/pages/{inside}"
