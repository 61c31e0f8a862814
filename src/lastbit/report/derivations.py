"""The page of a certificate: what is claimed, on which assumptions, and the proof to open.

One HTML text without script, font or picture from elsewhere. It follows the reader's light or dark
scheme, and on paper every step of the proof is open. All that comes from the certificate is
escaped: a page can be made of a certificate that somebody else wrote.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from fractions import Fraction
from html import escape
from typing import Any

from lastbit.exact import floor_log2
from lastbit.report.claims import Claim, claim_of
from lastbit.report.derivation_trees import Rule, laws_of, proof_of
from lastbit.report.plots import Panel, Series, Stems, picture
from lastbit.verify import decimal, number

OPEN_DEPTH = 2
MOST_JSON = 400_000
MOST_STEMS = 240
LEAST_SHARE = 1e-4  # of the tallest stem: what is lower cannot be seen
TAIL = 7  # scales of the noise to either side

LOOK = """
  :root { color-scheme: light dark; --paper: #ffffff; --ink: #1b1f24; --soft: #4b535d;
    --line: #d8dee4; --panel: #f6f8fa; --rule: #0059a0; --good: #1a7f37; --bad: #b3261e; }
  @media (prefers-color-scheme: dark) { :root { --paper: #0d1117; --ink: #f0f3f6; --soft: #c3cad2;
    --line: #30363d; --panel: #161b22; --rule: #79c0ff; --good: #6fdd8b; --bad: #ff8a80; } }
  body { margin: 0 auto; padding: 2rem 1.2rem 4rem; max-width: 60rem; background: var(--paper);
    color: var(--ink); font: 16px/1.55 system-ui, "Segoe UI", "Helvetica Neue", Arial, sans-serif; }
  h1 { font-size: 1.7rem; line-height: 1.25; margin: 0 0 .4rem; overflow-wrap: anywhere; }
  h2 { font-size: 1.15rem; margin: 2.2rem 0 .6rem; padding-bottom: .25rem;
    border-bottom: 1px solid var(--line); }
  .verdict { font-size: 1.25rem; font-weight: 650; color: var(--good); margin: 0 0 1.2rem; }
  .verdict.refuted { color: var(--bad); }
  table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
  th, td { text-align: left; vertical-align: top; padding: .2rem 1.1rem .2rem 0;
    overflow-wrap: anywhere; }
  table.facts th { font-weight: 600; white-space: nowrap; }
  table.cells { font-size: .8rem; margin: .3rem 0 .6rem; }
  table.cells th { border-bottom: 1px solid var(--line); }
  code, pre, table.cells td { font-family: ui-monospace, "SF Mono", Menlo, Consolas, monospace; }
  pre { background: var(--panel); border: 1px solid var(--line); border-radius: 6px;
    padding: .7rem .9rem; overflow-x: auto; font-size: .85rem; }
  details { margin: .15rem 0 .15rem .2rem; padding-left: .8rem; border-left: 2px solid var(--line);
    break-inside: auto; }
  summary, .step { padding: .1rem 0; overflow-wrap: anywhere; }
  summary { cursor: pointer; }
  .step { margin-left: 1.15rem; }
  .rulename { font-weight: 650; color: var(--rule); letter-spacing: .03em; margin-right: .45rem; }
  .says { font-family: ui-monospace, "SF Mono", Menlo, Consolas, monospace; font-size: .84rem; }
  .why { color: var(--soft); font-size: .88rem; display: block; margin-left: 1.15rem; }
  .drawing svg { max-width: 100%; height: auto; border: 1px solid var(--line);
    border-radius: 6px; }
  .note { color: var(--soft); font-size: .9rem; }
  @media print { body { max-width: none; padding: 0; font-size: 11pt; }
    details::details-content { content-visibility: visible; height: auto; }
    .verdict, h1, h2 { break-after: avoid; } pre.whole { display: none; } }
"""


def certificate_page(certificate: Mapping[str, Any], *, file: str | None = None) -> str:
    """The page as text; `file` is the name under which the certificate was saved, if it was.

    >>> from lastbit.verify.snapping import snapping_bound
    >>> page = certificate_page(snapping_bound(epsilon=1, bound=64).certificate())
    >>> page.startswith("<!doctype html>"), "OVER BOTH" in page, "http" in page.split("<svg")[0]
    (True, True, False)
    """
    claim = claim_of(certificate)
    parts = (
        *_head(claim, refuted=certificate["kind"] == "refutation" or "infinite" in claim.verdict),
        *_facts(claim),
        *_assumptions(certificate["assumptions"]),
        *_drawing(certificate),
        "<h2>Proof</h2>",
        '<p class="note">Each line follows by its rule from the lines below it. Open a line to '
        "see them.</p>",
        *_proof(proof_of(certificate)),
        *_again(certificate, file),
        "</main>\n</body>\n</html>\n",
    )
    return "\n".join(parts)


def _head(claim: Claim, *, refuted: bool) -> Iterator[str]:
    title = escape(claim.title)
    yield "<!doctype html>"
    yield '<html lang="en">\n<head>\n<meta charset="utf-8">'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    yield f"<title>{title}</title>\n<style>{LOOK}</style>\n</head>\n<body>\n<main>"
    yield f"<h1>{title}</h1>"
    look = "verdict refuted" if refuted else "verdict"
    yield f'<p class="{look}">{escape(claim.verdict)}</p>'


def _facts(claim: Claim) -> Iterator[str]:
    yield "<h2>Claim</h2>"
    for sentence in claim.sentences:
        yield f"<p>{escape(sentence)}</p>"
    yield '<table class="facts">'
    for name, value in claim.facts:
        yield f'<tr><th scope="row">{escape(name)}</th><td>{escape(value)}</td></tr>'
    yield "</table>"


def _assumptions(assumptions: list[str]) -> Iterator[str]:
    yield "<h2>Assumptions</h2>"
    yield "<p>The claim holds if these do. No program has checked them.</p>\n<ul>"
    for sentence in assumptions:
        yield f"<li>{escape(sentence)}</li>"
    yield "</ul>"


def _again(certificate: Mapping[str, Any], file: str | None) -> Iterator[str]:
    kind = escape(str(certificate["kind"]))
    yield "<h2>Check it again</h2>"
    if file is None:
        yield "<p>Save the certificate at the end of this page as out.json, then:</p>"
    yield f"<pre>lastbit check {escape(file or 'out.json')}</pre>"
    yield (
        "<p>A second program works every number out anew, with integers, fractions and decimals of "
        "Python's standard library only, and rejects what does not follow: "
        "<code>lastbit/checker/</code>. "
        f"This certificate is of the kind <code>{kind}</code>.</p>"
    )
    if certificate["kind"] in ("law", "refutation"):
        name = escape(str(certificate["claim"]["function"]))
        yield (
            f"<p>Checking runs <code>{name}</code>: check only what names code that you would "
            "run.</p>"
        )
    yield f'<p class="note">SHA-256 <code>{escape(str(certificate["digest"]))}</code></p>'
    whole = json.dumps(certificate, indent=1, ensure_ascii=False)
    if len(whole) <= MOST_JSON:
        yield "<details><summary>The whole certificate</summary>"
        yield f'<pre class="whole">{escape(whole)}</pre></details>'


# ---------------------------------------------------------------- the proof


def _proof(root: Rule) -> Iterator[str]:
    """Nested lines; a stack in place of recursion, since code may be deep."""
    stack: list[tuple[Rule, int] | str] = [(root, 0)]
    while stack:
        item = stack.pop()
        if isinstance(item, str):
            yield item
            continue
        rule, depth = item
        if not rule.premises and not rule.rows:
            yield f'<div class="step">{_line(rule)}</div>'
            yield from _why(rule)
            continue
        opened = " open" if depth < OPEN_DEPTH and not rule.rows else ""
        yield f"<details{opened}><summary>{_line(rule)}</summary>"
        yield from _why(rule)
        yield from _table(rule)
        stack.append("</details>")
        stack.extend((premise, depth + 1) for premise in reversed(rule.premises))


def _why(rule: Rule) -> Iterator[str]:
    if rule.why:
        yield f'<span class="why">{escape(rule.why)}</span>'


def _line(rule: Rule) -> str:
    name, says = escape(rule.name), escape(rule.says)
    return f'<span class="rulename">{name}</span><span class="says">{says}</span>'


def _table(rule: Rule) -> Iterator[str]:
    if not rule.rows:
        return
    yield '<table class="cells"><tr>'
    yield "".join(f"<th>{escape(heading)}</th>" for heading in rule.headings) + "</tr>"
    for row in rule.rows:
        yield "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>"
    yield "</table>"
    if rule.left_out:
        yield f'<p class="note">{rule.left_out} more are in the certificate.</p>'


# ---------------------------------------------------------------- the law, drawn


def _drawing(certificate: Mapping[str, Any]) -> Iterator[str]:
    panel = _panel(certificate)
    if panel is not None:
        yield "<h2>Law</h2>"
        yield f'<div class="drawing">{picture("Two inputs, output by output", (panel,))}</div>'


def _panel(certificate: Mapping[str, Any]) -> Panel | None:
    claim, body = certificate["claim"], certificate["body"]
    match certificate["kind"]:
        case "law":
            names = [repr(float.fromhex(text)) for text in claim["inputs"]]
            exact = [{x: float(p) for x, p in law.items()} for law in laws_of(certificate)]
            words = "The exact law of the code as it runs, for both inputs."
            return _stems(exact, names, words)
        case "snapping":
            epsilon, bound = number(claim["epsilon"]), number(claim["bound"])
            step = Fraction(2) ** -floor_log2(epsilon)
            values = (Fraction(0), Fraction(1))
            ends = (-bound, bound)
            scale = 1 / epsilon
        case "rounding":
            scale, step = number(body["scale"]), number(claim["cell"])
            ends = (number(claim["region"][0]), number(claim["region"][1]))
            middle = Fraction(math.floor((ends[0] + ends[1]) / 2 / step)) * step
            values = (middle, min(middle + number(claim["sensitivity"]), ends[1]))
        case _:
            return None
    laws = [_laplace(value, scale, step, ends) for value in values]
    words = "The ideal law; the running code's lies within the proved bound of it."
    return _stems(laws, [decimal(value, up=True) for value in values], words)


def _laplace(
    value: Fraction, scale: Fraction, step: Fraction, ends: tuple[Fraction, Fraction]
) -> dict[float, float]:
    """Laplace noise rounded to a step, near the value; floats will do for a drawing."""
    reach = min(TAIL * scale, MOST_STEMS // 2 * step)
    first = math.ceil(max(ends[0], value - reach) / step)
    last = math.floor(min(ends[1], value + reach) / step)

    def below(k: int) -> float:
        x = float(((k - Fraction(1, 2)) * step - value) / scale)
        return math.exp(x) / 2 if x < 0 else 1 - math.exp(-x) / 2

    return {float(k * step): below(k + 1) - below(k) for k in range(first, last + 1)}


def _stems(laws: list[dict[float, float]], names: list[str], words: str) -> Panel | None:
    tallest = max((p for law in laws for p in law.values()), default=0.0)
    kept = [
        {x: p for x, p in law.items() if p >= LEAST_SHARE * tallest and math.isfinite(x)}
        for law in laws
    ]
    places = sorted({x for law in kept for x in law})
    if tallest <= 0 or not places or len(places) > MOST_STEMS:
        return None
    low, high = places[0], places[-1]
    room = (high - low) / 40 or 1.0
    if not math.isfinite(high - low):
        return None
    ticks = [low + (high - low) * i / 4 for i in range(5)] if high > low else [low]
    first, second = (
        Series(label=f"input {name}", points=tuple(sorted(law.items())))
        for name, law in zip(names, kept, strict=True)
    )
    return Panel(
        title="How likely each output is",
        verdict="",
        good=True,
        words=words,
        marks=Stems(first=first, second=second),
        places=(low - room, high + room),
        ticks=tuple((x, f"{x:.4g}") for x in ticks),
        axis="output",
        heights=tuple((tallest * i / 2, f"{tallest * i / 2:.3g}") for i in range(3)),
    )
