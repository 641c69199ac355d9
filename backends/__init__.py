"""The run: schedules walked and counted, a reference for values, and kernels on a device.

Uses pebble's value types and none of its bounds. Nothing here loads Numba until a kernel is asked
for: ``backends.cuda.launch`` runs on a device, ``backends.cuda.simulator`` without one.
"""

from backends.counting import Count, walk
from backends.reference import convolve

__all__ = ["Count", "convolve", "walk"]
