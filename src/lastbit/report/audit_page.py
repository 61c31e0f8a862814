"""The page of an audit: what was claimed, what is certified, and the event that shows it.

One HTML text without script, font or picture from elsewhere; it follows the reader's light or dark
scheme and prints. Everything that is quoted is escaped: outputs and names are somebody else's.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from html import escape

from lastbit.report.audit_figures import LawPanel, law_picture
from lastbit.report.derivations import LOOK as SHARED

LOOK = (
    SHARED
    + """\
  pre { white-space: pre-wrap; overflow-wrap: anywhere; }
  @media print { .drawing svg { max-height: 13cm; width: auto; } }
"""
)


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


def audit_page(story: AuditStory, panels: tuple[LawPanel, ...] = (), *, drawn: str = "") -> str:
    """The page as text; `drawn` says where the heights of the panels come from.

    >>> story = AuditStory(
    ...     title="Audit of noise:naive", verdict="refuted", refuted=True, sentences=("a < b",),
    ...     facts=(("claimed", "ε = 1"),), limits=(), again=("lastbit audit noise:naive",), note="")
    >>> page = audit_page(story)
    >>> page.startswith("<!doctype html>"), "a &lt; b" in page, "<svg" in page
    (True, True, False)
    """
    return "\n".join(
        (
            *_head(story),
            *_claim(story),
            *_drawing(panels, drawn),
            *_limits(story),
            *_again(story),
            "</main>\n</body>\n</html>\n",
        )
    )


def _head(story: AuditStory) -> Iterator[str]:
    title = escape(story.title)
    yield "<!doctype html>"
    yield '<html lang="en">\n<head>\n<meta charset="utf-8">'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    yield f"<title>{title}</title>\n<style>{LOOK}</style>\n</head>\n<body>\n<main>"
    yield f"<h1>{title}</h1>"
    look = "verdict refuted" if story.refuted else "verdict"
    yield f'<p class="{look}">{escape(story.verdict)}</p>'


def _claim(story: AuditStory) -> Iterator[str]:
    for sentence in story.sentences:
        yield f"<p>{escape(sentence)}</p>"
    yield '<table class="facts">'
    for name, value in story.facts:
        yield f'<tr><th scope="row">{escape(name)}</th><td>{escape(value)}</td></tr>'
    yield "</table>"


def _drawing(panels: tuple[LawPanel, ...], drawn: str) -> Iterator[str]:
    if not panels:
        return
    yield "<h2>The two output laws</h2>"
    yield f'<div class="drawing">{law_picture("Two inputs, output by output", panels)}</div>'
    if drawn:
        yield f'<p class="note">{escape(drawn)}</p>'


def _limits(story: AuditStory) -> Iterator[str]:
    yield "<h2>What this does not say</h2>\n<ul>"
    for sentence in story.limits:
        yield f"<li>{escape(sentence)}</li>"
    yield "</ul>"


def _again(story: AuditStory) -> Iterator[str]:
    yield "<h2>Run it again</h2>"
    for command in story.again:
        yield f"<pre>{escape(command)}</pre>"
    if story.note:
        yield f'<p class="note">{escape(story.note)}</p>'
