"""Byte bounds against the bytes of schedules, and against the word bounds."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from shapes import conv_shapes

from pebble import ConvShape, InfeasibleError, InputError
from pebble.bounds import lower_bound
from pebble.precision import lower_bound_bytes
from tiling import optimise

SIZES = st.tuples(*[st.sampled_from([1, 2, 4, 8])] * 3)


def named(sizes):
    return dict(zip(("input_bytes", "weight_bytes", "output_bytes"), sizes, strict=True))


@settings(max_examples=200, deadline=None)
@given(conv_shapes(most_channels=12), st.integers(11, 2000), SIZES)
def test_no_schedule_moves_fewer_bytes(shape, capacity, sizes):
    # Any tiling is a schedule of the mixed layer too: its bytes, on the bytes that it holds.
    try:
        tiling = optimise(shape, capacity)
    except InfeasibleError:
        return
    i, w, o = sizes
    traffic, held = tiling.traffic, tiling.footprint
    moved = i * traffic.input_loads + w * traffic.weight_loads
    moved += o * (traffic.output_loads + traffic.output_stores)
    memory = i * held.input_words + w * held.weight_words + o * held.output_words
    bound = lower_bound_bytes(shape, max(memory, 1), **named(sizes))
    assert bound.bytes <= moved


@settings(max_examples=50, deadline=None)
@given(conv_shapes(), st.integers(1, 500), st.sampled_from([1, 2, 4]))
def test_equal_sizes_are_words(shape, capacity, size):
    (words,) = [b.words for b in lower_bound(shape, capacity).bounds if b.name == "equal-work"]
    found = lower_bound_bytes(shape, size * capacity, **named((size,) * 3)).equal_work_bytes
    assert found == pytest.approx(size * words, abs=size + 1, rel=1e-6)


def test_halving_all_sizes_divides_the_bytes_by_two_root_two():
    # Q = 2 b**1.5 G_w / sqrt(M bytes): 2**1.5 where the capacity decides.
    layer = ConvShape.of((8, 512, 56, 56), (512, 512, 3, 3), pads=(1,) * 4)
    four = lower_bound_bytes(layer, 65536, **named((4, 4, 4)))
    two = lower_bound_bytes(layer, 65536, **named((2, 2, 2)))
    assert four.binding == two.binding == "equal-work"
    assert four.bytes / two.bytes == pytest.approx(2**1.5, rel=1e-3)


def test_the_leading_term():
    layer = ConvShape.of((8, 512, 56, 56), (512, 512, 3, 3), pads=(1,) * 4)
    found = lower_bound_bytes(layer, 65536, **named((1, 2, 4))).equal_work_bytes
    weight = layer.macs / 3  # full reuse of nine taps
    assert found == pytest.approx(2 * 8**0.5 * weight / 65536**0.5, rel=1e-3)


def test_sizes_below_one_byte_are_refused():
    with pytest.raises(InputError, match="weight_bytes 0: must be at least 1 byte"):
        lower_bound_bytes(ConvShape.of((1, 1, 3), (1, 1, 1)), 64, **named((1, 0, 1)))
