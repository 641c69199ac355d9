"""Convolutions of an ONNX file as layers, and an account of everything else in it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from pebble.errors import InputError
from pebble.layer import Layer, Skipped
from pebble.onnx_conv import ConvForm, conv_form, conv_shape, dtype, operand
from pebble.onnx_model import (
    UNKNOWN,
    Types,
    domain,
    graphs,
    initializer_names,
    load_model,
    subgraphs,
)
from pebble.onnx_shapes import Inferred, Scope, infer
from pebble.units import itemsize

if TYPE_CHECKING:
    from onnx import GraphProto, ModelProto, NodeProto

_SIZES_ONLY = frozenset({"Shape", "Size"})
_SOURCES = frozenset(
    {"RandomNormal", "RandomUniform", "RandomNormalLike", "RandomUniformLike", "Multinomial"}
)
_SAME_VALUES = frozenset(
    {"Cast", "DequantizeLinear", "Identity", "Reshape", "Squeeze", "Transpose", "Unsqueeze"}
)
"""Operators through which stored weights reach a convolution."""


class OnnxReading(NamedTuple):
    """What was found in a file, in the order of the fields of ``pebble.Network``."""

    layers: tuple[Layer, ...]
    skipped: tuple[Skipped, ...]
    failed: tuple[Skipped, ...]
    notes: tuple[str, ...]


def read_onnx(path: str | Path, bind: Mapping[str, int]) -> OnnxReading:
    """The convolutions of an ONNX file, from its operators and sizes alone; no weights are read.

    Shapes are recomputed from the graph's inputs; declared ones that differ are noted. A
    convolution in a branch or a loop is counted once, and its note says where it stands. What
    carries data from the inputs to the outputs and is no convolution is listed as skipped; a
    convolution that reaches no output is skipped as well.

    Args:
        path: the file.
        bind: sizes of open dimensions: by name, or as ``TENSOR:AXIS`` where one has no name. Inner
            tensors whose sizes are known only at run time are bound the same way.

    Raises:
        InputError: no readable ONNX file, or a binding that fits no open dimension.
    """
    model, notes = load_model(path)
    inferred = infer(model, bind)
    reader = _Reader(model, inferred)
    reader.walk(_Place(model.graph, (), "", "", live=True), reader.graph_data())
    return OnnxReading(
        tuple(reader.layers),
        tuple(reader.skipped),
        tuple(reader.failed),
        (*notes, *inferred.notes),
    )


@dataclass(frozen=True, slots=True)
class _Place:
    """A graph inside the model: its scope, the prefix of its names, and what to note of it."""

    graph: GraphProto
    scope: Scope
    prefix: str
    note: str
    live: bool


@dataclass
class _Reader:
    model: ModelProto
    inferred: Inferred
    layers: list[Layer] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)
    failed: list[Skipped] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.functions = {(v.domain, v.name): v for v in self.model.functions}
        self.producers: dict[str, NodeProto] = {}
        self.names: set[str] = set()

    def graph_data(self) -> set[str]:
        """Names of the graph's inputs that are no constants."""
        return {v.name for v in self.model.graph.input} - initializer_names(self.model.graph)

    def walk(self, place: _Place, data: set[str]) -> None:
        """Read the nodes of a graph in order; ``data`` holds the names that depend on inputs."""
        types = self.inferred.types[place.scope]
        needed = _live(place.graph)
        for index, node in enumerate(place.graph.node):
            self.producers.update(dict.fromkeys(node.output, node))
            used = {*node.input, *_captured(node)}
            carries = node.op_type in _SOURCES or (
                node.op_type not in _SIZES_ONLY and not data.isdisjoint(used)
            )
            if carries:
                data.update(name for name in node.output if name)
            live = place.live and index in needed
            name = self._name(place, node)
            if _is_convolution(node) or self._calls_convolution(node):
                self._convolution(place, node, name, types, live)
                continue
            inner = list(subgraphs(node))
            for attribute, graph in inner:
                body = _Place(
                    graph,
                    (*place.scope, (index, attribute)),
                    f"{name}/{attribute}/",
                    "; ".join(filter(None, (place.note, _place_note(node, name, attribute)))),
                    live,
                )
                self.walk(body, data | {v.name for v in graph.input})
            if live and carries and not inner:
                self.skipped.append(Skipped(name, _operator(node), self._no_analysis(node)))

    # --- nodes ----------------------------------------------------------------------------------
    def _convolution(
        self, place: _Place, node: NodeProto, name: str, types: Types, live: bool
    ) -> None:
        form = conv_form(node)
        if not live:
            reason = "its result reaches no output of the graph"
            self.skipped.append(Skipped(name, _operator(node), reason))
            return
        if form is None:
            self.failed.append(Skipped(name, _operator(node), self._no_analysis(node)))
            return
        try:
            for field_name, index in (("input", 0), ("weight", form.weight)):
                self._check_known(field_name, operand(node, index), types)
            shape = conv_shape(node, types)
        except InputError as error:
            self.failed.append(Skipped(name, _operator(node), str(error)))
            return
        notes = [place.note, *self._type_notes(node, form, shape.dtype, types)]
        self.layers.append(
            Layer(
                name,
                shape,
                op=str(node.op_type),
                bias=bool(operand(node, form.bias)),
                note="; ".join(filter(None, notes)),
            )
        )

    def _no_analysis(self, node: NodeProto) -> str:
        if (domain(node), node.op_type) in self.functions:
            return f"local function {node.op_type} could not be inlined"
        return f"no analysis of {_operator(node)} yet"

    def _calls_convolution(self, node: NodeProto) -> bool:
        function = self.functions.get((domain(node), node.op_type))
        if function is None:
            return False
        return any(_is_convolution(v) or self._calls_convolution(v) for v in function.node)

    def _name(self, place: _Place, node: NodeProto) -> str:
        """The node's name, or where that is empty or taken its first output's."""
        output = next((v for v in node.output if v), "")
        name = place.prefix + (node.name or output)
        if name in self.names:
            name = f"{place.prefix}{output}"
        self.names.add(name)
        return name

    def _type_notes(self, node: NodeProto, form: ConvForm, data: str, types: Types) -> list[str]:
        notes = []
        weights = dtype(self._stored(operand(node, form.weight), types))
        if weights and weights != data:
            notes.append(f"weights stored as {weights} ({itemsize(weights)} bytes)")
        output = dtype(types.get(node.output[0], UNKNOWN).elem_type)
        if output and output != data:
            notes.append(f"output {output} ({itemsize(output)} bytes)")
        if node.op_type == "FusedConv" and operand(node, 3):
            notes.append("adds a fourth operand, which is not counted")
        return notes

    def _stored(self, name: str, types: Types) -> int:
        """Element type of the constant that a tensor's values come from."""
        while name in self.producers and self.producers[name].op_type in _SAME_VALUES:
            name = operand(self.producers[name], 0)
        return types.get(name, UNKNOWN).elem_type

    # --- unknown sizes --------------------------------------------------------------------------
    def _check_known(self, field_name: str, name: str, types: Types) -> None:
        """Raise InputError with the way to make a tensor's sizes known where they are not."""
        if not name:
            raise InputError(field_name, name, "is missing")
        found = types.get(name, UNKNOWN)
        if found.dims is None:
            raise InputError(
                field_name,
                name,
                f"has no known rank{self._origin(name, types)}",
                f"bind each of its axes: --bind {name}:0=VALUE and so on",
            )
        if found.sizes is not None:
            return
        axis = next(i for i, dim in enumerate(found.dims) if not isinstance(dim, int))
        opened = self._open_dims(name)
        if found.dims[axis] in opened:
            opened = [str(found.dims[axis])]
        if opened:
            limit = f"size of axis {axis} depends on the open dimension {', '.join(opened)}"
            remedy = " ".join(f"--bind {v}=VALUE" for v in opened)
        else:
            limit = f"size of axis {axis} is known only when the network runs"
            remedy = f"--bind {name}:{axis}=VALUE"
        raise InputError(field_name, name, limit, remedy)

    def _open_dims(self, name: str) -> list[str]:
        """Open dimensions of the graph's inputs that a tensor is computed from."""
        found: dict[str, None] = {}
        seen, todo = {""}, [name]
        while todo:
            tensor = todo.pop()
            if tensor in seen:
                continue
            seen.add(tensor)
            found.update(dict.fromkeys(self.inferred.open_dims.get(tensor, ())))
            node = self.producers.get(tensor)
            if node is not None:
                todo += [*node.input, *_captured(node)]
        return list(found)

    def _origin(self, name: str, types: Types) -> str:
        """The first node, going back, whose operands are known and whose output is not."""
        origin = None
        while name in self.producers:
            origin = self.producers[name]
            unknown = [v for v in origin.input if v and types.get(v, UNKNOWN).dims is None]
            if not unknown:
                break
            name = unknown[0]
        if origin is None:
            return ""
        return f": it stems from {_operator(origin)} {origin.name or origin.output[0]!r}"


def _is_convolution(node: NodeProto) -> bool:
    """Whether an operator convolves, analysed or not; ``Convert`` does not."""
    return conv_form(node) is not None or re.search("Conv(?!ert)", node.op_type) is not None


def _operator(node: NodeProto) -> str:
    return f"{domain(node)}.{node.op_type}" if domain(node) else str(node.op_type)


def _place_note(node: NodeProto, name: str, attribute: str) -> str:
    if node.op_type == "If":
        return f"conditional: in {attribute} of If {name!r}"
    shapes = ", with the shapes of the first iteration" if node.op_type == "Loop" else ""
    return f"in a loop: {attribute} of {node.op_type} {name!r}, counted once{shapes}"


def _captured(node: NodeProto) -> set[str]:
    """Names that a node's subgraphs use, their own among them."""
    inner = [graph for _, outer in subgraphs(node) for graph in graphs(outer)]
    read = {name for graph in inner for v in graph.node for name in v.input}
    return read | {v.name for graph in inner for v in graph.output}


def _live(graph: GraphProto) -> set[int]:
    """Indices of the nodes that an output of the graph depends on."""
    needed = {v.name for v in graph.output}
    found = set()
    for index in range(len(graph.node) - 1, -1, -1):
        node = graph.node[index]
        if not needed.isdisjoint(node.output):
            found.add(index)
            needed.update(name for name in (*node.input, *_captured(node)) if name)
    return found
