"""Ways to cut a loop into tiles, and what the tiles of a spatial axis touch."""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd

from pebble.axis import Axis, ceil_div

EDGE_TILES = 4096
"""Most tiles of an axis that are counted one by one: those whose windows meet its border."""
EVERY_SIZE = 64
"""Longest axis of which every tile size is tried."""


def tile_sizes(extent: int) -> list[int]:
    """Tile sizes of a plain loop, ascending: the smallest for each distinct number of tiles.

    Larger sizes with as many tiles only take more memory. There are about ``2 * sqrt(extent)``.

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
    return sizes


def axis_tile_sizes(axis: Axis, limit: int) -> tuple[list[int], bool]:
    """Tile sizes worth trying on an axis, and whether none was left out for being too many.

    Two sizes with as many tiles may read differently: a border near the padding, or one that
    respects the period of dilated or of spread-out windows, re-reads less. So every size is tried
    on an axis of up to ``EVERY_SIZE`` positions; on a longer one the smallest for each number of
    tiles, and the next multiple of the period; at most ``limit`` in all.
    """
    extent = axis.written
    if extent <= min(EVERY_SIZE, limit):
        return list(range(1, extent + 1)), True
    sizes = tile_sizes(extent)
    period = axis.stride if axis.transposed else axis.dilation
    if period > 1:
        rounded = (ceil_div(size, period) * period for size in sizes)
        sizes = sorted({*sizes, *(size for size in rounded if size <= extent)})
    if len(sizes) <= limit:
        return sizes, True
    last = len(sizes) - 1
    return [sizes[i * last // (limit - 1)] for i in range(limit)], False


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
    first_live, last_live = _reaching(axis)
    low, high = min(first_live // size, tiles), min(last_live // size + 1, tiles)
    begin, end = _inside(axis, size)
    begin = min(max(begin, low), high)
    end = max(min(end, high), begin)
    period = axis.stride // gcd(axis.stride, size) if axis.transposed else 1
    if end - begin <= period:
        begin = end = high
    if begin - low + min(period, end - begin) + high - end > EDGE_TILES:
        return None
    live_tiles = live_positions = touched = largest = taps = 0
    inside = [
        (begin + i, ceil_div(end - begin - i, period)) for i in range(min(period, end - begin))
    ]
    edges = [(i, 1) for i in (*range(low, begin), *range(end, high))]
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


def _reaching(axis: Axis) -> tuple[int, int]:
    """First and last written position whose window can reach a real input; the rest see padding."""
    reach = axis.dilation * (axis.kernel - 1)
    if axis.transposed:
        return 0, max(axis.stride * (axis.outputs - 1) + reach - axis.pad_begin, 0)
    first = max(ceil_div(axis.pad_begin - reach, axis.stride), 0)
    return first, max((axis.inputs - 1 + axis.pad_begin) // axis.stride, 0)


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
