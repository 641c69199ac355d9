"""Sizes with units, and the words per element of each dtype."""

from __future__ import annotations

import re

from pebble.errors import InputError

ITEMSIZE = {
    "float64": 8, "float32": 4, "float16": 2, "bfloat16": 2, "float8_e4m3": 1, "float8_e5m2": 1,
    "int64": 8, "uint64": 8, "int32": 4, "uint32": 4, "int16": 2, "uint16": 2, "int8": 1,
    "uint8": 1,
}  # fmt: skip
"""Bytes per element."""

_BYTES = {
    "B": 1, "KB": 10**3, "KiB": 2**10, "MB": 10**6, "MiB": 2**20, "GB": 10**9, "GiB": 2**30,
}  # fmt: skip
_UNITS = ", ".join(_BYTES) + " or words"
_SIZE = re.compile(r"\s*(\d{1,30}(?:\.\d{1,30})?|\.\d{1,30})\s*([A-Za-z]*)\s*")


def itemsize(dtype: str) -> int:
    """Bytes per element of a dtype name; raises ``InputError`` for an unknown one."""
    try:
        return ITEMSIZE[dtype]
    except KeyError:
        raise InputError("dtype", dtype, f"is none of {', '.join(ITEMSIZE)}") from None


def capacity_words(text: str, dtype: str = "float32") -> int:
    """Words of ``dtype`` that a fast memory of the written size holds.

    Args:
        text: a number and a unit, one of B, KB, KiB, MB, MiB, GB, GiB or words. KB is 1000 bytes
            and KiB 1024. A bare number is refused: bytes and words are easily confused.
        dtype: element type that a word holds.

    Raises:
        InputError: no unit, an unknown one, or less than one word.

    >>> capacity_words("48KiB", "float32")
    12288
    >>> capacity_words("48KB", "float16")
    24000
    """
    match = _SIZE.fullmatch(text)
    if match is None:
        raise InputError("capacity", text, "is not a size", f"write a number and one of {_UNITS}")
    number, unit = match.groups()
    if not unit:
        raise InputError(
            "capacity", text, "has no unit", f"add one of {_UNITS}, for example {number}KiB"
        )
    scale = {"words": itemsize(dtype), **_BYTES}.get(unit)
    if scale is None:
        raise InputError("capacity", text, f"unit {unit!r} is none of {_UNITS}")
    whole, _, decimals = number.partition(".")
    total: int = int((whole or "0") + decimals) * scale // 10 ** len(decimals)
    words = total // itemsize(dtype)
    if words < 1:
        raise InputError(
            "capacity", text, f"holds no {dtype} word of {itemsize(dtype)} bytes", "give more"
        )
    return words
