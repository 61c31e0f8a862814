"""The accountant: certified profiles of compositions.

| file | holds |
|---|---|
| `losses.py` | what one release loses: a proved dominating pair for each kind of noise |
| `profile.py` | `Profile`, a composition: its delta(epsilon) and epsilon(delta), from both sides |
| `calibrate.py` | the least noise for an epsilon and a delta after several releases |
| `component.py`, `subsampling.py` | the moments of each pair |
| `composition.py` | products of moments, and floats that choose where to compute |
| `engine.py` | which engine answers |
| `contour.py` | the line sum: moments on a vertical line, in balls |
| `cells.py` | releases about rare samples, between two pairs of atoms |
| `pair.py` | two releases, one at least about a sample |
| `choices.py` | the best bounds where mechanisms or data choose among several pairs |
| `bounded_range.py` | several releases of bounded range, chosen after earlier answers |
| `thresholds.py` | keys from a threshold up, which one of the neighbours has or both |
| `pieces.py`, `single.py` | residues, closed forms |
"""
