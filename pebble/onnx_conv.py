"""One convolution node of an ONNX graph as a shape."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pebble.errors import InputError
from pebble.onnx_model import Types, domain
from pebble.shapes import ConvShape

if TYPE_CHECKING:
    from onnx import NodeProto


@dataclass(frozen=True, slots=True)
class ConvForm:
    """Where an operator has its operands; ``bias`` is None for one that has no bias."""

    weight: int = 1
    bias: int | None = 2
    transposed: bool = False


FORMS = {
    ("", "Conv"): ConvForm(),
    ("", "ConvTranspose"): ConvForm(transposed=True),
    ("", "ConvInteger"): ConvForm(bias=None),
    ("", "QLinearConv"): ConvForm(weight=3, bias=8),
    ("com.microsoft", "FusedConv"): ConvForm(),
    ("com.microsoft", "QLinearConv"): ConvForm(weight=3, bias=8),
}
"""The operators that are convolutions, by domain and name; their data is the first input."""

_DTYPES = {
    "FLOAT": "float32", "DOUBLE": "float64", "FLOAT16": "float16", "BFLOAT16": "bfloat16",
    "FLOAT8E4M3FN": "float8_e4m3", "FLOAT8E5M2": "float8_e5m2", "INT8": "int8", "UINT8": "uint8",
    "INT16": "int16", "UINT16": "uint16", "INT32": "int32", "UINT32": "uint32", "INT64": "int64",
    "UINT64": "uint64",
}  # fmt: skip


def conv_form(node: NodeProto) -> ConvForm | None:
    """The operator's form, or None where the node is no convolution that is analysed."""
    return FORMS.get((domain(node), node.op_type))


def operand(node: NodeProto, index: int | None) -> str:
    """Name of an input, empty where it is left out."""
    return str(node.input[index]) if index is not None and index < len(node.input) else ""


def dtype(elem_type: int) -> str | None:
    """Our name of an ONNX element type, None for a type without one."""
    from onnx import TensorProto

    names = {number: name for name, number in TensorProto.DataType.items()}
    return _DTYPES.get(names.get(elem_type, ""))


def conv_shape(node: NodeProto, types: Types) -> ConvShape:
    """The shape of a convolution whose operands' sizes are known.

    Args:
        node: a node with a form.
        types: tensors by name; the data and the weights have ``sizes``.

    Raises:
        InputError: the node's attributes and operands are no convolution.
    """
    form = conv_form(node)
    if form is None:
        raise InputError("operator", node.op_type, "is no convolution that is analysed")
    data, weight = types[operand(node, 0)], types[operand(node, form.weight)]
    attributes = _attributes(node)
    if attributes.get("channels_last", 0):
        raise InputError("channels_last", 1, "only channels-first data is analysed")
    name = dtype(data.elem_type or weight.elem_type)
    if name is None:
        raise InputError("dtype", data.elem_type, "this ONNX element type is not analysed")
    return ConvShape.of(
        data.sizes or (),
        _checked(weight.sizes or (), _integers(attributes, "kernel_shape")),
        strides=_integers(attributes, "strides"),
        pads=_integers(attributes, "pads"),
        dilations=_integers(attributes, "dilations"),
        group=attributes.get("group", 1),
        auto_pad=_text(attributes, "auto_pad") or "NOTSET",
        dtype=name,
        transposed=form.transposed,
        output_padding=_integers(attributes, "output_padding"),
        output_shape=_integers(attributes, "output_shape"),
        padding_mode=_text(attributes, "padding_mode") or "zeros",
    )


def _attributes(node: NodeProto) -> dict[str, Any]:
    from onnx import helper

    try:
        return {v.name: helper.get_attribute_value(v) for v in node.attribute}
    except ValueError:
        raise InputError("attributes", node.name, "one has no value or no known type") from None


def _integers(attributes: Mapping[str, object], name: str) -> list[int] | None:
    """A list attribute; an empty one counts as absent, as runtimes take it."""
    value = attributes.get(name)
    if value is not None and not isinstance(value, list):
        raise InputError(name, value, "is not a list of integers")
    return value or None


def _text(attributes: Mapping[str, object], name: str) -> str:
    value = attributes.get(name, b"")
    if not isinstance(value, bytes):
        raise InputError(name, value, "is not a text")
    return value.decode(errors="replace")


def _checked(weight: tuple[int, ...], kernel: list[int] | None) -> tuple[int, ...]:
    if kernel is not None and tuple(kernel) != weight[2:]:
        raise InputError(
            "kernel_shape", tuple(kernel), f"the weights' kernel is {weight[2:]}", "drop it"
        )
    return weight
