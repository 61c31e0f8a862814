"""Gradients that no clipping expects: what a per-example rule has to withstand."""

import numpy as np

KINDS = (np.float16, np.float32, np.float64)


def gradients(rng, *, examples: int, parameters: int, kind) -> np.ndarray:
    """A matrix with a row for each example, each row hostile in a way of its own."""
    rows = np.stack([_row(rng, parameters) for _ in range(examples)])
    with np.errstate(all="ignore"):
        return rows.astype(kind)


def _row(rng, parameters: int) -> np.ndarray:
    size = 10.0 ** rng.integers(-45, 39)
    row = rng.standard_normal(parameters) * size
    match rng.integers(12):
        case 0:
            row[rng.integers(parameters)] = rng.choice([np.nan, np.inf, -np.inf])
        case 1:
            row[:] = rng.choice([1e30, -1e30, 3e38, 1e308, 6e4])
        case 2:
            row[:] = rng.choice([5e-324, -1e-45, 6e-8, 0.0, -0.0])
        case 3:
            row[:] = 0
            row[rng.integers(parameters)] = size
        case 4:
            row[rng.integers(parameters)] *= 1e20
        case 5:
            row = np.full(parameters, 1 / np.sqrt(parameters))  # exactly at the norm, about
        case 6:
            row = row / max(np.abs(row).max(), 1e-300)
        case 7:
            row = np.sign(row) * (1 + rng.integers(-3, 4) * 2.0**-23) / np.sqrt(parameters)
        case 8 | 9:
            row = rng.standard_normal(parameters)
        case 10:
            row = rng.integers(-3, 4, parameters) * (0.5 / np.sqrt(parameters))
    return row
