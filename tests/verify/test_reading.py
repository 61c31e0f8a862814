"""Two readers of a stranger's JSON: both count before they parse, and read what json reads."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import example, given, strategies as st

from lastbit import reading
from lastbit.checker import Rejected, reading as checker
from lastbit.reading import NotJson, parse_json

BOTH: list[Callable[[bytes], Any]] = [parse_json, checker.value_of]
REFUSED = (NotJson, Rejected)
VALUES = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.floats(allow_nan=False, allow_infinity=False),
        st.text(),
        st.text('"\\[]{},:/u0019'),
    ),
    lambda inner: st.lists(inner) | st.dictionaries(st.text('"\\[]{}ab'), inner),
    max_leaves=20,
)


@given(VALUES, st.booleans(), st.sampled_from([None, 1]))
@example(["h [0, 1/2)"] * 300, False, None)
@example({"\\": '"', '\\"': ["\\\\", "]"]}, True, 1)
def test_what_is_json_is_read(value: Any, ascii_only: bool, indent: int | None) -> None:
    """Brackets and digits in texts count for nothing, however they are escaped."""
    data = json.dumps(value, ensure_ascii=ascii_only, indent=indent).encode(
        "utf-8", "surrogatepass"
    )
    try:
        data.decode()
    except UnicodeDecodeError:  # a half of a letter is no UTF-8
        return
    for read in BOTH:
        assert json.dumps(read(data)) == json.dumps(value)


def hostile() -> dict[str, bytes]:
    """Small files that would be large, or take long, once they are parsed."""
    many = reading.MOST_VALUES
    return {
        "objects": b"[" + b"{}," * (many // 2 + 1) + b"{}]",
        "lists": b"[" + b"[]," * (many // 2 + 1) + b"[]]",
        "numbers": b"[" + b"0," * (many + 1) + b"0]",
        "names": b"{" + b'"":0,' * (many // 2 + 1) + b'"":0}',
        "texts": b'""' * (2 * many + 1),
        "deep": b"[" * 201 + b"]" * 201,
        "deep objects": b'{"a":' * 201 + b"0" + b"}" * 201,
        "very deep": b"[" * 1_000_000,
        "digits": b"[" + b"7" * 1001 + b"]",
        "fraction": b"0." + b"7" * 1001,
        "million digits": b"7" * 1_000_000,
        "endless text": b'"' + b'\\"' * 1_000_000,
        "endless letters": b'"' + b"\\u0041" * 1_000_000,
        "cut": b'["\\',
    }


@pytest.mark.parametrize("read", BOTH)
def test_hostile_texts_cost_little_more_than_themselves(read: Callable[[bytes], Any]) -> None:
    """Failed before: objects took 24 times the memory of their file."""
    for name, data in hostile().items():
        tracemalloc.start()
        try:
            with pytest.raises(REFUSED):
                read(data)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert peak < 4 * len(data) + (1 << 20), name


@pytest.mark.parametrize("read", BOTH)
def test_what_is_just_small_enough_is_read(read: Callable[[bytes], Any]) -> None:
    assert read(b"[" * 200 + b"]" * 200) is not None
    assert read(b"7" * 1000) == int("7" * 1000)
    assert read(b'"' + b"7" * 5000 + b"[" * 5000 + b'"') is not None


@pytest.mark.parametrize(
    "text", ["", "{", '{"a": 1, "a": 2}', "\ufeff{}", "[1,]", "nul", '"\x01"', "'a'"]
)
@pytest.mark.parametrize("read", BOTH)
def test_what_is_no_json_is_refused(read: Callable[[bytes], Any], text: str) -> None:
    with pytest.raises(REFUSED):
        read(text.encode())


@pytest.mark.parametrize("text", ["NaN", "[-Infinity]", "1e999", '{"a": 1, "a": 1}'])
def test_odd_numbers_and_names_are_refused(text: str) -> None:
    with pytest.raises(NotJson) as caught:
        parse_json(text)
    assert "1" not in str(caught.value)


def test_both_have_the_same_bounds() -> None:
    for name in ("MOST_BYTES", "MOST_VALUES", "DEEPEST", "MOST_DIGITS"):
        assert getattr(reading, name) == getattr(checker, name)
