"""Reference convolution in NumPy: plain, slow, and the one oracle for values.

Padding is not part of the sum: a tap on a padded position is left out, not multiplied by zero, so
that a weight of infinity or NaN reaches exactly the outputs whose window puts it on a real input.
"""

from __future__ import annotations

from itertools import product
from math import prod
from typing import TYPE_CHECKING, Any

from pebble.axis import Axis, ceil_div
from pebble.errors import InputError
from pebble.shapes import ConvShape

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[Any]

_AT_CHANNELS: Any = (slice(None),) * 3
_FLOATS = ("float16", "float32", "float64")


def convolve(x: Array, w: Array, shape: ConvShape, bias: Array | None = None) -> Array:
    """The convolution, or transposed convolution, of ``x`` with ``w``.

    Args:
        x: input, of shape ``shape.input_shape``.
        w: weights, of shape ``shape.weight_shape``.
        shape: the layer; its dtype is not looked at.
        bias: one number an output channel.

    Returns:
        The output, of shape ``shape.output_shape``: float64, or int64 where all operands are
        integers. Integer sums are exact as long as they fit 64 bits.

    Raises:
        InputError: an array of another shape, or of a dtype that int64 or float64 cannot hold.

    >>> import numpy as np
    >>> shape = ConvShape.of((1, 1, 3), (1, 1, 2), pads=(1, 0))
    >>> convolve(np.array([[[1, 2, 3]]]), np.array([[[10, 1]]]), shape)
    array([[[ 1, 12, 23]]])
    """
    import numpy as np

    check_operands(x, w, shape)
    kind = np.result_type(*(_accumulator("input", x), _accumulator("weight", w)))
    groups, batch = shape.group, shape.batch
    images = x.astype(kind).reshape(batch, groups, shape.group_in_channels, *shape.spatial)
    out = np.zeros((batch, groups, shape.group_out_channels, *shape.output_spatial), kind)
    filters = w.astype(kind).reshape(groups, -1, *w.shape[1:])
    if not shape.transposed:
        filters = filters.swapaxes(1, 2)  # group, input channel, output channel, taps
    with np.errstate(invalid="ignore", over="ignore"):
        for tap in product(*map(range, shape.kernel)):
            meets = [_meets(axis, t) for axis, t in zip(shape.axes, tap, strict=True)]
            if None in meets:
                continue
            read, write = zip(*(meet for meet in meets if meet), strict=True)
            pixels = images[_AT_CHANNELS + read]
            flat = pixels.reshape(*pixels.shape[:3], prod(pixels.shape[3:]))
            target = out[_AT_CHANNELS + write]
            target += (filters[_AT_CHANNELS + tap].swapaxes(1, 2) @ flat).reshape(target.shape)
    result: Array = out.reshape(shape.output_shape)
    if bias is None:
        return result
    if bias.shape != (shape.out_channels,):
        raise InputError("bias", bias.shape, f"must have shape ({shape.out_channels},)")
    return result + bias.astype(_accumulator("bias", bias)).reshape(-1, *[1] * shape.rank)


def check_operands(x: Array, w: Array, shape: ConvShape) -> None:
    """Raise ``InputError`` where an array's shape is not the one that ``shape`` says."""
    for field, array, wanted in (
        ("input", x, shape.input_shape),
        ("weight", w, shape.weight_shape),
    ):
        if array.shape != wanted:
            raise InputError(field, array.shape, f"the layer's {field} has shape {wanted}")


def _accumulator(field: str, array: Array) -> type:
    import numpy as np

    if array.dtype.name in _FLOATS:
        return np.float64
    if array.dtype.kind in "iu" and array.dtype.name != "uint64":
        return np.int64
    raise InputError(
        field, array.dtype.name, f"dtype is none of {', '.join(_FLOATS)}, nor an integer of int64"
    )


def _meets(axis: Axis, tap: int) -> tuple[slice, slice] | None:
    """Positions read, and positions written, where ``tap`` lies on a real input; None if nowhere.

    The relation x = stride * o + shift, cut to the windows o whose pixel x is real.
    """
    shift = axis.dilation * tap - axis.pad_begin
    first = max(ceil_div(-shift, axis.stride), 0)
    last = min(ceil_div(axis.inputs - shift, axis.stride), axis.outputs)
    if last <= first:
        return None
    windows = slice(first, last)
    begin = axis.stride * first + shift
    pixels = slice(begin, begin + axis.stride * (last - first - 1) + 1, axis.stride)
    return (windows, pixels) if axis.transposed else (pixels, windows)
