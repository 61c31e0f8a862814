"""No certificate, and no bound that has one, leaves without the checker's consent.

Every way to a certificate is listed here by its kind, and found in the source by its syntax: one
that is not listed fails a test. Then the checker is made to reject everything: nothing comes out.
"""

import ast
import copy
import json
import math
import pickle
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import lastbit
from lastbit import verify
from lastbit.checker.dispatch import KINDS, beliefs, problem_of
from lastbit.cli.verify import rounding_outcome, write_files
from lastbit.errors import LastbitError, NotCertified
from lastbit.release.certifying import certificate_of
from lastbit.tables.plan.marginals import marginals_query, planned_marginals
from lastbit.tables.plan.plan import planned
from lastbit.training import WholeClip, training_plan
from lastbit.verify.certificate import issued, save, text_of
from lastbit.verify.rounding import certified_sums
from lastbit.verify.running.code import Code
from lastbit.verify.running.uniforms import Grid
from lastbit.verify.snapping import SnappingBound
from tests.release.pretend import card_of, part, query_of
from tests.verify.expressions import traced

sealing = import_module("lastbit.verify.certificate")  # the room shows the function
SOURCE = Path(lastbit.__file__).parent
CODE = Code("lastbit.mechanisms.snapping:snapped", epsilon=1.0, bound=2.0)


def noise(u, sign):
    return sign * math.log(u)


def logistic(u):
    return math.log(u) - math.log(1 - u)


def total(value, u, sign):
    return value + sign * math.log(u)


def rounded(value, u, sign):
    return min(max(0.25 * round((value + sign * math.log(u)) / 0.25), -8.0), 8.0)


def naive(value, u):
    return value + math.log(2 * u) if u < 0.5 else value - math.log(2 - 2 * u)


def noisy_max(run, queries):
    run.emit(run.largest([query + run.laplace(2) for query in queries]))


def box_muller(u, v):
    return 10.0 * (math.sqrt(-2.0 * math.log(u)) * math.cos(2.0 * math.pi * v))


def planar(u, v, w):
    r = math.log(1.0 - u) + math.log(1.0 - v)
    return r * math.cos(2.0 * math.pi * w), r * math.sin(2.0 * math.pi * w)


def planar_rounded(x, y, u, v, w):
    east, north = planar(u, v, w)
    return 1.0 * round(x + east), 1.0 * round(y + north)


SETTING: dict[str, Any] = dict(sensitivity=1, cell="1/4", region=(-8, 8))


def plan_of():
    query = query_of(part("count", "n"), keys=[("region", ("north", "south"))])
    return planned(query, card_of(), epsilon=1)


def marginals_plan_of():
    keys = [("region", ("north", "south")), ("urgent", (False, True))]
    query = query_of(part("count", "n"), keys=keys)
    return planned_marginals(marginals_query(card_of(), list(query.keys)), card_of(), epsilon=1)


def shipped_rounding() -> Any:
    return rounding_outcome(
        Fraction("1"),
        Fraction("1"),
        cell=Fraction("1/4"),
        region=(Fraction("-8"), Fraction("8")),
        target=None,
    )


# what is called, and the kind of what comes out; the name is `file:function` of the source
WAYS: dict[str, tuple[str, Callable[[], Any]]] = {
    "verify/error_bounds/semantics.py:error_certificate": (
        "error-bound",
        lambda: verify.error_certificate(
            verify.analyse(verify.trace(lambda x: x * x), {"x": (1, 2)})
        ),
    ),
    "verify/running/law.py:certificate": (
        "law",
        lambda: verify.exact_loss(CODE, 0.0, 1.0).certificate(CODE),
    ),
    "verify/running/witness.py:certificate": (
        "refutation",
        lambda: verify.refute(naive, 0.0, 1.0, signs=None).certificate(  # type: ignore[union-attr]
            Code("tests.verify.test_issued:naive")
        ),
    ),
    "verify/snapping.py:statement": (
        "snapping",
        lambda: verify.snapping_bound(epsilon=1, bound=2),
    ),
    "verify/loss_derivation.py:statement": (
        "derivation",
        lambda: verify.derived_loss(rounded, sensitivity=1),
    ),
    "verify/rounding.py:statement": (
        "rounding",
        lambda: verify.rounding_certificate(noise, **SETTING),
    ),
    "verify/declared.py:statement": (
        "rounding",
        lambda: verify.declared_certificate(logistic, rate=1, uniform=Grid(53, first=1), **SETTING),
    ),
    "verify/gaussian.py:statement": (
        "gaussian",
        lambda: verify.gaussian_certificate(
            box_muller, sensitivity=1, epsilon=1, cell=1, region=(-100, 100)
        ),
    ),
    "verify/polar.py:statement": (
        "polar",
        lambda: verify.polar_certificate(planar, sensitivity=1, cell=1, region=[(-8, 8)] * 2),
    ),
    "verify/coupling.py:statement": (
        "coupling",
        lambda: verify.coupled(noisy_max, inputs=2, epsilon=1),
    ),
    "release/certifying.py:certificate_of": (
        "release",
        lambda: certificate_of(plan_of(), columns=[], rows=[]),
    ),
    "verify/composition.py:composition_certificate": (
        "composition",
        lambda: verify.composition_certificate(100 * lastbit.ApproxLoss("0.1"), delta="1e-6"),
    ),
    "cli/verify.py:_sealed": ("rounding", shipped_rounding),
    "training/plan.py:certificate": (
        "composition",
        lambda: training_plan(
            examples=100, batch=10, steps=2, noise_multiplier=2, delta="1e-5"
        ).certificate(WholeClip(norm=1)),
    ),
}
# the same functions, by what makes another kind of them
FURTHER: dict[str, tuple[str, Callable[[], Any]]] = {
    "release/certifying.py:certificate_of, of tables": (
        "marginals",
        lambda: certificate_of(marginals_plan_of(), columns=[], rows=[]),
    ),
}
# public functions that return a bound which has a certificate
BOUNDS: dict[str, Callable[[], Any]] = {
    "certified_code": lambda: verify.certified_code(rounded, sensitivity=1),
    "certified_sums": lambda: certified_sums(traced(total, "value", "u"), **SETTING),
    "declared_certificate": WAYS["verify/declared.py:statement"][1],
    "largest_region": lambda: verify.largest_region(
        lambda end: verify.rounding_certificate(
            noise, sensitivity=1, cell="1/4", region=(-end, end)
        ),
        epsilon=2,
        cell="1/4",
    ),
    "least_cell": lambda: verify.least_cell(
        lambda cell: verify.rounding_certificate(noise, **SETTING | {"cell": cell}),
        epsilon=2,
        region=(-8, 8),
    ),
    "certified_planar_code": lambda: verify.certified_planar_code(
        planar_rounded, sensitivity=1, region=[(-8, 8)] * 2
    ),
    "polar_certificate": WAYS["verify/polar.py:statement"][1],
    "polar_laplace_certificate": lambda: verify.polar_laplace_certificate(
        lastbit.PolarLaplace(epsilon=1, cell=1, half_width=8)
    ),
    "rounding_certificate": WAYS["verify/rounding.py:statement"][1],
    "snapping_bound": WAYS["verify/snapping.py:statement"][1],
    "derived_loss": WAYS["verify/loss_derivation.py:statement"][1],
    "derived_sums": WAYS["verify/loss_derivation.py:statement"][1],
}
# named so, and no certificate: what they return has no digest, no kind and nothing to check
FIGURES = {
    "mechanisms/polar.py:certificate": "figures of the mechanism's own proof",
    "mechanisms/rounded_laplace.py:certificate": "figures of the mechanism's own proof",
    "release/marginal_answer.py:certificate": "the same, of tables",
    "release/answer.py:certificate": "read from the record, where it was put when it was issued",
}


@cache
def nodes() -> list[tuple[str, ast.AST]]:
    """Every node of the source, with its file."""
    return [
        (file.relative_to(SOURCE).as_posix(), node)
        for file in sorted(SOURCE.rglob("*.py"))
        if "ertificate" in (text := file.read_text("utf-8"))
        for node in ast.walk(ast.parse(text))
    ]


def functions() -> list[tuple[str, ast.FunctionDef]]:
    return [(f"{f}:{node.name}", node) for f, node in nodes() if isinstance(node, ast.FunctionDef)]


def makes(node: ast.AST) -> bool:
    """Whether a function calls a door of verify/certificate.py by its name, or is a statement."""
    if isinstance(node, ast.FunctionDef) and node.name == "statement":
        return True
    calls = (n.func for n in ast.walk(node) if isinstance(n, ast.Call))
    return any(
        isinstance(f, ast.Name) and f.id in ("certificate", "certify", "issued") for f in calls
    )


def test_every_way_to_a_certificate_is_listed():
    door = {
        f"verify/certificate.py:{name}"
        for name in ("certificate", "certify", "issued", "statement", "text_of")
    }
    found = {name for name, node in functions() if makes(node)} - door
    assert found == set(WAYS)


def test_whatever_is_called_certificate_is_one_or_says_why_not():
    methods = {
        name
        for name, node in functions()
        if node.name == "certificate" and not name.startswith("verify/certificate.py")
    }
    assert methods == {name for name in WAYS if name.endswith(":certificate")} | set(FIGURES)


def test_certificates_are_made_in_one_place():
    """The marks of a certificate, its name and its digest, are written in one file."""
    for path, node in nodes():
        match node:
            case ast.Dict(keys=keys, values=values):
                texts = [
                    (k.value, v.value)
                    for k, v in zip(keys, values, strict=True)
                    if isinstance(k, ast.Constant) and isinstance(v, ast.Constant)
                ]
                assert ("lastbit", "certificate") not in texts or path == "verify/certificate.py"
            case ast.Assign(targets=[ast.Subscript(slice=ast.Constant(value="digest"))]):
                assert path == "verify/certificate.py"


def test_every_kind_has_a_way():
    assert {kind for kind, _ in (WAYS | FURTHER).values()} == set(KINDS)
    for kind in KINDS:
        assert beliefs(kind, {"code": []})


@pytest.mark.thinned(one_in=4)
@pytest.mark.parametrize("name", [*WAYS, *FURTHER])
def test_what_leaves_is_accepted_and_of_its_kind(name):
    kind, way = (WAYS | FURTHER)[name]
    made = way()
    made = getattr(made, "certificate", made)
    made = made() if callable(made) else made
    assert made["kind"] == kind
    assert problem_of(made) is None


@pytest.mark.thinned(one_in=4)
@pytest.mark.parametrize("name", [*WAYS, *FURTHER, *BOUNDS])
def test_nothing_leaves_that_the_checker_rejects(name, monkeypatch):
    way = BOUNDS[name] if name in BOUNDS else (WAYS | FURTHER)[name][1]
    way()
    monkeypatch.setattr(sealing, "problem_of", lambda sealed: "not today")
    with pytest.raises(LastbitError) as refused:
        way()
    assert isinstance(refused.value, NotCertified) or name in ("least_cell", "largest_region")


def test_the_public_functions_that_return_a_bound_are_listed():
    """By their annotations: whatever returns an analysis with a method certificate()."""
    with_one = {
        *("RoundingAnalysis", "DeclaredAnalysis", "DerivedLoss"),
        *("PolarAnalysis", "SnappingBound"),
    }
    found = set()
    for name, node in functions():
        public = name.startswith("verify/") and not node.name.startswith("_")
        if public and isinstance(node.returns, ast.Name) and node.returns.id in with_one:
            found.add(node.name)
    assert found == set(BOUNDS)


def test_nothing_rejected_is_written(tmp_path):
    good = verify.snapping_bound(epsilon=1, bound=2).certificate()
    save(good, tmp_path / "good.json")
    bad = json.loads(json.dumps(good))
    bad["claim"]["loss"] = "1"
    with pytest.raises(NotCertified, match="changed after it was written"):
        save(bad, tmp_path / "bad.json")
    with pytest.raises(NotCertified):
        text_of(bad)
    with pytest.raises(NotCertified):
        write_files(bad, {"certificate": tmp_path / "bad.json"})
    assert not (tmp_path / "bad.json").exists()
    assert issued(good) is good
    assert issued(dict(good)) == good


@pytest.mark.thinned(one_in=4)
@pytest.mark.parametrize("name", [*WAYS, *BOUNDS])
def test_the_checker_is_asked_once(name, monkeypatch, tmp_path):
    """From the code to the file: a second look at the same certificate would say the same."""
    asked: list[str] = []

    def counted(sealed: Any) -> str | None:
        asked.append(sealed["digest"])
        return problem_of(sealed)

    monkeypatch.setattr(sealing, "problem_of", counted)
    made = BOUNDS[name]() if name in BOUNDS else WAYS[name][1]()
    for _ in range(2):
        proof = getattr(made, "certificate", made)
        proof = proof() if callable(proof) else proof
        write_files(proof, {"certificate": tmp_path / "proof.json"})
    assert len(asked) == len(set(asked))
    # a search asks for every cell that it tries, a composition for every margin; the shipped
    # noise is certified as an analysis first, and then with what it stands for; so is a plan of
    # training, a composition and then how gradients are clipped
    several = ("largest_region", "least_cell", "composition_certificate", "_sealed")
    of_training = "training/plan.py:certificate"
    assert len(asked) == 1 or name.rpartition(":")[2] in several or name == of_training


def test_what_was_changed_after_it_passed_is_looked_at_again():
    good = verify.snapping_bound(epsilon=1, bound=2)
    proof = good.certificate()
    proof["claim"]["loss"] = "1"
    with pytest.raises(NotCertified, match="changed after it was written"):
        text_of(proof)
    assert good.certificate() != proof
    for strange in (True, 1.0, object(), {(): 1}, float("nan"), {1, 2}):
        proof = good.certificate()
        proof["version"] = strange  # 1 before, and True == 1.0 == 1
        with pytest.raises(NotCertified):
            text_of(proof)
    again = pickle.loads(pickle.dumps(copy.deepcopy(good.certificate())))
    assert again == good.certificate() and text_of(again) == text_of(good.certificate())


def test_a_hand_made_analysis_has_no_certificate():
    """Figures put together by hand pass the same door."""
    honest = verify.snapping_bound(epsilon=1, bound=4)
    other = verify.snapping_bound(epsilon=1, bound=2)
    forged = SnappingBound(
        epsilon=honest.epsilon,
        bound=honest.bound,
        format=honest.format,
        derivation=other.derivation,
    )
    with pytest.raises(NotCertified):
        forged.certificate()
