"""Certificates as files, and what they say in words."""

from __future__ import annotations

from pathlib import Path

import pytest

from lastbit.checker.dispatch import problem_of
from lastbit.errors import InvalidParameter, NotCertified
from lastbit.report.certificate import certificate_latex, certificate_page
from lastbit.report.claims import claim_of
from lastbit.verify.certificate import certificate, read, save
from lastbit.verify.declared import declared_certificate
from lastbit.verify.snapping import snapping_bound
from tests.verify.test_declared import SETTING, logistic


def test_what_is_saved_is_read(tmp_path: Path) -> None:
    made = snapping_bound(epsilon=1, bound=8).certificate()
    save(made, tmp_path / "a.json")
    assert read(tmp_path / "a.json") == made
    assert problem_of(read(tmp_path / "a.json")) is None


@pytest.mark.parametrize(
    "text", ["", "[]", "3", "{", '{"kind": "law", "kind": "snapping"}', "\xff"]
)
def test_what_is_no_object_is_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(InvalidParameter, match="certificate"):
        read(path)


def test_unknown_kinds_are_rejected() -> None:
    with pytest.raises(NotCertified, match="its kind is unknown"):
        certificate("wish", {"epsilon": "0"}, ["none"], {})


def test_a_declared_rate_is_called_so_and_the_machine_is_named() -> None:
    made = declared_certificate(logistic, **SETTING).certificate()
    facts = dict(claim_of(made).facts)
    assert facts["noise"].startswith("declared, not proved")
    assert facts["machine"].startswith("binary64; exp within 1 ulp")
    assert "declared rate 1 loses" in certificate_page(made)
    assert "declared rate 1 loses" in certificate_latex(made)
