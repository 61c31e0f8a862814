"""Standard round-off benchmarks, with the bounds published for other tools.

The functions are the suite of Darulova and Kuncak ("Sound Compilation of Reals", POPL 2014), as
FPTaylor and FPBench carry it. `fptaylor` is the bound that HOL Light verified for FPTaylor
(soarlab/FPTaylor, benchmarks/toplas/formal-b.hl), for real inputs rounded to the nearest double;
for himmelblau and kepler0 what VCFloat's authors quote of it (VeriNum/vcfloat,
FPBench/plotting.py). `vcfloat` is the one that Coq verified for VCFloat2 (FPBench/*.v there,
CheckBound), for inputs that are doubles. None: not found.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache
from typing import Any

from lastbit.verify.error_bounds.semantics import analyse
from lastbit.verify.language.expressions import Expression
from lastbit.verify.tracing.trace import trace

D = Fraction  # D("0.1") is a tenth, as the suite means it


@dataclass(frozen=True)
class Benchmark:
    name: str
    function: Callable
    inputs: dict[str, tuple[str, str]]
    fptaylor: str | None
    vcfloat: str | None
    pieces: int = 32
    ulps: str = "1"
    constants: dict[str, str] = field(default_factory=dict)

    @property
    def ranges(self) -> dict[str, tuple[str, str]]:
        return {**self.inputs, **{name: (value, value) for name, value in self.constants.items()}}

    @property
    def expression(self) -> Expression:
        return trace(self.function, *self.ranges)

    def options(self, *, rounded: bool) -> dict[str, Any]:
        """Inputs are reals rounded to the nearest, or doubles; constants are rounded anyway."""
        off = self.ranges if rounded else self.constants
        errors = dict.fromkeys(off, "rounded")
        return {"errors": errors, "ulps": {"ln": self.ulps, "exp": self.ulps}}


@dataclass(frozen=True)
class Bounds:
    rounded: Fraction
    exact: Fraction


@cache
def _bounds(name: str) -> Bounds:
    (benchmark,) = [b for b in SUITE if b.name == name]
    rounded, exact = (
        analyse(
            benchmark.expression,
            benchmark.ranges,
            pieces=benchmark.pieces,
            **benchmark.options(rounded=which),
        ).error
        for which in (True, False)
    )
    return Bounds(rounded, exact)


def bounds(benchmark: Benchmark) -> Bounds:
    return _bounds(benchmark.name)


def doppler(u, v, t):
    t1 = D("331.4") + D("0.6") * t
    return (-t1 * v) / ((t1 + u) * (t1 + u))


def rigid_body_1(x1, x2, x3):
    return -x1 * x2 - 2 * x2 * x3 - x1 - x3


def rigid_body_2(x1, x2, x3):
    return 2 * x1 * x2 * x3 + 3 * x3 * x3 - x2 * x1 * x2 * x3 + 3 * x3 * x3 - x2


def verhulst(x):
    return (4 * x) / (1 + (x / D("1.11")))


def predator_prey(x):
    return (4 * x * x) / (1 + (x / D("1.11")) * (x / D("1.11")))


def carbon_gas(v, p, a, b, n, t, k):
    return (p + a * (n / v) * (n / v)) * (v - n * b) - k * n * t


def turbine_1(v, w, r):
    return 3 + 2 / (r * r) - D("0.125") * (3 - 2 * v) * (w * w * r * r) / (1 - v) - D("4.5")


def turbine_2(v, w, r):
    return 6 * v - D("0.5") * v * (w * w * r * r) / (1 - v) - D("2.5")


def turbine_3(v, w, r):
    return 3 - 2 / (r * r) - D("0.125") * (1 + 2 * v) * (w * w * r * r) / (1 - v) - D("0.5")


def sine(x):
    cube, fifth, seventh = x * x * x, x * x * x * x * x, x * x * x * x * x * x * x
    return x - cube / 6 + fifth / 120 - seventh / 5040


def square_root(x):
    return (
        1
        + D("0.5") * x
        - D("0.125") * x * x
        + D("0.0625") * x * x * x
        - D("0.0390625") * x * x * x * x
    )


def sine_order_3(x):
    return D("0.954929658551372") * x - D("0.12900613773279798") * (x * x * x)


def jet_engine(x1, x2):
    t = 3 * x1 * x1 + 2 * x2 - x1
    s = x1 * x1 + 1
    return x1 + (
        (2 * x1 * (t / s) * (t / s - 3) + x1 * x1 * (4 * (t / s) - 6)) * s
        + 3 * x1 * x1 * (t / s)
        + x1 * x1 * x1
        + x1
        + 3 * ((3 * x1 * x1 + 2 * x2 - x1) / s)
    )


def nonlinear_1(z):
    return z / (z + 1)


def himmelblau(x1, x2):
    a = x1 * x1 + x2 - 11
    b = x1 + x2 * x2 - 7
    return a * a + b * b


def kepler_0(x1, x2, x3, x4, x5, x6):
    return x2 * x5 + x3 * x6 - x2 * x3 - x5 * x6 + x1 * (-x1 + x2 + x3 - x4 + x5 + x6)


def log_exp(x):
    return math.log(1 + math.exp(x))


RIGID = dict.fromkeys(("x1", "x2", "x3"), ("-15", "15"))
TURBINE: dict[str, Any] = {"v": ("-4.5", "-0.3"), "w": ("0.4", "0.9"), "r": ("3.8", "7.8")}
KEPLER: dict[str, Any] = {f"x{i}": ("4", "6.36") for i in range(1, 7)}

GAS: dict[str, Any] = {
    "p": "3.5e7",
    "a": "0.401",
    "b": "42.7e-6",
    "n": "1000",
    "t": "300",
    "k": "1.3806503e-23",
}
DOPPLER_1 = {"u": ("-100", "100"), "v": ("20", "20000"), "t": ("-30", "50")}
DOPPLER_2 = {"u": ("-125", "125"), "v": ("15", "25000"), "t": ("-40", "60")}
DOPPLER_3 = {"u": ("-30", "120"), "v": ("320", "20300"), "t": ("-50", "30")}
JET: dict[str, Any] = {"x1": ("-5", "5"), "x2": ("-20", "5")}
FIVE: dict[str, Any] = {"x1": ("-5", "5"), "x2": ("-5", "5")}
QUARTER: dict[str, Any] = {"x": ("-1.57079632679", "1.57079632679")}

SUITE = (
    Benchmark("doppler1", doppler, DOPPLER_1, "1.59e-13", "4.5e-13"),
    Benchmark("doppler2", doppler, DOPPLER_2, "2.90e-13", "1.2e-12"),
    Benchmark("doppler3", doppler, DOPPLER_3, "8.22e-14", "2.0e-13"),
    Benchmark("rigidBody1", rigid_body_1, RIGID, "3.87e-13", "3.1e-13", 1),
    Benchmark("rigidBody2", rigid_body_2, RIGID, "5.24e-11", "3.9e-11", 1),
    Benchmark("verhulst", verhulst, {"x": ("0.1", "0.3")}, "3.24e-16", "2.33e-16"),
    Benchmark("predatorPrey", predator_prey, {"x": ("0.1", "0.3")}, "1.84e-16", "3.1e-16", 16),
    Benchmark("carbonGas", carbon_gas, {"v": ("0.1", "0.5")}, "9.13e-9", "2.5e-8", constants=GAS),
    Benchmark("turbine1", turbine_1, TURBINE, "2.32e-14", "7.9e-14"),
    Benchmark("turbine2", turbine_2, TURBINE, "2.55e-14", "1.2e-13"),
    Benchmark("turbine3", turbine_3, TURBINE, "1.24e-14", "6.1e-14"),
    Benchmark("sine", sine, QUARTER, "5.55e-16", None, 16),
    Benchmark("sineOrder3", sine_order_3, {"x": ("-2", "2")}, "9.52e-16", None, 16),
    Benchmark("sqroot", square_root, {"x": ("0", "1")}, "7.00e-16", None, 4),
    Benchmark("jetEngine", jet_engine, JET, "1.34e-11", None),
    Benchmark("t_div_t1", nonlinear_1, {"z": ("0", "999")}, "5.72e-14", "4.4e-16", 16),
    Benchmark("himmelblau", himmelblau, FIVE, "1.40e-12", "2.31e-12", 4),
    Benchmark("kepler0", kepler_0, KEPLER, "9.50e-14", "2.2005e-13", 4),
    Benchmark("logexp", log_exp, {"x": ("-8", "8")}, "2.07e-15", None, 128, "3/4"),
)
