"""The Winograd bound against recomputed values and the traffic of a real schedule."""

from math import prod

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from pebble import ConvShape, InfeasibleError, InputError
from pebble.winograd import winograd_bound, winograd_outputs
from tiling import optimise
from tiling.cuts import cut_axis


@pytest.mark.parametrize(
    ("batch", "side", "ci", "co", "e", "capacity", "words"),
    [
        # 2 G / sqrt(kappa M) - 2M - T K (a**2 - e**2), by hand for the first: T = 26**2 tiles see
        # no padding, G = T * 16 * 128 * 256, kappa = 16/9.
        (1, 56, 128, 256, 2, 4096, 6221824),
        (1, 56, 128, 256, 4, 4096, 1908736),
        (1, 56, 256, 256, 2, 24576, 4656559),
        (8, 28, 512, 512, 4, 24576, 9942580),
    ],
)
def test_known_values(batch, side, ci, co, e, capacity, words):
    shape = ConvShape.of((batch, ci, side, side), (co, ci, 3, 3), pads=(1,) * 4)
    (_, found) = winograd_bound(shape, capacity, (e, e)).bounds
    assert found.words == words


def non_fused_traffic(shape, capacity, outputs):
    """Words of the plain schedule: transform inputs and weights to slow memory, one matrix product
    for each of the a x a positions, then transform the sums back, each tile by itself."""
    cuts = [cut_axis(axis, e) for axis, e in zip(shape.axes, outputs, strict=True)]
    tiles = shape.batch * prod(cut.tiles for cut in cuts)
    positions = prod(e + r - 1 for e, r in zip(outputs, shape.kernel, strict=True))
    inputs = shape.batch * shape.in_channels * prod(cut.touched for cut in cuts)
    transformed = tiles * positions * shape.in_channels
    weights = prod(shape.weight_shape)
    spread = shape.out_channels * shape.group_in_channels * positions
    product = ConvShape.of(
        (1, shape.in_channels, tiles),
        (shape.out_channels, shape.group_in_channels, 1),
        group=shape.group,
    )
    sums = tiles * positions * shape.out_channels
    return (
        inputs
        + transformed
        + weights
        + spread
        + positions * optimise(product, capacity).traffic.words
        + sums
        + shape.output_words
    )


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_no_schedule_moves_less(data):
    def number(low, high):
        return data.draw(st.integers(low, high))

    rank, group = number(1, 2), number(1, 2)
    kernel = [number(2, 4) for _ in range(rank)]
    outputs = [number(1, 4) for _ in range(rank)]
    pads = [number(0, 2) for _ in range(2 * rank)]
    spatial = [number(4, 14) for _ in range(rank)]
    ci, co = number(1, 12), number(1, 12)
    shape = ConvShape.of((number(1, 3), ci * group, *spatial), (co * group, ci, *kernel),
                         pads=pads, group=group)  # fmt: skip
    positions = prod(e + r - 1 for e, r in zip(outputs, kernel, strict=True))
    capacity = number(2 * positions, 2 * positions + 200)  # a tile and its transform fit
    try:
        traffic = non_fused_traffic(shape, capacity, outputs)
    except InfeasibleError:
        assume(False)
    assert winograd_bound(shape, capacity, outputs).words <= traffic


@pytest.mark.parametrize(
    ("changes", "part"),
    [
        ({"strides": (2, 2)}, "strides (2, 2): Winograd convolution needs 1"),
        ({"dilations": (1, 2)}, "dilations (1, 2): Winograd convolution needs 1"),
        ({"transposed": True}, "transposed True"),
    ],
)
def test_what_is_not_legal_is_refused(changes, part):
    shape = ConvShape.of((1, 8, 9, 9), (8, 8, 3, 3), **changes)
    with pytest.raises(InputError) as caught:
        winograd_bound(shape, 64, (2, 2))
    assert part in str(caught.value)


def test_names_of_algorithms():
    shape = ConvShape.of((1, 8, 9, 9), (8, 8, 1, 3))
    assert winograd_outputs("winograd:F(1x4,1x3)", shape) == (1, 4)
    with pytest.raises(InputError, match="is none of direct"):
        winograd_outputs("winograd", shape)
    with pytest.raises(InputError, match=r"is for kernel \(3, 3\)"):
        winograd_outputs("winograd:F(2x2,3x3)", shape)
    with pytest.raises(InputError, match="must be 2 numbers"):
        winograd_bound(shape, 64, (2,))
