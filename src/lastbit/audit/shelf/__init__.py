"""Targets made ready: numpy's noise, lastbit's, and that of other libraries.

A library is imported when its targets are asked for, and a clear error says how to install it.
Every target has the promise that its library makes, for two neighbouring inputs.

| file | holds |
|---|---|
| `catalogue.py` | `targets(library)` |
| `numpy_noise.py` | noise as people write it with numpy; fixed point by hand |
| `own_noise.py`, `own_points.py`, `own_answers.py` | lastbit's mechanisms |
| `own_samplers.py` | its samplers, made into mechanisms |
| `diffprivlib_noise.py`, `opendp_noise.py`, `pydp_noise.py`, `tumult_noise.py` | the others |
| `loading.py` | imports by name |
"""

from lastbit.audit.shelf.catalogue import LIBRARIES, targets

__all__ = ["LIBRARIES", "targets"]
