"""Everything that is special to the device, with a plain twin of each for the simulator.

Importing this module imports Numba: a device must be wanted, or NUMBA_ENABLE_CUDASIM set. A port to
another compiler changes this module and no kernel.
"""

from __future__ import annotations

from typing import Any

from numba import config, cuda, float32, float64, types, uint64

SIMULATED = bool(config.ENABLE_CUDASIM)

WORD = {"float16": types.float16, "float32": float32, "float64": float64}
"""Type of an element in memory, by dtype."""
ACCUMULATOR = {"float16": float32, "float32": float32, "float64": float64}
"""Type that products are added in, by dtype."""


def device_function(function: Any) -> Any:
    """A function that kernels of its own module can call."""
    return function if SIMULATED else cuda.jit(device=True)(function)


def _load(array: Any, index: int) -> Any:
    # Unsigned: a signed index costs a compare and a select for Python's negative indices.
    return array[uint64(index)]


def _store(array: Any, index: int, value: Any) -> None:
    array[uint64(index)] = value


def _simulated_load(array: Any, index: int) -> Any:
    return array[index]


def _simulated_store(array: Any, index: int, value: Any) -> None:
    array[index] = value


global_load = device_function(_simulated_load if SIMULATED else _load)
"""``global_load(array, index)``: one word of a flat array in global memory."""
global_store = device_function(_simulated_store if SIMULATED else _store)
"""``global_store(array, index, value)``: one word, converted to the array's type."""
