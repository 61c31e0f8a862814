"""Certificates of every kind, small and quickly made, and ways to spoil them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import cache
from typing import Any

from lastbit.checker.numbers import digest
from lastbit.verify.coupling import coupled
from lastbit.verify.error_bounds.semantics import analyse, error_certificate
from lastbit.verify.rounded_code import derived_loss
from lastbit.verify.rounding import Query, rounding_certificate
from lastbit.verify.running.code import Code
from lastbit.verify.running.law import exact_loss
from lastbit.verify.running.uniforms import Grid
from lastbit.verify.running.witness import refute
from lastbit.verify.snapping import snapping_bound
from lastbit.verify.tracing.trace import trace
from tests.mutants import replaced
from tests.verify.coupled_code import noisy_max
from tests.verify.derived_code import two_sided
from tests.verify.logarithm_programs import snapped_threshold
from tests.verify.rounding_examples import one_uniform, with_sign

KINDS = (
    *("snapping", "rounding", "law", "refutation", "error-bound", "infinite-law", "query"),
    "derivation",
)
SHOWN = (
    *KINDS,
    "coupling",
    "by-logarithms",
)  # whose numbers may be changed into those of another proof
SNAPPED = "lastbit.mechanisms.snapping:snapped"

Certificate = dict[str, Any]
Path = tuple[str | int, ...]


@cache
def _text(kind: str) -> str:
    return json.dumps(_made(kind))


def _made(kind: str) -> Certificate:
    match kind:
        case "snapping":
            return snapping_bound(epsilon=0.7, bound=32).certificate()
        case "rounding":
            return rounding_certificate(
                with_sign, sensitivity=1, cell="1/16", region=(-4, 4)
            ).certificate()
        case "query":
            query = Query(function=lambda a, b: (a + b) / 3, ranges={"a": (0, 1), "b": (0, 1)})
            return rounding_certificate(
                one_uniform,
                sensitivity=1,
                cell="1/16",
                region=(-4, 4),
                uniform=Grid(53),
                query=query,
            ).certificate()
        case "law":
            code = Code(SNAPPED, epsilon=1.0, bound=4.0)
            return exact_loss(code, 2.5, 3.5).certificate(code)
        case "infinite-law":
            code = Code(SNAPPED, epsilon=1.0, bound=32.0)
            return exact_loss(code, 20.0, 21.0, uniform=Grid(53, first=1)).certificate(code)
        case "refutation":
            code = Code("tests.verify.judged:naive_laplace", scale=1.0)
            found = refute(code, 0.0, 1.0, uniform=Grid(53, first=1), signs=None, tries=5)
            assert found is not None
            return found.certificate(code)
        case "derivation":
            return derived_loss(two_sided, sensitivity=1).certificate()
        case "by-logarithms":
            return coupled(snapped_threshold, inputs=1, epsilon=2).certificate()
        case "coupling":
            return coupled(noisy_max, inputs=2, epsilon=1).certificate()
        case _:
            code_of = trace(lambda x, y: (x * y + 1.0) / (x + 3.0))
            return error_certificate(analyse(code_of, {"x": (1, 2), "y": (-1, 3)}, pieces=4))


def certificate(kind: str) -> Certificate:
    """A fresh copy."""
    return json.loads(_text(kind))


def sealed(spoiled: Certificate) -> Certificate:
    """The same with its digest worked out anew, as whoever cheats would do."""
    return {**spoiled, "digest": digest(spoiled)}


def leaves(value: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Every number, word and truth value with the way to it."""
    if isinstance(value, dict):
        for key, below in value.items():
            yield from leaves(below, (*path, key))
    elif isinstance(value, list):
        for index, below in enumerate(value):
            yield from leaves(below, (*path, index))
    else:
        yield path, value


def lists(value: Any, path: Path = ()) -> Iterator[tuple[Path, list[Any]]]:
    """Every list that is not empty."""
    if isinstance(value, list) and value:
        yield path, value
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, below in items:
        if isinstance(below, dict | list):
            yield from lists(below, (*path, key))


def put(whole: Certificate, path: Path, value: Any) -> Certificate:
    """A copy with one value replaced."""
    spoiled: Certificate = replaced(whole, path, value)
    return spoiled


def other(value: Any) -> Any:
    """The same with its first digit changed; words get a letter, truth values turn."""
    if value is None:
        return 1
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 1
    text = str(value)
    if text in ("0", "infinite"):
        return "1"
    digit = re.search(r"(?<=x1\.)[0-9a-f]|(?<!x)(?<![\w.])[1-9]", text)
    if digit is None or not re.fullmatch(r"-?[0-9/]+|-?0x[0-9a-f.p+-]+", text):
        return text + "X"
    changed = "2" if digit[0] == "1" else "1"
    return text[: digit.start()] + changed + text[digit.end() :]
