"""The tile: sizes and loop orders whose traffic comes near the bound, exactly counted.

Uses pebble's value types and none of its bounds: that a bound is never above a traffic is then
evidence for both.
"""

from tiling.cuts import tile_sizes
from tiling.search import optimise
from tiling.tile import Footprint, Schedule, Tiling, Traffic
from tiling.traffic import evaluate, tile_extents

__all__ = [
    "Footprint",
    "Schedule",
    "Tiling",
    "Traffic",
    "evaluate",
    "optimise",
    "tile_extents",
    "tile_sizes",
]
