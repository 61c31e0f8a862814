"""`lastbit check`: the second program, which re-derives what a certificate claims."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from lastbit.errors import InvalidParameter

__all__ = ["check"]

MOST_WORDS = 2000


@click.command(epilog="Example: lastbit check out.json")
@click.argument("certificates", type=click.Path(path_type=Path), nargs=-1, required=True)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
def check(context: click.Context, certificates: tuple[Path, ...], as_json: bool) -> None:
    """Re-derive what certificates claim; that of a saved answer too.

    Every number is worked out anew, with nothing but Python's integers, fractions and decimals. The
    exit status is 0 if all are accepted, 1 if one is rejected, 2 if one cannot be read.

    A certificate about running code names a function, and checking calls it: check only what names
    code that you would run. Modules of the current folder are found too.
    """
    from lastbit.cli.page import show_json
    from lastbit.cli.verify_loading import current_folder
    from lastbit.cli.waiting import waiting

    found = [(path, _read(path)) for path in certificates]
    with waiting("checking"), current_folder():
        problems = [_problem(certificate) for _, certificate in found]
    if as_json:
        checked = zip(found, problems, strict=True)
        show_json({"certificates": [_as_json(path, c, p) for (path, c), p in checked]})
    else:
        for (path, certificate), problem in zip(found, problems, strict=True):
            _show(path, certificate, problem)
    context.exit(1 if any(problem is not None for problem in problems) else 0)


def _read(path: Path) -> dict[str, Any]:
    from lastbit.verify.certificate import read

    if not path.is_file():
        raise InvalidParameter(
            str(path), problem="is no file", remedy="name one that lastbit verify wrote"
        )
    try:
        return read(path)
    except InvalidParameter as error:
        raise InvalidParameter(str(path), problem=error.problem, remedy=error.remedy) from error


def _problem(certificate: Mapping[str, Any]) -> str | None:
    """Why a certificate is rejected; code that it names may raise what it likes on import."""
    from lastbit.verify.check import problem_of

    try:
        return problem_of(certificate)
    except (Exception, SystemExit) as error:
        return f"it is malformed, or the code that it names fails ({type(error).__name__})"


def _as_json(path: Path, certificate: Mapping[str, Any], problem: str | None) -> dict[str, Any]:
    if problem is not None:
        return {"file": str(path), "accepted": False, "problem": problem}
    from lastbit.verify.check import certificate_in

    inner = certificate_in(certificate)
    parts = {name: inner[name] for name in ("kind", "claim", "assumptions", "digest")}
    return {"file": str(path), "accepted": True, **parts}


def _show(path: Path, certificate: Mapping[str, Any], problem: str | None) -> None:
    from lastbit.cli.page import Facts, Heading, Words, show
    from lastbit.cli.verify_answer import PROBED
    from lastbit.report.claims import claim_of, only_probed
    from lastbit.verify.check import certificate_in

    if problem is not None:
        show(
            Heading(f"REJECTED: {path}"),
            Words(f"It proves nothing: {_printable(problem)}."),
        )
        return
    inner = certificate_in(certificate)
    claim = claim_of(inner)
    show(
        Heading(str(path), "ACCEPTED" + (f" {PROBED}" if only_probed(inner) else "")),
        Words(_printable(f"Proved: {claim.title}, {claim.verdict}.")),
        *(Words(_printable(sentence)) for sentence in claim.sentences),
        Facts(tuple((name, _printable(value)) for name, value in claim.facts)),
        Words("On these assumptions, which no program has checked:"),
        *(Words(f"- {_printable(sentence)}") for sentence in inner["assumptions"]),
    )


def _printable(text: str) -> str:
    """Text of a stranger's file: nothing in it may steer the terminal."""
    return "".join(letter if letter.isprintable() else "?" for letter in text)[:MOST_WORDS]
