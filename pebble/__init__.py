"""The game: convolutions and loop nests, fast memories, and the least words they must move.

Not the PyPI package ``Pebble`` (process pools), whose import name is the same.
"""

from pebble.axis import Axis
from pebble.cdag import Cdag
from pebble.errors import (
    InfeasibleError,
    InputError,
    LaunchError,
    MissingError,
    NotAffineError,
    PebbleError,
    SolverError,
    TooLargeError,
    UndecidedError,
)
from pebble.game import least_io
from pebble.machine import Machine, MemoryLevel, machine_names
from pebble.nest import Access, Affine, LoopNest
from pebble.network import Layer, Network, Skipped, network_names
from pebble.shapes import ConvShape
from pebble.units import capacity_words, itemsize

__all__ = [
    "Access",
    "Affine",
    "Axis",
    "Cdag",
    "ConvShape",
    "InfeasibleError",
    "InputError",
    "LaunchError",
    "Layer",
    "LoopNest",
    "Machine",
    "MemoryLevel",
    "MissingError",
    "Network",
    "NotAffineError",
    "PebbleError",
    "Skipped",
    "SolverError",
    "TooLargeError",
    "UndecidedError",
    "capacity_words",
    "itemsize",
    "least_io",
    "machine_names",
    "network_names",
]
