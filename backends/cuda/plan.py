"""Launch plan of the direct kernel: sizes, limits and memory, known before anything is compiled."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from math import prod

from pebble.axis import Axis, ceil_div
from pebble.errors import InputError, LaunchError
from pebble.shapes import ConvShape
from pebble.units import itemsize
from tiling.cuts import AxisCut, cut_axis
from tiling.traffic import tile_extents

SHARED_LIMIT = 48 * 1024
"""Bytes of statically declared shared memory that a block can have."""
THREADS_LIMIT = 1024
GRID_LIMIT = 2**31 - 1
"""Most blocks along the x axis of a grid; y and z stop at 65535 and are not used."""
SUMS_LIMIT = 128 * 1024
"""Bytes of a tile's partial sums: half the registers of a multiprocessor."""
SLOTS_LIMIT = 2**15 - 1
"""Most touched positions of a tile along one axis: a slot's number has 16 bits."""
INDEX_LIMIT = 2**62
DTYPES = ("float16", "float32", "float64")

_POINT = Axis(inputs=1, outputs=1, kernel=1)


@dataclass(frozen=True)
class DirectPlan:
    """A layer, its output tile and a block size. Build it with :meth:`of`.

    Attributes:
        shape: the layer.
        tile: (loop, size) of n, k, c and the output axes, none above its extent.
        threads: threads per block.
    """

    shape: ConvShape
    tile: tuple[tuple[str, int], ...]
    threads: int

    @classmethod
    def of(
        cls, shape: ConvShape, tile: Mapping[str, int], threads: int | None = None
    ) -> DirectPlan:
        """A plan within every limit of the kernel.

        Args:
            shape: the layer.
            tile: size per loop n, k, c (channels of one group) and output axis; a size above its
                loop's extent means all of it.
            threads: threads per block; default one an output, at most 256, in whole warps.

        Raises:
            InputError: a loop is missing, unknown or below 1, or the dtype is not a float.
            LaunchError: the tile needs more than a block or a grid has.
        """
        extents = tile_extents(shape)
        if set(tile) != set(extents):
            raise InputError(
                "tile", dict(tile), f"must name exactly the loops {', '.join(extents)}"
            )
        for loop, size in tile.items():
            if size < 1:
                raise InputError(f"tile of {loop}", size, "must be at least 1")
        if shape.dtype not in DTYPES:
            raise InputError("dtype", shape.dtype, f"the direct kernel takes {', '.join(DTYPES)}")
        sizes = tuple((loop, min(tile[loop], extent)) for loop, extent in extents.items())
        if threads is None:
            outputs = prod(size for loop, size in sizes if loop != "c")
            threads = min(ceil_div(outputs, 32) * 32, 256)
        plan = cls(shape, sizes, threads)
        plan._check()
        return plan

    @cached_property
    def axes(self) -> tuple[Axis, ...]:
        """Three axes: those of the shape, after axes of a single point."""
        return (_POINT,) * (3 - self.shape.rank) + self.shape.axes

    @cached_property
    def cuts(self) -> tuple[AxisCut, ...]:
        """The three axes cut in tiles."""
        sizes = dict(self.tile)
        cuts = [AxisCut(1, 1, 1, 1, 1, 0, 1, 1, 1)] * (3 - self.shape.rank)
        for name, axis in zip(self.shape.axis_names, self.shape.axes, strict=True):
            cut = cut_axis(axis, sizes[name])
            if cut is None:
                raise LaunchError(
                    f"tiles of {sizes[name]} on axis {name} cut the padded border too finely; "
                    "take larger ones"
                )
            cuts.append(cut)
        return tuple(cuts)

    @property
    def n(self) -> int:
        """Images in a tile."""
        return dict(self.tile)["n"]

    @property
    def k(self) -> int:
        """Output channels in a tile."""
        return dict(self.tile)["k"]

    @property
    def c(self) -> int:
        """Input channels in a step."""
        return dict(self.tile)["c"]

    @property
    def blocks(self) -> int:
        """Blocks of the grid: one an output tile; 0 for an empty batch."""
        return (
            ceil_div(self.shape.batch, self.n)
            * self.shape.group
            * ceil_div(self.shape.group_out_channels, self.k)
            * prod(cut.tiles for cut in self.cuts)
        )

    @property
    def outputs(self) -> int:
        """Outputs of a whole tile."""
        return self.n * self.k * prod(cut.size for cut in self.cuts)

    @property
    def accumulators(self) -> int:
        """Outputs that one thread computes."""
        return ceil_div(self.outputs, self.threads)

    @cached_property
    def input_room(self) -> int:
        """Words of shared memory for a step's input."""
        return max(self.n * self.c * prod(cut.largest_touched for cut in self.cuts), 1)

    @cached_property
    def weight_room(self) -> int:
        """Words of shared memory for a step's weights."""
        return max(self.k * self.c * prod(cut.all_taps for cut in self.cuts), 1)

    @cached_property
    def slot_room(self) -> tuple[int, ...]:
        """Entries (output, tap) of each axis' slot table."""
        return tuple(cut.size * axis.kernel for cut, axis in zip(self.cuts, self.axes, strict=True))

    @cached_property
    def position_room(self) -> tuple[int, ...]:
        """Touched positions of each axis' largest tile."""
        return tuple(max(cut.largest_touched, 1) for cut in self.cuts)

    @property
    def shared_bytes(self) -> int:
        """Shared memory of a block; each of its 15 arrays starts at a multiple of 8 bytes."""
        word = itemsize(self.shape.dtype)
        arrays = [word * self.input_room, word * self.weight_room, 4 * 6]
        for slots, positions, axis in zip(
            self.slot_room, self.position_room, self.axes, strict=True
        ):
            arrays += [2 * slots, 8 * positions, 4 * axis.kernel, 4 * axis.kernel]
        return sum(ceil_div(size, 8) * 8 for size in arrays)

    def _check(self) -> None:
        if self.threads < 1:
            raise InputError("threads", self.threads, "must be at least 1")
        tile = " ".join(f"{loop}{size}" for loop, size in self.tile)
        for what, value, limit in (
            ("threads in a block", self.threads, THREADS_LIMIT),
            ("bytes of shared memory in a block", self.shared_bytes, SHARED_LIMIT),
            ("bytes of partial sums in a block", self._sums_bytes, SUMS_LIMIT),
            ("touched positions on an axis", max(self.position_room), SLOTS_LIMIT),
            ("blocks in the grid", self.blocks, GRID_LIMIT),
            ("as largest index", self._largest_index, INDEX_LIMIT),
        ):
            if value > limit:
                raise LaunchError(f"tile {tile} needs {value} {what}; the limit is {limit}")

    @property
    def _sums_bytes(self) -> int:
        return self.outputs * max(itemsize(self.shape.dtype), 4)

    @property
    def _largest_index(self) -> int:
        shape = self.shape
        arrays = (shape.input_shape, shape.weight_shape, shape.output_shape)
        reach = (
            axis.stride * axis.outputs + axis.dilation * axis.kernel + axis.pad_begin
            for axis in self.axes
        )
        return max(*reach, *map(prod, arrays))
