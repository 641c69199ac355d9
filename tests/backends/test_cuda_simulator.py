"""The direct kernel in the simulator: values, and three counts of its words that agree."""

import numpy as np
import pytest
from direct_runs import (
    Run,
    check_values,
    kernel_tiling,
    model_traffic,
    random_runs,
    tile_traffic,
)

from backends.counting import walk
from backends.cuda import simulator
from backends.cuda.simulator import Job, simulate
from pebble import ConvShape, InputError, LaunchError, PebbleError, TooLargeError
from tiling import Traffic


def jobs_of(runs, threads=4):
    return [Job(run.x, run.w, run.shape, run.tile, threads) for run in runs]


def special(shape, tile, weight=None, pixel=None):
    """A run of ones with one weight or one pixel replaced."""
    run = Run(shape, tile, np.ones(shape.input_shape), np.ones(shape.weight_shape))
    for array, change in ((run.w, weight), (run.x, pixel)):
        if change is not None:
            array[change[0]] = change[1]
    return Run(shape, tile, run.x.astype(shape.dtype), run.w.astype(shape.dtype))


PADDED = {"pads": (1, 1, 1, 1)}
TILE = {"n": 1, "k": 2, "c": 1, "h": 3, "w": 4}
CASES = {
    "A13 empty batch": special(ConvShape.of((0, 3, 3, 3), (3, 3, 3, 3)), TILE),
    "A20 NaN weight": special(
        ConvShape.of((1, 2, 6, 6), (3, 2, 3, 3), **PADDED), TILE, weight=((1, 0, 1, 1), np.nan)
    ),
    "A21 one Inf": special(
        ConvShape.of((1, 1, 8, 8), (1, 1, 3, 3), **PADDED), TILE, pixel=((0, 0, 4, 4), np.inf)
    ),
    "A22 Inf on padding": special(
        ConvShape.of((1, 2, 4, 4), (1, 2, 3, 3), **PADDED), TILE, weight=((0, 0, 0, 0), -np.inf)
    ),
    "A23 subnormal weights": Run(
        ConvShape.of((1, 1, 4, 4), (1, 1, 3, 3)),
        TILE,
        np.ones((1, 1, 4, 4), np.float32),
        np.full((1, 1, 3, 3), 1e-42, np.float32),
    ),
    "stride above kernel": Run.of(ConvShape.of((1, 2, 9, 9), (2, 2, 1, 2), strides=(3, 4)), TILE),
    "only padding": Run.of(
        ConvShape.of((1, 1, 1), (1, 1, 1), strides=(2,), pads=(1, 1)),
        {"n": 1, "k": 1, "c": 1, "w": 1},
    ),
    "float16": Run.of(ConvShape.of((1, 3, 5, 5), (2, 3, 2, 2), dtype="float16"), TILE),
    "float64": Run.of(ConvShape.of((1, 3, 5, 5), (2, 3, 2, 2), dtype="float64"), TILE),
}


@pytest.fixture(scope="module")
def executions():
    """The cases and random runs, all in one child process."""
    runs = [*CASES.values(), *random_runs(60, seed=1)]
    return dict(
        zip([*CASES, *range(60)], zip(runs, simulate(jobs_of(runs)), strict=True), strict=True)
    )


def test_random_values(executions):
    for name in range(60):
        run, execution = executions[name]
        check_values(run, execution.output)


def test_all_counts_of_words_agree(executions):
    for run, execution in executions.values():
        expected = tile_traffic(run.shape, run.tile)
        assert execution.observed == expected
        assert execution.traffic == expected
        assert model_traffic(run.shape, run.tile) == expected
        assert walk(kernel_tiling(run.shape, run.tile)).traffic == expected


def test_random_runs_cover_what_the_kernel_does():
    shapes = [run.shape for run in random_runs(60, seed=1)]
    assert {shape.rank for shape in shapes} == {1, 2, 3}
    assert any(shape.transposed for shape in shapes) and any(shape.group > 1 for shape in shapes)
    assert any(max(shape.dilations) > 1 for shape in shapes)
    assert any(axis.stride > axis.kernel for shape in shapes for axis in shape.axes)


@pytest.mark.parametrize("name", ["only padding", "stride above kernel", "float16", "float64"])
def test_values_of_a_case(executions, name):
    run, execution = executions[name]
    check_values(run, execution.output)


def test_a13_empty_batch(executions):
    execution = executions["A13 empty batch"][1]
    assert execution.output.shape == (0, 3, 1, 1)
    assert execution.observed == Traffic(0, 0, 0, 0)


def test_a20_nan_reaches_its_channel_only(executions):
    bad = np.isnan(executions["A20 NaN weight"][1].output)
    assert bad[:, 1].all() and not bad[:, [0, 2]].any()


def test_a21_an_infinite_pixel_reaches_nine_outputs(executions):
    out = executions["A21 one Inf"][1].output
    assert np.isinf(out).sum() == 9 and not np.isnan(out).any()


def test_a22_padding_is_not_part_of_the_sum(executions):
    finite = np.isfinite(executions["A22 Inf on padding"][1].output[0, 0])
    assert finite[0].all() and finite[:, 0].all() and not finite[1:, 1:].any()


def test_a23_subnormal_weights_are_kept(executions):
    run, execution = executions["A23 subnormal weights"]
    assert (execution.output == 9 * run.w[0, 0, 0, 0]).all() and execution.output.all()


def test_stride_above_the_kernel_skips_the_holes(executions):
    run, execution = executions["stride above kernel"]
    # One row in three; of the columns, pairs at 0 and 4.
    assert execution.observed.input_loads == 2 * 3 * 4 < run.x.size


def test_too_large_a_job_is_refused():
    shape = ConvShape.of((1, 64, 56, 56), (64, 64, 3, 3))
    run = Run.of(shape, {"n": 1, "k": 8, "c": 4, "h": 8, "w": 8})
    with pytest.raises(
        TooLargeError, match=r"multiply-accumulates are too many .* at most 2000000"
    ):
        simulate(jobs_of([run]))
    run = Run.of(ConvShape.of((1, 1, 30000), (1, 1, 1)), {"n": 1, "k": 1, "c": 1, "w": 1})
    with pytest.raises(TooLargeError, match=r"threads are too many .* at most 20000"):
        simulate(jobs_of([run]))


def test_bad_jobs_are_refused_before_the_child_starts(monkeypatch):
    monkeypatch.setattr(simulator.subprocess, "run", None)
    run = Run.of(ConvShape.of((1, 2, 5), (2, 2, 3)), {"n": 1, "k": 1, "c": 1, "w": 2})
    with pytest.raises(InputError, match="weight 'float64': the layer's dtype is float32"):
        simulate([Job(run.x, run.w.astype(float), run.shape, run.tile)])
    with pytest.raises(LaunchError, match="2000 threads in a block; the limit is 1024"):
        simulate(jobs_of([run], threads=2000))


def test_a_failing_child_is_reported(monkeypatch, tmp_path):
    (tmp_path / "sitecustomize.py").write_text("raise SystemExit('no simulator today')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    run = Run.of(ConvShape.of((1, 1, 2), (1, 1, 1)), {"n": 1, "k": 1, "c": 1, "w": 2})
    with pytest.raises(PebbleError, match=r"ended with code 1: .*no simulator today"):
        simulate(jobs_of([run]))


def test_memory_refuses_what_a_kernel_must_not_do():
    memory = simulator._Memory("output", np.zeros(2), writable=True)
    memory[1] = 5.0
    with pytest.raises(PebbleError, match="stored word 1 of its output twice"):
        memory[1] = 6.0
    for index in (-1, 2):
        with pytest.raises(PebbleError, match=f"used word {index} of its output, which has 2"):
            memory[index]
    with pytest.raises(PebbleError, match="stored word 0 of its input"):
        simulator._Memory("input", np.zeros(2))[0] = 1.0
