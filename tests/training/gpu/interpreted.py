"""The kernels on whatever is here: Triton's interpreter on a CPU, or a CUDA device.

`TRITON_INTERPRET=0 pytest tests/training/gpu` runs the same tests on a device.
"""

import importlib.util
import os
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

os.environ.setdefault("TRITON_INTERPRET", "1")  # read when the kernels are imported
torch = pytest.importorskip("torch")
pytest.importorskip("triton")

from triton.runtime import interpreter  # noqa: E402

from lastbit.sampling.deterministic import Seeded  # noqa: E402
from lastbit.training.gpu import (  # noqa: E402
    clipping as clipping,
    decision,
    gaussian as gaussian,
    known_answer as known_answer,
    launch as launch,
    noise as noise,
    sums as sums,
)
from lastbit.training.gpu.constants import constants_of  # noqa: E402
from tests.training.gpu.fused import interpret_fused  # noqa: E402

interpret_fused(interpreter)
DEVICE = torch.device("cpu" if gaussian.is_interpreted() else "cuda")


def key_of(seed: int) -> NDArray[np.uint32]:
    return Seeded(seed).fill(32).view(np.uint32)


def by_kernel(
    seed: int, count: int, deviation: Any, *, narrow: bool = False
) -> tuple[NDArray[Any], NDArray[Any]]:
    """What the kernel gives, and where it is not certain, for each number."""
    sums = torch.zeros(count, dtype=torch.int64, device=DEVICE)
    marks = launch.add_certain(key_of(seed), sums, constants_of(deviation), narrow=narrow)
    lanes = -(-count // decision.DRAWS)
    unsure = np.unpackbits(
        marks.cpu().numpy()[np.newaxis, :lanes], axis=0, bitorder="little"
    ).astype(bool)
    return sums.cpu().numpy(), unsure.reshape(-1)[:count]


def by_arb(seed: int, count: int, deviation: Any, key_seed: int = 0) -> NDArray[np.int64]:
    """The same numbers, all decided by balls."""
    lanes = -(-count // decision.DRAWS)
    every = np.full(lanes, 255, np.uint8)
    lane, place, value = decision.decided(
        Seeded(key_seed), key_of(seed), np.arange(lanes), every, deviation
    )
    numbers = np.zeros(lanes * decision.DRAWS, np.int64)
    numbers[lane + place * lanes] = value
    return numbers[:count]


def load_changed(module: ModuleType, path: Path, changes: list[tuple[str, str]]) -> ModuleType:
    """A module with other words in its source, each of which must be there."""
    assert module.__file__ is not None
    source = Path(module.__file__).read_text()
    for old, new in changes:
        assert old in source, old
        source = source.replace(old, new)
    path.write_text(source)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    changed = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(changed)
    return changed


def changed(path: Path, changes: list[tuple[str, str]]) -> ModuleType:
    """The noise kernel, changed."""
    return load_changed(gaussian, path, changes)
