"""Questions on the terminal: what is typed is read, and asked again while it cannot be."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

import click

from lastbit.errors import InvalidParameter

Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class Question(Generic[Answer]):
    """A sentence, the short name behind which the answer is typed, and how it is read."""

    label: str
    read: Callable[[str], Answer]
    sentence: str = ""


def prompted(question: Question[Answer], *, default: str = "") -> Answer | None:
    """What was typed, read; Enter takes the default, and gives None where there is none."""
    if question.sentence:
        click.echo(question.sentence)
    label = f"  {question.label}"
    while text := click.prompt(label, default=default, show_default=bool(default)).strip():
        try:
            return question.read(text)
        except (InvalidParameter, ValueError) as error:
            remedy = getattr(error, "remedy", "try again, or press Enter")
            click.echo(f"  {getattr(error, 'problem', 'is not known')}; {remedy}")
    return None
