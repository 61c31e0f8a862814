"""Grey-box audit: record a program's noise, replay it on a neighbour, see what still changes.

| file | holds |
|---|---|
| `replay.py` | `record`, `replay`, `audit_program` |
| `recorder.py` | hooks; `Tape`: the calls of one run, who writes it, who answers from it |
| `numpy_generators.py` | hooks on numpy's types |
| `primitives.py` | which functions draw noise, and what a call protects; `noise` declares one |
| `taint.py` | draws that are tracked until they are added to a value |
| `distance.py` | how far inputs are apart, and what that costs; `bit_identical` outputs |
| `neighbours.py` | the neighbours of a dataset |
| `findings.py` | what is reported, and whether a claim is kept |
"""

from lastbit.doors import opened

__getattr__, __dir__, __all__ = opened(__name__)
