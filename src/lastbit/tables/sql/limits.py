"""How large a question in SQL may be, before it is a question (`tables/limits.py`)."""

from __future__ import annotations

LONGEST_SQL = 100_000  # characters
MOST_TOKENS = 20_000  # words and signs
DEEPEST_SQL = 30  # brackets and CASEs that stand inside each other
DEEPEST_TREE = 100  # levels of what the parser makes of it; a chain is one level
MOST_COLUMNS = 1_000  # times that a column is named
MOST_SUBQUERIES = 50  # SELECTs
PARSER_STEPS = 20  # steps of the parser for each word, forward and back; beyond, it goes in circles
LONGEST_DIGITS = 400  # digits of a number in a question
LARGEST_EXPONENT = 300  # of a number in a question, in absolute value
