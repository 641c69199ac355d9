"""A lower bound for Winograd convolution F(e, r): the algorithm, not the convolution.

F(e, r) computes tiles of e outputs an axis from tiles of a = e + r - 1 transformed inputs and
weights: it transforms inputs and weights, multiplies them position by position, adds the products
over the input channels, and transforms the sums back. It does fewer products than the definition,
so that the bounds of :mod:`pebble.bounds` do not speak about it.

Only tiles whose a x a inputs are all real are counted, T of them; a tile cut by a border could be
computed with less. Per position u of the a x a transformed values let p_u, j_u and s_u be the
distinct transformed inputs, transformed weights and channel sums that a set of products uses: it
has at most sum of sqrt(p_u * j_u * s_u) products (Loomis and Whitney at each position).

* Transformed inputs need inputs: i inputs give p_u <= i at each position, and over all positions
  the sum of p_u is at most ceil(a/e) * i an axis, since tiles split in that many classes whose
  inputs do not overlap, and the a transformed values of one tile are independent.
* Transformed weights need weights: j_u <= f at each position, and since any r of the a
  transformed weights of an axis are independent, the sum of j_u is at most (a/r) * f an axis.
* So the sum over u of sqrt(p_u * j_u * s_u) is at most sqrt(kappa * i * f * s) (Cauchy and
  Schwarz), kappa the smaller of both factors, multiplied over the axes, and s all channel sums.

A segment of 2M charged loads then holds at most sqrt(kappa) * M**1.5 products. Creating a channel
sum is charged as a load; the final stores of the e x e outputs of a tile pay for that many of its
a x a sums, and the rest is taken off:

    Q >= 2 * T * a^2 * C * K / sqrt(kappa * M) - 2 * M - T * K * (a^2 - e^2).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from fractions import Fraction
from math import prod

from pebble.axis import Axis, ceil_div
from pebble.bounds import FRACTION_BITS, Bound, LowerBound, compulsory, root_sum
from pebble.errors import InputError
from pebble.fields import check_capacity
from pebble.shapes import ConvShape

_SOURCE = "Loomis and Whitney 1949 at each transformed position; derived in pebble.winograd"


def winograd_bound(shape: ConvShape, capacity_words: int, outputs: Sequence[int]) -> LowerBound:
    """Least words that any schedule of F(outputs, kernel) moves.

    Args:
        shape: the layer; stride and dilation 1, not transposed.
        capacity_words: fast memory, at least 1 word.
        outputs: e, the outputs of a tile along each axis.

    Raises:
        InputError: the layer is none that F(e, r) computes, or an argument is out of range.

    >>> layer = ConvShape.of((1, 128, 56, 56), (256, 128, 3, 3), pads=(1, 1, 1, 1))
    >>> winograd_bound(layer, 4096, (2, 2)).words
    6221824
    """
    check_capacity(capacity_words)
    _check(shape, outputs)
    sizes = [e + r - 1 for e, r in zip(outputs, shape.kernel, strict=True)]
    tiles = shape.batch * prod(
        _inner_tiles(axis, e) for axis, e in zip(shape.axes, outputs, strict=True)
    )
    positions = prod(sizes)
    products = tiles * positions * shape.out_channels * shape.group_in_channels
    # kappa = min(...) as a fraction; 1 / sqrt(kappa * M) is sqrt(den / (num * M)).
    by_input = Fraction(prod(ceil_div(a, e) for a, e in zip(sizes, outputs, strict=True)))
    by_weight = Fraction(positions, prod(shape.kernel))
    kappa = min(by_input, by_weight)
    share = root_sum(
        [(products * kappa.denominator, kappa.numerator * kappa.denominator)],
        divisor=capacity_words,
        factor=2,
    )
    unpaid = tiles * shape.out_channels * (positions - prod(outputs))
    words = ceil_div(share, 1 << FRACTION_BITS) - 2 * capacity_words - unpaid
    name = f"winograd:F({'x'.join(map(str, outputs))},{'x'.join(map(str, shape.kernel))})"
    found = Bound(name, max(words, 0), _SOURCE, note=f"{tiles} tiles that see no padding")
    return LowerBound(shape, capacity_words, (compulsory(shape, capacity_words), found))


def winograd_outputs(algorithm: str, shape: ConvShape) -> tuple[int, ...]:
    """Outputs of a tile from a name such as ``winograd:F(2x2,3x3)``, for a layer of that kernel.

    Raises:
        InputError: another form, or another kernel than the layer's.

    >>> winograd_outputs("winograd:F(4x4,3x3)", ConvShape.of((1, 8, 9, 9), (8, 8, 3, 3)))
    (4, 4)
    """
    sizes = r"(\d{1,3}(?:x\d{1,3})*)"
    found = re.fullmatch(rf"winograd:F\({sizes},{sizes}\)", algorithm)
    if found is None:
        raise InputError(
            "algorithm", algorithm, "is none of direct, winograd:F(2x2,3x3) and its like"
        )
    outputs, kernel = (tuple(map(int, part.split("x"))) for part in found.groups())
    if kernel != shape.kernel:
        raise InputError(
            "algorithm", algorithm, f"is for kernel {kernel}; the layer's is {shape.kernel}"
        )
    return outputs


def _inner_tiles(axis: Axis, e: int) -> int:
    """Whole tiles of e outputs whose e + kernel - 1 inputs are all real."""
    begin = ceil_div(axis.pad_begin, e)
    end = min((axis.inputs + axis.pad_begin - axis.kernel + 1) // e, axis.outputs // e)
    return max(end - begin, 0)


def _check(shape: ConvShape, outputs: Sequence[int]) -> None:
    if len(outputs) != shape.rank or min(outputs, default=0) < 1:
        raise InputError(
            "outputs", tuple(outputs), f"must be {shape.rank} numbers of at least 1, one an axis"
        )
    for field, values in (("strides", shape.strides), ("dilations", shape.dilations)):
        if any(value != 1 for value in values):
            raise InputError(field, values, "Winograd convolution needs 1 on every axis")
    if shape.transposed:
        raise InputError("transposed", True, "Winograd convolution computes plain convolutions")
