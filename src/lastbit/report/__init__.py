"""Reports: pure functions of data that is already public.

Nothing in this room draws noise, reads a table or spends a budget. A function here takes plain
frozen values and returns text; the caller decides where the text goes. What is handed to this room
must be fit for release, because everything in it may be printed.

Pictures are SVG text written by hand: no plotting library, no script, no font or image from
elsewhere. They follow the reader's light or dark scheme and tell series apart by shape or dashes
and by lightness as well as by hue.

| file | holds |
|---|---|
| `svg.py` | lines, words, the look that all pictures share |
| `plots.py` | panels of stems or bars for two series |
| `curves.py` | charts of named curves, on linear or logarithmic axes |
| `figures.py` | figures of the theory, worked out exactly: beliefs, polls, noise, composition |
| `noise_figures.py` | the same for noise that follows made-up data, and for places |
| `maps.py` | maps of true and noisy places |
| `claims.py`, `derivation_trees.py` | certificates in words, and their steps as trees |
| `derivations.py`, `proofs.py` | the same as an HTML page, and in LaTeX |
| `answers.py`, `answer_look.py` | answers about tables as one HTML page, and its style sheet |
| `answer_tables.py`, `answer_charts.py` | their numbers with intervals, as text and as charts |
| `answer_words.py`, `answer_plans.py` | question, promise and plan in words |
| `audit_figures.py`, `audit_page.py` | two output laws and what tells them apart; its page |
"""

from lastbit.doors import opened

__getattr__, __dir__, __all__ = opened(__name__)
