"""Small pieces of an ONNX graph, evaluated: its arithmetic on shapes, and one node's types."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from math import prod
from typing import TYPE_CHECKING

from pebble.onnx_conv import operand
from pebble.onnx_model import SMALL_ELEMENTS, UNKNOWN, Tensor, Types, subgraphs

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    from onnx import NodeProto, OperatorSetIdProto, TensorProto

    Array = npt.NDArray[np.generic]

_EVALUATED = frozenset({
    "Abs", "Add", "And", "Cast", "Ceil", "Clip", "Concat", "Constant", "Div", "Equal", "Floor",
    "Gather", "Greater", "GreaterOrEqual", "Identity", "Less", "LessOrEqual", "Max", "Min", "Mod",
    "Mul", "Neg", "Not", "Or", "Pow", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceSum",
    "Reshape", "Round", "Slice", "Split", "Squeeze", "Sub", "Transpose", "Unsqueeze", "Where",
})  # fmt: skip
"""Operators whose outputs stay small where their inputs are."""


def constant_values(tensors: Sequence[TensorProto]) -> dict[str, Array]:
    """Values of the constants that the file holds and that are small."""
    from onnx import numpy_helper

    found = {}
    for tensor in tensors:
        if tensor.data_location == tensor.EXTERNAL:
            continue
        # A constant of no known type, or whose bytes do not fill its sizes, is left unknown.
        with suppress(KeyError, TypeError, ValueError):
            found[str(tensor.name)] = numpy_helper.to_array(tensor)
    return found


def node_values(
    node: NodeProto,
    constants: Mapping[str, Array],
    types: Types,
    opsets: Sequence[OperatorSetIdProto],
) -> list[Array]:
    """Values of a node's outputs; none where they are not known, or no small arithmetic.

    Args:
        node: of ONNX's own domain.
        constants: tensors whose values are known.
        types: tensors whose types are known.
        opsets: the versions of the operators.
    """
    import numpy as np

    if node.op_type in ("Shape", "Size"):
        sizes = types.get(operand(node, 0), UNKNOWN).sizes
        if sizes is None:
            return []
        if node.op_type == "Size":
            return [np.array(prod(sizes), np.int64)]
        ends = {v.name: v.i for v in node.attribute}
        return [np.array(sizes[ends.get("start", 0) : ends.get("end")], np.int64)]
    if not all(name in constants for name in node.input if name):
        return []
    if node.op_type == "ConstantOfShape":
        small = prod(constants[operand(node, 0)].tolist()) <= SMALL_ELEMENTS
    else:
        small = node.op_type in _EVALUATED
    return _evaluated(node, constants, opsets) if small else []


def node_types(
    node: NodeProto,
    constants: Mapping[str, Array],
    types: Types,
    opsets: Sequence[OperatorSetIdProto],
) -> dict[str, Tensor]:
    """Types of a node's outputs; empty where its operands or its operator say too little.

    Arguments as for :func:`node_values`.
    """
    from onnx import defs, helper, numpy_helper
    from onnx.checker import ValidationError
    from onnx.shape_inference import InferenceError, infer_node_outputs

    operands = {name: types.get(name, UNKNOWN) for name in node.input if name}
    if any(v.sizes is None for v in operands.values()) or any(subgraphs(node)):
        return {}
    version = next((v.version for v in opsets if not v.domain), 1)
    try:
        outputs = infer_node_outputs(
            defs.get_schema(node.op_type, version, ""),
            node,
            {k: helper.make_tensor_type_proto(v.elem_type, v.sizes) for k, v in operands.items()},
            {k: numpy_helper.from_array(constants[k]) for k in operands if k in constants},
            opset_imports=opsets,
        )
    except (defs.SchemaError, InferenceError, ValidationError, ValueError):
        return {}
    return {str(name): Tensor.of(proto) for name, proto in outputs.items()}


def _evaluated(
    node: NodeProto, constants: Mapping[str, Array], opsets: Sequence[OperatorSetIdProto]
) -> list[Array]:
    import numpy as np
    from onnx import ValueInfoProto, helper
    from onnx.reference import ReferenceEvaluator

    if any(v.HasField("t") and v.t.data_location == v.t.EXTERNAL for v in node.attribute):
        return []
    feeds = {name: constants[name] for name in node.input if name}
    inputs = [
        helper.make_tensor_value_info(k, helper.np_dtype_to_tensor_dtype(v.dtype), v.shape)
        for k, v in feeds.items()
    ]
    outputs = [ValueInfoProto(name=name) for name in node.output if name]
    graph = helper.make_graph([node], "arithmetic", inputs, outputs)
    model = helper.make_model(graph, opset_imports=opsets)
    try:
        with np.errstate(all="raise"):
            return [np.asarray(v) for v in ReferenceEvaluator(model).run(None, feeds)]
    except (ArithmeticError, LookupError, TypeError, ValueError, RuntimeError):
        # A malformed node has no values; inference will say nothing of it either.
        return []
