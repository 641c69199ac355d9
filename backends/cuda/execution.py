"""What a run of the kernel takes and gives, on a device and in the simulator alike."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from backends.reference import check_operands
from pebble.errors import InputError
from pebble.shapes import ConvShape
from tiling.tile import Traffic

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[Any]


@dataclass(frozen=True, slots=True, eq=False)
class Execution:
    """A finished run.

    Attributes:
        output: of the shape's output shape and dtype.
        traffic: global loads and stores that the threads counted themselves; None if not asked.
        observed: the same, counted by the arrays in the simulator; None on a device.
    """

    output: Array
    traffic: Traffic | None
    observed: Traffic | None = None


def flat_operands(x: Array, w: Array, shape: ConvShape) -> tuple[Array, Array]:
    """Input and weights as flat packed arrays, copied where they are not packed.

    Raises:
        InputError: an array's shape or dtype is not the layer's.
    """
    import numpy as np

    check_operands(x, w, shape)
    for field, array in (("input", x), ("weight", w)):
        if array.dtype.name != shape.dtype:
            raise InputError(field, array.dtype.name, f"the layer's dtype is {shape.dtype}")
    return np.ascontiguousarray(x).reshape(-1), np.ascontiguousarray(w).reshape(-1)


def kernel_traffic(counters: Iterable[Any]) -> Traffic:
    """Traffic from the kernel's counters: input loads, weight loads, output stores."""
    input_loads, weight_loads, output_stores = (int(count) for count in counters)
    return Traffic(input_loads, weight_loads, 0, output_stores)
