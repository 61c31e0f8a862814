"""What `lastbit attack` prints."""

from __future__ import annotations

from fractions import Fraction

import click

from lastbit.audit import ATTACKS, Verdict
from lastbit.cli.attack_run import Outcome, needs_of
from lastbit.cli.page import Columns, Facts, Heading, Part, Words, show, show_json
from lastbit.exact import exact_text, rounded_down

RESISTED = "Resisting an attack proves nothing: it was this attack, these inputs, so many samples."


def show_list(*, as_json: bool) -> None:
    """Every attack and what it suits."""
    if as_json:
        attacks = [
            {
                "name": attack.name,
                "looks_for": attack.looks_for,
                "source": attack.source,
                "needs": list(attack.needs),
                "sums": list(attack.sums),
            }
            for attack in ATTACKS.values()
        ]
        show_json({"attacks": attacks})
        return
    rows = tuple((a.name, a.looks_for, a.source, needs_of(a)) for a in ATTACKS.values())
    show(
        Heading("Attacks", f"{len(rows)}"),
        Columns(("name", "looks for", "source", "suits"), rows),
        Words("Try one: lastbit attack run precision --target numpy"),
    )


def answer(outcome: Outcome, name: str, target: str, *, as_json: bool) -> None:
    """Print, and end with the status."""
    if as_json:
        show_json(
            {
                "verdict": "broken" if outcome.broken else "nothing found",
                "error": str(outcome.error),
                "verdicts": [verdict.to_dict() for verdict in outcome.verdicts],
                "not_tried": [
                    {"attack": n.attack, "target": n.target, "reason": n.reason}
                    for n in outcome.not_tried
                ],
            }
        )
    else:
        show(*_parts(outcome, name, target))
    click.get_current_context().exit(1 if outcome.broken else 0)


def _parts(outcome: Outcome, name: str, target: str) -> list[Part]:
    count, broken = len(outcome.verdicts), outcome.broken
    word = f"{len(broken)} of {count} broken" if broken else f"{count} resisted"
    title = f"{'All attacks' if name == 'all' else f'The attack {name}'} on {target}"
    parts: list[Part] = [Heading(title, word, good=not broken)]
    if count > 1:
        parts.append(
            Columns(
                ("attack", "target", "claimed ε", "ε at least", ""),
                tuple(_row(verdict) for verdict in outcome.verdicts),
                numbers=(2, 3),
            )
        )
    if count == 1:
        parts.append(Facts(tuple(_facts(outcome.verdicts[0]))))
    elif broken:
        parts.append(Facts(tuple((v.name, f"{v.target}: {v.witness}") for v in broken)))
    if outcome.not_tried:
        rows = tuple((n.attack, n.target, n.reason) for n in outcome.not_tried)
        parts.append(Columns(("not tried", "target", "why"), rows))
    sure = exact_text(outcome.error)
    parts.append(
        Words(f"Broken is certified: all verdicts hold together, except with probability {sure}.")
    )
    parts.append(Words(RESISTED))
    return parts


def _row(verdict: Verdict) -> tuple[str, ...]:
    word = "BROKEN" if verdict.broken else "resisted"
    return (verdict.name, verdict.target, _claimed(verdict), _at_least(verdict), word)


def _facts(verdict: Verdict) -> list[tuple[str, str]]:
    word = "BROKEN" if verdict.broken else "resisted"
    facts = [(verdict.name, f"{word}: {verdict.target}")]
    if verdict.claimed is not None:
        facts.append(("ε at least", f"{_at_least(verdict)}, claimed {_claimed(verdict)}"))
    facts.append(("witness", verdict.witness))
    facts += list(verdict.details.items())
    facts.append(("samples", f"{verdict.samples:,} in {verdict.seconds:.1f} s"))
    return facts


def _claimed(verdict: Verdict) -> str:
    if verdict.claimed is None:
        return "-"
    text = exact_text(verdict.claimed)
    # a rational of forty digits helps nobody
    return text if len(text) <= 10 else f"{float(verdict.claimed):.6g}"


def _at_least(verdict: Verdict) -> str:
    if verdict.claimed is None:
        return "-"
    for digits in range(4, 18):
        text = rounded_down(verdict.epsilon_lower, digits)
        if not verdict.broken or text == "∞" or Fraction(text) > verdict.claimed:
            break
    return text
