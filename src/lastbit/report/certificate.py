"""The page of a certificate: its claim (`claims.py`), assumptions, law, and proof to open.

Only the certificate is read, and nothing in it is checked: `lastbit check` does that first. All
names in it are quoted, and the page escapes them: a page can be made of a certificate that somebody
else wrote.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction

from markupsafe import Markup

from lastbit.exact import floor_log2
from lastbit.report.charts import Panel, Series, Stems, inline, picture, round_ticks, tick_label
from lastbit.report.claims import Json, claim_of
from lastbit.report.page import rendered, whole_text
from lastbit.report.proofs import Rule, float_name, in_latex, latex_proof, laws_of, proof_of, up
from lastbit.verify import number

_OPEN_DEPTH = 2


def certificate_page(certificate: Json, *, file: str | None = None) -> Markup:
    """The page as text; `file` is the name under which the certificate was saved, if it was.

    >>> from lastbit.verify.snapping import snapping_bound
    >>> page = certificate_page(snapping_bound(epsilon=1, bound=64).certificate())
    >>> page.startswith("<!doctype html>"), "OVER BOTH" in page, "http" in page.split("<svg")[0]
    (True, True, False)
    """
    claim = claim_of(certificate)
    panel = _panel(certificate)
    return rendered(
        "certificate.html",
        title=claim.title,
        claim=claim,
        refuted=certificate["kind"] == "refutation" or "infinite" in claim.verdict,
        assumptions=certificate["assumptions"],
        picture=panel and inline(picture("Two inputs, output by output", (panel,))),
        steps=_steps(proof_of(certificate)),
        certificate=certificate,
        file=file,
        json=whole_text(certificate),
    )


def _steps(root: Rule) -> Iterator[tuple[str, Rule]]:
    """The proof line by line: opened, shown and closed; no recursion, as code may be deep."""
    stack: list[tuple[str, Rule, int]] = [("", root, 0)]
    while stack:
        kind, rule, depth = stack.pop()
        if kind:
            yield kind, rule
        elif not rule.premises and not rule.rows:
            yield "step", rule
        else:
            yield ("opened" if depth < _OPEN_DEPTH and not rule.rows else "closed"), rule
            stack.append(("close", rule, depth))
            stack.extend(("", premise, depth + 1) for premise in reversed(rule.premises))


_LATEX = r"""\documentclass[a4paper,10pt]{article}
\usepackage[margin=2cm]{geometry}
\usepackage{amsmath}
\usepackage{graphicx}
\newsavebox{\rulebox}
% a rule as it is, or made smaller until it fits
\newcommand{\fitted}[1]{\sbox{\rulebox}{$\displaystyle #1$}\begin{center}%
  \ifdim\wd\rulebox>\linewidth\resizebox{\linewidth}{!}{\usebox{\rulebox}}%
  \else\usebox{\rulebox}\fi\end{center}}
\begin{document}
"""


def certificate_latex(certificate: Json) -> str:
    r"""The claim, the assumptions and the proof, to be typeset; needs amsmath and graphicx only.

    >>> from lastbit.verify.snapping import snapping_bound
    >>> text = certificate_latex(snapping_bound(epsilon=1, bound=64).certificate())
    >>> text.startswith(r"\documentclass"), text.count(r"\fitted{") > 8
    (True, True)
    """
    claim = claim_of(certificate)
    parts = (
        _LATEX + rf"\section*{{{in_latex(claim.title)}}}",
        rf"\subsection*{{Claim: {in_latex(claim.verdict)}}}",
        *(in_latex(sentence) + "\n" for sentence in claim.sentences),
        r"\subsection*{Assumptions}",
        r"\begin{itemize}",
        *(rf"\item {in_latex(sentence)}" for sentence in certificate["assumptions"]),
        r"\end{itemize}",
        r"\subsection*{Proof}",
        *latex_proof(certificate),
        r"\end{document}",
    )
    return "\n".join(parts) + "\n"


# ---------------------------------------------------------------- the law, drawn

_MOST_STEMS = 240
_LEAST_SHARE = 1e-4  # of the tallest stem: what is lower cannot be seen
_TAIL = 7  # scales of the noise to either side


def _panel(certificate: Json) -> Panel | None:
    claim, body = certificate["claim"], certificate["body"]
    match certificate["kind"]:
        case "law":
            exact = [{x: float(p) for x, p in law.items()} for law in laws_of(certificate)]
            words = "The exact law of the code as it runs, for both inputs."
            return _stems(exact, [float_name(value) for value in claim["inputs"]], words)
        case "snapping":
            epsilon, bound = number(claim["epsilon"]), number(claim["bound"])
            scale, step = 1 / epsilon, Fraction(2) ** -floor_log2(epsilon)
            values, ends = (Fraction(0), Fraction(1)), (-bound, bound)
        case "rounding" if "scale" in body and "values" not in claim:
            scale, step = number(body["scale"]), number(claim["cell"])
            ends = (number(claim["region"][0]), number(claim["region"][1]))
            middle = Fraction(math.floor((ends[0] + ends[1]) / 2 / step)) * step
            values = (middle, min(middle + number(claim["sensitivity"]), ends[1]))
        case _:
            return None
    laws = [_laplace(value, scale, step, ends) for value in values]
    words = "The ideal law; the running code's lies within the proved bound of it."
    return _stems(laws, [up(value) for value in values], words)


def _laplace(
    value: Fraction, scale: Fraction, step: Fraction, ends: tuple[Fraction, Fraction]
) -> dict[float, float]:
    """Laplace noise rounded to a step, near the value; floats will do for a drawing."""
    reach = min(_TAIL * scale, _MOST_STEMS // 2 * step)
    first = math.ceil(max(ends[0], value - reach) / step)
    last = math.floor(min(ends[1], value + reach) / step)

    def below(k: int) -> float:
        x = float(((k - Fraction(1, 2)) * step - value) / scale)
        return math.exp(x) / 2 if x < 0 else 1 - math.exp(-x) / 2

    return {float(k * step): below(k + 1) - below(k) for k in range(first, last + 1)}


def _stems(laws: list[dict[float, float]], names: list[str], words: str) -> Panel | None:
    tallest = max((p for law in laws for p in law.values()), default=0.0)
    kept = [
        {x: p for x, p in law.items() if p >= _LEAST_SHARE * tallest and math.isfinite(x)}
        for law in laws
    ]
    places = sorted({x for law in kept for x in law})
    if tallest <= 0 or not places or len(places) > _MOST_STEMS:
        return None
    low, high = places[0], places[-1]
    if not math.isfinite(high - low):
        return None
    room = (high - low) / 40 or 1.0
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
        ticks=round_ticks(low, high, most=6) if high > low else ((low, tick_label(low)),),
        axis="output",
    )
