"""The direct kernel compiled for an H200 on a machine without one."""

import re
from types import SimpleNamespace

import pytest

from backends.cuda.launch import TOOLKIT
from backends.cuda.plan import DirectPlan
from pebble import ConvShape

CAPABILITY = (9, 0)


@pytest.fixture
def compiler(monkeypatch):
    """``cuda.compile``, with device functions compiled as if such a device were there."""
    pathfinder = pytest.importorskip("cuda.pathfinder")
    try:
        for library in TOOLKIT:
            pathfinder.load_nvidia_dynamic_lib(library)
    except RuntimeError as error:
        pytest.skip(f"no CUDA toolkit: {error}".splitlines()[0])
    from numba import cuda

    device = SimpleNamespace(compute_capability=CAPABILITY)
    monkeypatch.setattr("numba.cuda.dispatcher.get_current_device", lambda: device)
    return cuda.compile


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_memory_of_the_compiled_kernel(compiler, dtype):
    from numba import types

    from backends.cuda.direct import direct_kernel
    from backends.cuda.intrinsics import ACCUMULATOR, WORD

    shape = ConvShape.of((1, 64, 56, 56), (64, 64, 3, 3), pads=(1,) * 4, dtype=dtype)
    plan = DirectPlan.of(shape, {"n": 1, "k": 16, "c": 4, "h": 8, "w": 16})
    array = WORD[dtype][::1]
    signature = types.void(array, array, array, types.int64[::1])
    ptx, _ = compiler(
        direct_kernel(plan, False).py_func, signature, cc=CAPABILITY, device=False, abi="numba"
    )
    assert ".target sm_90" in ptx

    def declared(space):
        sizes = re.findall(rf"\.{space}\s+\.align\s+\d+\s+\.b8\s+\S+\[(\d+)\]", ptx)
        return sum(map(int, sizes))

    assert plan.shared_bytes - 15 * 8 < declared("shared") <= plan.shared_bytes
    # Nothing but the partial sums: no spills before register allocation, no copies of tables.
    assert declared("local") == plan.accumulators * ACCUMULATOR[dtype].bitwidth // 8
