"""The tiling of least traffic over a stated family, by an exhaustive search in closed form.

The family: all tile sizes of batch and channels (one for each distinct number of tiles), those of
``tiling.cuts.axis_tile_sizes`` on the output axes, with the output, the weight or the input
stationary, both orders of the two outer loop groups, and any one operand streamed through a single
word. In every schedule the traffic never rises with the size of one of the channel tiles, so that
the largest which fits is taken in closed form and only the other sizes are enumerated.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

from pebble.axis import ceil_div
from pebble.errors import InfeasibleError, SolverError
from pebble.fields import check_capacity
from pebble.shapes import ConvShape
from tiling.cuts import AxisCut, axis_tile_sizes, cut_axis, tile_sizes
from tiling.tile import Schedule, Tiling
from tiling.traffic import Sizes, evaluate, group_footprint, group_traffic, tile_extents

if TYPE_CHECKING:
    from numpy import float64
    from numpy.typing import NDArray

    Floats = NDArray[float64]

MOST_POINTS = 100_000
"""Position tiles that one search looks at; above it, axes are thinned and the result says so."""
MOST_SIZES = 1000
"""Tile sizes of one loop that a search looks at."""
MOST_PAIRS = 10_000_000
"""Position tiles times sizes of the output channels' tile; above it, those are thinned as well."""
MOST_ENTRIES = 2_000_000
"""Entries of an array of the search: a bound on its memory, not on what it finds."""


def optimise(shape: ConvShape, capacity_words: int, *, private: bool = False) -> Tiling:
    """The tiling of least traffic that fits the fast memory.

    Args:
        shape: the layer.
        capacity_words: fast memory, in elements.
        private: only output-stationary tilings that keep whole tiles of all operands and nothing
            between output tiles: what a thread block with a memory of its own can run.

    Returns:
        A tiling with its exact footprint and traffic, both computed again in integers. Ties go
        to the smaller footprint, then to the first schedule. ``exhaustive`` tells whether the
        whole family was searched.

    Raises:
        InputError: the capacity is below 1.
        InfeasibleError: nothing fits; the message names the smallest capacity that would do.

    >>> shape = ConvShape.of((1, 128, 56, 56), (256, 128, 3, 3), pads=(1, 1, 1, 1))
    >>> optimise(shape, 4096).traffic.words <= 12_409_856
    True
    """
    check_capacity(capacity_words)
    if shape.batch == 0 or shape.macs == 0:
        order = ("n", *shape.axis_names, "k", "c")
        ones = dict.fromkeys(tile_extents(shape), 1)
        whole = {**ones, **dict(zip(shape.axis_names, shape.output_spatial, strict=True))}
        if capacity_words < prod(whole.values()):
            whole = ones
        return evaluate(shape, capacity_words, whole, Schedule(order, private=private), True)
    grid = _Grid.of(shape)
    found: list[tuple[float, float, int, Schedule, dict[str, int]]] = []
    for rank, (schedule, sizes) in enumerate(_schedules(shape, grid, capacity_words, private)):
        best = _least(schedule, sizes, grid, shape, capacity_words)
        if best is not None:
            words, footprint, tile = best
            found.append((words, footprint, rank, schedule, tile))
    if not found:
        raise _infeasible(shape, capacity_words, private)
    words, *_, schedule, tile = min(found, key=lambda row: row[:3])
    words *= shape.group
    tiling = evaluate(shape, capacity_words, tile, schedule, grid.exhaustive)
    # The search runs in floats; its answer counts only as far as integers confirm it.
    if tiling.footprint.words > capacity_words or abs(tiling.traffic.words - words) > 1e-9 * words:
        raise SolverError(
            f"the search promised {words:.0f} words within {capacity_words}; exactly, {tiling}"
        )
    return tiling


@dataclass(frozen=True)
class _Grid:
    """All position tiles of a shape, one array entry each, in floats."""

    n: Floats
    steps_n: Floats
    sizes_axes: list[Floats]
    steps_axes: list[Floats]
    touched_axes: list[Floats]
    shared_axes: list[Floats]
    largest_touched: Floats
    taps_axes: list[Floats]
    all_taps_axes: list[int]
    positions: Floats
    live_positions: Floats
    k_sizes: Floats
    exhaustive: bool

    @classmethod
    def of(cls, shape: ConvShape) -> _Grid:
        import numpy as np

        batches, axes, exhaustive = _candidates(shape)
        counts = [len(batches), *map(len, axes)]
        index = np.indices(counts).reshape(len(counts), -1)

        def per_axis(name: str) -> list[Floats]:
            return [
                np.array([float(getattr(cut, name)) for cut in cuts])[i]
                for cuts, i in zip(axes, index[1:], strict=True)
            ]

        def product(name: str) -> Floats:
            return prod(per_axis(name), start=np.ones(1))

        batch = np.array(batches, dtype=float)[index[0]]
        channels = shape.group_out_channels
        limit = min(MOST_SIZES, max(MOST_PAIRS // batch.size, 64))
        return cls(
            n=batch,
            steps_n=np.ceil(shape.batch / batch),
            sizes_axes=per_axis("size"),
            steps_axes=per_axis("live_tiles"),
            touched_axes=per_axis("touched"),
            shared_axes=per_axis("shared"),
            largest_touched=product("largest_touched"),
            taps_axes=per_axis("taps"),
            all_taps_axes=[cuts[0].all_taps for cuts in axes],
            positions=product("size"),
            live_positions=product("live_positions"),
            k_sizes=np.array(tile_sizes(channels, limit), dtype=float),
            exhaustive=exhaustive and 4 * channels <= limit**2,
        )

    @property
    def taps(self) -> int:
        return prod(self.all_taps_axes)

    def sizes(self, shape: ConvShape, k: Floats, c: Floats) -> Sizes:
        """Counts of every position tile with the given channel tiles; shapes broadcast."""
        import numpy as np

        out_channels, in_channels = shape.group_out_channels, shape.group_in_channels
        return Sizes(
            n=self.n,
            k=k,
            c=c,
            batch=shape.batch,
            out_channels=out_channels,
            in_channels=in_channels,
            steps_n=self.steps_n,
            # A tile of 0 marks an entry that does not fit; its counts are never used.
            steps_k=np.ceil(out_channels / np.maximum(k, 1)),
            steps_c=np.ceil(in_channels / np.maximum(c, 1)),
            steps_axes=self.steps_axes,
            touched_axes=self.touched_axes,
            shared_axes=self.shared_axes,
            largest_touched=self.largest_touched,
            taps_axes=self.taps_axes,
            all_taps_axes=self.all_taps_axes,
            positions=self.positions,
            live_positions=self.live_positions,
            all_positions=prod(shape.output_spatial),
        )


def _candidates(shape: ConvShape) -> tuple[list[int], list[list[AxisCut]], bool]:
    """Batch tiles, the cuts of each axis, and whether nothing was left out."""
    batches = tile_sizes(shape.batch, MOST_SIZES)
    exhaustive = 4 * shape.batch <= MOST_SIZES**2
    limits = [MOST_SIZES] * shape.rank
    while True:
        found = [
            axis_tile_sizes(axis, limit) for axis, limit in zip(shape.axes, limits, strict=True)
        ]
        counts = [len(sizes) for sizes, _ in found]
        if len(batches) * prod(counts) <= MOST_POINTS:
            break
        longest = counts.index(max(counts))
        limits[longest] = max(counts[longest] * 3 // 4, 2)
    axes = []
    for axis, (sizes, complete) in zip(shape.axes, found, strict=True):
        cuts = [cut_axis(axis, size) for size in sizes]
        exhaustive = exhaustive and complete and None not in cuts
        axes.append([cut for cut in cuts if cut is not None])
    return batches, axes, exhaustive


def _fitting(room: Floats, each: Floats | float, extent: int) -> Floats:
    """Largest tile of a loop with ``each`` words a unit in ``room``, as the smallest of its kind.

    0 where not even one unit fits.
    """
    import numpy as np

    size = np.clip(np.floor(room / each), 0, extent)
    with np.errstate(divide="ignore"):
        tiles = np.ceil(extent / size)
        return np.where(size >= 1, np.ceil(extent / tiles), 0.0)


def _schedules(
    shape: ConvShape, grid: _Grid, capacity: int, private: bool
) -> Iterator[tuple[Schedule, Sizes]]:
    """Every schedule of the family with its channel tiles; a tile of 0 does not fit."""
    import numpy as np

    at = ("n", *shape.axis_names)
    k_all, c_all = shape.group_out_channels, shape.group_in_channels
    taps = float(grid.taps)
    patch, outputs = grid.n * grid.largest_touched, grid.n * grid.positions
    for order in ((*at, "k", "c"), ("k", *at, "c")):
        for streamed in (None,) if private else ("input", "weight", None):
            with_input, with_weight = float(streamed != "input"), float(streamed != "weight")
            for c in sorted({1, c_all}):
                room = capacity - with_input * c * patch - (streamed is not None)
                k = _fitting(room, with_weight * c * taps + outputs, k_all)
                yield (
                    Schedule(order, streamed, private),
                    grid.sizes(shape, k, np.full_like(k, c)),
                )
        if private:
            return
    for order in ((*at, "c", "k"), ("c", *at, "k")):
        for streamed in ("weight", "output", None):
            with_weight, with_output = float(streamed != "weight"), float(streamed != "output")
            for k_size in sorted({1, k_all}):
                room = capacity - with_output * k_size * outputs - (streamed is not None)
                c_sizes = _fitting(room, patch + with_weight * k_size * taps, c_all)
                yield (
                    Schedule(order, streamed),
                    grid.sizes(shape, np.full_like(c_sizes, k_size), c_sizes),
                )
    k_sizes = grid.k_sizes[:, None]
    parts = ceil_div(k_sizes.size * patch.size, MOST_ENTRIES)
    for order in (("k", "c", *at), ("c", "k", *at)):
        for streamed in ("input", "output", None):
            with_input, with_output = float(streamed != "input"), float(streamed != "output")
            for k in np.array_split(k_sizes, min(parts, k_sizes.size)):
                room = capacity - with_output * k * outputs - (streamed is not None)
                c_sizes = _fitting(room, with_input * patch + k * taps, c_all)
                yield Schedule(order, streamed), grid.sizes(shape, k + 0 * c_sizes, c_sizes)


def _least(
    schedule: Schedule, sizes: Sizes, grid: _Grid, shape: ConvShape, capacity: int
) -> tuple[float, float, dict[str, int]] | None:
    """Words, footprint and tile of the best entry; None where nothing fits."""
    import numpy as np

    fits = (sizes.k >= 1) & (sizes.c >= 1)
    fits, words, footprint = np.broadcast_arrays(
        fits,
        group_traffic(schedule, shape.axis_names, sizes).words,
        group_footprint(schedule, sizes).words,
    )
    words = np.where(fits & (footprint <= capacity), words, np.inf)
    least = words.min()
    if not np.isfinite(least):
        return None
    ties = np.flatnonzero(words == least)
    chosen = int(ties[np.argmin(footprint.flat[ties])])
    point = chosen % grid.n.size
    tile = {
        "n": int(grid.n[point]),
        "k": int(np.broadcast_to(sizes.k, words.shape).flat[chosen]),
        "c": int(np.broadcast_to(sizes.c, words.shape).flat[chosen]),
    }
    for name, values in zip(shape.axis_names, grid.sizes_axes, strict=True):
        tile[name] = int(values[point])
    return float(least), float(footprint.flat[chosen]), tile


def _infeasible(shape: ConvShape, capacity: int, private: bool) -> InfeasibleError:
    cuts = [cut_axis(axis, 1) or cut_axis(axis, axis.written) for axis in shape.axes]
    patch = prod(cut.largest_touched for cut in cuts if cut)
    taps = prod(cut.all_taps for cut in cuts if cut)
    outputs = prod(cut.size for cut in cuts if cut)
    needed = patch + taps + outputs if private else min(patch + 1, taps + 1) + outputs
    return InfeasibleError(
        f"no tiling fits {capacity} words: one output needs {patch} input words, {taps} weights "
        f"and {outputs} output word(s) of one channel at a time; give at least {needed} words",
        needed,
    )
