"""What stands in for the parts of SGLang that no CPU has."""

import subprocess
import sys

from engines.launch import sglang_cpu

KERNEL = """
import triton
import triton.language as tl
from triton.runtime.autotuner import OutOfResources
from triton.backends.compiler import GPUTarget

class Target(GPUTarget): pass

@triton.autotune(configs=[triton.Config({"BLOCK": 32}, num_warps=2)], key=["n"])
@triton.jit
def kernel(x, n: tl.constexpr):
    return n

print(kernel(None, 7), triton.cdiv(7, 2), triton.next_power_of_2(5), bool(triton.runtime.driver))
"""


def test_it_imports_gpu_kernels_without_triton() -> None:
    done = subprocess.run(
        [sys.executable, "-c", KERNEL],
        env={"PYTHONPATH": str(sglang_cpu.SHIMS)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["7", "4", "8", "False"]
