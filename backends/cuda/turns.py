"""A scheduler for Numba's CUDA simulator in which the threads of a block take turns.

The simulator's own lets them run at once as threads of the system. Then two of them can make two
arrays of one shared array, counts can be lost, and a polling loop fights them for the interpreter.
Here each thread runs alone up to its next barrier, lowest number first: runs repeat exactly, and a
missing barrier shows as wrong values, since the first thread runs ahead as far as it can.

Shared arrays start as garbage, as on a device, so that a missing initialisation shows too.

Importing this module needs NUMBA_ENABLE_CUDASIM=1. It replaces private parts of numba-cuda 0.30.
"""

from __future__ import annotations

import sys
from threading import Lock
from typing import Any

import numpy as np
from numba.cuda import types
from numba.cuda.np.numpy_support import as_dtype
from numba.cuda.simulator import kernel as simulated
from numba.cuda.simulator.kernelapi import FakeCUDAShared

from pebble.errors import PebbleError


def _closed() -> Lock:
    """A lock that the next ``acquire`` waits for until another thread releases it."""
    lock = Lock()
    lock.acquire()
    return lock


class _Thread(simulated.BlockThread):  # type: ignore[misc]
    """A thread that waits for its turn at its start and at each barrier."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.turn = _closed()
        self.done = False

    def run(self) -> None:
        self.turn.acquire()
        super().run()
        self.done = True
        self._manager.paused.release()

    def syncthreads(self) -> None:
        self._manager.paused.release()
        self.turn.acquire()


class _Block(simulated.BlockManager):  # type: ignore[misc]
    """Runs a block's threads one after the other, from barrier to barrier."""

    def run(self, grid_point: Any, *args: Any) -> None:
        self.paused = _closed()
        threads = [
            _Thread(lambda: self._f(*args), self, grid_point, place, self._debug)
            for place in np.ndindex(*self._block_dim)
        ]
        for thread in threads:
            thread.start()
        while not all(thread.done for thread in threads):
            if any(thread.done for thread in threads):
                raise PebbleError("some threads of a block ended while others wait at a barrier")
            for thread in threads:
                thread.turn.release()
                self.paused.acquire()
                if thread.exception:
                    raise thread.exception[0].with_traceback(thread.exception[1])


def _shared_array(memory: FakeCUDAShared, shape: int, dtype: Any) -> Any:
    """The block's array of the line that asks for it, found without reading the source text."""
    frame = sys._getframe(1)
    place = (frame.f_code, frame.f_lasti)
    found = memory._allocations.get(place)
    if found is None:
        kind = as_dtype(dtype) if isinstance(dtype, types.Type) else np.dtype(dtype)
        garbage = np.nan if kind.kind == "f" else np.iinfo(kind).max
        found = memory._allocations[place] = np.full(shape, garbage, kind)
    return found


def take_turns() -> None:
    """Make the simulator use this scheduler from now on."""
    simulated.BlockManager = _Block
    FakeCUDAShared.array = _shared_array
