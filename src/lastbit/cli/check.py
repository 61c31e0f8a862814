"""`lastbit check`: the independent checker, which re-derives what a certificate claims."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click

from lastbit.checker import (
    Rejected,
    beliefs,
    certificate_in,
    check_apart_from_code,
    names_code,
    problem_of,
    remarks_on,
    taken_on_trust,
)
from lastbit.cli.loading import current_folder
from lastbit.cli.options import PATH, command, flag, json_option, refusal
from lastbit.cli.output import Facts, Heading, Part, printable, show, show_json, waiting
from lastbit.errors import InvalidParameter
from lastbit.files import exists
from lastbit.report import claim_of, only_probed, quoted
from lastbit.verify import read

MOST_WORDS = 2000
PROBED = "if monotone, only probed"
APART_FROM_CODE = "apart from the code"
APART_FROM_TRUST = "apart from what is on trust"
UNPROVED = "tight_epsilon_on_trust"  # an epsilon that nothing here proves: not shown


@command("check out.json")
@click.argument("certificates", type=PATH, nargs=-1, required=True)
@flag(
    "--without-code",
    "Run no code: check the proof alone. This does not accept a certificate about code.",
    dest="still",
)
@json_option
@click.pass_context
def check(
    context: click.Context, certificates: tuple[Path, ...], still: bool, as_json: bool
) -> None:
    """Re-derive what certificates claim; that of a saved answer too.

    Every number is computed again, with nothing but Python's integers, fractions and decimals. The
    exit status is 0 if all are accepted, 1 if one is rejected, 2 if one cannot be read. It is 3 if
    the code that one names was not run, or a premise is taken on trust.

    A certificate about code names a function. Checking imports the code, confirms that it is
    unchanged and on the same machine, and calls it. So check only what names code that you would
    run. Modules of the current folder are found too.
    """
    found = [(path, _read(path)) for path in certificates]
    with waiting("checking"), current_folder():
        problems = [_problem(certificate, still=still) for _, certificate in found]
    apart = [_left_open(certificate, still=still) for _, certificate in found]
    checked = list(zip(found, problems, apart, strict=True))
    if as_json:
        found_out: list[dict[str, Any]] = []
        for (path, certificate), problem, left_open in checked:
            if problem is not None:
                found_out.append({"file": str(path), "accepted": False, "problem": problem})
                continue
            inner = certificate_in(certificate)
            parts = {name: inner[name] for name in ("kind", "claim", "assumptions", "digest")}
            parts["claim"] = {k: v for k, v in inner["claim"].items() if k != UNPROVED}
            said = [{"name": n, "text": text} for n, text in _unchecked(certificate, inner)]
            result = {"file": str(path), "accepted": not left_open, **parts, "not_checked": said}
            result["remarks"] = list(remarks_on(certificate))
            found_out.append(result | ({"checked": left_open} if left_open else {}))
        show_json({"certificates": found_out})
    else:
        for (path, certificate), problem, left_open in checked:
            if problem is not None:
                why = f"It proves nothing: {printable(problem)}."
                show(Heading(f"REJECTED: {path}"), why)
            else:
                show(*_page(path, certificate, left_open))
    rejected = any(problem is not None for problem in problems)
    context.exit(1 if rejected else 3 if any(apart) else 0)


def _read(path: Path) -> dict[str, Any]:
    if not exists(path) or path.is_dir():
        raise refusal(str(path), "is not a file", "name a certificate or a saved answer")
    try:
        return read(path)
    except InvalidParameter as error:
        raise refusal(str(path), error.problem, error.remedy) from error


def _problem(certificate: Mapping[str, Any], *, still: bool) -> str | None:
    """Why a certificate is rejected; code that it names may raise what it likes on import."""
    try:
        if not still:
            return problem_of(certificate)
        check_apart_from_code(certificate)
        return None
    except Rejected as problem:
        return str(problem)
    except (Exception, SystemExit) as error:
        return f"it is malformed, or the code that it names fails ({type(error).__name__})"


def _left_open(certificate: Mapping[str, Any], *, still: bool) -> str:
    """What keeps a proof that is right from being accepted; empty if nothing does."""
    if still and names_code(certificate):
        return APART_FROM_CODE
    return APART_FROM_TRUST if taken_on_trust(certificate) else ""


def _page(path: Path, certificate: Mapping[str, Any], left_open: str) -> list[Part]:
    inner = certificate_in(certificate)
    claim = claim_of(inner)
    needed = beliefs(inner["kind"], inner["claim"])
    verdict, words = "ACCEPTED", f"Proved: {claim.title}, {claim.verdict}."
    if left_open:
        verdict = f"CHECKED {left_open.upper()}"
    if left_open == APART_FROM_CODE:
        words = (
            f"The proof is right: {claim.title}, {claim.verdict}, if the code named does what is "
            "written here. It was not run: check again without --without-code."
        )
    elif left_open == APART_FROM_TRUST:
        words = (
            f"The proof is right: {claim.title}, {claim.verdict}, if the moments that it takes on "
            "trust are. No program but the one that wrote it has computed those."
        )
    parts: list[Part] = [
        Heading(str(path), verdict + (f" {PROBED}" if only_probed(inner) else "")),
        *(printable(sentence) for sentence in (words, *claim.sentences)),
        Facts([(printable(name), printable(value)) for name, value in claim.facts]),
        *(f"Note: {printable(remark)}" for remark in remarks_on(certificate)),
        "On these assumptions, which no program has checked:",
        *(f"- {printable(sentence)}" for sentence in needed),
    ]
    # what stands in the file and nothing here has checked, quoted and escaped
    said = [(name, quoted(text)) for name, text in _unchecked(certificate, inner)]
    said += [("assumption", quoted(a)) for a in inner["assumptions"] if a not in needed]
    if said:
        parts.append("Said by the file, not checked:")
        parts.append(Facts([(name, text[:MOST_WORDS]) for name, text in said]))
    return parts


def _unchecked(
    certificate: Mapping[str, Any], inner: Mapping[str, Any]
) -> Iterator[tuple[str, str]]:
    """Names, numbers on trust, and what a saved answer has besides: its SQL text, its ledger."""
    claim = inner["claim"]
    if inner["kind"] == "composition":
        yield "unit", claim["neighbours"]["unit"]
        for loss in claim["on_trust"]:
            words = f"{loss['loss']}: ln M({loss['order']}) <= {loss['log_moment']}"
            yield "moment on trust", words
    if inner["kind"] not in ("release", "marginals"):
        return
    query = inner["body"]["query"]
    yield "table", claim["table"]
    if claim["unit"] is not None:
        yield "unit's column", claim["unit"]
    for part in (*query["keys"], *query["aggregates"], *query.get("derived", ())):
        yield "column", part["name"]
    if certificate is inner:
        return
    if certificate["asked"].get("sql") is not None:
        yield "SQL", certificate["asked"]["sql"]
    yield "made by lastbit", certificate["lastbit"]
    if certificate["entry"] is not None:
        yield "ledger entry", f"{certificate['entry']['sequence']}"
