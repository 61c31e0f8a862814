"""Pages, words and LaTeX of certificates: complete, self-contained, and deaf to what they quote."""

from __future__ import annotations

import re
from fractions import Fraction
from html.parser import HTMLParser
from xml.etree import ElementTree

import pytest

from lastbit.errors import InvalidParameter
from lastbit.report.certificate import certificate_latex, certificate_page
from lastbit.report.claims import claim_of
from lastbit.report.page import amount
from lastbit.report.proofs import Rule, down, laws_of, probability, proof_of, up
from lastbit.verify.error_bounds.semantics import analyse, error_certificate
from lastbit.verify.running.code import Code
from lastbit.verify.running.law import exact_law, exact_loss
from lastbit.verify.tracing.trace import trace
from tests.cli.certificates import SHOWN, SNAPPED, certificate, sealed

VOID = {"meta", "br", "hr"}


class Tags(HTMLParser):
    """Reads a page and sees whether every tag is closed in its turn."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""

    def handle_starttag(self, tag, attrs):
        self.seen.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.seen.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


def tags(page: str) -> Tags:
    reader = Tags()
    reader.feed(str(page))
    reader.close()
    assert reader.open == []
    return reader


def rules(root: Rule) -> list[Rule]:
    return [root, *(below for premise in root.premises for below in rules(premise))]


# ---------------------------------------------------------------- pages


@pytest.mark.parametrize("kind", SHOWN)
def test_a_page_is_complete_and_self_contained(kind):
    whole = certificate(kind)
    page = certificate_page(whole, file="mine.json")
    reader = tags(page)
    words = " ".join(reader.text.split())
    claim = claim_of(whole)
    for sentence in (*claim.sentences, *whole["assumptions"], claim.verdict, claim.title):
        assert " ".join(sentence.split()) in words
    assert "lastbit check mine.json" in words
    assert whole["digest"] in words
    assert not {tag for tag, _ in reader.seen} & {"script", "img", "link", "iframe", "object"}
    assert not any("href" in found or "src" in found for _, found in reader.seen)
    assert not re.search(r"url\(|@import", page)
    assert page.replace("http://www.w3.org/2000/svg", "").count("http") == 0
    assert "prefers-color-scheme: dark" in page and "@media print" in page


@pytest.mark.parametrize("kind", ["snapping", "rounding", "law", "infinite-law", "query"])
def test_the_law_is_drawn_where_there_is_one(kind):
    page = certificate_page(certificate(kind))
    drawing = ElementTree.fromstring(page[page.index("<svg") : page.index("</svg>") + 6])
    stems = [e for e in drawing.iter() if "stem" in (e.get("class") or "")]
    assert len(stems) > 8
    assert "<svg" not in certificate_page(certificate("error-bound"))


def test_the_drawn_law_is_the_exact_one():
    code = Code(SNAPPED, epsilon=1.0, bound=4.0)
    one, two = laws_of(certificate("law"))
    for found, value in ((one, 2.5), (two, 3.5)):
        law = exact_law(code, value)
        assert found == dict(zip(law.outputs, law.probabilities, strict=True))


def test_what_a_certificate_says_is_never_run_as_a_page():
    whole = certificate("snapping")
    whole["assumptions"] = ["<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "{\\"]
    page = certificate_page(sealed(whole), file="<b>.json")
    reader = tags(page)
    assert not {tag for tag, _ in reader.seen} & {"script", "img", "b"}
    assert "<script>alert(1)</script>" in reader.text
    assert r"\{\textbackslash{}" in certificate_latex(sealed(whole))


def test_a_page_without_a_file_carries_the_certificate():
    page = certificate_page(certificate("law"))
    assert "Save the certificate at the end of this page" in page
    assert "&#34;kind&#34;: &#34;law&#34;" in page


def test_deep_code_has_a_page():
    def deep(x):
        for _ in range(1500):
            x = x + 1.0
        return x

    whole = error_certificate(analyse(trace(deep), {"x": (0, 1)}))
    reader = tags(certificate_page(whole))
    assert sum(tag == "details" for tag, _ in reader.seen) > 1400
    assert r"\textsc{add}" in certificate_latex(whole)


def test_what_is_shared_is_shown_once():
    def doubled(x):
        for _ in range(40):
            x = x + x  # as a tree, 2**40 steps
        return x

    whole = error_certificate(analyse(trace(doubled), {"x": (0, 1)}))
    found = rules(proof_of(whole))
    assert len(found) < 200
    assert any("as above" in rule.says for rule in found)
    assert len(certificate_latex(whole)) < 100_000


# ---------------------------------------------------------------- proofs and words


def test_the_rules_of_a_proof_are_all_there():
    names = {rule.name for rule in rules(proof_of(certificate("snapping")))}
    assert names >= {"SNAPPING", "CLAMP", "MONOTONE", "OVER BOTH", "NEXT", "LN", "DIV", "RANGE"}
    names = {rule.name for rule in rules(proof_of(certificate("query")))}
    assert names >= {"ROUNDING", "STRAY", "SIDE", "PIECE", "QUERY", "LN", "SUB"}
    steps = [rule.name for rule in rules(proof_of(certificate("law")))]
    assert steps == ["LOSS", "LAW", "CELLS", "CELLS", "LAW", "CELLS", "CELLS"]


def test_plain_arithmetic_is_not_explained_as_snapping():
    for rule in rules(proof_of(certificate("error-bound"))):
        assert rule.why == "" or rule.name in ("MEAN", "SPLIT")


def test_many_cells_are_cut_and_counted():
    code = Code(SNAPPED, epsilon=1.0, bound=210.0)
    whole = exact_loss(code, 0.0, 1.0).certificate(code)
    cells = [rule for rule in rules(proof_of(whole)) if rule.name == "CELLS"]
    assert all(len(rule.rows) <= 200 for rule in cells)
    count = [len(branch["cells"]) for law in whole["body"]["laws"] for branch in law]
    assert [len(rule.rows) + rule.left_out for rule in cells] == count
    assert "more are in the certificate" in certificate_page(whole)
    assert "more are in the certificate" in certificate_latex(whole)


@pytest.mark.parametrize("kind", SHOWN)
def test_latex_is_balanced_and_plain(kind):
    text = certificate_latex(certificate(kind))
    assert text.startswith(r"\documentclass") and text.endswith("\\end{document}\n")
    bare = re.sub(r"\\[{}]|\\\\", "", text)
    assert bare.count("{") == bare.count("}")
    assert re.sub(r"\\\$", "", text).count("$") % 2 == 0
    assert text.isascii()
    for name in ("itemize", "tabular", "document"):
        assert text.count(rf"\begin{{{name}}}") == text.count(rf"\end{{{name}}}")


def test_numbers_are_rounded_the_safe_way():
    third = Fraction(10**30 + 1, 3 * 10**30)
    assert Fraction(amount(third, up=False)) < third < Fraction(amount(third, up=True))
    assert Fraction(down(third)) < third < Fraction(up(third))
    assert probability(Fraction(1, 3)) == "1/3 (0.3333333)"
    assert probability(Fraction(5, 2**70)) == "5/2**70 (4.235164e-21)"
    assert "exact in the certificate" in probability(Fraction(1, 10**40 + 1))
    snapping = certificate("snapping")
    stated = claim_of(snapping).verdict.removeprefix("ε ≤ ").split(" + ")
    excess = Fraction(snapping["claim"]["loss"]) - Fraction(snapping["claim"]["epsilon"])
    assert stated[0] == "0.7" and Fraction(stated[1]) >= excess


@pytest.mark.parametrize("spoiled", [{}, {"kind": "law"}, {"kind": "law", "claim": {}, "body": {}}])
def test_what_cannot_be_read_is_refused(spoiled):
    with pytest.raises(InvalidParameter, match="no claim that can be read"):
        claim_of(spoiled)
