"""The laws of the whole chain: bound <= traffic, and every count of the traffic is the same."""

from itertools import permutations

from hypothesis import given, settings
from hypothesis import strategies as st
from replay import replay
from shapes import conv_shapes

from backends.counting import walk
from pebble import ConvShape, InfeasibleError
from pebble.bounds import lower_bound
from tiling import Schedule, evaluate, optimise, tile_extents


@settings(max_examples=300, deadline=None)
@given(conv_shapes(), st.integers(1, 400), st.booleans())
def test_bound_is_not_above_traffic_which_is_counted(shape, capacity, private):
    bound = lower_bound(shape, capacity)
    assert bound.words >= shape.compulsory_words
    try:
        tiling = optimise(shape, capacity, private=private)
    except InfeasibleError as error:
        assert error.needed_words > capacity
        assert optimise(shape, error.needed_words, private=private)
        return
    assert tiling.footprint.words <= capacity
    assert bound.words <= tiling.traffic.words
    count = walk(tiling)
    assert count.traffic == tiling.traffic
    assert count.peak_words <= tiling.footprint.words


@st.composite
def tilings(draw):
    """Any tile sizes under any order, also bad ones."""
    shape = draw(conv_shapes(most_channels=4, most_size=5))
    extents = tile_extents(shape)
    tile = {loop: draw(st.integers(1, extent)) for loop, extent in extents.items()}
    where = ("n", *shape.axis_names)
    blocks = draw(st.sampled_from(list(permutations([where, ("k",), ("c",)]))))
    order = tuple(loop for block in blocks for loop in block)
    private = order[-1] == "c" and draw(st.booleans())
    streamed = None if private else draw(st.sampled_from([None, "input", "weight", "output"]))
    return evaluate(shape, 10**6, tile, Schedule(order, streamed, private))


@settings(max_examples=150, deadline=None)
@given(tilings())
def test_model_walk_and_word_by_word_replay_agree(tiling):
    traffic, peak = replay(tiling)
    count = walk(tiling)
    assert tiling.traffic == count.traffic == traffic
    assert peak <= count.peak_words <= tiling.footprint.words
    assert lower_bound(tiling.shape, max(peak, 1)).words <= traffic.words


def test_many_different_borders_are_walked():
    # Every tile of these axes has taps of its own: more tap masks than a machine word has bits.
    shape = ConvShape.of((1, 1, 9, 9), (2, 1, 9, 9), pads=(8, 8, 8, 8))
    tile = {"n": 1, "k": 1, "c": 1, "h": 1, "w": 1}
    for order in (("k", "c", "n", "h", "w"), ("n", "h", "w", "k", "c")):
        tiling = evaluate(shape, 10**6, tile, Schedule(order))
        assert walk(tiling).traffic == tiling.traffic == replay(tiling)[0]
