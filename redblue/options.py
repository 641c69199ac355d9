"""Texts of the command line as values."""

from __future__ import annotations

import re
from collections.abc import Sequence

from pebble.errors import InputError
from pebble.shapes import ConvShape


def sizes(field: str, text: str) -> tuple[int, ...]:
    """Integers of a text such as ``1x64x56x56``.

    Raises:
        InputError: anything but integers joined by x.
    """
    return _split(field, text, "x", "1x64x56x56")


def numbers(field: str, text: str | None) -> tuple[int, ...] | None:
    """Integers of a text such as ``1,1``; None for None."""
    return None if text is None else _split(field, text, ",", "1,1")


def visible(text: str) -> str:
    """The text with control characters written out: a name from a file steers no terminal."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def one_line(text: str) -> str:
    """The text on one line, see :func:`visible`."""
    return visible(" ".join(text.split()))


def _split(field: str, text: str, separator: str, example: str) -> tuple[int, ...]:
    parts = [part.strip() for part in text.strip().split(separator)]
    if not all(re.fullmatch(r"[+-]?\d{1,30}", part) for part in parts):
        raise InputError(
            field, text, f"is not integers joined by '{separator}'", f"write it like {example}"
        )
    return tuple(int(part) for part in parts)


def bindings(texts: Sequence[str]) -> dict[str, int]:
    """Sizes by dimension name from texts such as ``N=1``."""
    found: dict[str, int] = {}
    for text in texts:
        name, equals, value = text.rpartition("=")
        if not equals or not name or not re.fullmatch(r"\d{1,18}", value):
            raise InputError("bind", text, "is not NAME=SIZE", "write it like N=1")
        if name in found:
            raise InputError("bind", text, f"binds {name} a second time")
        found[name] = int(value)
    return found


def shape(
    input: str | None,  # noqa: A002 - ONNX's name
    weight: str | None,
    *,
    strides: str | None,
    pads: str | None,
    dilations: str | None,
    group: int,
    auto_pad: str,
    dtype: str,
    transposed: bool,
    output_padding: str | None,
    output_shape: str | None,
    padding_mode: str,
) -> ConvShape:
    """The shape that a command's options describe.

    Raises:
        InputError: an option is missing, malformed, or outside what a shape allows.
    """
    if input is None:
        raise InputError("input", input, "is missing", "give --input NxCxHxW")
    if weight is None:
        raise InputError("weight", weight, "is missing", "give --weight KxCxHxW, C of one group")
    return ConvShape.of(
        sizes("input", input),
        sizes("weight", weight),
        strides=numbers("strides", strides),
        pads=numbers("pads", pads),
        dilations=numbers("dilations", dilations),
        group=group,
        auto_pad=auto_pad,
        dtype=dtype,
        transposed=transposed,
        output_padding=numbers("output-padding", output_padding),
        output_shape=numbers("output-shape", output_shape),
        padding_mode=padding_mode,
    )
