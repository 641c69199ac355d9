"""Words that a schedule moves and holds, in closed form.

The same arithmetic serves exact Python integers (one tiling) and float arrays (many at once): it
uses only sums, products, and comparisons multiplied in.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from pebble.axis import ceil_div
from pebble.errors import InputError
from pebble.shapes import ConvShape
from tiling.cuts import AxisCut, cut_axis
from tiling.tile import Footprint, Schedule, Tiling, Traffic

# An exact integer, or an array of floats in the search.
Number = Any


@dataclass(frozen=True, slots=True)
class Sizes:
    """Tile sizes of one group with the counts that traffic needs; numbers or arrays.

    Attributes:
        n, k, c: tile sizes of batch, output and input channels.
        batch, out_channels, in_channels: extents, of one group.
        steps_n, steps_k, steps_c: number of tiles.
        steps_axes: live tiles of each axis, outermost first.
        touched_axes: input positions that the tiles of each axis read.
        shared_axes: those that a tile reads as the one before it did.
        largest_touched: input positions that the largest tile reads.
        taps_axes: taps used, summed over the tiles of each axis.
        all_taps_axes: taps that any tile uses, per axis.
        positions: written positions of the largest tile.
        live_positions, all_positions: written positions in live tiles, and in all.
    """

    n: Number
    k: Number
    c: Number
    batch: int
    out_channels: int
    in_channels: int
    steps_n: Number
    steps_k: Number
    steps_c: Number
    steps_axes: Sequence[Number]
    touched_axes: list[Number]
    shared_axes: list[Number]
    largest_touched: Number
    taps_axes: Sequence[Number]
    all_taps_axes: Sequence[int]
    positions: Number
    live_positions: Number
    all_positions: int

    @classmethod
    def of(cls, shape: ConvShape, tile: dict[str, int], cuts: Sequence[AxisCut]) -> Sizes:
        """Exact counts of one tiling."""
        return cls(
            n=tile["n"],
            k=tile["k"],
            c=tile["c"],
            batch=shape.batch,
            out_channels=shape.group_out_channels,
            in_channels=shape.group_in_channels,
            steps_n=ceil_div(shape.batch, tile["n"]),
            steps_k=ceil_div(shape.group_out_channels, tile["k"]),
            steps_c=ceil_div(shape.group_in_channels, tile["c"]),
            steps_axes=[cut.live_tiles for cut in cuts],
            touched_axes=[cut.touched for cut in cuts],
            shared_axes=[cut.shared for cut in cuts],
            largest_touched=prod(cut.largest_touched for cut in cuts),
            taps_axes=[cut.taps for cut in cuts],
            all_taps_axes=[cut.all_taps for cut in cuts],
            positions=prod(cut.size for cut in cuts),
            live_positions=prod(cut.live_positions for cut in cuts),
            all_positions=prod(shape.output_spatial),
        )


def group_traffic(schedule: Schedule, axis_names: Sequence[str], sizes: Sizes) -> Traffic:
    """Words that one group moves. Precondition: at least one tile is live.

    A tile that is kept is loaded again whenever a loop turns that its operand does not depend on
    and that lies outside the innermost loop which changes the tile. An input tile that slides
    along an axis loads only what the tile before it did not read. Steps without a
    multiply-accumulate are skipped; their outputs are stored once.
    """
    steps = {"n": sizes.steps_n, "k": sizes.steps_k, "c": sizes.steps_c}
    steps.update(zip(axis_names, sizes.steps_axes, strict=True))

    def turns(loop: str, operand: str, loops: Sequence[str]) -> Number:
        """1 where the operand's tile is fetched anew in each turn of a foreign loop, else 0."""
        if operand == schedule.streamed or (schedule.private and operand != "output"):
            return 1
        inner = schedule.order[schedule.order.index(loop) + 1 :]
        return 1 - prod(steps[name] == 1 for name in inner if name in loops)

    def passes(loop: str, operand: str, loops: Sequence[str]) -> Number:
        return 1 + (steps[loop] - 1) * turns(loop, operand, loops)

    positions = ("n", *axis_names)
    touched = prod(sizes.touched_axes)
    if not schedule.private and schedule.streamed != "input":
        for i, (name, shared) in enumerate(zip(axis_names, sizes.shared_axes, strict=True)):
            inner = schedule.order[schedule.order.index(name) + 1 :]
            slides = prod(steps[loop] == 1 for loop in inner if loop in ("c", *positions))
            others = sizes.touched_axes[:i] + sizes.touched_axes[i + 1 :]
            touched = touched - slides * shared * prod(others)
    inputs = sizes.batch * sizes.in_channels * touched
    inputs = inputs * passes("k", "input", ("c", *positions))

    weights = sizes.out_channels * sizes.in_channels * passes("n", "weight", ("k", "c"))
    for name, taps, whole in zip(axis_names, sizes.taps_axes, sizes.all_taps_axes, strict=True):
        weights = weights * (whole + (taps - whole) * turns(name, "weight", ("k", "c")))

    channels = sizes.batch * sizes.out_channels
    again = channels * sizes.live_positions * (passes("c", "output", ("k", *positions)) - 1)
    return Traffic(inputs, weights, again, channels * sizes.all_positions + again)


def group_footprint(schedule: Schedule, sizes: Sizes) -> Footprint:
    """Fast memory that one group's largest step needs."""
    words = {
        "input": sizes.n * sizes.c * sizes.largest_touched,
        "weight": sizes.k * sizes.c * prod(sizes.all_taps_axes),
        "output": sizes.n * sizes.k * sizes.positions,
    }
    if schedule.streamed:
        words[schedule.streamed] = 1
    return Footprint(words["input"], words["weight"], words["output"])


def evaluate(
    shape: ConvShape,
    capacity_words: int,
    tile: dict[str, int],
    schedule: Schedule,
    exhaustive: bool = False,
) -> Tiling:
    """The exact cost of given tile sizes under a schedule, in integer arithmetic.

    Args:
        shape: the layer.
        capacity_words: recorded in the result; not checked against the footprint.
        tile: size per loop n, k, c and output axis. A size above its loop's extent means all of it.
        schedule: order and residency.
        exhaustive: recorded in the result.

    Raises:
        InputError: a loop is missing, unknown or given twice, or a size is below 1.
    """
    extents = tile_extents(shape)
    if set(tile) != set(extents) or set(schedule.order) != set(extents):
        raise InputError("tile", tile, f"must name exactly the loops {', '.join(extents)}")
    if len(schedule.order) != len(extents):
        raise InputError("order", schedule.order, "names a loop twice")
    for loop, size in tile.items():
        if size < 1:
            raise InputError(f"tile of {loop}", size, "must be at least 1")
    if schedule.private and schedule.stationary != "output":
        raise InputError(
            "schedule", str(schedule), "only an output-stationary schedule can be private"
        )
    tile = {loop: min(tile[loop], extent) for loop, extent in extents.items()}
    if shape.batch == 0:
        nothing = Traffic(0, 0, 0, 0)
        return Tiling(
            shape, capacity_words, tuple(tile.items()), schedule, Footprint(0, 0, 0), nothing, True
        )
    cuts = []
    for name, axis in zip(shape.axis_names, shape.axes, strict=True):
        cut = cut_axis(axis, tile[name])
        if cut is None:
            raise InputError(f"tile of {name}", tile[name], "cuts the padded border too finely")
        cuts.append(cut)
    sizes = Sizes.of(shape, tile, cuts)
    if shape.macs:
        traffic = group_traffic(schedule, shape.axis_names, sizes)
    else:
        traffic = Traffic(0, 0, 0, shape.output_words // shape.group)
    return Tiling(
        shape,
        capacity_words,
        tuple(tile.items()),
        schedule,
        group_footprint(schedule, sizes),
        traffic.times(shape.group),
        exhaustive,
    )


def tile_extents(shape: ConvShape) -> dict[str, int]:
    """Extent of every tile loop, in the order n, k, c, then the output axes; batch at least 1."""
    return {
        "n": max(shape.batch, 1),
        "k": shape.group_out_channels,
        "c": shape.group_in_channels,
        **dict(zip(shape.axis_names, shape.output_spatial, strict=True)),
    }
