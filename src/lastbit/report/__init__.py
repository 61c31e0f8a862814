"""Reports: pure functions of data that is already public.

Nothing in this room draws noise, reads a table or spends a budget. A function here takes plain
frozen values and returns text; the caller decides where the text goes. What is handed to this room
must be fit for release, because everything in it may be printed.

Pictures are SVG text written by hand: no plotting library, no script, no font or image from
elsewhere. They follow the reader's light or dark scheme and tell two series apart by shape and
lightness as well as by hue.

| file | holds |
|---|---|
| `plots.py` | panels of stems or bars for two series -> one self-contained SVG picture |
"""

from lastbit.report.plots import Bars, Panel, Series, Stems, Zone, picture

__all__ = ["Bars", "Panel", "Series", "Stems", "Zone", "picture"]
