"""Bounds for processors and machine boundaries, against explicit partitions of the work."""

from itertools import product
from math import prod

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from shapes import conv_shapes

from pebble import ConvShape, InfeasibleError, InputError, Machine, machine_names
from pebble.bounds import lower_bound
from pebble.parallel import (
    boundary_bounds,
    moved_by_all,
    moved_by_busiest,
    received_by_busiest,
    touched_by_busiest,
)
from tiling import optimise, tile_extents


def touched_by_blocks(shape, sizes):
    """Words that each block of a grid touches: inputs, weights, outputs that see a real input."""
    extents = tile_extents(shape)
    cut = [
        [(b, min(b + sizes[loop], extent)) for b in range(0, extent, sizes[loop])]
        for loop, extent in extents.items()
    ]
    found = []
    for n, k, c, *places in product(*cut):
        spans = list(zip(shape.axes, places, strict=True))
        size = {name: end - begin for name, (begin, end) in zip("nkc", (n, k, c), strict=True)}
        live = prod(sum(a.touched(o, o + 1) > 0 for o in range(*place)) for a, place in spans)
        found.append(
            size["n"] * size["c"] * prod(a.touched(*place) for a, place in spans)
            + size["k"] * size["c"] * prod(a.used_taps(*place) for a, place in spans)
            + size["n"] * size["k"] * live
        )
    return found * shape.group


@settings(max_examples=150, deadline=None)
@given(conv_shapes(most_channels=8, most_size=7), st.data())
def test_the_busiest_block_of_any_grid_touches_as_much(shape, data):
    extents = tile_extents(shape)
    sizes = {loop: data.draw(st.integers(1, extent)) for loop, extent in extents.items()}
    blocks = touched_by_blocks(shape, sizes)
    busiest = max(blocks)
    assert touched_by_busiest(shape, len(blocks)).words <= busiest
    held = data.draw(st.integers(0, 200))
    assert received_by_busiest(shape, len(blocks), held).words <= max(busiest - held, 0)


@settings(max_examples=100, deadline=None)
@given(conv_shapes(most_channels=16), st.integers(12, 300), st.integers(1, 9))
def test_private_tiles_on_several_processors_move_as_much(shape, capacity, processors):
    # Each output tile runs with a memory of its own, so tiles can be dealt to any processors.
    try:
        traffic = optimise(shape, capacity, private=True).traffic.words
    except InfeasibleError:
        assume(False)
    together = moved_by_all(shape, processors, capacity).words
    assert together <= traffic
    assert moved_by_busiest(shape, processors, capacity).words * processors <= (
        traffic + processors * processors  # each rounds up
    )


def test_one_processor_is_the_sequential_bound():
    shape = ConvShape.of((1, 128, 56, 56), (256, 128, 3, 3), pads=(1,) * 4)
    sequential = {b.name: b.words for b in lower_bound(shape, 4096).bounds}
    assert moved_by_all(shape, 1, 4096).words == sequential["loomis-whitney"]
    assert moved_by_busiest(shape, 1, 4096).words == sequential["loomis-whitney"]


@pytest.mark.parametrize(("processors", "received_bytes"), [(4, 75_481), (8, 69_375)])
def test_known_layer(processors, received_bytes):
    # 4 images of 64 channels, 16x16, 3x3, balanced start. The real values round to these bytes;
    # the best grids receive 102,400 and 83,968 bytes, counted on processes that ran them.
    shape = ConvShape.of((4, 64, 16, 16), (64, 64, 3, 3), pads=(1,) * 4)
    held = shape.compulsory_words // processors
    words = received_by_busiest(shape, processors, held).words
    assert received_bytes - 4 * 2 <= 4 * words <= received_bytes + 4
    assert 4 * words <= {4: 102_400, 8: 83_968}[processors]


@pytest.mark.parametrize("name", machine_names())
def test_boundaries_of_a_machine(name):
    machine = Machine.load(name)
    shape = ConvShape.of((32, 256, 56, 56), (256, 256, 3, 3), pads=(1,) * 4)
    found = boundary_bounds(shape, machine)
    assert [b.level for b in found] == [level.name for level in machine.levels[:-1]]
    # Further out the fast side only grows, and never less than the touched words pass.
    words = [b.words for b in found]
    assert words == sorted(words, reverse=True)
    assert all(w >= shape.compulsory_words for w in words)


def test_h200_multiprocessors_by_hand():
    shape = ConvShape.of((32, 256, 56, 56), (256, 256, 3, 3), pads=(1,) * 4)
    (_, shared, _) = boundary_bounds(shape, Machine.load("h200"))
    words = (262144 + 233472) // 4
    assert shared.instance_words == words
    # Full reuse of 9: G / 3 weighs G_w.
    value = 2 * shape.macs / 3 / words**0.5 - 2 * words * 132
    assert shared.words == pytest.approx(value, abs=2) and shared.binding == "summed"


def test_no_processors():
    with pytest.raises(InputError, match="processors 0: must be at least 1"):
        moved_by_all(ConvShape.of((1, 1, 3), (1, 1, 1)), 0, 8)
