"""Limits of a launch, found before anything is compiled."""

import pytest

from backends.cuda.plan import DirectPlan
from pebble import ConvShape, InputError, LaunchError

LAYER = ConvShape.of((2, 64, 56, 56), (64, 64, 3, 3), pads=(1,) * 4)
TILE = {"n": 1, "k": 16, "c": 4, "h": 8, "w": 16}


def test_sizes_of_a_plan():
    plan = DirectPlan.of(LAYER, TILE)
    assert plan.blocks == 2 * 4 * 7 * 4 and plan.threads == 256
    assert plan.accumulators == 16 * 8 * 16 // 256
    assert plan.input_room == 4 * 10 * 18 and plan.weight_room == 16 * 4 * 9
    # Operands; counts; then slots, positions, and two lists of taps on axes of 1, 8 and 16.
    tables = (8 + 8 + 8 + 8) + (48 + 80 + 16 + 16) + (96 + 144 + 16 + 16)
    assert plan.shared_bytes == 4 * (720 + 576) + 24 + tables


def test_sizes_above_the_extent_mean_all_of_it():
    tile = dict(DirectPlan.of(LAYER, {**TILE, "c": 1, "n": 99, "h": 1}).tile)
    assert tile["n"] == 2


def test_an_empty_batch_has_no_blocks():
    assert (
        DirectPlan.of(ConvShape.of((0, 3, 3), (3, 3, 1)), {"n": 1, "k": 1, "c": 1, "w": 1}).blocks
        == 0
    )


def test_a11_the_batch_lies_on_the_grid_axis_without_a_small_limit():
    shape = ConvShape.of((131072, 1, 1537, 1), (1, 1, 3, 1), strides=(2, 1))
    assert shape.output_shape == (131072, 1, 768, 1)
    plan = DirectPlan.of(shape, {"n": 1, "k": 1, "c": 1, "h": 768, "w": 1})
    assert plan.blocks == 131072


@pytest.mark.parametrize("width", [255, 256, 257])
def test_a12_positions_above_65535(width):
    shape = ConvShape.of((1, 512, 256, width), (512, 512, 3, 3), pads=(1,) * 4)
    plan = DirectPlan.of(shape, {"n": 1, "k": 512, "c": 1, "h": 1, "w": 1})
    assert plan.blocks == 256 * width


@pytest.mark.parametrize(
    ("tile", "threads", "text"),
    [
        ({}, 1025, "1025 threads in a block; the limit is 1024"),
        ({"c": 64}, None, r"\d+ bytes of shared memory in a block; the limit is 49152"),
        (
            {"k": 64, "h": 56, "w": 56, "c": 1},
            None,
            "802816 bytes of partial sums in a block; the limit is 131072",
        ),
    ],
)
def test_limits_of_a_block(tile, threads, text):
    with pytest.raises(LaunchError, match=text):
        DirectPlan.of(LAYER, {**TILE, **tile}, threads)


def test_limit_of_the_grid():
    shape = ConvShape.of((2**31, 1, 1), (1, 1, 1))
    tile = {"n": 1, "k": 1, "c": 1, "w": 1}
    with pytest.raises(LaunchError, match=r"needs 2147483648 blocks in the grid; .* 2147483647"):
        DirectPlan.of(shape, tile)
    assert DirectPlan.of(shape, {**tile, "n": 2}).blocks == 2**30


def test_indices_beyond_64_bits():
    shape = ConvShape.of((1, 1, 2), (1, 1, 1), strides=(2**63,))
    with pytest.raises(LaunchError, match="as largest index"):
        DirectPlan.of(shape, {"n": 1, "k": 1, "c": 1, "w": 1})


@pytest.mark.parametrize(
    ("tile", "threads", "text"),
    [
        ({"n": 1, "k": 1, "c": 1, "h": 1}, None, "must name exactly the loops n, k, c, h, w"),
        ({**TILE, "c": 0}, None, "tile of c 0: must be at least 1"),
        (TILE, 0, "threads 0: must be at least 1"),
    ],
)
def test_bad_tiles(tile, threads, text):
    with pytest.raises(InputError, match=text):
        DirectPlan.of(LAYER, tile, threads)


def test_other_dtypes_are_refused():
    shape = ConvShape.of((1, 1, 2), (1, 1, 1), dtype="int8")
    with pytest.raises(InputError, match="dtype 'int8': the direct kernel takes float16"):
        DirectPlan.of(shape, {"n": 1, "k": 1, "c": 1, "w": 1})
