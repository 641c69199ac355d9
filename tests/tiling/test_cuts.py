"""Tiles of an axis against tile-by-tile counting."""

from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st
from shapes import conv_shapes

from pebble import ConvShape
from tiling.cuts import EDGE_TILES, axis_tile_sizes, cut_axis, tile_sizes


@settings(max_examples=400, deadline=None)
@given(conv_shapes(most_size=40), st.integers(1, 12))
def test_counts_equal_a_loop_over_the_tiles(shape, size):
    axis = shape.axes[0]
    cut = cut_axis(axis, size)
    ranges = [(b, min(b + size, axis.written)) for b in range(0, axis.written, size)]
    reads = [axis.touched(*r) for r in ranges]
    live = [r for r, words in zip(ranges, reads, strict=True) if words]
    assert cut.tiles == len(ranges)
    assert cut.live_tiles == len(live)
    assert cut.live_positions == sum(end - begin for begin, end in live)
    assert cut.touched == sum(reads)
    assert cut.largest_touched == max(reads)
    both = sum(
        axis.touched(*a) + axis.touched(*b) - axis.touched(a[0], b[1]) for a, b in pairwise(live)
    )
    assert cut.shared == both
    assert cut.taps == sum(axis.used_taps(*r) for r in ranges)
    assert cut.all_taps == axis.used_taps(0, axis.written)


def test_an_axis_of_a_billion_is_cut_in_closed_form():
    axis = ConvShape.of((1, 1, 10**9), (1, 1, 3)).axes[0]
    cut = cut_axis(axis, 1000)
    assert cut.touched == 10**9 - 2 + 2 * cut.tiles  # each tile reads its outputs and two more
    far = ConvShape.of((1, 1, 10**9), (1, 1, 3), pads=(2**31, 0)).axes[0]
    assert cut_axis(far, 1).live_positions == 10**9  # stride 1: every pixel starts a live window
    wide = ConvShape.of((1, 1, 10**9), (1, 1, 10**5)).axes[0]
    assert cut_axis(wide, 1) is not None  # all windows lie inside
    wide = ConvShape.of((1, 1, 10**9), (1, 1, 10**5), pads=(10**5, 0)).axes[0]
    assert cut_axis(wide, 1) is None  # 10**5 tiles meet the border
    assert cut_axis(wide, 10**5 // EDGE_TILES * 2).live_tiles > 0


def test_sizes_of_an_axis():
    def sizes(length, limit=1000, **attributes):
        return axis_tile_sizes(ConvShape.of((1, 1, length), (1, 1, 1), **attributes).axes[0], limit)

    assert sizes(40) == (list(range(1, 41)), True)
    assert sizes(5000) == (tile_sizes(5000), True)
    spread, complete = sizes(10**6, 50)
    assert len(spread) <= 50 and spread[0] == 1 and spread[-1] == 10**6 and not complete
    dilated = ConvShape.of((1, 1, 1000), (1, 1, 3), dilations=(7,)).axes[0]
    assert {7, 14, 21} <= set(axis_tile_sizes(dilated, 1000)[0])


def test_huge_loops_get_a_spread_at_once():
    for extent in (10**15, 10**30):
        sizes = tile_sizes(extent, 1000)
        assert len(sizes) <= 1002 and sizes[0] == 1 and sizes[-1] == extent
        assert sizes == sorted(set(sizes))
    assert tile_sizes(500, 1000) == tile_sizes(500)
