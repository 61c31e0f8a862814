"""The page of an audit: what was claimed, what is certified, and the event that shows it."""

from __future__ import annotations

from dataclasses import dataclass

from markupsafe import Markup

from lastbit.report.charts import LawPanel, inline, law_picture
from lastbit.report.page import rendered


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditStory:
    """An audit in words: headline, sentences, facts, limits and how to run it again."""

    title: str
    verdict: str
    refuted: bool
    sentences: tuple[str, ...]
    facts: tuple[tuple[str, str], ...]
    limits: tuple[str, ...]
    again: tuple[str, ...]
    note: str
    """What can differ when it is run again."""


def audit_page(story: AuditStory, panels: tuple[LawPanel, ...] = (), *, drawn: str = "") -> Markup:
    """The page as text; `drawn` says where the heights of the panels come from.

    >>> story = AuditStory(
    ...     title="Audit of noise:naive", verdict="refuted", refuted=True, sentences=("a < b",),
    ...     facts=(("claimed", "ε = 1"),), limits=(), again=("lastbit audit noise:naive",), note="")
    >>> page = audit_page(story)
    >>> page.startswith("<!doctype html>"), "a &lt; b" in page, "<svg" in page
    (True, True, False)
    """
    picture = inline(law_picture("Two inputs, output by output", panels)) if panels else None
    return rendered("audit.html", title=story.title, story=story, picture=picture, drawn=drawn)
