"""Ways to cut a loop into tiles, and what the tiles of a spatial axis touch."""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd

from pebble.axis import Axis, ceil_div

EDGE_TILES = 4096
"""Most tiles of an axis that are counted one by one: those that meet its border."""


def tile_sizes(extent: int, limit: int | None = None) -> list[int]:
    """Tile sizes worth trying, ascending: the smallest for each distinct number of tiles.

    Larger sizes with as many tiles only take more memory. There are about ``2 * sqrt(extent)``.
    With a ``limit``, a spread of at most that many sizes, both ends included.

    >>> tile_sizes(7)
    [1, 2, 3, 4, 7]
    >>> len(tile_sizes(6144))
    156
    """
    sizes = []
    size = extent
    while size >= 1:
        smallest = ceil_div(extent, ceil_div(extent, size))
        sizes.append(smallest)
        size = smallest - 1
    sizes.reverse()
    if limit is not None and len(sizes) > limit:
        last = len(sizes) - 1
        sizes = [sizes[i * last // (limit - 1)] for i in range(limit)]
    return sizes


@dataclass(frozen=True, slots=True)
class AxisCut:
    """One axis cut in tiles of ``size`` written positions, the last one smaller.

    A tile is live where one of its outputs has a real input. Words are per channel and image, and
    multiply over axes.

    Attributes:
        tiles: number of tiles.
        live_tiles: live ones among them.
        live_positions: written positions in live tiles.
        touched: distinct inputs that a tile reads, summed over tiles.
        largest_touched: the same of the tile that reads most.
        taps: distinct taps that a tile uses, summed over tiles.
        all_taps: distinct taps that any tile uses.
    """

    size: int
    tiles: int
    live_tiles: int
    live_positions: int
    touched: int
    largest_touched: int
    taps: int
    all_taps: int


def cut_axis(axis: Axis, size: int) -> AxisCut | None:
    """Count the tiles of an axis; None where more than ``EDGE_TILES`` meet its border.

    Tiles whose windows lie inside the image repeat with a period of one tile (of
    ``stride / gcd(stride, size)`` tiles for a transposed axis) and are counted once.
    """
    extent = axis.written
    tiles = ceil_div(extent, size)
    begin, end = _inside(axis, size)
    begin = min(max(begin, 0), tiles)
    end = max(min(end, tiles), begin)
    period = axis.stride // gcd(axis.stride, size) if axis.transposed else 1
    if end - begin <= period:
        begin = end = tiles
    if begin + period + (tiles - end) > EDGE_TILES:
        return None
    live_tiles = live_positions = touched = largest = taps = 0
    inside = [
        (begin + i, ceil_div(end - begin - i, period)) for i in range(min(period, end - begin))
    ]
    edges = [(i, 1) for i in (*range(begin), *range(end, tiles))]
    for tile, times in (*edges, *inside):
        first, last = tile * size, min((tile + 1) * size, extent)
        reads = axis.touched(first, last)
        if reads == 0:
            continue
        live_tiles += times
        live_positions += times * (last - first)
        touched += times * reads
        largest = max(largest, reads)
        taps += times * axis.used_taps(first, last)
    return AxisCut(
        size, tiles, live_tiles, live_positions, touched, largest, taps, axis.used_taps(0, extent)
    )


def _inside(axis: Axis, size: int) -> tuple[int, int]:
    """First and one past the last full tile whose every window lies in the image."""
    reach = axis.dilation * (axis.kernel - 1)
    if axis.transposed:
        begin = ceil_div(max(reach - axis.pad_begin, 0), size)
        end = min(axis.stride * axis.outputs - axis.pad_begin, axis.inputs) // size
    else:
        begin = ceil_div(axis.pad_begin, axis.stride * size)
        end = ((axis.inputs - 1 + axis.pad_begin - reach) // axis.stride + 1) // size
    return begin, end
