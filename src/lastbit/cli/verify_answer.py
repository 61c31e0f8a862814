"""What `lastbit verify` found: printed, and written as certificate, page and proof."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from lastbit.cli.files import check_folder, save
from lastbit.cli.refusals import said_of
from lastbit.errors import InvalidParameter, LastbitError

FILE = click.Path(dir_okay=False, path_type=Path)
PROBED = "if monotone, only probed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """A certificate, the headline, one word for programs, and the exit status."""

    certificate: Mapping[str, Any]
    title: str
    verdict: str
    word: str
    status: int
    words: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Files:
    """Where the certificate, the page and the LaTeX go, if anywhere."""

    certificate: Path | None
    html: Path | None
    latex: Path | None

    def check(self) -> None:
        """Refuse folders that are not there, and one file for two things, before any work."""
        given = [(f"--{name}", path) for name, path in self._named() if path is not None]
        for option, path in given:
            with said_of(option):
                check_folder(path)
        if len({path.absolute() for _, path in given}) < len(given):
            raise InvalidParameter(
                given[-1][0], problem="names a file twice", remedy="name different files"
            )

    def write(self, certificate: Mapping[str, Any]) -> list[tuple[str, Path]]:
        """Write what was asked for."""
        from lastbit.report import certificate_latex, certificate_page
        from lastbit.verify import text_of

        name = None if self.certificate is None else self.certificate.name
        texts: dict[str, Callable[[], str]] = {
            "certificate": lambda: text_of(certificate),
            "html": lambda: certificate_page(certificate, file=name),
            "latex": lambda: certificate_latex(certificate),
        }
        written = []
        for kind, path in self._named():
            if path is not None:
                with said_of(f"--{kind}"):
                    save(path, texts[kind]())
                written.append((kind, path))
        return written

    def _named(self) -> tuple[tuple[str, Path | None], ...]:
        return (("certificate", self.certificate), ("html", self.html), ("latex", self.latex))


def file_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options that say where things are written, and --json."""
    for option in reversed(
        (
            click.option(
                "--certificate", type=FILE, help="Where the certificate goes; lastbit check reads."
            ),
            click.option("--html", type=FILE, help="Where a page with the proof goes."),
            click.option("--latex", type=FILE, help="Where the proof goes as LaTeX."),
            click.option("--json", "as_json", is_flag=True, help="Print JSON."),
        )
    ):
        command = option(command)
    return command


def answer(outcome: Outcome, files: Files, *, as_json: bool) -> None:
    """Check the certificate by the second program, write, print, and end with the status."""
    from lastbit.checker import problem_of
    from lastbit.cli.page import show_json

    problem = problem_of(outcome.certificate)
    if problem is not None:
        raise LastbitError(f"the second program rejects what the first found: {problem}; report it")
    written = files.write(outcome.certificate)
    if as_json:
        show_json(
            {
                "verdict": outcome.word,
                "kind": outcome.certificate["kind"],
                "claim": outcome.certificate["claim"],
                "assumptions": outcome.certificate["assumptions"],
                "digest": outcome.certificate["digest"],
                "written": {kind: str(path) for kind, path in written},
            }
        )
    else:
        _show(outcome, written)
    click.get_current_context().exit(outcome.status)


def _show(outcome: Outcome, written: list[tuple[str, Path]]) -> None:
    from lastbit.cli.page import Facts, Heading, Part, Words, show
    from lastbit.report import claim_of, only_probed

    claim = claim_of(outcome.certificate)
    verdict = [outcome.verdict] if outcome.verdict else []
    if only_probed(outcome.certificate):
        verdict.append(PROBED)
    kinds = {"certificate": "certificate", "html": "page", "latex": "LaTeX"}
    facts = (*claim.facts, *((kinds[kind], str(path)) for kind, path in written))
    parts: list[Part] = [
        Heading(outcome.title, "; ".join(verdict)),
        *(Words(sentence) for sentence in claim.sentences),
        *(Words(words) for words in outcome.words),
        Facts(facts),
    ]
    places = dict(written)
    if "certificate" in places:
        parts.append(
            Words(
                "Accepted by the second program. Anybody can check it again, and read on which "
                f"assumptions it holds: lastbit check {places['certificate']}"
            )
        )
    else:
        parts.append(Words("Accepted by the second program. Pass --certificate to keep the proof."))
    show(*parts)
