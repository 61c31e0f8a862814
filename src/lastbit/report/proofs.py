r"""The proof inside a certificate, as a LaTeX document: inference rules, premises above.

The text needs amsmath and graphicx, which every LaTeX has; a rule too wide for the page is made
smaller. Nothing is checked here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from lastbit.report.claims import claim_of
from lastbit.report.derivation_trees import Rule, error_rule, proof_of
from lastbit.verify import Derivation, SnappingBound, Step, decimal, derivation_from_json, number

MOST_ROWS = 40
MOST_STEPS = 150
HEAD = r"""\documentclass[a4paper,10pt]{article}
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

LETTERS = str.maketrans(
    {
        "\\": r"\textbackslash{}",
        "{": r"\{",
        "}": r"\}",
        "$": r"\$",
        "&": r"\&",
        "#": r"\#",
        "%": r"\%",
        "_": r"\_",
        "^": r"\textasciicircum{}",
        "~": r"\textasciitilde{}",
        "<": r"$<$",
        ">": r"$>$",
        "ε": r"$\varepsilon$",
        "δ": r"$\delta$",
        "η": r"$\eta$",
        "≤": r"$\le$",
        "≥": r"$\ge$",
        "±": r"$\pm$",
        "⇓": r"$\Downarrow$",
        "…": r"\dots{}",
    }
)


def certificate_latex(certificate: Mapping[str, Any]) -> str:
    r"""The claim, the assumptions and the proof, to be typeset.

    >>> from lastbit.verify.snapping import snapping_bound
    >>> text = certificate_latex(snapping_bound(epsilon=1, bound=64).certificate())
    >>> text.startswith(r"\documentclass"), text.count(r"\fitted{") > 8
    (True, True)
    """
    claim = claim_of(certificate)
    parts = (
        HEAD + rf"\section*{{{_words(claim.title)}}}",
        rf"\subsection*{{Claim: {_words(claim.verdict)}}}",
        *(_words(sentence) + "\n" for sentence in claim.sentences),
        r"\subsection*{Assumptions}",
        r"\begin{itemize}",
        *(rf"\item {_words(sentence)}" for sentence in certificate["assumptions"]),
        r"\end{itemize}",
        r"\subsection*{Proof}",
        *_proof(certificate),
        r"\end{document}",
    )
    return "\n".join(parts) + "\n"


def _proof(certificate: Mapping[str, Any]) -> Iterator[str]:
    claim, body = certificate["claim"], certificate["body"]
    match certificate["kind"]:
        case "snapping":
            yield from _snapping(claim, body)
        case "rounding":
            yield from _rounding(certificate)
        case "error-bound":
            yield from _inference(derivation_from_json(claim["expression"], body))
        case _:
            yield from _outline(proof_of(certificate))


def _snapping(claim: Mapping[str, Any], body: Mapping[str, Any]) -> Iterator[str]:
    bound = SnappingBound(
        epsilon=number(claim["epsilon"]),
        bound=number(claim["bound"]),
        format=claim["format"],
        derivation=_step(body["derivation"]),
    )
    for line in bound.latex().splitlines():
        yield _fitted(line.removeprefix(r"\[").removesuffix(r"\]").strip())


def _step(written: Mapping[str, Any]) -> Step:
    values = tuple((name, number(text)) for name, text in written["values"].items())
    return Step(written["rule"], values, tuple(_step(p) for p in written["premises"]))


def _rounding(certificate: Mapping[str, Any]) -> Iterator[str]:
    claim, body = certificate["claim"], certificate["body"]
    root = proof_of(certificate)
    yield _words(root.says) + ".\n"
    yield _words(root.premises[0].says) + ".\n"
    for branch, side in zip(body["branches"], root.premises[0].premises, strict=True):
        yield rf"\paragraph{{Side.}} {_words(side.says)}."
        expression = claim["programs"][branch["program"]]
        for piece in branch["pieces"]:
            low, high = (decimal(number(end), up=True, latex=True) for end in piece["u"])
            yield rf"\par For $u \in [{low}, {high}]$:"
            yield from _inference(derivation_from_json(expression, piece["proof"]))
    if body["query"] is not None:
        inner = body["query"]
        yield r"\paragraph{Query.}"
        yield from _inference(derivation_from_json(inner["claim"]["expression"], inner["body"]))


def _inference(derivation: Derivation) -> Iterator[str]:
    """One nested rule; or line by line, if nested it would be too deep or too wide to read."""
    if _fits(derivation):
        yield _fitted(derivation.latex())
    else:
        yield from _outline(error_rule(derivation))


def _fits(derivation: Derivation) -> bool:
    """Whether the nested rule has few steps, each counted as often as it would be written."""
    steps, stack = 0, [derivation]
    while stack and steps <= MOST_STEPS:
        steps += 1
        stack.extend(stack.pop().shown_premises)
    return steps <= MOST_STEPS


def _outline(root: Rule) -> Iterator[str]:
    """A tree whose leaves are tables: sentences and tables, one below the other."""
    stack = [root]
    while stack:
        rule = stack.pop()
        yield rf"\paragraph{{\textsc{{{_words(rule.name.lower())}}}}} {_words(rule.says)}."
        if rule.rows:
            columns = "l" * len(rule.headings)
            yield rf"\fitted{{\begin{{tabular}}{{{columns}}}"
            yield " & ".join(_words(h) for h in rule.headings) + r" \\ \hline"
            # a box is not broken over pages: the first rows show what the others are like
            for row in rule.rows[:MOST_ROWS]:
                yield " & ".join(_words(cell) for cell in row) + r" \\"
            yield r"\end{tabular}}"
            more = len(rule.rows) + rule.left_out - MOST_ROWS
            if more > 0:
                yield rf"\par {more} more are in the certificate."
        stack.extend(reversed(rule.premises))


def _fitted(formula: str) -> str:
    return rf"\fitted{{{formula}}}"


def _words(text: str) -> str:
    return text.translate(LETTERS)
