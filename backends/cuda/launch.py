"""Run the direct kernel on a real device."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from backends.cuda.execution import Execution, flat_operands, kernel_traffic
from backends.cuda.plan import DirectPlan
from pebble.errors import InputError, LaunchError, MissingError
from pebble.shapes import ConvShape
from pebble.units import itemsize

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[Any]

TOOLKIT = ("nvvm", "nvrtc", "nvJitLink")
"""Libraries that compile and link a kernel."""
INSTALL = "install an NVIDIA driver and pip install 'redblue[cuda]'"


def run_direct(
    x: Array,
    w: Array,
    shape: ConvShape,
    tile: Mapping[str, int],
    *,
    threads: int | None = None,
    counted: bool = False,
    device: int = 0,
) -> Execution:
    """Run the direct kernel, from arrays of the host to an array of the host.

    Args:
        x: input, of shape ``shape.input_shape`` and of the layer's dtype.
        w: weights, of shape ``shape.weight_shape`` and of the layer's dtype.
        shape: the layer.
        tile: size per loop n, k, c (channels of one group) and output axis.
        threads: threads per block; default as in ``DirectPlan.of``.
        counted: whether the kernel counts its own global loads and stores.
        device: number of the CUDA device.

    Raises:
        InputError: an array, the tile or the device's number does not fit.
        LaunchError: the tile needs more than a block has, or the arrays more memory than is free.
        MissingError: there is no usable device here.
    """
    import numpy as np

    plan = DirectPlan.of(shape, tile, threads)
    _check_device(device)
    flat_x, flat_w = flat_operands(x, w, shape)
    y = np.empty(shape.output_words, dtype=shape.dtype)
    counters = np.zeros(3, dtype=np.int64)
    if plan.blocks:
        _launch(plan, counted, device, (flat_x, flat_w, y, counters))
    traffic = kernel_traffic(counters) if counted else None
    return Execution(y.reshape(shape.output_shape), traffic)


def available() -> bool:
    """Whether a CUDA device can be used here."""
    try:
        device_count()
    except MissingError:
        return False
    return True


def device_count() -> int:
    """Number of CUDA devices that a kernel can be compiled for, at least 1.

    Raises:
        MissingError: none, or no driver, compiler or Numba for it; says what was found.
    """
    if os.environ.get("NUMBA_ENABLE_CUDASIM", "0") not in ("", "0"):
        raise MissingError(
            "no CUDA device: NUMBA_ENABLE_CUDASIM is set in this process", "unset it"
        )
    try:
        from cuda.pathfinder import load_nvidia_dynamic_lib
        from numba import cuda

        count = len(cuda.gpus)
        for library in TOOLKIT:
            load_nvidia_dynamic_lib(library)
    except (ImportError, RuntimeError) as error:  # Numba's and the toolkit's own errors are these
        raise MissingError(f"no CUDA device: {explain(str(error))}", INSTALL) from None
    if count == 0:
        raise MissingError("no CUDA device: the driver reports none", "use a machine with one")
    return count


def explain(message: str, library: str | None = None, versions: str | None = None) -> str:
    """A driver's or linker's message on one line, with the cause where it is known.

    Args:
        message: its own text; error 34 is a stub of the driver, error 222 a driver that is too old.
        library: path of the driver library; default the one loaded in this process.
        versions: of toolkit and driver; default those of this process.
    """
    text = " ".join(message.split()).rstrip(": ")
    if re.search(r"STUB_LIBRARY|\b34\b", text):
        where = library or _loaded("libcuda.so") or "an unknown place"
        return f"{text}; a stub of the driver library was loaded from {where}, take it off the path"
    if is_version_mismatch(text):
        return f"{text}; the toolkit is newer than the driver or linker: {versions or _versions()}"
    return text


def is_version_mismatch(message: str) -> bool:
    """Whether a message says that PTX is newer than what shall load it."""
    return bool(
        re.search(r"UNSUPPORTED_PTX_VERSION|\b222\b|Unsupported \.version", message, re.IGNORECASE)
    )


def _loaded(name: str) -> str | None:
    """Path of a library that this process has loaded."""
    try:
        lines = Path("/proc/self/maps").read_text().splitlines()
    except OSError:
        return None
    paths = (line.split()[-1] for line in lines if name in line)
    return next(paths, None)


def _versions() -> str:
    from numba import cuda
    from numba.cuda.cudadrv.driver import driver

    found = []
    for part, version in (("toolkit", cuda.runtime.get_version), ("driver", driver.get_version)):
        try:
            found.append(f"{part} {'.'.join(map(str, version()))}")
        except (cuda.CudaSupportError, RuntimeError) as error:
            found.append(f"{part} unknown ({' '.join(str(error).split())})")
    return ", ".join(found)


def _check_device(device: int) -> None:
    count = device_count()
    if not 0 <= device < count:
        exist = "only device 0 exists" if count == 1 else f"devices 0 to {count - 1} exist"
        raise InputError("device", device, exist)


def _check_memory(words: int, dtype: str, free: int) -> None:
    needed = words * itemsize(dtype)
    if needed > free:
        raise LaunchError(f"the arrays need {needed} bytes of device memory; {free} are free")


def _launch(
    plan: DirectPlan, counted: bool, device: int, arrays: tuple[Array, Array, Array, Array]
) -> None:
    """Copy the arrays to the device, run the kernel, and copy output and counters back."""
    import warnings

    from numba import cuda
    from numba.cuda.core.errors import NumbaPerformanceWarning

    from backends.cuda.direct import direct_kernel

    x, w, y, counters = arrays
    with cuda.gpus[device], warnings.catch_warnings():
        warnings.simplefilter("ignore", NumbaPerformanceWarning)  # small grids are meant
        free = cuda.current_context().get_memory_info().free
        _check_memory(x.size + w.size + y.size, plan.shape.dtype, free)
        device_x, device_w = cuda.to_device(x), cuda.to_device(w)
        device_y = cuda.device_array(y.shape, y.dtype)
        device_counters = cuda.to_device(counters)
        try:
            kernel = direct_kernel(plan, counted)[plan.blocks, plan.threads]
            kernel(device_x, device_w, device_y, device_counters)
        except Exception as error:
            if is_version_mismatch(str(error)):
                raise MissingError(explain(str(error)), INSTALL) from error
            raise
        device_y.copy_to_host(y)
        device_counters.copy_to_host(counters)
