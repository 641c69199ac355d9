"""Ways to cut a loop into tiles, and what the tiles of a spatial axis touch."""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd

from pebble.axis import Axis, ceil_div

EDGE_TILES = 4096
"""Most tiles of an axis that are counted one by one: those whose windows meet its border."""
EVERY_SIZE = 64
"""Longest axis of which every tile size is tried."""


def tile_sizes(extent: int, limit: int | None = None) -> list[int]:
    """Tile sizes of a plain loop, ascending: the smallest for each distinct number of tiles.

    Larger sizes with as many tiles only take more memory. There are about ``2 * sqrt(extent)``;
    where that exceeds ``limit``, a geometric spread of at most ``limit`` of them, with both ends.

    >>> tile_sizes(7)
    [1, 2, 3, 4, 7]
    >>> len(tile_sizes(6144))
    156
    """
    if limit is not None and 4 * extent > limit * limit:
        spread = (round(extent ** (i / (limit - 1))) for i in range(limit))
        counts = {ceil_div(extent, min(max(size, 1), extent)) for size in spread}
        return sorted({1, extent, *(ceil_div(extent, count) for count in counts)})
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
    sizes = tile_sizes(extent, limit)
    period = axis.stride if axis.transposed else axis.dilation
    if period > 1:
        rounded = {ceil_div(size, period) * period for size in sizes}
        sizes = sorted({*sizes, *(size for size in rounded if size <= extent)})
    last, complete = len(sizes) - 1, 4 * extent <= limit * limit
    if len(sizes) > limit:
        sizes, complete = [sizes[i * last // (limit - 1)] for i in range(limit)], False
    return sizes, complete


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
        shared: distinct inputs that a tile and the live one before it both read, summed.
        largest_touched: the same of the tile that reads most.
        taps: distinct taps that a tile uses, summed over tiles.
        all_taps: distinct taps that any tile uses.
    """

    size: int
    tiles: int
    live_tiles: int
    live_positions: int
    touched: int
    shared: int
    largest_touched: int
    taps: int
    all_taps: int


def cut_axis(axis: Axis, size: int) -> AxisCut | None:
    """Count the tiles of an axis; None where more than ``EDGE_TILES`` meet its border.

    Tiles whose windows lie inside the image repeat with a period of one tile (of
    ``stride / gcd(stride, size)`` tiles for a transposed axis). Two periods are looked at, since
    from the second on each tile also has the same live tile before it.
    """
    extent = axis.written
    first_live, last_live = _reaching(axis)
    tiles = ceil_div(extent, size)
    low, high = min(first_live // size, tiles), min(last_live // size + 1, tiles)
    begin, end = _inside(axis, size)
    begin, end = min(max(begin, low), high), min(end, high)
    period = axis.stride // gcd(axis.stride, size) if axis.transposed else 1
    if end - begin <= 2 * period:
        begin, end, period = high, high, 0
    if begin - low + 2 * period + high - end > EDGE_TILES:
        return None

    def span(tile: int) -> tuple[int, int]:
        return tile * size, min((tile + 1) * size, extent)

    live_tiles = live_positions = touched = shared = largest = taps = 0
    before = None  # the live tile before this one
    once = [(tile, 1) for tile in range(low, begin + period)]
    repeated = [
        (tile, ceil_div(end - tile, period)) for tile in range(begin + period, begin + 2 * period)
    ]
    for tile, times in (*once, *repeated, *((tile, 1) for tile in range(end, high))):
        first, last = span(tile)
        reads = axis.touched(first, last)
        if reads == 0:
            continue
        if period and tile >= end and before is not None and before < end:
            before = max(t for t in range(end - period, end) if axis.touched(*span(t)))
        if before is not None:
            both = axis.touched(span(before)[0], last)
            shared += times * (axis.touched(*span(before)) + reads - both)
        before = tile
        live_tiles += times
        live_positions += times * (last - first)
        touched += times * reads
        largest = max(largest, reads)
        taps += times * axis.used_taps(first, last)
    return AxisCut(
        size,
        tiles,
        live_tiles,
        live_positions,
        touched,
        shared,
        largest,
        taps,
        axis.used_taps(0, extent),
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
        windows = (axis.inputs - 1 + axis.pad_begin - reach) // axis.stride + 1
        end = min(windows, axis.outputs) // size
    return begin, end
