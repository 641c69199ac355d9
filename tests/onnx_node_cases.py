"""The Conv and ConvTranspose cases that the ``onnx`` wheel ships, with their stored outputs."""

import importlib
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import onnx
from onnx import numpy_helper

from pebble import ConvShape

FOLDERS = ("node", "pytorch-converted", "pytorch-operator")
MODULES = ("conv", "convtranspose")


class NodeCase(NamedTuple):
    """One case; bias is None where the node has none."""

    name: str
    shape: ConvShape
    x: np.ndarray
    w: np.ndarray
    bias: np.ndarray | None
    expected: np.ndarray


@cache
def node_cases():
    """Every case whose model is one Conv or ConvTranspose, by name.

    The node cases are stored in some versions of the wheel and built by its modules in others.
    """
    cases = {}
    for name, model, inputs, output in (*_built(), *_stored()):
        nodes = [node for node in model.graph.node if node.op_type != "Constant"]
        if len(nodes) == 1 and nodes[0].op_type in ("Conv", "ConvTranspose"):
            cases[name] = _case(name, model, nodes[0], inputs, output)
    return list(cases.values())


def _built():
    """Cases that the wheel's modules make when they are imported."""
    from onnx.backend.test.case.node import _NodeTestCases

    for module in MODULES:
        importlib.import_module(f"onnx.backend.test.case.node.{module}")
    for case in _NodeTestCases:
        for inputs, outputs in case.data_sets:
            yield case.name, case.model, list(inputs), outputs[0]


def _stored():
    """Cases in the wheel's data folders."""
    data = Path(onnx.__file__).parent / "backend" / "test" / "data"
    for folder in FOLDERS:
        for path in sorted((data / folder).glob("*onv*/model.onnx")):
            values = path.parent / "test_data_set_0"
            files = sorted(values.glob("input_*.pb"), key=lambda file: int(file.stem[6:]))
            inputs = [_tensor(file) for file in files]
            yield path.parent.name, onnx.load(path), inputs, _tensor(values / "output_0.pb")


def _tensor(path):
    tensor = onnx.TensorProto()
    tensor.ParseFromString(path.read_bytes())
    return numpy_helper.to_array(tensor)


def _case(name, model, node, inputs, expected):
    graph = model.graph
    known = {value.name: numpy_helper.to_array(value) for value in graph.initializer}
    for constant in graph.node:
        if constant.op_type == "Constant":
            known[constant.output[0]] = numpy_helper.to_array(constant.attribute[0].t)
    fed = [value.name for value in graph.input if value.name not in known]
    known.update(zip(fed, inputs, strict=True))
    x, w = known[node.input[0]], known[node.input[1]]
    bias = known[node.input[2]] if len(node.input) > 2 else None
    given = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
    rank = x.ndim - 2
    shape = ConvShape.of(
        x.shape,
        w.shape,
        strides=given.get("strides"),
        pads=given.get("pads"),
        dilations=given.get("dilations"),
        group=given.get("group", 1),
        auto_pad=given.get("auto_pad", b"NOTSET").decode(),
        dtype=x.dtype.name,
        transposed=node.op_type == "ConvTranspose",
        output_padding=given.get("output_padding"),
        output_shape=given["output_shape"][-rank:] if "output_shape" in given else None,
    )
    return NodeCase(name, shape, x, w, bias, expected)
