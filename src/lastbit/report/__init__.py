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

from lastbit.report.audit_figures import Cell, LawPanel, law_picture
from lastbit.report.audit_page import AuditStory, audit_page
from lastbit.report.claims import Claim, claim_of
from lastbit.report.curves import Axis, Chart, Curve, Mark, chart, powers_of_ten
from lastbit.report.derivations import certificate_page
from lastbit.report.figures import (
    composition_figure,
    gaussian_curve_figure,
    laplace_figure,
    poll_figure,
    posterior_figure,
)
from lastbit.report.maps import PlaceMap, place_map
from lastbit.report.noise_figures import (
    admissible_figure,
    planar_figure,
    smooth_sensitivity_figure,
)
from lastbit.report.plots import Bars, Panel, Series, Stems, Zone, picture
from lastbit.report.proofs import certificate_latex

__all__ = [
    "AuditStory",
    "Axis",
    "Bars",
    "Cell",
    "Chart",
    "Claim",
    "Curve",
    "LawPanel",
    "Mark",
    "Panel",
    "PlaceMap",
    "Series",
    "Stems",
    "Zone",
    "admissible_figure",
    "audit_page",
    "certificate_latex",
    "certificate_page",
    "chart",
    "claim_of",
    "composition_figure",
    "gaussian_curve_figure",
    "laplace_figure",
    "law_picture",
    "picture",
    "place_map",
    "planar_figure",
    "poll_figure",
    "posterior_figure",
    "powers_of_ten",
    "smooth_sensitivity_figure",
]
