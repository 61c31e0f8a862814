"""Noise and clipped sums on a CUDA device: are they right there, how fast, how many draws are open.

Writes bench/results/training_gpu.json. Needs torch, triton and a device.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import time
from collections.abc import Callable
from datetime import UTC, datetime
from fractions import Fraction
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


def differing(torch: Any, launch: Any, constants_of: Any) -> dict[str, Any]:
    """Of a million draws, how many differ from balls where the device is certain."""
    tested = wrong = unsure_in_all = 0
    key = np.arange(8, dtype=np.uint32) ** 9
    with multiprocessing.get_context("spawn").Pool() as pool:
        for deviation in SCALES:
            sums = torch.zeros(8 * LANES, dtype=torch.int64, device="cuda")
            marks = launch.add_certain(key, sums, constants_of(deviation)).cpu().numpy()
            unsure = np.unpackbits(marks[np.newaxis], axis=0, bitorder="little").astype(bool)
            true = np.zeros(8 * LANES, np.int64)
            for lane, place, value in pool.map(by_arb, [(s, deviation) for s in range(0, LANES, PART)]):
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


def noise_results(torch: Any) -> dict[str, Any]:
    from lastbit.training.gpu import gaussian, known_answer, launch, noise
    from lastbit.training.gpu.constants import constants_of, open_share

    results: dict[str, Any] = {}
    results["known answer"] = known_answer.digest_of(torch.device("cuda")) == known_answer._KNOWN
    results["against balls"] = differing(torch, launch, constants_of)
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
    speeds = {}
    for block, warps in ((64, 2), (128, 2), (128, 4), (256, 4), (256, 8), (512, 4), (512, 8)):

        def launch_once(block: int = block, warps: int = warps, fuse: bool = False) -> Any:
            return gaussian.noise[(-(-many // 8 // block),)](
                sums, marks, many, many // 8, *key.view(np.int32).tolist(),
                *constants_of(Fraction(1 << 24)).patterns,
                BLOCK=block, num_warps=warps, enable_fp_fusion=fuse,
            )  # fmt: skip

        speeds[f"{block} lanes, {warps} warps"] = many / milliseconds(torch, launch_once) * 1e3
        compiled = launch_once()
        if (block, warps) == (256, 4):
            text = compiled.asm["ptx"]
            results["compiled"] = {
                "registers": compiled.n_regs, "spills": compiled.n_spills,
                **{word: text.count(word) for word in
                   ("fma.rn.f64", "mul.f64", "mul.rn.f64", "add.f64", "add.rn.f64", "div", "sqrt",
                    "cvt", "call")},
            }  # fmt: skip
    results["draws a second"] = speeds
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
        taken = wall(torch, lambda part=part: noise.add_rounded_gaussian(part, 1 << 24))
        results["with everything, draws a second"][str(count)] = count / taken * 1e3
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=RESULTS)
    chosen = parser.parse_args()
    import torch
    import triton

    results = {
        "date": datetime.now(UTC).date().isoformat(),
        "machine": f"{torch.cuda.get_device_name()}, torch {torch.__version__}, "
        f"triton {triton.__version__}",
        "noise": noise_results(torch),
    }
    chosen.output.write_text(json.dumps(results, indent=1) + "\n")
    print(chosen.output.read_text())


if __name__ == "__main__":
    main()
