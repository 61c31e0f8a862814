"""DP-SGD beside Opacus: time and memory of a step, and accuracy at equal epsilon.

`make bench-training`, in the environment of `make training-tests`. Steps of all ways are taken in
turn in one process, so that ratios survive a busy machine; memory is that of a process of its own.
Accuracy: digits of scikit-learn, and first names, told as a man's or a woman's by their letters
(the package gender-guesser lists them); a test set apart, several seeds; the same plan for both.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import time
import unicodedata
import warnings
import zlib
from collections.abc import Callable
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any

import torch
from peer_environment import folder_of, install

from lastbit.training import TrainingPlan, training_plan
from lastbit.training.tensors import exact, loader

WAYS = ("opacus", "opacus-secure", "lastbit-opacus", "lastbit-func")
RECORD = Path(__file__).parent / "results" / "training.json"


class Attention(torch.nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.ask, self.key, self.value, self.out = (torch.nn.Linear(width, width) for _ in range(4))

    def forward(self, x: Any) -> Any:
        rows, length, width = x.shape
        parts = [
            layer(x).view(rows, length, self.heads, width // self.heads).transpose(1, 2)
            for layer in (self.ask, self.key, self.value)
        ]
        mixed = torch.nn.functional.scaled_dot_product_attention(*parts)
        return self.out(mixed.transpose(1, 2).reshape(rows, length, width))


class Block(torch.nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.first, self.second = torch.nn.LayerNorm(width), torch.nn.LayerNorm(width)
        self.attention = Attention(width, heads)
        self.inner, self.outer = (
            torch.nn.Linear(width, 4 * width),
            torch.nn.Linear(4 * width, width),
        )

    def forward(self, x: Any) -> Any:
        x = x + self.attention(self.first(x))
        return x + self.outer(torch.nn.functional.gelu(self.inner(self.second(x))))


class Transformer(torch.nn.Module):
    """Two blocks of width 64 over 32 letters: 110,000 parameters."""

    def __init__(self, letters: int = 64, width: int = 64, classes: int = 10) -> None:
        super().__init__()
        self.letters = torch.nn.Embedding(letters, width)
        self.blocks = torch.nn.Sequential(Block(width, 4), Block(width, 4))
        self.end = torch.nn.Linear(width, classes)

    def forward(self, x: Any) -> Any:
        return self.end(self.blocks(self.letters(x)).mean(dim=1))


def network() -> Any:
    """Two layers on the 64 pixels of a digit: 42,000 parameters."""
    return torch.nn.Sequential(torch.nn.Linear(64, 560), torch.nn.ReLU(), torch.nn.Linear(560, 10))


MODELS: dict[str, tuple[Callable[[], Any], int, Callable[[int], Any]]] = {
    "network of two layers": (network, 128, lambda rows: torch.randn(rows, 64)),
    "small transformer": (Transformer, 32, lambda rows: torch.randint(64, (rows, 32))),
}


def entropy(model: Any, x: Any, y: Any) -> Any:
    return torch.nn.functional.cross_entropy(model(x), y)


def stepper(way: str, model: Any, batch: int, steps: int) -> Callable[[Any, Any], None]:
    """A function that takes one step on a batch."""
    import opacus

    inner = torch.optim.SGD(model.parameters(), lr=0.05)
    plan = training_plan(
        examples=batch * 100, batch=batch, steps=steps, noise_multiplier=1, delta="1e-5"
    )
    if way == "lastbit-func":
        alone = exact(inner, plan, norm=1, model=model, loss=entropy, microbatch=batch)

        def by_func(x: Any, y: Any) -> None:
            alone.backward(x, y)
            alone.step()

        return by_func
    sampled = opacus.GradSampleModule(model)
    private: Any
    if way == "lastbit-opacus":
        private = exact(inner, plan, norm=1)
    else:
        private = opacus.optimizers.DPOptimizer(
            inner,
            noise_multiplier=1.0,
            max_grad_norm=1.0,
            expected_batch_size=batch,
            secure_mode=way.endswith("secure"),
        )

    def by_opacus(x: Any, y: Any) -> None:
        entropy(sampled, x, y).backward()
        private.step()
        private.zero_grad()

    return by_opacus


def times(name: str, steps: int) -> dict[str, float]:
    """Seconds of processor time a step on one thread, all ways in turn: the median."""
    make, batch, inputs = MODELS[name]
    torch.manual_seed(0)
    x, y = inputs(batch), torch.randint(10, (batch,))
    takers = {way: stepper(way, make(), batch, steps + 2) for way in WAYS}
    spent: dict[str, list[float]] = {way: [] for way in WAYS}
    for turn in range(steps + 2):
        for way, take in takers.items():
            start = time.process_time()
            take(x, y)
            if turn > 1:
                spent[way].append(time.process_time() - start)
    return {way: statistics.median(all_of) for way, all_of in spent.items()}


def memory(name: str, way: str) -> float:
    """MB that twenty steps took at most, above what was there before, in a process of its own."""
    code = f"import training; print(training.own_memory({name!r}, {way!r}))"
    ran = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        cwd=Path(__file__).parent,
        capture_output=True,
        text=True,
        check=True,
    )
    return float(ran.stdout.split()[-1])


def own_memory(name: str, way: str) -> float:
    torch.set_num_threads(1)
    make, batch, inputs = MODELS[name]
    x, y = inputs(batch), torch.randint(10, (batch,))
    take = stepper(way, make(), batch, 20)
    Path("/proc/self/clear_refs").write_text("5")  # forgets the peak: imports took more
    before = _kilobytes("VmRSS")
    for _ in range(20):
        take(x, y)
    return (_kilobytes("VmHWM") - before) / 1024


def _kilobytes(name: str) -> int:
    lines = Path("/proc/self/status").read_text("ascii").splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith(name)))


Split = tuple[Any, Any, Any, Any]
"""Inputs and labels to train on, and others to test on."""
GRAMS, LONGEST_GRAM = 512, 3


@cache
def digits() -> Split:
    from sklearn.datasets import load_digits

    told = load_digits()
    order = torch.randperm(len(told.data), generator=torch.Generator().manual_seed(0))
    x = torch.tensor(told.data, dtype=torch.float32)[order] / 16
    y = torch.tensor(told.target)[order]
    return x[:1200], y[:1200], x[1200:], y[1200:]


@cache
def first_names() -> Split:
    """Names that the package is sure of, by the runs of up to three letters that they hold."""
    if reason := install("first names"):
        raise SystemExit(f"the list of first names is missing: {reason}")
    (listed,) = folder_of("first names").rglob("nam_dict.txt")
    sexes: dict[str, set[str]] = {}
    for line in listed.read_text("utf-8").splitlines():
        sex, name = line[:2].strip(), line[3:29].strip()
        if sex in ("M", "F") and "+" not in name:
            sexes.setdefault(unicodedata.normalize("NFC", name.lower()), set()).add(sex)
    names = sorted(name for name, both in sexes.items() if len(both) == 1)
    order = torch.randperm(len(names), generator=torch.Generator().manual_seed(0)).tolist()
    x, y = torch.zeros(len(names), GRAMS), torch.zeros(len(names), dtype=torch.long)
    for row, place in enumerate(order):
        name = names[place]
        y[row] = int("F" in sexes[name])
        framed = f"^{name}$"
        for size in range(1, LONGEST_GRAM + 1):
            for start in range(len(framed) - size + 1):
                x[row, zlib.crc32(framed[start : start + size].encode()) % GRAMS] = 1
    cut = 1000 * (len(names) // 1250)  # four fifths, in whole thousands
    return x[:cut], y[:cut], x[cut:], y[cut:]


def shallow(inputs: int, classes: int) -> Callable[[], Any]:
    """A layer of 32 or 64 numbers between inputs and classes."""
    width = 64 if inputs < GRAMS else 32

    def network() -> Any:
        first, last = torch.nn.Linear(inputs, width), torch.nn.Linear(width, classes)
        return torch.nn.Sequential(first, torch.nn.Tanh(), last)

    return network


# what is told, the model, the size of a batch, epochs
TASKS: dict[str, tuple[Callable[[], Split], Callable[[], Any], int, int]] = {
    "digits": (digits, shallow(64, 10), 200, 30),
    "first names": (first_names, shallow(GRAMS, 2), 500, 8),
}


def accuracy(task: str, way: str, plan: TrainingPlan, seed: int) -> float:
    """The share of the test set that is told right after a run of the plan."""
    import opacus

    split, make, _, _ = TASKS[task]
    x, y, test_x, test_y = split()
    torch.manual_seed(seed)
    model = make()
    inner = torch.optim.SGD(model.parameters(), lr=1.0, momentum=0.5)
    data = torch.utils.data.TensorDataset(x, y)
    private: Any
    if way == "lastbit":
        private = exact(inner, plan, norm=1, model=model, loss=entropy, microbatch=256)
        for inputs, targets in loader(data, plan):
            private.backward(inputs, targets)
            private.step()
    else:
        sampled = opacus.GradSampleModule(model)
        private = opacus.optimizers.DPOptimizer(
            inner,
            noise_multiplier=float(plan.noise_multiplier),
            max_grad_norm=1.0,
            expected_batch_size=int(plan.expected_batch),
        )
        for inputs, targets in loader(data, plan):
            if len(inputs):
                entropy(sampled, inputs, targets).backward()
                private.step()
            private.zero_grad()
    with torch.no_grad():
        return float((model(test_x).argmax(1) == test_y).float().mean())


def measured_accuracy(task: str, seeds: int) -> dict[str, Any]:
    """By epsilon and way, the accuracy for each seed."""
    split, _, batch, epochs = TASKS[task]
    examples, record = len(split()[0]), {}
    for epsilon in (1, 3, 8):
        plan = training_plan(
            examples=examples, batch=batch, epochs=epochs, epsilon=epsilon, delta="1e-5"
        )
        shares = {
            way: [accuracy(task, way, plan, seed) for seed in range(seeds)]
            for way in ("opacus", "lastbit")
        }
        record[str(epsilon)] = shares
        words = ", ".join(
            f"{way} {statistics.mean(own):.3f} ± {statistics.stdev(own):.3f}"
            for way, own in shares.items()
        )
        print(f"{task} ({examples:,} examples), epsilon {epsilon}: {words}", flush=True)
    return record


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--seeds", type=int, default=5)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    import opacus

    record: dict[str, Any] = {
        "date": date.today().isoformat(),
        "machine": platform.machine(),
        "cores": os.cpu_count(),
        "load": [round(part, 1) for part in os.getloadavg()],
        "torch": torch.__version__,
        "opacus": opacus.__version__,
        "steps": {},
    }
    for name in MODELS:
        spent = times(name, asked.steps)
        used = {way: memory(name, way) for way in WAYS}
        record["steps"][name] = {
            way: {"seconds": spent[way], "megabytes": used[way]} for way in WAYS
        }
        for way in WAYS:
            ratio, more = spent[way] / spent["opacus"], used[way] / used["opacus"]
            print(f"{name}, {way}: {spent[way] * 1e3:.1f} ms ({ratio:.2f} x), "
                  f"{used[way]:.0f} MB ({more:.2f} x)", flush=True)  # fmt: skip
    record["accuracy"] = {task: measured_accuracy(task, asked.seeds) for task in TASKS}
    RECORD.write_text(json.dumps(record, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
