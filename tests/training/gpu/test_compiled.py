"""What the compiler makes of the kernels for devices that need not be here.

Only operations that IEEE 754 rounds correctly may be in the noise kernel, and none that a machine's
assembler is free to fuse.
"""

import os
import re
import subprocess
import sys

import pytest

from tests.training.gpu.interpreted import torch

assert torch
PROGRAM = """
import sys, triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from lastbit.training.gpu import clipping, gaussian

kernel, constants, capability = sys.argv[1], eval(sys.argv[2]), int(sys.argv[3])
words = [f"k{i}" for i in range(8)]
noise = {"sums": "*i64", "marks": "*u8", "count": "i32", "lanes": "i32",
         **dict.fromkeys(words, "i32"),
         **dict.fromkeys(("square", "first", "second", "third"), "i64")}
clip = {"rows": "*bf16", "stride": "i32", "columns": "i32", "examples": "i32", "factors": "*fp32",
        "sums": "*i64", "low": "*i64", "high": "*i64", "bound": "i32"}
function, types = {"noise": (gaussian.noise, noise),
                   "clip": (clipping.add_whole_rows, clip)}[kernel]
source = ASTSource(fn=function, signature=types | dict.fromkeys(constants, "constexpr"),
                   constexprs=constants)
made = triton.compile(source, target=GPUTarget("cuda", capability, 32),
                      options={"num_warps": 4, "enable_fp_fusion": False})
print(made.asm["ptx"])
"""
KERNELS = [
    ("noise", {"narrow": True, "block": 128}),
    ("noise", {"narrow": False, "block": 128}),
    ("clip", {"double": False, "few": True, "together": 8, "block": 1024}),
]


def assembly_of(kernel: str, constants: dict[str, object], capability: int) -> str:
    """PTX, compiled in a process in which Triton does not interpret."""
    environment = {**os.environ, "TRITON_INTERPRET": "0"}
    return subprocess.run(
        [sys.executable, "-c", PROGRAM, kernel, repr(constants), str(capability)],
        env=environment, text=True, capture_output=True, check=True,
    ).stdout  # fmt: skip


@pytest.mark.parametrize("capability", [80, 90])
@pytest.mark.parametrize(("kernel", "constants"), KERNELS)
def test_kernels_compile_to_rounded_operations_alone(
    kernel: str, constants: dict[str, object], capability: int
) -> None:
    text = assembly_of(kernel, constants, capability)
    every = set(re.findall(r"^\s+(?:@!?%p\d+ )?([a-z][\w.]*)\s", text, re.MULTILINE))
    operations = {one for one in every if ".f64" in one and not one.startswith("cvt.rn.f64")}
    exact = {"abs.f64", "neg.f64", "selp.f64", "mov.f64", "setp.lt.f64"}
    rounded = {"fma.rn.f64", "mul.rn.f64", "add.rn.f64", "sub.rn.f64"}
    assert operations <= exact | rounded, operations - exact - rounded
    if kernel == "noise":
        assert rounded - {"sub.rn.f64"} <= operations
        assert not {one for one in every if re.search(r"f32|ftz|approx|^(div|sqrt|call)", one)}
