"""A network's layers with their lower bounds, best tilings and counted traffic."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from backends.counting import walk
from pebble.bounds import LowerBound, lower_bound
from pebble.errors import InfeasibleError, InputError, TooLargeError
from pebble.layer import Layer, Skipped
from pebble.network import Network
from pebble.shapes import ConvShape
from pebble.units import capacity_words
from tiling import Tiling, optimise


@dataclass(frozen=True, slots=True)
class LayerResult:
    """One layer, or several equal ones, at one capacity.

    Attributes:
        layer: the convolution, and how many equal ones it stands for.
        bound: all lower bounds.
        tiling: the tiling of least traffic.
        counted_words: words that a walk of the tiling's schedule moved; None where it is too long.
        uncounted: why it was not walked.
    """

    layer: Layer
    bound: LowerBound
    tiling: Tiling
    counted_words: int | None
    uncounted: str = ""

    @property
    def gap(self) -> float | None:
        """Traffic over bound; None where the bound is 0 (an empty batch)."""
        return self.tiling.traffic.words / self.bound.words if self.bound.words else None

    @property
    def violations(self) -> tuple[str, ...]:
        """Broken laws: a traffic below a bound, or a count that differs from its model."""
        found = []
        if self.tiling.traffic.words < self.bound.words:
            found.append(
                f"layer {self.layer.name}: traffic {self.tiling.traffic.words} lies below the "
                f"bound {self.bound.words} ({self.bound.binding})"
            )
        if self.counted_words is not None and self.counted_words != self.tiling.traffic.words:
            found.append(
                f"layer {self.layer.name}: counted {self.counted_words} words, the model says "
                f"{self.tiling.traffic.words}"
            )
        return tuple(found)


@dataclass(frozen=True, slots=True)
class Report:
    """A network at one capacity.

    Attributes:
        network: its name.
        capacity: the capacity as written, with its unit.
        layers: equal layers merged, in order of first occurrence.
        failed: layers that could not be handled, with the reason.
        skipped: nodes of the file that are not analysed.
        notes: remarks on the whole file.
    """

    network: str
    capacity: str
    layers: tuple[LayerResult, ...]
    failed: tuple[Skipped, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def violations(self) -> tuple[str, ...]:
        """Broken laws of all layers."""
        return tuple(v for layer in self.layers for v in layer.violations)

    def total(self, value: Callable[[LayerResult], int | None]) -> int | None:
        """Sum of a value over all layers, each as often as it occurs; None where one is None."""
        total = 0
        for layer in self.layers:
            number = value(layer)
            if number is None:
                return None
            total += number * layer.layer.count
        return total


def analyse_layer(layer: Layer, capacity: str) -> LayerResult:
    """Bound, tiling and walk of one layer.

    Args:
        layer: the convolution.
        capacity: fast memory with its unit; its words are of the layer's dtype.

    Raises:
        InfeasibleError: no tiling fits.
    """
    words = capacity_words(capacity, layer.shape.dtype)
    bound = lower_bound(layer.shape, words)
    tiling = optimise(layer.shape, words)
    try:
        return LayerResult(layer, bound, tiling, walk(tiling).traffic.words)
    except TooLargeError as error:
        return LayerResult(layer, bound, tiling, None, str(error))


def analyse(
    network: Network,
    capacity: str,
    progress: Callable[[Sequence[Layer]], Iterable[Layer]] = lambda layers: layers,
) -> Report:
    """Analyse every layer of a network; equal layers once.

    Args:
        network: built in or read from a file.
        capacity: fast memory with its unit, for example ``64KiB``.
        progress: wraps the sequence of layers that is worked through.

    Returns:
        A report. A layer that no tiling fits is listed under ``failed`` and the rest is analysed.

    Raises:
        InputError: the capacity is not a size with a unit.
    """
    capacity_words(capacity)
    merged = network.merged()
    results, failed = [], list(network.failed)
    for layer in progress(merged.layers):
        try:
            results.append(analyse_layer(layer, capacity))
        except (InfeasibleError, InputError) as error:
            failed.append(Skipped(layer.name, layer.op, str(error)))
    return Report(
        network.name, capacity, tuple(results), tuple(failed), network.skipped, network.notes
    )


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """Bound and best traffic of one shape at one capacity."""

    capacity_words: int
    lower_bound_words: int
    traffic_words: int


def capacity_curve(shape: ConvShape, centre_words: int, halvings: int = 4) -> list[CurvePoint]:
    """Bound and traffic at powers of two around a capacity; where nothing fits, no point.

    Args:
        shape: the layer.
        centre_words: the capacity in the middle.
        halvings: how many halvings below and doublings above it.
    """
    points = []
    for step in range(-halvings, halvings + 1):
        words = centre_words << step if step >= 0 else centre_words >> -step
        if words < 1:
            continue
        try:
            traffic = optimise(shape, words).traffic.words
        except InfeasibleError:
            continue
        points.append(CurvePoint(words, lower_bound(shape, words).words, traffic))
    return points


def single(shape: ConvShape, name: str = "layer") -> Network:
    """A network of one layer."""
    op = "ConvTranspose" if shape.transposed else "Conv"
    return Network(name, (Layer(name, shape, op=op),))
