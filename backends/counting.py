"""Walk a schedule tile by tile and count the words that it moves.

The walk knows nothing of the closed forms in ``tiling``: it enumerates the triples (output, tap,
input) of each axis, runs through the tile loops in order, remembers which tile of each operand lies
in fast memory, and adds up the words of every load and store. It is vectorised over steps; its
work grows with the number of steps and with the lengths of the axes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from math import prod
from typing import TYPE_CHECKING, Any

from pebble.axis import Axis
from pebble.errors import TooLargeError
from pebble.shapes import ConvShape
from tiling.tile import Tiling, Traffic
from tiling.traffic import tile_extents

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ints = NDArray[Any]

MOST_STEPS = 20_000_000
MOST_TRIPLES = 20_000_000
_CHUNK = 1 << 20


@dataclass(frozen=True, slots=True)
class Count:
    """What a walk found.

    Attributes:
        traffic: words moved.
        peak_words: largest number of words in fast memory during any step; room for all taps that
            a slab of weights will need counts from its first step on.
        steps: steps that did some work, over all groups.
    """

    traffic: Traffic
    peak_words: int
    steps: int


def walk(tiling: Tiling) -> Count:
    """Count the words that a tiling's schedule moves, by running through its steps.

    All groups have the same extents: one is walked and its count multiplied.

    Raises:
        TooLargeError: more steps, or longer axes, than a walk should take.
    """
    shape = tiling.shape
    if shape.batch == 0:
        return Count(Traffic(0, 0, 0, 0), 0, 0)
    loops = _Loops.of(tiling)
    counter = _Counter(tiling, loops)
    for index in loops.chunks():
        counter.run(index)
    traffic = counter.finish()
    return Count(traffic.times(shape.group), counter.peak, counter.steps * shape.group)


@dataclass(frozen=True)
class _AxisTiles:
    """Tiles of one axis, found by enumeration: sizes, words read, and used taps as masks."""

    sizes: Ints
    reads: Ints
    kept: Ints  # words read that the live tile before reads too
    kinds: Ints  # index of the tile's tap mask in masks
    masks: Ints  # (kinds, kernel) booleans

    @classmethod
    def of(cls, axis: Axis, size: int) -> _AxisTiles:
        import numpy as np

        tiles = range(0, axis.written, size)
        if axis.outputs * axis.kernel > MOST_TRIPLES:
            raise TooLargeError(
                f"an axis of {axis.outputs} windows of {axis.kernel} taps is longer than the "
                f"{MOST_TRIPLES} triples that a walk enumerates"
            )
        o, k = np.meshgrid(np.arange(axis.outputs), np.arange(axis.kernel), indexing="ij")
        # Python integers: a stride may exceed 64 bits.
        wide = max(axis.stride * axis.outputs, axis.dilation * axis.kernel, axis.pad_begin) > 2**62
        kind: Any = object if wide else np.int64
        x = axis.stride * o.astype(kind) + axis.dilation * k.astype(kind) - axis.pad_begin
        real = ((x >= 0) & (x < axis.inputs)).astype(bool)
        o, k, x = o[real], k[real], x[real].astype(np.int64)
        wrote, read = (x, o) if axis.transposed else (o, x)
        tile = wrote // size
        reads = np.zeros(len(tiles), dtype=np.int64)
        touched = np.unique(tile * axis.read + read)
        np.add.at(reads, touched // axis.read, 1)
        kept = np.zeros(len(tiles), dtype=np.int64)
        begins = np.searchsorted(touched, np.arange(len(tiles)) * axis.read)
        for before, after in pairwise(np.flatnonzero(reads)):
            old = touched[begins[before] : begins[before] + reads[before]] % axis.read
            new = touched[begins[after] : begins[after] + reads[after]] % axis.read
            kept[after] = len(np.intersect1d(old, new))
        used = np.zeros((len(tiles), axis.kernel), dtype=bool)
        used[tile, k] = True
        masks, kinds = np.unique(used, axis=0, return_inverse=True)
        sizes = np.array([min(size, axis.written - t) for t in tiles], dtype=np.int64)
        return cls(sizes, reads, kept, kinds.reshape(-1), masks)


@dataclass(frozen=True)
class _Loops:
    """The tile loops of one group in order, with the size of each of their tiles."""

    order: tuple[str, ...]
    counts: tuple[int, ...]
    sizes: dict[str, Ints]
    axes: dict[str, _AxisTiles]

    @classmethod
    def of(cls, tiling: Tiling) -> _Loops:
        import numpy as np

        shape, tile = tiling.shape, tiling.sizes
        axes = {
            name: _AxisTiles.of(axis, tile[name])
            for name, axis in zip(shape.axis_names, shape.axes, strict=True)
        }
        sizes = {name: axis.sizes for name, axis in axes.items()}
        for loop, extent in tile_extents(shape).items():
            if loop not in axes:
                starts = np.arange(0, extent, tile[loop])
                sizes[loop] = np.minimum(tile[loop], extent - starts)
        order = tiling.schedule.order
        counts = tuple(len(sizes[loop]) for loop in order)
        steps = prod(counts)
        if steps > MOST_STEPS:
            raise TooLargeError(
                f"the schedule has {steps} steps in a group; a walk takes at most {MOST_STEPS}"
            )
        return cls(order, counts, sizes, axes)

    def chunks(self) -> Iterator[dict[str, Ints]]:
        """Tile index of every loop for successive runs of steps."""
        import numpy as np

        total = prod(self.counts)
        for start in range(0, total, _CHUNK):
            flat = np.arange(start, min(start + _CHUNK, total))
            yield dict(zip(self.order, np.unravel_index(flat, self.counts), strict=True))

    def names(self, shape: ConvShape) -> dict[str, tuple[str, ...]]:
        """Loops that each operand's tile depends on."""
        axes = shape.axis_names
        return {"input": ("n", "c", *axes), "weight": ("k", "c"), "output": ("n", "k", *axes)}


class _Counter:
    """Fast memory of one group: which tile of each operand it holds, and the words moved."""

    def __init__(self, tiling: Tiling, loops: _Loops) -> None:
        import numpy as np

        self.tiling, self.loops = tiling, loops
        self.names = loops.names(tiling.shape)
        self.counts = {
            operand: [len(loops.sizes[loop]) for loop in names]
            for operand, names in self.names.items()
        }
        self.visited = np.zeros(prod(self.counts["output"]), dtype=bool)
        self.held: dict[str, int] = {}
        self.held_kinds = 0
        self.held_index: dict[str, int] = {}
        self.loads = {"input": 0, "weight": 0, "output": 0}
        self.stores = 0
        self.peak = 0
        self.steps = 0
        self._taps_of: dict[int, int] = {}
        self.kinds = [len(axis.masks) for axis in loops.axes.values()]

    def run(self, index: dict[str, Ints]) -> None:
        """Count one run of steps."""
        import numpy as np

        live = np.ones(len(index["n"]), dtype=bool)
        for name, axis in self.loops.axes.items():
            live &= axis.reads[index[name]] > 0
        index = {loop: value[live] for loop, value in index.items()}
        steps = len(index["n"])
        if steps == 0:
            return
        self.steps += steps
        tiles = {
            operand: np.ravel_multi_index([index[loop] for loop in names], self.counts[operand])
            for operand, names in self.names.items()
        }
        sizes = {loop: self.loops.sizes[loop][index[loop]] for loop in ("n", "k", "c")}
        words = sizes["n"] * sizes["c"]
        outputs = sizes["n"] * sizes["k"]
        for name, axis in self.loops.axes.items():
            words = words * axis.reads[index[name]]
            outputs = outputs * axis.sizes[index[name]]
        streamed = self.tiling.schedule.streamed
        new_output = self._fetched("output", tiles["output"])
        fresh = new_output if self.tiling.schedule.private else None

        new_input = self._fetched("input", tiles["input"], fresh)
        loaded = words
        if streamed != "input" and fresh is None:
            loaded = words - self._kept(index) * sizes["n"] * sizes["c"]
        self.loads["input"] += int(loaded[new_input].sum())

        again = self.visited[tiles["output"]]
        first = np.zeros(steps, dtype=bool)
        first[np.unique(tiles["output"], return_index=True)[1]] = True
        again = again | ~first
        self.visited[tiles["output"]] = True
        self.loads["output"] += int(outputs[new_output & again].sum())
        # Each fetched partial sum is stored when its tile is left.
        self.stores += int(outputs[new_output].sum())

        weights = self._count_weights(index, tiles["weight"], sizes["k"] * sizes["c"], fresh)
        resident = {"input": words, "weight": weights, "output": outputs}
        if streamed:
            resident[streamed] = np.ones_like(words)
        total = resident["input"] + resident["weight"] + resident["output"]
        self.peak = max(self.peak, int(total.max()))

    def finish(self) -> Traffic:
        """The traffic, with the outputs that no multiply-accumulate reaches stored once."""
        shape = self.tiling.shape
        reached = self.visited.reshape(self.counts["output"])
        sizes: Any = 1
        for loop in self.names["output"]:
            sizes = sizes * self._along(loop)
        self.stores += int((sizes * ~reached).sum())
        if shape.macs == 0:
            self.peak = 1
        return Traffic(self.loads["input"], self.loads["weight"], self.loads["output"], self.stores)

    def _along(self, loop: str) -> Ints:
        names = self.names["output"]
        return self.loops.sizes[loop].reshape([-1 if name == loop else 1 for name in names])

    def _kept(self, index: dict[str, Ints]) -> Ints:
        """Input positions that stay where a step's input tile slid from the step's before."""
        import numpy as np

        names = self.names["input"]
        steps = len(index["n"])
        moves = {}
        for loop in names:
            before = np.empty(steps, dtype=np.int64)
            before[1:] = index[loop][:-1]
            before[0] = self.held_index.get(loop, -1)
            moves[loop] = index[loop] - before
            self.held_index[loop] = int(index[loop][-1])
        total = np.zeros(steps, dtype=np.int64)
        for name, axis in self.loops.axes.items():
            slid = moves[name] > 0
            words = axis.kept[index[name]]
            for loop in names:
                if loop != name:
                    slid &= moves[loop] == 0
            for other, across in self.loops.axes.items():
                if other != name:
                    words = words * across.reads[index[other]]
            total += np.where(slid, words, 0)
        if self.steps == steps:  # the first of all steps found an empty memory
            total[0] = 0
        return total

    def _fetched(self, operand: str, tiles: Ints, fresh: Ints | None = None) -> Ints:
        """Steps that fetch their tile: it differs from the one held, or nothing is held."""
        import numpy as np

        if operand == self.tiling.schedule.streamed:
            return np.ones(len(tiles), dtype=bool)
        changed = np.empty(len(tiles), dtype=bool)
        changed[1:] = tiles[1:] != tiles[:-1]
        changed[0] = self.held.get(operand) != tiles[0]
        self.held[operand] = int(tiles[-1])
        return changed if fresh is None else changed | fresh

    def _count_weights(
        self, index: dict[str, Ints], tiles: Ints, channels: Ints, fresh: Ints | None
    ) -> Ints:
        """Load each tap of a slab when it is first used while the slab is held; words resident."""
        import numpy as np

        kinds = np.ravel_multi_index(
            [axis.kinds[index[name]] for name, axis in self.loops.axes.items()], self.kinds
        )
        # The tap masks that a slab has met so far, one bit a mask; Python integers where many.
        many = prod(self.kinds)
        bit: Any = np.array([1 << i for i in range(many)], dtype=np.int64 if many < 63 else object)
        new = self._fetched("weight", tiles, fresh)
        starts = np.flatnonzero(new)
        before = 0
        if not new[0]:  # the slab that the previous chunk left
            before = self.held_kinds
            starts = np.concatenate([[0], starts])
        met = np.bitwise_or.reduceat(bit[kinds], starts)
        met[0] |= before
        self.held_kinds = int(met[-1])
        distinct, which = np.unique(met, return_inverse=True)
        taps = np.array([self._taps(int(kinds_met)) for kinds_met in distinct])[which]
        gained = taps.copy()
        gained[0] -= self._taps(before)
        self.loads["weight"] += int((gained * channels[starts]).sum())
        resident: Ints = np.repeat(taps, np.diff(np.append(starts, len(new)))) * channels
        return resident

    def _taps(self, kinds: int) -> int:
        """Taps in the union of the tap masks whose bits are set."""
        import numpy as np

        if kinds not in self._taps_of:
            masks = [axis.masks for axis in self.loops.axes.values()]
            union: Any = np.zeros([mask.shape[1] for mask in masks], dtype=bool)
            for kind in range(kinds.bit_length()):
                if kinds >> kind & 1:
                    mask: Any = True
                    for axis_masks, i in zip(
                        masks, np.unravel_index(kind, self.kinds), strict=True
                    ):
                        mask = np.multiply.outer(mask, axis_masks[i])
                    union |= mask
            self._taps_of[kinds] = int(union.sum())
        return self._taps_of[kinds]
