"""Bounds in bytes where inputs, weights and outputs have different sizes."""

from __future__ import annotations

from dataclasses import dataclass

from pebble.bounds import equal_work_cost, rounded_up
from pebble.errors import InputError
from pebble.shapes import ConvShape


@dataclass(frozen=True, slots=True)
class ByteBound:
    """Least bytes that any schedule of a layer moves, with the larger of two theorems named.

    Attributes:
        shape: the layer; its own dtype is not looked at.
        capacity_bytes: fast memory.
        element_bytes: bytes of an input, a weight and an output element.
        compulsory_bytes: each touched element moved once.
        equal_work_bytes: the bound of :func:`pebble.bounds.equal_work_cost`.
    """

    shape: ConvShape
    capacity_bytes: int
    element_bytes: tuple[int, int, int]
    compulsory_bytes: int
    equal_work_bytes: int

    @property
    def bytes(self) -> int:
        """Bytes that any schedule moves at least."""
        return max(self.compulsory_bytes, self.equal_work_bytes)

    @property
    def binding(self) -> str:
        """Name of the theorem that decides."""
        return "equal-work" if self.equal_work_bytes > self.compulsory_bytes else "compulsory"


def lower_bound_bytes(
    shape: ConvShape,
    capacity_bytes: int,
    *,
    input_bytes: int,
    weight_bytes: int,
    output_bytes: int,
) -> ByteBound:
    """Q_bytes >= max(p_i|I| + p_f|F| + p_o|O|, the equal-work bound with these sizes).

    The leading term is 2 * sqrt(p_i * p_f * p_o) * G_w / sqrt(M), in the form of Chen et al. 2022
    (arXiv 2204.08279) for mixed precision; the constant is ours. A partial sum is counted with
    the bytes of a stored output: wider accumulators only need more memory, so that the bound holds
    for them too.

    Args:
        shape: the layer.
        capacity_bytes: fast memory, at least 1.
        input_bytes, weight_bytes, output_bytes: bytes of one element of each operand.

    >>> layer = ConvShape.of((1, 256, 28, 28), (256, 256, 3, 3), pads=(1, 1, 1, 1))
    >>> sizes = {"input_bytes": 2, "weight_bytes": 2, "output_bytes": 4}
    >>> lower_bound_bytes(layer, 65536, **sizes).binding
    'equal-work'
    """
    sizes = (input_bytes, weight_bytes, output_bytes)
    for field, value in (("capacity", capacity_bytes), *zip(_FIELDS, sizes, strict=True)):
        if value < 1:
            raise InputError(field, value, "must be at least 1 byte")
    counts = (shape.input_words, shape.weight_words, shape.output_words)
    compulsory = sum(p * count for p, count in zip(sizes, counts, strict=True))
    equal_work, _ = equal_work_cost(shape, capacity_bytes, sizes)
    return ByteBound(shape, capacity_bytes, sizes, compulsory, rounded_up(equal_work))


_FIELDS = ("input_bytes", "weight_bytes", "output_bytes")
