"""ONNX files as models without weights: what shape inference needs, and nothing that is large."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import TYPE_CHECKING, Any

from pebble.errors import InputError

if TYPE_CHECKING:
    from onnx import GraphProto, ModelProto, NodeProto, TensorProto, TypeProto

SMALL_ELEMENTS = 64
"""Constants of at most this many elements keep their values: shapes, axes, pads and scales."""


@dataclass(frozen=True, slots=True)
class Tensor:
    """What is known of a tensor.

    Attributes:
        elem_type: ONNX's number of the element type; 0 where it is not known.
        dims: sizes, each a number, the name of an open dimension, or None; None for no rank.
    """

    elem_type: int
    dims: tuple[int | str | None, ...] | None

    @classmethod
    def of(cls, proto: TypeProto) -> Tensor:
        """From ONNX's type; no tensor has neither element type nor rank."""
        tensor = proto.tensor_type
        if not tensor.HasField("shape"):
            return cls(tensor.elem_type, None)
        return cls(tensor.elem_type, tuple(_dim(dim) for dim in tensor.shape.dim))

    @property
    def sizes(self) -> tuple[int, ...] | None:
        """The dimensions where all are numbers, else None."""
        if self.dims is None:
            return None
        sizes = tuple(dim for dim in self.dims if isinstance(dim, int))
        return sizes if len(sizes) == len(self.dims) else None

    def __str__(self) -> str:
        if self.dims is None:
            return "of unknown rank"
        return "x".join("?" if dim is None else str(dim) for dim in self.dims) or "scalar"


UNKNOWN = Tensor(0, None)

Types = Mapping[str, Tensor]
"""Tensors by name."""


def _dim(dim: TypeProto) -> int | str | None:
    # Exporters write -1 for a size that they do not know.
    if dim.HasField("dim_value") and dim.dim_value >= 0:
        return int(dim.dim_value)
    return str(dim.dim_param) or None


def load_model(path: str | Path) -> tuple[ModelProto, tuple[str, ...]]:
    """A file's model with its local functions inlined and its large constants emptied.

    Files with external data are not looked for, let alone opened.

    Returns:
        the model, and notes on external data whose location leaves the model's folder.

    Raises:
        InputError: no readable file, or not an ONNX model.
    """
    import onnx
    from google.protobuf.message import DecodeError  # type: ignore[import-untyped]

    try:
        model = onnx.load(str(path), format="protobuf", load_external_data=False)
    except OSError as error:
        raise InputError("file", str(path), f"cannot be read: {error.strerror}") from None
    except DecodeError:
        raise InputError("file", str(path), "is no ONNX model, or only a part of one") from None
    if not model.HasField("graph"):
        raise InputError("file", str(path), "is no ONNX model: it holds no graph")
    if not _is_text(model):
        raise InputError("file", str(path), "is no ONNX model: a text in it is not UTF-8")
    notes = []
    for tensor in _constants(model):
        notes += _external_note(tensor)
        _empty(tensor)
    return _inlined(model), tuple(dict.fromkeys(notes))


def subgraphs(node: NodeProto) -> Iterator[tuple[str, GraphProto]]:
    """The graphs among a node's attributes, by name."""
    for attribute in node.attribute:
        if attribute.HasField("g"):
            yield str(attribute.name), attribute.g
        for i, graph in enumerate(attribute.graphs):
            yield f"{attribute.name}[{i}]", graph


def graphs(graph: GraphProto) -> Iterator[GraphProto]:
    """A graph and all graphs inside it."""
    yield graph
    for node in graph.node:
        for _, inner in subgraphs(node):
            yield from graphs(inner)


def initializer_names(graph: GraphProto) -> set[str]:
    """Names of the constants of a graph; as inputs they are defaults, not data."""
    return {v.name for v in graph.initializer} | {v.values.name for v in graph.sparse_initializer}


def domain(node: NodeProto) -> str:
    """A node's domain, where ONNX's own is the empty text."""
    return "" if node.domain == "ai.onnx" else str(node.domain)


def _is_text(message: Any) -> bool:
    """Whether all texts of a message are UTF-8; protobuf hands those that are not out as bytes."""
    for field, value in message.ListFields():
        if field.type not in (field.TYPE_STRING, field.TYPE_MESSAGE):
            continue
        single = isinstance(value, str | bytes) or hasattr(value, "ListFields")
        for item in [value] if single else value:
            if not (isinstance(item, str) or (hasattr(item, "ListFields") and _is_text(item))):
                return False
    return True


def _constants(model: ModelProto) -> Iterator[TensorProto]:
    for graph in graphs(model.graph):
        yield from graph.initializer
        for node in graph.node:
            yield from (v.t for v in node.attribute if v.HasField("t"))
    for function in model.functions:
        for node in function.node:
            yield from (v.t for v in node.attribute if v.HasField("t"))


def _external_note(tensor: TensorProto) -> list[str]:
    for entry in tensor.external_data:
        if entry.key == "location" and _leaves_folder(entry.value):
            return [
                f"external data of {tensor.name!r} lies at {entry.value!r}, outside the model's "
                "folder; it was not opened"
            ]
    return []


def _leaves_folder(location: str) -> bool:
    posix, windows = PurePosixPath(location), PureWindowsPath(location)
    anchored = bool(posix.anchor or windows.anchor)
    return anchored or "\0" in location or ".." in (*posix.parts, *windows.parts)


def _empty(tensor: TensorProto) -> None:
    """Drop the values of a large or an external constant; its type and sizes stay."""
    if tensor.data_location != tensor.EXTERNAL and prod(tensor.dims) <= SMALL_ELEMENTS:
        return
    name, elem_type, dims = tensor.name, tensor.data_type, list(tensor.dims)
    tensor.Clear()
    tensor.name, tensor.data_type, tensor.data_location = name, elem_type, tensor.EXTERNAL
    tensor.dims.extend(dims)


def _inlined(model: ModelProto) -> ModelProto:
    if not model.functions:
        return model
    from onnx import inliner

    try:
        return inliner.inline_local_functions(model)
    except (RuntimeError, ValueError):
        # The calls stay; they are listed as what could not be read.
        return model
