"""Networks: ordered layers of convolution shapes."""

from __future__ import annotations

from dataclasses import dataclass, replace

from pebble.shapes import ConvShape


@dataclass(frozen=True, slots=True)
class Layer:
    """One convolution of a network.

    Attributes:
        name: the layer's name; of the first one where equal layers are merged.
        shape: its convolution.
        count: how many equal layers it stands for.
        op: the operator it was read from, for example ``Conv`` or ``ConvTranspose``.
        bias: whether a bias is added: ``shape.out_channels`` more compulsory words.
        note: what a reader should know, for example that it is conditional.
    """

    name: str
    shape: ConvShape
    count: int = 1
    op: str = "Conv"
    bias: bool = False
    note: str = ""


@dataclass(frozen=True, slots=True)
class Skipped:
    """A node that was read and not analysed, with the reason."""

    name: str
    op: str
    reason: str


@dataclass(frozen=True, slots=True)
class Network:
    """Layers in the order of execution, and what of the file is not among them.

    Attributes:
        name: the built-in name, or the file's stem.
        layers: the convolutions.
        skipped: data-carrying nodes without an analysis, each with its reason.
        failed: convolutions that could not be read, each with its reason.
    """

    name: str
    layers: tuple[Layer, ...]
    skipped: tuple[Skipped, ...] = ()
    failed: tuple[Skipped, ...] = ()

    def merged(self) -> Network:
        """Equal layers as one, in order of first occurrence, with their counts added."""
        found: dict[tuple[ConvShape, str, bool, str], Layer] = {}
        for layer in self.layers:
            key = (layer.shape, layer.op, layer.bias, layer.note)
            seen = found.get(key)
            found[key] = layer if seen is None else replace(seen, count=seen.count + layer.count)
        return replace(self, layers=tuple(found.values()))
