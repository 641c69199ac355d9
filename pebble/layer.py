"""Layers of a network, and what of a network is not among them."""

from __future__ import annotations

from dataclasses import dataclass

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
