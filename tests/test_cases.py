"""Real failures from public trackers, with the right answers; data/shape_cases.json has sources.

The right numbers were found by counting taps one by one, twice independently.
"""

import json
from pathlib import Path

import pytest

from backends.counting import walk
from pebble import ConvShape, InfeasibleError, InputError, capacity_words
from pebble.axis import Axis
from pebble.bounds import lower_bound
from tiling import Schedule, evaluate, optimise, tile_sizes
from tiling.cuts import cut_axis
from tiling.loglp import LogProgram, lifted_nest, solve

CASES = json.loads((Path(__file__).parent / "data" / "shape_cases.json").read_text())
LEGAL = {c["id"]: c for c in CASES if "right" in c and c.get("padding_mode", "zeros") == "zeros"}


def shape_of(case):
    return ConvShape.of(
        case["input"],
        case["weight"],
        strides=case["strides"],
        pads=case["pads"],
        dilations=case["dilations"],
        group=case["group"],
        dtype=case["dtype"],
        padding_mode=case.get("padding_mode", "zeros"),
    )


@pytest.mark.parametrize("name", LEGAL)
def test_counts_of_a_legal_shape(name):
    right, shape = LEGAL[name]["right"], shape_of(LEGAL[name])
    assert list(shape.output_shape) == right["out_shape"]
    assert shape.macs_dense == right["macs_dense"]
    assert shape.macs == right["macs_nonpad"]
    assert shape.input_words == right["input_elems_touched"]
    assert shape.weight_words == right["weight_elems_touched"]
    assert shape.compulsory_words == right["compulsory_words"]


@pytest.mark.parametrize("name", LEGAL)
def test_chain_of_a_legal_shape(name):
    shape = shape_of(LEGAL[name])
    capacity = capacity_words("64KiB", shape.dtype)
    bound, tiling = lower_bound(shape, capacity), optimise(shape, capacity)
    assert shape.compulsory_words <= bound.words <= tiling.traffic.words
    assert tiling.footprint.words <= capacity
    if tiling.traffic.words < 3 * 10**8:  # the rest are too long to walk in a test
        assert walk(tiling).traffic == tiling.traffic


@pytest.mark.parametrize("name", LEGAL)
def test_unlimited_fast_memory_needs_the_compulsory_words_only(name):
    shape = shape_of(LEGAL[name])
    assert lower_bound(shape, 10**15).words == shape.compulsory_words


@pytest.mark.parametrize("name", [c["id"] for c in CASES if c.get("refused")])
def test_illegal_shapes_are_refused_with_the_numbers(name):
    (case,) = [c for c in CASES if c["id"] == name]
    with pytest.raises(InputError) as caught:
        shape_of(case)
    text = str(caught.value)
    assert {"A01": "padded size 2, below the effective kernel 3"}.get(name, "") in text
    assert {"A02": "padded size 4, below the effective kernel 7"}.get(name, "") in text


def test_a17_other_paddings_are_refused_by_name():
    (case,) = [c for c in CASES if c["id"] == "A17"]
    with pytest.raises(InputError, match="padding-mode 'circular': only zero padding"):
        shape_of(case)


def test_a05_stride_above_the_kernel_reads_a_quarter():
    assert shape_of(LEGAL["A05"]).input_words == 200704


def test_a09_finishes_without_wrapping():
    shape = shape_of(LEGAL["A09"])
    tiling = optimise(shape, 58368)
    assert lower_bound(shape, 58368).words <= tiling.traffic.words
    assert tiling.traffic.words > 2**33


def test_a10_equals_the_matrix_product():
    # A kernel as large as its input: every image is one row of a 522240 x 1176 x 1280 product.
    patches = shape_of(LEGAL["A10"])
    product = ConvShape.of((522240, 1176, 1), (1280, 1176, 1), dtype="bfloat16")
    for capacity in (4096, 65536):
        assert lower_bound(patches, capacity).words == lower_bound(product, capacity).words


def test_a13_empty_batch_moves_nothing():
    shape = shape_of(LEGAL["A13"])
    assert lower_bound(shape, 1024).words == 0
    tiling = optimise(shape, 1024)
    assert tiling.traffic.words == walk(tiling).traffic.words == 0


def test_a30_dilation_costs_nine_taps():
    shape = shape_of(LEGAL["A30"])
    assert shape.macs_dense == 33 * 33 * 9 * 256 * 256
    assert optimise(shape, 16384).footprint.weight_words <= 9 * 256 * 256


def test_a32_weight_shape():
    assert shape_of(LEGAL["A32"]).weight_shape == (32, 1, 2, 2)


def test_a33_dilated_window_on_length_one():
    # SAME pads 3 a side and gives one output; VALID is refused.
    same = ConvShape.of((1, 1, 1), (1, 1, 3), dilations=(3,), auto_pad="SAME_UPPER")
    assert same.output_shape == (1, 1, 1) and same.pads == (3, 3)
    with pytest.raises(InputError, match="padded size 1, below the effective kernel 7"):
        ConvShape.of((1, 1, 1), (1, 1, 3), dilations=(3,), auto_pad="VALID")


# --- kind b: model tools ---------------------------------------------------------------------


def line(extent, kernel=1, stride=1, channels=1):
    """A one-dimensional layer with the given number of outputs."""
    return ConvShape.of(
        (1, 1, (extent - 1) * stride + kernel), (channels, 1, kernel), strides=(stride,)
    )


def tiles_of(extent, size):
    """Sizes of the tiles that a walk visits along an axis."""
    tile = {"n": 1, "k": 1, "c": 1, "w": size}
    tiling = evaluate(line(extent), 100, tile, Schedule(("n", "w", "k", "c")))
    return tiling.sizes["w"], cut_axis(line(extent).axes[0], tiling.sizes["w"]).tiles


@pytest.mark.parametrize(
    ("case", "extent", "size", "used", "steps"),
    [("B01", 7, 4, 4, 2), ("B15", 2, 4, 2, 1), ("B16", 5, 4, 4, 2), ("B20", 28269, 32, 32, 884)],
)
def test_ragged_tiles(case, extent, size, used, steps):
    assert tiles_of(extent, size) == (used, steps), case


def test_b02_an_uneven_split_counts_no_padded_work():
    shape = ConvShape.of((1, 8, 8), (8, 8, 1))
    tile = {"n": 1, "k": 8, "c": 8, "w": 6}
    tiling = evaluate(shape, 1000, tile, Schedule(("n", "w", "k", "c")))
    assert shape.macs == 512
    assert walk(tiling).traffic == tiling.traffic
    assert tiling.traffic.input_loads == 8 * 8


def test_b03_rows_of_a_strided_patch():
    shape = ConvShape.of((1, 3, 229, 229), (64, 3, 7, 7), strides=(2, 2))
    cut = cut_axis(shape.axes[0], 112)
    assert cut.largest_touched == 229
    assert (shape.input_words, shape.weight_words, shape.output_words) == (157323, 9408, 802816)
    assert [capacity_words(f"{k}KiB", "float16") for k in (128, 64)] == [65536, 32768]


def test_b04_bound_uses_the_sliding_window():
    shape = ConvShape.of((1, 1, 18), (32, 1, 3))
    assert shape.input_words == 18
    one_by_one = {"n": 1, "k": 32, "c": 1, "w": 1}
    order = ("n", "w", "k", "c")
    # Both readings exist, and a schedule says which: tiles that slide, and tiles on their own.
    assert evaluate(shape, 1000, one_by_one, Schedule(order)).traffic.input_loads == 18
    alone = Schedule(order, private=True)
    assert evaluate(shape, 1000, one_by_one, alone).traffic.input_loads == 48
    assert lower_bound(shape, 1000).words == 18 + 96 + 512


def test_b05_taps_are_never_left_out():
    tiling = optimise(ConvShape.of((1, 4, 9, 9), (4, 4, 3, 3)), 64)
    with pytest.raises(InputError, match="must name exactly the loops n, k, c, h, w"):
        evaluate(tiling.shape, 64, {**tiling.sizes, "kh": 1}, tiling.schedule)


def test_b06_the_answer_does_not_change():
    shape = ConvShape.of((1, 104, 1, 104), (104, 104, 1, 1))
    assert len({optimise(shape, 4096) for _ in range(5)}) == 1


def test_b07_tile_candidates():
    assert len(tile_sizes(6144)) == 156
    # One for each distinct number of steps, by plain enumeration.
    for extent in range(1, 200):
        steps = {-(-extent // t) for t in range(1, extent + 1)}
        assert {-(-extent // t) for t in tile_sizes(extent)} == steps
        assert len(tile_sizes(extent)) == len(steps)


def test_b08_equal_sizes_keep_their_own_tiles():
    shape = ConvShape.of((1, 1, 58, 58), (1, 1, 3, 3))
    tile = {"n": 1, "k": 1, "c": 1, "h": 2, "w": 3}
    tiling = evaluate(shape, 100, tile, Schedule(("n", "h", "w", "k", "c")))
    assert (tiling.sizes["h"], tiling.sizes["w"]) == (2, 3)


def test_b09_b10_the_program_is_well_scaled_and_checked():
    # Extents of 10**12 enter as logarithms; the tile of ones is always a point of the program.
    shape = ConvShape.of((10**12, 10**12, 3), (1, 10**12, 3))
    matrix, tops = LogProgram.of(lifted_nest(shape), 4096).apply()
    assert max(max(row) for row in matrix) == 1 and max(tops) < 1e6
    assert min(tops) >= 0
    assert all(size >= 1 - 1e-9 for _, size in solve(shape, 4096).tile)


def test_b13_dual_exponents_are_exact_rationals():
    duals = dict(solve(ConvShape.of((1, 128, 58, 58), (256, 128, 3, 3)), 4096).duals)
    assert {str(duals[name]) for name in ("input", "weight", "output")} == {"1/2"}


@pytest.mark.parametrize("size", [0, -1])
def test_b17_tiles_below_one_are_refused(size):
    tile = {"n": 1, "k": 1, "c": 1, "w": size}
    with pytest.raises(InputError, match=f"tile of w {size}: must be at least 1"):
        evaluate(line(5), 100, tile, Schedule(("n", "w", "k", "c")))


def test_b18_unaligned_windows():
    # A transposed layer with stride 2 and two taps: output i reads input i // 2.
    axis = Axis(inputs=14, outputs=7, kernel=2, stride=2, transposed=True)
    assert [axis.touched(b, b + 7) for b in (0, 7)] == [4, 4]
    assert axis.touched(0, 14) == 7
    assert cut_axis(axis, 7).touched == 8


def test_b21_b23_infeasible_names_the_operands_and_the_need():
    shape = ConvShape.of((1, 1, 64, 64), (1, 1, 32, 32))
    with pytest.raises(InfeasibleError, match="1024 input words, 1024 weights") as caught:
        optimise(shape, 1024)
    assert caught.value.needed_words == 1026
    assert optimise(shape, 1026).footprint.words == 1026
