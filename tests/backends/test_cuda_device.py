"""The direct kernel on a real device: values, and counters that equal the closed form."""

import numpy as np
import pytest
from direct_runs import Run, check_values, model_traffic, random_runs, tile_traffic

from backends.cuda.launch import device_count, run_direct
from pebble import ConvShape, InputError, LaunchError
from tiling import Traffic

pytestmark = pytest.mark.gpu


def launch(run, **options):
    return run_direct(run.x, run.w, run.shape, run.tile, **options)


@pytest.mark.parametrize("run", random_runs(60, seed=1), ids=lambda run: str(run.shape))
def test_random_runs_count_as_in_the_simulator(run):
    execution = launch(run, threads=32, counted=True)
    check_values(run, execution.output)
    assert execution.traffic == tile_traffic(run.shape, run.tile)


def tile(n, k, c, h, w):
    return {"n": n, "k": k, "c": c, "h": h, "w": w}


LAYERS = {
    "ResNet-50 conv1, batch 4": (
        ConvShape.of((4, 3, 224, 224), (64, 3, 7, 7), strides=(2, 2), pads=(3,) * 4),
        tile(1, 16, 3, 8, 16),
    ),
    "ResNet-50 conv2 3x3": (
        ConvShape.of((1, 64, 56, 56), (64, 64, 3, 3), pads=(1,) * 4),
        tile(1, 32, 8, 8, 8),
    ),
    "ResNet-50 conv4 1x1, stride 2": (
        ConvShape.of((8, 512, 28, 28), (1024, 512, 1, 1), strides=(2, 2)),
        tile(2, 64, 16, 7, 7),
    ),
    "ResNet-50 conv5 3x3": (
        ConvShape.of((2, 512, 7, 7), (512, 512, 3, 3), pads=(1,) * 4),
        tile(2, 32, 8, 7, 7),
    ),
    "MobileNet depthwise": (
        ConvShape.of((4, 256, 28, 28), (256, 1, 3, 3), pads=(1,) * 4, group=256),
        tile(4, 1, 1, 14, 28),
    ),
    "dilated": (
        ConvShape.of((1, 256, 33, 33), (256, 256, 3, 3), pads=(12,) * 4, dilations=(12, 12)),
        tile(1, 32, 4, 11, 33),
    ),
    "ConvTranspose": (
        ConvShape.of(
            (2, 64, 28, 28), (64, 32, 4, 4), strides=(2, 2), pads=(1,) * 4, transposed=True
        ),
        tile(1, 16, 8, 8, 16),
    ),
    "float16": (
        ConvShape.of((2, 64, 30, 30), (64, 64, 3, 3), pads=(1,) * 4, dtype="float16"),
        tile(1, 32, 16, 8, 10),
    ),
    "float64": (
        ConvShape.of((2, 64, 30, 30), (64, 64, 3, 3), pads=(1,) * 4, dtype="float64"),
        tile(1, 32, 8, 8, 10),
    ),
    "A11 batch of 131072": (
        ConvShape.of((131072, 1, 1537, 1), (1, 1, 3, 1), strides=(2, 1)),
        tile(1, 1, 1, 768, 1),
    ),
    "A12 65536 positions": (
        ConvShape.of((1, 512, 256, 256), (512, 512, 3, 3), pads=(1,) * 4),
        tile(1, 64, 8, 8, 8),
    ),
}


@pytest.mark.parametrize("name", LAYERS)
def test_layers(name):
    run = Run.of(*LAYERS[name])
    execution = launch(run, counted=True)
    check_values(run, execution.output)
    assert execution.traffic == model_traffic(run.shape, run.tile)


def test_a21_infinite_input_stays_infinite():
    shape = ConvShape.of((1, 128, 6, 6), (256, 128, 3, 3))
    x = np.full(shape.input_shape, np.inf, np.float32)
    w = np.ones(shape.weight_shape, np.float32)
    assert (run_direct(x, w, shape, tile(1, 64, 8, 4, 4)).output == np.inf).all()


def test_a23_subnormal_weights_are_kept():
    shape = ConvShape.of((1, 1, 4, 4), (1, 1, 3, 3))
    w = np.full(shape.weight_shape, 1e-42, np.float32)
    out = run_direct(np.ones(shape.input_shape, np.float32), w, shape, tile(1, 1, 1, 2, 2)).output
    assert (out == 9 * w[0, 0, 0, 0]).all() and out.all()


def test_a13_empty_batch_is_not_launched():
    shape = ConvShape.of((0, 3, 3, 3), (3, 3, 3, 3))
    execution = launch(Run.of(shape, tile(1, 1, 1, 1, 1)), counted=True)
    assert execution.output.shape == (0, 3, 1, 1)
    assert execution.traffic == Traffic(0, 0, 0, 0)


def test_a_run_that_does_not_count_gives_the_same_output():
    run = Run.of(*LAYERS["ResNet-50 conv2 3x3"])
    plain = launch(run)
    assert plain.traffic is None
    assert (plain.output == launch(run, counted=True).output).all()


def test_a_strided_view_is_read_as_its_values():
    run = Run.of(*LAYERS["ResNet-50 conv2 3x3"])
    view = np.repeat(run.x, 2, axis=3)[..., ::2]
    assert not view.flags.c_contiguous
    output = run_direct(view, run.w, run.shape, run.tile).output
    assert (output == launch(run).output).all()


def free_bytes():
    from numba import cuda

    return cuda.current_context().get_memory_info().free


def test_input_above_2_31_elements():
    length = 2**31 + 4096
    if free_bytes() < 3 * length:
        pytest.skip("needs 6 GiB of device memory")
    shape = ConvShape.of((1, 1, length), (1, 1, 3), strides=(2**20,), dtype="float16")
    x = np.zeros(shape.input_shape, np.float16)
    ends = np.arange(2049) * 2**20
    for tap in range(3):
        x[0, 0, ends + tap] = (ends // 2**20 + 5 * tap) % 61
    w = np.array([[[1, 2, 4]]], np.float16)
    execution = run_direct(x, w, shape, {"n": 1, "k": 1, "c": 1, "w": 100}, counted=True)
    right = sum(x[0, 0, ends + tap].astype(float) * w[0, 0, tap] for tap in range(3))
    assert (execution.output[0, 0] == right).all() and right[-1] > 0
    assert execution.traffic == Traffic(2049 * 3, 21 * 3, 0, 2049)


def test_output_above_2_31_elements():
    length = 2**30 + 5
    if free_bytes() < 8 * length:
        pytest.skip("needs 8 GiB of device memory")
    shape = ConvShape.of((1, 1, length), (2, 1, 1), dtype="float16")
    x = np.resize(np.arange(1021, dtype=np.float16), shape.input_shape)
    w = np.array([[[2]], [[-1]]], np.float16)
    output = run_direct(x, w, shape, {"n": 1, "k": 2, "c": 1, "w": 2048}).output
    assert (output[0, 0] == 2 * x[0, 0]).all() and (output[0, 1] == -x[0, 0]).all()


def test_c09_a_device_that_does_not_exist():
    run = Run.of(ConvShape.of((1, 1, 2), (1, 1, 1)), {"n": 1, "k": 1, "c": 1, "w": 1})
    with pytest.raises(InputError, match=f"device {device_count()}: "):
        launch(run, device=device_count())


def test_tiles_above_the_limits_are_refused_before_a_launch():
    run = Run.of(*LAYERS["ResNet-50 conv2 3x3"])
    with pytest.raises(LaunchError, match="bytes of shared memory in a block; the limit is 49152"):
        run_direct(run.x, run.w, run.shape, {**run.tile, "c": 64})
