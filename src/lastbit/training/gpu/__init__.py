"""What training does on a CUDA device: noise, and gradients clipped to whole numbers and added.

`noise.py` and `sums.py` are for callers. `gaussian.py` and `clipping.py` are the Triton kernels,
`constants.py` holds the proved bounds of the first, `decision.py` decides exactly what it leaves
open, and `known_answer.py` compares a device's results with those of an ordinary processor before
its first draw.

Importing any of `noise.py`, `sums.py`, `known_answer.py`, `gaussian.py` or `clipping.py` needs
torch and triton; the others need neither.
"""
