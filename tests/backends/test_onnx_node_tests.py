"""The Conv and ConvTranspose cases of the ONNX project, against their stored outputs."""

import numpy as np
import pytest
from direct_runs import kernel_tiling
from onnx_node_cases import node_cases

from backends.counting import walk
from backends.cuda.simulator import Job, simulate
from backends.reference import convolve
from tiling import optimise, tile_extents

CASES = {case.name: case for case in node_cases()}
# 68,290,560 multiply-accumulates; the simulator does some ten thousand a second.
TOO_LARGE = {"test_operator_conv"}
SMALL = sorted(CASES.keys() - TOO_LARGE)


def tile_of(case):
    sizes = {"n": 1, "k": 4, "c": 2, "d": 2, "h": 3, "w": 4}
    return {loop: min(sizes[loop], extent) for loop, extent in tile_extents(case.shape).items()}


def check(case, output):
    # The stored outputs are float32, some from another order of the sums.
    np.testing.assert_allclose(output, case.expected, rtol=1e-4, atol=1e-5)


def test_the_wheel_has_the_cases():
    assert len(CASES) >= 45 and CASES.keys() > TOO_LARGE
    assert sum(case.shape.transposed for case in CASES.values()) >= 14


@pytest.mark.parametrize("name", CASES)
def test_reference(name):
    case = CASES[name]
    check(case, convolve(case.x, case.w, case.shape, case.bias))


@pytest.fixture(scope="module")
def executions():
    jobs = [Job(CASES[n].x, CASES[n].w, CASES[n].shape, tile_of(CASES[n])) for n in SMALL]
    return dict(zip(SMALL, simulate(jobs), strict=True))


@pytest.mark.parametrize("name", SMALL)
def test_simulated_kernel(executions, name):
    case, execution = CASES[name], executions[name]
    output = execution.output
    if case.bias is not None:
        output = output + case.bias.reshape(-1, *[1] * case.shape.rank)
    check(case, output)
    tiling = kernel_tiling(case.shape, tile_of(case))
    assert execution.traffic == execution.observed == tiling.traffic == walk(tiling).traffic


@pytest.mark.parametrize("name", CASES)
def test_counted_traffic(name):
    shape = CASES[name].shape
    for capacity in (64, 512, 4096):
        tiling = optimise(shape, capacity)
        count = walk(tiling)
        assert count.traffic == tiling.traffic
        assert count.peak_words <= tiling.footprint.words <= capacity
