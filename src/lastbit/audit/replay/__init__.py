"""Grey-box audits: record a program's noise, replay it on a neighbour, see what still moves.

| file | holds |
|---|---|
| `replay.py` | `record`, `replay`, `audit_program` |
| `recorder.py`, `hooks.py` | calls of noise primitives, heard while a program runs |
| `primitives.py`, `numpy_generators.py` | which calls are noise, and what they cost |
| `taint.py` | taint tracking of noise |
| `distance.py`, `neighbours.py` | neighbouring datasets, and how far inputs moved |
| `tape.py`, `findings.py` | what was heard, and what is wrong with it |
"""

from lastbit.doors import opened

__getattr__, __dir__, __all__ = opened(__name__)
