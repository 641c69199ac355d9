"""Networks: ordered layers of convolution shapes, built in or read from an ONNX file."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources
from pathlib import Path
from types import MappingProxyType

from pebble.errors import InputError
from pebble.layer import Layer, Skipped
from pebble.onnx_import import read_onnx
from pebble.shapes import ConvShape

__all__ = ["Layer", "Network", "Skipped", "network_names"]

_NO_BINDINGS: Mapping[str, int] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Network:
    """Layers in the order of execution, and what of the file is not among them.

    Attributes:
        name: the built-in name, or the file's stem.
        layers: the convolutions.
        skipped: data-carrying nodes without an analysis, each with its reason, and convolutions
            whose result is never used.
        failed: convolutions that could not be read, each with its reason.
        notes: what a reader of the whole file should know, for example that shapes declared in it
            are wrong.
    """

    name: str
    layers: tuple[Layer, ...]
    skipped: tuple[Skipped, ...] = ()
    failed: tuple[Skipped, ...] = ()
    notes: tuple[str, ...] = ()

    @classmethod
    def load(cls, name: str) -> Network:
        """A built-in network by name, at batch 1; case, hyphens and underscores do not matter.

        Raises:
            InputError: no network of this name; the message lists those there are.

        >>> network = Network.load("ResNet-50")
        >>> network.name, sum(layer.shape.macs_dense for layer in network.layers)
        ('resnet50', 4087136256)
        """
        known = {_plain(found): found for found in network_names()}
        found = known.get(_plain(name))
        if found is None:
            raise InputError("network", name, f"is none of {', '.join(network_names())}")
        source = resources.files("pebble") / "networks" / f"{found}.toml"
        data = tomllib.loads(source.read_text(encoding="utf-8"))
        layers = [
            Layer(row.pop("name"), ConvShape.of(**row), bias=data["bias"]) for row in data["layers"]
        ]
        return cls(found, tuple(layers))

    @classmethod
    def from_onnx(cls, path: str | Path, bind: Mapping[str, int] = _NO_BINDINGS) -> Network:
        """The convolutions of an ONNX file; see :func:`pebble.onnx_import.read_onnx`.

        Args:
            path: the file; weights in external files need not be present and are never opened.
            bind: sizes of the dimensions that the file leaves open: by name, or by
                ``TENSOR:AXIS`` where a dimension has none.

        Raises:
            InputError: no ONNX file, or a binding whose name or value does not fit.
        """
        return cls(Path(path).stem, *read_onnx(path, bind))

    def merged(self) -> Network:
        """Equal layers as one, in order of first occurrence, with their counts added."""
        found: dict[tuple[ConvShape, str, bool, str], Layer] = {}
        for layer in self.layers:
            key = (layer.shape, layer.op, layer.bias, layer.note)
            seen = found.get(key)
            found[key] = layer if seen is None else replace(seen, count=seen.count + layer.count)
        return replace(self, layers=tuple(found.values()))

    def with_batch(self, batch: int) -> Network:
        """The same layers for another number of images; 0 is an empty batch.

        Raises:
            InputError: ``batch`` is negative or no integer.
        """
        if isinstance(batch, bool) or not isinstance(batch, int) or batch < 0:
            raise InputError("batch", batch, "must be an integer of at least 0")
        layers = (replace(v, shape=replace(v.shape, batch=batch)) for v in self.layers)
        return replace(self, layers=tuple(layers))


@cache
def network_names() -> tuple[str, ...]:
    """Names of the built-in networks."""
    folder = resources.files("pebble") / "networks"
    return tuple(
        sorted(p.name.removesuffix(".toml") for p in folder.iterdir() if ".toml" in p.name)
    )


def _plain(name: str) -> str:
    return re.sub("[-_. ]", "", name).lower()
