"""Shapes of all tensors of an ONNX model, recomputed from its inputs.

Shapes that the file declares for inner tensors may be stale, so they are dropped and inferred
anew. ONNX's inference is helped where it stops: shape arithmetic is evaluated, the outputs of
convolutions are computed by ``ConvShape``, and what an unknown operator makes is taken as declared.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pebble.errors import InputError
from pebble.onnx_arithmetic import constant_values, node_types, node_values
from pebble.onnx_conv import conv_form, conv_shape, operand
from pebble.onnx_model import (
    SMALL_ELEMENTS,
    UNKNOWN,
    Tensor,
    Types,
    domain,
    graphs,
    initializer_names,
    subgraphs,
)

if TYPE_CHECKING:
    from onnx import (
        GraphProto,
        ModelProto,
        NodeProto,
        ValueInfoProto,
    )

Scope = tuple[tuple[int, str], ...]
"""A subgraph: index of its node and name of its attribute, from the outermost graph inwards."""

_STANDARD = {
    ("com.microsoft", "FusedConv"): "Conv",
    ("com.microsoft", "QLinearConv"): "QLinearConv",
    ("com.microsoft", "DequantizeLinear"): "DequantizeLinear",
    ("com.microsoft", "QuantizeLinear"): "QuantizeLinear",
}
"""Operators of other domains whose outputs have the shape of one of ONNX's own."""


@dataclass(frozen=True, slots=True)
class Inferred:
    """Types of all tensors.

    Attributes:
        types: tensors by name for each scope; a subgraph also sees those around it.
        open_dims: graph inputs with dimensions without a size: the names of these.
        notes: what a reader should know of the shapes that the file declares.
    """

    types: Mapping[Scope, Types]
    open_dims: Mapping[str, tuple[str, ...]]
    notes: tuple[str, ...]


def infer(model: ModelProto, bind: Mapping[str, int]) -> Inferred:
    """Shapes of the tensors of a model as :func:`pebble.onnx_model.load_model` gives it.

    Args:
        bind: sizes of open dimensions, by name or by ``TENSOR:AXIS``.

    Raises:
        InputError: a binding that fits no open dimension, or a model that is not even well formed.
    """
    work = _Work(model, bind)
    while True:
        types = work.infer()
        outer = types[()]
        if not (
            work.bind_inner(outer)
            or work.correct(outer)
            or work.fold(outer)
            or work.enter_loops(outer)
            or work.bind_whole(outer)
            or work.trust_declared(outer)
        ):
            break
    work.refuse_unused()
    return Inferred(types, work.open_dims, work.notes(outer))


class _Work:
    """A copy of a model to run inference on, and what has been put into it so far."""

    def __init__(self, original: ModelProto, bind: Mapping[str, int]) -> None:
        import onnx

        self.nodes = original.graph.node
        self.declared = _declared(original.graph)
        self.given: set[str] = set()
        self.trusted: set[str] = set()
        self.model = onnx.ModelProto()
        self.model.CopyFrom(original)
        # From version 4 on, initializers need not be graph inputs.
        self.model.ir_version = max(self.model.ir_version, 4)
        for graph in graphs(self.model.graph):
            _forget_types(graph)
        self._import_domains()
        self._bind_inputs(bind)
        self.producers = {name: node for node in self.model.graph.node for name in node.output}
        self.constants = constant_values(self.model.graph.initializer)

    def _import_domains(self) -> None:
        known = {"" if v.domain == "ai.onnx" else v.domain for v in self.model.opset_import}
        used = {domain(node) for graph in graphs(self.model.graph) for node in graph.node}
        for name in sorted(used - known):
            self.model.opset_import.add(domain=name, version=1 if name else 13)

    # --- open dimensions ------------------------------------------------------------------------
    def _bind_inputs(self, bind: Mapping[str, int]) -> None:
        for name, value in bind.items():
            if isinstance(value, bool) or not isinstance(value, int) or value < 0:
                raise InputError("bind", f"{name}={value}", "needs an integer of at least 0")
        graph = self.model.graph
        constants = initializer_names(graph)
        inputs = [v for v in graph.input if v.name not in constants]
        del graph.input[:]
        graph.input.extend(inputs)
        names = {v.name: _open_names(v) for v in graph.input}
        self.known = tuple(dict.fromkeys(name for found in names.values() for name in found))
        self.pending = {name: size for name, size in bind.items() if name not in self.known}
        self.open_dims = {
            tensor: left
            for tensor, found in names.items()
            if (left := tuple(name for name in found if name not in bind))
        }
        for inner in graphs(graph):
            for value_info in inner.input:
                _bind(value_info, bind)

    def bind_inner(self, types: Types) -> bool:
        """Put the bindings of inner tensors in, as soon as their rank is known."""
        for name in list(self.pending):
            tensor, _, axis = name.rpartition(":")
            found = types.get(tensor, UNKNOWN)
            if found.dims is None or not axis.isdecimal():
                continue
            dims, i = list(found.dims), int(axis)
            if i >= len(dims):
                raise InputError("bind", name, f"{tensor!r} has {len(dims)} axes, counted from 0")
            if isinstance(dims[i], int):
                raise InputError("bind", name, f"this dimension is {dims[i]} in the model")
            dims[i] = self.pending.pop(name)
            self._give(tensor, Tensor(found.elem_type, tuple(dims)))
            # Two axes of one tensor are bound one after the other.
            return True
        return False

    def bind_whole(self, types: Types) -> bool:
        """Put the bindings of all axes of an inner tensor in, whose rank stayed unknown."""
        axes: dict[str, list[str]] = {}
        for name in self.pending:
            axes.setdefault(name.rpartition(":")[0], []).append(name)
        for tensor in axes.keys() & self.producers.keys():
            names = [f"{tensor}:{axis}" for axis in range(len(axes[tensor]))]
            if set(names) == set(axes[tensor]):
                dims = tuple(self.pending.pop(name) for name in names)
                self._give(tensor, Tensor(self._elem_type(tensor, types), dims))
                return True
        return False

    def refuse_unused(self) -> None:
        """Raise InputError for a binding that met no dimension."""
        for name in self.pending:
            known = f"the inputs' are {', '.join(self.known)}" if self.known else "inputs have none"
            raise InputError("bind", name, f"is no open dimension of the model; {known}")

    # --- rounds of inference --------------------------------------------------------------------
    def infer(self) -> dict[Scope, Types]:
        """One round of ONNX's inference."""
        from onnx.shape_inference import InferenceError, infer_shapes

        try:
            inferred = infer_shapes(self.model, data_prop=True)
        except (InferenceError, RuntimeError, ValueError) as error:
            reason = " ".join(str(error).split())
            raise InputError("graph", self.model.graph.name, f"is malformed: {reason}") from None
        found: dict[Scope, Types] = {}
        _collect(inferred.graph, (), {}, found)
        return found

    def fold(self, types: Types) -> bool:
        """Evaluate the arithmetic on shapes that became known, and what follows from it."""
        from onnx import numpy_helper

        changed, opsets = False, self.model.opset_import
        # One sweep goes on behind a tensor that it made known; else a chain of n reshapes by
        # computed sizes would take n rounds of inference.
        reached = dict(types)
        for node in self.nodes:
            if not node.output or node.output[0] in self.constants:
                continue
            unknown = reached.get(node.output[0], UNKNOWN).sizes is None
            if conv_form(node) is not None:
                if unknown and (tensor := _conv_output(node, reached)) is not None:
                    reached[node.output[0]] = tensor
                continue
            if domain(node):
                continue
            values = node_values(node, self.constants, reached, opsets)
            for name, value in zip(node.output, values, strict=False):
                if name and value.size <= SMALL_ELEMENTS:
                    self.constants[name] = value
                    self._disconnect(name)
                    self.model.graph.initializer.append(numpy_helper.from_array(value, name))
                    changed = changed or node.op_type != "Constant"
            if unknown and not values:
                reached.update(node_types(node, self.constants, reached, opsets))
        return changed

    def correct(self, types: Types) -> bool:
        """Give outputs of convolutions their own arithmetic's sizes where ONNX's differ."""
        changed = False
        for node in self.nodes:
            if conv_form(node) is None or not node.output or node.output[0] in self.given:
                continue
            right = _conv_output(node, types)
            if right is not None and right.dims != types.get(node.output[0], UNKNOWN).dims:
                self._give(node.output[0], right)
                changed = True
        return changed

    def enter_loops(self, types: Types) -> bool:
        """Give loop bodies the shapes of the first iteration where they declare none."""
        changed = False
        for node in self.model.graph.node:
            bodies = subgraphs(node) if node.op_type == "Loop" else ()
            for _, body in bodies:
                # A body takes the iteration and the condition, then the node's inputs from the 3rd.
                for outside, inside in zip(node.input[2:], body.input[2:], strict=False):
                    first = types.get(outside, UNKNOWN)
                    if first.dims is not None and not inside.type.tensor_type.HasField("shape"):
                        inside.CopyFrom(_value_info(inside.name, first))
                        changed = True
        return changed

    def trust_declared(self, types: Types) -> bool:
        """Take the declared shapes of what operators without inference make of known operands."""
        changed = False
        for node in self.nodes:
            inputs = (types.get(name, UNKNOWN) for name in node.input if name)
            if conv_form(node) is not None or any(v.dims is None for v in inputs):
                continue
            for name in node.output:
                declared = self.declared.get(name, UNKNOWN)
                unknown = types.get(name, UNKNOWN).dims is None
                if unknown and declared.dims is not None and name not in self.given:
                    self._give(name, declared)
                    self.trusted.add(str(node.op_type))
                    changed = True
        return changed

    def notes(self, types: Types) -> tuple[str, ...]:
        """How the declared shapes compare with the recomputed ones."""
        found = []
        wrong = [n for n, v in self.declared.items() if _conflict(v, types.get(n, UNKNOWN))]
        if wrong:
            first = wrong[0]
            found.append(
                f"{len(wrong)} declared shapes are not the recomputed ones, which are used; the "
                f"first is {first!r}: declared {self.declared[first]}, recomputed {types[first]}"
            )
        if self.trusted:
            operators = ", ".join(sorted(self.trusted))
            found.append(f"output shapes of {operators} are taken as the file declares them")
        return tuple(found)

    def _elem_type(self, name: str, types: Types) -> int:
        """A tensor's element type; where it is not known, that of what it is made from."""
        operands = self.producers[name].input
        found = (types.get(v, UNKNOWN).elem_type for v in (name, *operands))
        return next(filter(None, found), 1)  # ONNX's float

    # --- changes to the copy --------------------------------------------------------------------
    def _give(self, name: str, tensor: Tensor) -> None:
        """Make a tensor an input of the copy, of the given type."""
        inputs = self.model.graph.input
        kept = [v for v in inputs if v.name != name]
        del inputs[:]
        inputs.extend([*kept, _value_info(name, tensor)])
        self.given.add(name)
        self._disconnect(name)

    def _disconnect(self, name: str) -> None:
        """Let a tensor's producer write to another name."""
        node = self.producers.pop(name, None)
        if node is not None:
            outputs = [f"{v} (replaced)" if v == name else v for v in node.output]
            del node.output[:]
            node.output.extend(outputs)


def _forget_types(graph: GraphProto) -> None:
    """Drop declared types, name the nodes by their index, and standardise known operators."""
    del graph.value_info[:]
    for value_info in graph.output:
        value_info.ClearField("type")
    for index, node in enumerate(graph.node):
        node.name = str(index)
        standard = _STANDARD.get((domain(node), node.op_type))
        if standard is not None:
            if node.op_type == "FusedConv":
                del node.input[3:]
            node.domain, node.op_type = "", standard


def _declared(graph: GraphProto) -> dict[str, Tensor]:
    constants = initializer_names(graph)
    shadowed = [v for v in graph.input if v.name in constants]
    return {v.name: Tensor.of(v.type) for v in (*shadowed, *graph.value_info, *graph.output)}


def _conflict(declared: Tensor, found: Tensor) -> bool:
    if declared.dims is None or found.dims is None:
        return False
    if len(declared.dims) != len(found.dims):
        return True
    pairs = zip(declared.dims, found.dims, strict=True)
    return any(isinstance(a, int) and isinstance(b, int) and a != b for a, b in pairs)


def _open_names(value_info: ValueInfoProto) -> list[str]:
    """Names of the dimensions without a size: their own, or ``TENSOR:AXIS``."""
    dims = Tensor.of(value_info.type).dims or ()
    return [
        dim or f"{value_info.name}:{axis}"
        for axis, dim in enumerate(dims)
        if not isinstance(dim, int)
    ]


def _bind(value_info: ValueInfoProto, bind: Mapping[str, int]) -> None:
    dims = Tensor.of(value_info.type).dims or ()
    for axis, dim in enumerate(dims):
        size = None if isinstance(dim, int) else bind.get(dim or f"{value_info.name}:{axis}")
        proto = value_info.type.tensor_type.shape.dim[axis]
        if size is not None:
            proto.dim_value = size
        elif dim is None:
            proto.Clear()


def _value_info(name: str, tensor: Tensor) -> ValueInfoProto:
    from onnx import helper

    return helper.make_tensor_value_info(name, tensor.elem_type, tensor.dims)


def _conv_output(node: NodeProto, types: Types) -> Tensor | None:
    """A convolution's output, of no rank where it is illegal; None for operands not yet known."""
    form = conv_form(node)
    if form is None:
        return None
    data, weight = (types.get(operand(node, i), UNKNOWN) for i in (0, form.weight))
    if data.sizes is None or weight.sizes is None:
        return None
    elem_type = types.get(node.output[0], UNKNOWN).elem_type or data.elem_type
    try:
        return Tensor(elem_type, conv_shape(node, types).output_shape)
    except InputError:
        return Tensor(elem_type, None)


def _collect(graph: GraphProto, scope: Scope, outer: Types, found: dict[Scope, Types]) -> None:
    """Types of a graph's tensors, and of those of its subgraphs."""
    own = {v.name: Tensor.of(v.type) for v in (*graph.input, *graph.value_info, *graph.output)}
    for tensor in graph.initializer:
        own[tensor.name] = Tensor(tensor.data_type, tuple(tensor.dims))
    for sparse in graph.sparse_initializer:
        own[sparse.values.name] = Tensor(sparse.values.data_type, tuple(sparse.dims))
    found[scope] = types = {**outer, **own}
    for node in graph.node:
        for name, inner in subgraphs(node):
            _collect(inner, (*scope, (int(node.name), name)), types, found)
