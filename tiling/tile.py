"""Values: a schedule, what it keeps where, and the words that it moves."""

from __future__ import annotations

from dataclasses import dataclass

from pebble.shapes import ConvShape

OPERANDS = ("input", "weight", "output")
STATIONARY = {"c": "output", "k": "input"}
"""Operand that stays while the innermost tile loop runs; for any other loop it is the weight."""


@dataclass(frozen=True, slots=True)
class Traffic:
    """Words moved between fast and slow memory, by operand and direction."""

    input_loads: int
    weight_loads: int
    output_loads: int
    output_stores: int

    @property
    def words(self) -> int:
        """Loads and stores together."""
        return self.input_loads + self.weight_loads + self.output_loads + self.output_stores

    def times(self, factor: int) -> Traffic:
        """The traffic of ``factor`` equal runs."""
        return Traffic(
            self.input_loads * factor,
            self.weight_loads * factor,
            self.output_loads * factor,
            self.output_stores * factor,
        )


@dataclass(frozen=True, slots=True)
class Footprint:
    """Largest number of words of each operand that lie in fast memory at once."""

    input_words: int
    weight_words: int
    output_words: int

    @property
    def words(self) -> int:
        """Fast memory that the schedule needs."""
        return self.input_words + self.weight_words + self.output_words


@dataclass(frozen=True, slots=True)
class Schedule:
    """Order of the tile loops, and what is kept between their steps.

    One group runs after the other; inside a group the tile loops run in ``order``, outermost
    first. A step works on one tile of each operand. A tile stays until a step needs another tile
    of the same operand; words are loaded when a step needs them and does not hold them. When an
    input tile gives way to the next one along an axis, and nothing else of it changes, it slides:
    the words that both read stay.

    Attributes:
        order: names of all tile loops: n (batch), k (output channels), c (input channels) and the
            output positions d, h, w of the shape's rank. The kernel's taps are never split.
        streamed: the operand that passes word by word through one word of fast memory: each word
            of its tile is moved once a step and nothing of it is kept between steps. None keeps
            a whole tile of every operand.
        private: each output tile is computed with a fast memory of its own, as a thread block is:
            no input and no weight is kept from one output tile to the next.
    """

    order: tuple[str, ...]
    streamed: str | None = None
    private: bool = False

    @property
    def stationary(self) -> str:
        """Operand that stays in fast memory while the innermost loop runs."""
        return STATIONARY.get(self.order[-1], "weight")

    def __str__(self) -> str:
        text = f"{self.stationary}-stationary, {' > '.join(self.order)}"
        if self.streamed:
            text += f", {self.streamed} streamed"
        return text + (", private" if self.private else "")


@dataclass(frozen=True, slots=True)
class Tiling:
    """Tile sizes and a schedule for one layer, with what they cost.

    Attributes:
        shape: the layer.
        capacity_words: fast memory that it was made for.
        tile: (loop, size) for n, k, c and each output axis; k and c count channels of one group.
            The last tile of a loop is smaller where the size does not divide the extent.
        schedule: order of the tile loops.
        footprint: fast memory used.
        traffic: words moved, from the closed-form model.
        exhaustive: whether every tiling of the family was considered; False where an axis is so
            long that only a subset of its tile counts was tried.
    """

    shape: ConvShape
    capacity_words: int
    tile: tuple[tuple[str, int], ...]
    schedule: Schedule
    footprint: Footprint
    traffic: Traffic
    exhaustive: bool = True

    @property
    def sizes(self) -> dict[str, int]:
        """Tile size per loop."""
        return dict(self.tile)

    def __str__(self) -> str:
        sizes = " ".join(f"{loop}{size}" for loop, size in self.tile)
        return (
            f"{self.schedule}; tile {sizes}; {self.footprint.words:,} of "
            f"{self.capacity_words:,} words; moves {self.traffic.words:,} words"
        )
