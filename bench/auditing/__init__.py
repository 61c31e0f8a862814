"""Mechanisms of the literature with known losses, to measure auditors with: not for use.

| file | holds |
|---|---|
| `benchmarks.py` | `benchmark(name)`, `benchmarks()`: claims, pairs and true losses |
| `laws.py` | exact losses for real noise |
| `optimum.py` | the most that counting can certify of two laws, and the runs it takes |
| `wrong.py` | `wrong_mechanisms()`: seventeen small mistakes |
| `noise.py` | textbook noise in floats, and sparse vectors made of it |
"""
