"""Texts and names as TOML: the parser gives them back, and a terminal sees nothing else."""

from __future__ import annotations

import tomllib

import pytest
from hypothesis import example, given, strategies as st

from lastbit.errors import InvalidParameter
from lastbit.tables.card.toml import toml_key, toml_string

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)


@given(TEXTS, TEXTS)
@example('"]\n[budget]\nepsilon = 100 #', "'''")
@example("\x7f\x9b31m\u2028\u202e\ufeff\U000e0001", "\x00\r\t\\")
def test_what_is_written_is_read_back(text, key):
    line = f"{toml_key(key, text)} = {toml_string(text)}"
    assert line.isprintable()
    assert tomllib.loads(line) == {key: {text: text}}


def test_half_a_surrogate_pair_is_refused():
    with pytest.raises(InvalidParameter, match="is not Unicode text"):
        toml_string("a\udc80")
