"""Pads that follow from ONNX's auto_pad, or from the output shape of a ConvTranspose."""

from __future__ import annotations

from collections.abc import Sequence

from pebble.axis import ceil_div
from pebble.errors import InputError
from pebble.fields import per_axis

AUTO_PADS = ("NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER")

Sizes = tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...], tuple[int, ...]]
"""Input sizes, kernel, strides and dilations, one number an axis each."""


def _split(total: int, auto_pad: str) -> tuple[int, int]:
    small, large = total // 2, total - total // 2
    return (small, large) if auto_pad != "SAME_LOWER" else (large, small)


def same_pads(sizes: Sizes, auto_pad: str) -> tuple[int, ...]:
    """Pads of SAME_UPPER or SAME_LOWER: ceil(size / stride) outputs, an odd pixel at one side."""
    pairs = []
    for size, kernel, stride, dilation in zip(*sizes, strict=True):
        total = (ceil_div(size, stride) - 1) * stride + dilation * (kernel - 1) + 1 - size
        pairs.append(_split(max(total, 0), auto_pad))
    return tuple(b for b, _ in pairs) + tuple(e for _, e in pairs)


def transposed_pads(
    sizes: Sizes,
    pad: tuple[int, ...],
    auto_pad: str,
    extra: tuple[int, ...],
    output_shape: Sequence[int] | None,
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Output padding and pads of a ConvTranspose, from an explicit or a SAME output shape."""
    rank = len(sizes[0])
    for i, value in enumerate(extra):
        if value and value >= max(sizes[2][i], sizes[3][i]):
            raise InputError(
                "output_padding", extra, "must be below the stride or the dilation of its axis"
            )
    if output_shape is None and not auto_pad.startswith("SAME"):
        return extra, pad
    if output_shape is None:
        wanted = tuple(size * stride for size, stride in zip(sizes[0], sizes[2], strict=True))
    else:
        wanted = per_axis("output_shape", output_shape, rank, 1)
    begins, ends, grown = [], [], []
    for i, (size, kernel, stride, dilation) in enumerate(zip(*sizes, strict=True)):
        full = stride * (size - 1) + dilation * (kernel - 1) + 1 + extra[i]
        total = full - wanted[i]
        if -total >= stride:
            raise InputError(
                "output_shape",
                wanted,
                f"axis {i} of size {size} gives at most {full + stride - 1} outputs",
                "a larger input would be needed",
            )
        # A wanted size above the natural one needs no pads: the rest is output padding.
        grown.append(extra[i] + max(-total, 0))
        # ONNX gives the larger half to the begin unless SAME_UPPER is asked for.
        half = _split(max(total, 0), "SAME_UPPER" if auto_pad == "SAME_UPPER" else "SAME_LOWER")
        begins.append(half[0])
        ends.append(half[1])
    return tuple(grown), (*begins, *ends)
