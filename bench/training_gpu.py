"""Noise, clipped sums and steps on a CUDA device: are they right there, and how fast are they.

Writes bench/results/training_gpu.json. Needs torch, triton and a device; steps need Opacus.
`--only steps` measures these, and keeps what is written of the others.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import time
from collections.abc import Callable
from datetime import UTC, datetime
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

RESULTS = Path(__file__).parent / "results" / "training_gpu.json"
SCALES = (Fraction(1), Fraction(1 << 24), Fraction(10**12, 7), Fraction((1 << 47) - 12_345))
PART = 1 << 12
LANES = 1 << 15


def by_arb(task: tuple[int, Fraction]) -> Any:
    """Lanes of eight numbers, all decided by balls."""
    from lastbit.sampling.bits import secure_bits
    from lastbit.training.gpu.decision import decided

    start, deviation = task
    lanes = np.arange(start, start + PART)
    every = np.full(PART, 255, np.uint8)
    return decided(secure_bits(), np.arange(8, dtype=np.uint32) ** 9, lanes, every, deviation)


def differing(torch: Any, launch: Any) -> dict[str, Any]:
    """Of a million draws, how many differ from balls where the device is certain."""
    from lastbit.training.gpu.constants import NARROW_DEVIATION, constants_of

    tested = wrong = unsure_in_all = 0
    key = np.arange(8, dtype=np.uint32) ** 9
    with multiprocessing.get_context("spawn").Pool() as pool:
        for deviation in SCALES:
            sums = torch.zeros(8 * LANES, dtype=torch.int64, device="cuda")
            marks = (
                launch.add_certain(
                    key, sums, constants_of(deviation), narrow=deviation <= NARROW_DEVIATION
                )
                .cpu()
                .numpy()
            )
            unsure = np.unpackbits(marks[np.newaxis], axis=0, bitorder="little").astype(bool)
            true = np.zeros(8 * LANES, np.int64)
            for lane, place, value in pool.map(
                by_arb, [(s, deviation) for s in range(0, LANES, PART)]
            ):
                true[lane + place * LANES] = value
            wrong += int(np.count_nonzero((true != sums.cpu().numpy()) & ~unsure.ravel()))
            unsure_in_all += int(unsure.sum())
            tested += true.size
    return {"draws": tested, "open": unsure_in_all, "wrong": wrong}


def milliseconds(torch: Any, act: Callable[[], object], repeats: int = 15) -> float:
    """The median of several runs, by the device's own clock."""
    act()
    torch.cuda.synchronize()
    times = []
    for _ in range(repeats):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        act()
        end.record()
        torch.cuda.synchronize()
        times.append(start.elapsed_time(end))
    return float(np.median(times))


def wall(torch: Any, act: Callable[[], object], repeats: int = 9) -> float:
    """The same with what the host does, in milliseconds."""
    act()
    times = []
    for _ in range(repeats):
        torch.cuda.synchronize()
        start = time.perf_counter()
        act()
        torch.cuda.synchronize()
        times.append(1000 * (time.perf_counter() - start))
    return float(np.median(times))


CHOICES: dict[str, dict[str, Any]] = {
    f"{32 * warps} lanes, {warps} warps": {"block": 32 * warps, "num_warps": warps, "narrow": True}
    for warps in (2, 4, 8)
}
CHOICES["256 lanes, 8 warps, wide"] = {"block": 256, "num_warps": 8, "narrow": False}


def launched(sums: Any, marks: Any, key: Any, **choice: Any) -> Any:
    """One launch of the noise kernel, compiled as chosen."""
    from lastbit.training.gpu import gaussian
    from lastbit.training.gpu.constants import constants_of

    lanes = sums.numel() // 8
    return gaussian.noise[(-(-lanes // choice["block"]),)](
        sums, marks, sums.numel(), lanes, *key.view(np.int32).tolist(),
        *constants_of(Fraction(1 << 24)).patterns, enable_fp_fusion=False, **choice,
    )  # fmt: skip


def clip_results(torch: Any) -> dict[str, Any]:
    """Norms, factors, and the sum of 64 gradients of 2**24 numbers: floats, and whole numbers."""
    from lastbit.training.gpu import clipping, sums

    examples, columns, bound = 64, 1 << 24, 1 << 24
    rows = torch.randn(examples, columns, device="cuda")
    total = torch.zeros(columns, dtype=torch.int64, device="cuda")

    def of_floats() -> Any:
        factor = (1 / (rows.norm(2, dim=1) + 1e-6)).clamp(max=1.0)
        return torch.einsum("i,ij->j", factor, rows)

    def factors() -> Any:
        length = torch.linalg.vector_norm(rows, dim=1).double()
        return bound * (1 - 2.0**-20) / length.clamp(min=1.0)

    def of_integers() -> Any:
        scaled = (rows * factors().float()[:, None]).to(torch.int32)
        return scaled.sum(dim=0, dtype=torch.int64)

    results = {
        "floats (einsum), ms": milliseconds(torch, of_floats),
        "norms and factors alone, ms": milliseconds(torch, factors),
        "integers by torch, unchecked, ms": milliseconds(torch, of_integers),
    }
    for tile in ((1, 1024, 4), (4, 1024, 4), (8, 1024, 8), (8, 512, 4)):  # the last is ours
        sums._ROWS, sums._COLUMNS, sums._WARPS = tile
        name = "integers, checked, {} rows, {} columns, {} warps, ms".format(*tile)

        def whole() -> None:
            assert sums.add_whole([rows], factors(), [total], bound=bound)

        results[name] = milliseconds(torch, whole)
        empty = torch.empty_like(total)
        factor = factors().float()
        counters = torch.zeros((2, examples), dtype=torch.int64, device="cuda")
        results[name.replace("checked", "the kernel alone")] = milliseconds(
            torch,
            partial(
                clipping.add_whole_rows[(-(-columns // sums._COLUMNS),)],
                rows, columns, columns, examples, factor, empty, counters[0], counters[1], bound,
                double=False, few=True, together=sums._ROWS, block=sums._COLUMNS,
                num_warps=sums._WARPS, enable_fp_fusion=False,
            ),
        )  # fmt: skip
    total.zero_()
    whole()
    results["equal to torch's integers"] = bool((total == of_integers()).all())
    return results


def noise_results(torch: Any) -> dict[str, Any]:
    from lastbit.training.gpu import known_answer, launch, noise
    from lastbit.training.gpu.constants import constants_of, open_share

    results: dict[str, Any] = {}
    results["known answer"] = known_answer.digest_of(torch.device("cuda")) == known_answer._KNOWN
    results["against balls"] = differing(torch, launch)
    many = 1 << 30
    floats = torch.empty(many, dtype=torch.float32, device="cuda")
    normal = milliseconds(torch, floats.normal_)
    del floats
    results["torch.normal_, draws a second"] = many / normal * 1e3
    sums = torch.zeros(many, dtype=torch.int64, device="cuda")
    results["adding 1 to int64 in place, numbers a second"] = (
        many / milliseconds(torch, lambda: sums.add_(1)) * 1e3
    )
    key = np.arange(8, dtype=np.uint32) ** 9
    marks = torch.empty(many // 8, dtype=torch.uint8, device="cuda")
    results["draws a second"] = {
        name: many / milliseconds(torch, partial(launched, sums, marks, key, **choice)) * 1e3
        for name, choice in CHOICES.items()
    }
    compiled = launched(sums, marks, key, **CHOICES["256 lanes, 8 warps"])
    results["compiled"] = {"registers": compiled.n_regs, "spills": compiled.n_spills}
    results["open of 2**30"] = {}
    for power in (10, 20, 24, 27, 30, 36):
        deviation = Fraction(1 << power)
        sums.zero_()
        left = launch.add_certain(key, sums, constants_of(deviation)).cpu().numpy()
        results["open of 2**30"][f"2**{power}"] = [
            int(np.unpackbits(left).sum()), round(many * open_share(deviation), 2),
        ]  # fmt: skip
    results["with everything, draws a second"] = {}
    for count in (10**6, 10**7, 10**8, 1 << 30):
        part = sums[:count]
        taken = wall(torch, partial(noise.add_rounded_gaussian, part, 1 << 24))
        results["with everything, draws a second"][str(count)] = count / taken * 1e3
    return results


def step_results(torch: Any) -> dict[str, Any]:
    """Steps of all ways in turn, by the wall: the median; and the most memory that one takes."""
    import training

    models: dict[str, tuple[Callable[[], Any], int, Callable[[int], Any]]] = {
        "network 784-2048-10": (
            lambda: torch.nn.Sequential(
                torch.nn.Linear(784, 2048), torch.nn.ReLU(), torch.nn.Linear(2048, 10)
            ),
            512,
            lambda rows: torch.randn(rows, 784),
        ),
        "transformer of width 256": (
            lambda: training.Transformer(width=256),
            256,
            lambda rows: torch.randint(64, (rows, 32)),
        ),
    }
    results: dict[str, Any] = {}
    for name, (make, batch, inputs) in models.items():
        torch.manual_seed(0)
        x, y = inputs(batch).cuda(), torch.randint(10, (batch,)).cuda()
        takers = {way: training.stepper(way, make().cuda(), batch, 60) for way in training.WAYS}
        spent: dict[str, list[float]] = {way: [] for way in takers}
        used = dict.fromkeys(takers, 0.0)
        for turn in range(50):
            for way, take in takers.items():
                torch.cuda.synchronize()
                torch.cuda.reset_peak_memory_stats()
                before, start = torch.cuda.memory_allocated(), time.perf_counter()
                take(x, y)
                torch.cuda.synchronize()
                if turn > 4:  # kernels are compiled in the first
                    spent[way].append(time.perf_counter() - start)
                    most = (torch.cuda.max_memory_allocated() - before) / 2**20
                    used[way] = max(used[way], most)
        results[name] = {
            way: {"milliseconds": 1000 * float(np.median(spent[way])), "megabytes": used[way]}
            for way in takers
        }
    return results


PARTS: dict[str, Callable[[Any], dict[str, Any]]] = {
    "noise": noise_results,
    "clipped sums": clip_results,
    "steps": step_results,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=RESULTS)
    parser.add_argument("--only", choices=sorted(PARTS), action="append", help="these alone")
    chosen = parser.parse_args()
    import torch
    import triton

    results = json.loads(RESULTS.read_text("utf-8")) if chosen.only else {}
    results["date"] = datetime.now(UTC).date().isoformat()
    results["machine"] = (
        f"{torch.cuda.get_device_name()}, torch {torch.__version__}, triton {triton.__version__}"
    )
    for name, measure in PARTS.items():
        if not chosen.only or name in chosen.only:
            results[name] = measure(torch)
    chosen.output.write_text(json.dumps(results, indent=1) + "\n")
    print(chosen.output.read_text())


if __name__ == "__main__":
    main()
