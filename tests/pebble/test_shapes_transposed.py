"""ConvTranspose's pads against onnxruntime, values included: shifted pads would shift them."""

import numpy as np
import onnxruntime
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper

from pebble import ConvShape, InputError


def by_onnxruntime(data, weight, attributes):
    """onnxruntime's output, or None where it refuses the node."""
    graph = helper.make_graph(
        [helper.make_node("ConvTranspose", ["x", "w"], ["y"], **attributes)],
        "g",
        [
            helper.make_tensor_value_info("x", TensorProto.FLOAT, data.shape),
            helper.make_tensor_value_info("w", TensorProto.FLOAT, weight.shape),
        ],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    try:
        session = onnxruntime.InferenceSession(model.SerializeToString(), options)
        return session.run(None, {"x": data, "w": weight})[0]
    except Exception as error:  # onnxruntime's errors have no common base of their own
        assert "onnxruntime" in type(error).__module__
        return None


def scattered(shape, data, weight):
    """Every input pixel through every tap, straight from the definition; one axis, no groups."""
    out = np.zeros(shape.output_shape, np.float32)
    for i in range(shape.spatial[0]):
        for tap in range(shape.kernel[0]):
            at = shape.strides[0] * i + shape.dilations[0] * tap - shape.pads[0]
            if 0 <= at < out.shape[2]:
                out[:, :, at] += data[:, :, i] @ weight[:, :, tap]
    return out


@st.composite
def nodes(draw):
    size, kernel = draw(st.integers(1, 5)), draw(st.integers(1, 5))
    stride, dilation = draw(st.integers(1, 4)), draw(st.integers(1, 3))
    attributes = {"strides": [stride], "dilations": [dilation]}
    if draw(st.booleans()):
        attributes["output_padding"] = [draw(st.integers(0, 4))]
    padding = draw(st.sampled_from(["none", "pads", "auto", "shape", "shape and auto"]))
    if padding == "pads":
        attributes["pads"] = draw(st.lists(st.integers(0, 6), min_size=2, max_size=2))
    if "auto" in padding:
        attributes["auto_pad"] = draw(st.sampled_from(["VALID", "SAME_UPPER", "SAME_LOWER"]))
    if "shape" in padding:
        attributes["output_shape"] = [draw(st.integers(1, 25))]
    return size, kernel, attributes


@settings(max_examples=300, deadline=None)
@given(nodes())
def test_same_output_as_onnxruntime(node):
    size, kernel, attributes = node
    random = np.random.default_rng(0)
    data = random.integers(-8, 8, (2, 2, size)).astype(np.float32)
    weight = random.integers(-8, 8, (2, 3, kernel)).astype(np.float32)
    found = by_onnxruntime(data, weight, attributes)
    try:
        shape = ConvShape.of(data.shape, weight.shape, transposed=True, **attributes)
    except InputError:
        assert found is None or 0 in found.shape
        return
    if found is None:
        # ONNX allows an output padding below the dilation, onnxruntime only one below the stride.
        assert max(shape.output_padding) >= shape.strides[0]
        return
    if "output_shape" not in attributes and attributes.get("auto_pad", "").startswith("SAME"):
        # ONNX asks for input * stride outputs; onnxruntime leaves out those no tap reaches.
        assert shape.output_spatial == (size * attributes["strides"][0],)
        assert found.shape[2] <= shape.output_spatial[0]
        expected = scattered(shape, data, weight)
        np.testing.assert_array_equal(found, expected[:, :, : found.shape[2]])
        assert not expected[:, :, found.shape[2] :].any()
        return
    np.testing.assert_array_equal(found, scattered(shape, data, weight))


@pytest.mark.parametrize(
    ("auto_pad", "pads"), [("SAME_UPPER", (1, 2)), ("SAME_LOWER", (2, 1)), ("NOTSET", (2, 1))]
)
def test_the_odd_pixel_of_an_explicit_output_shape(auto_pad, pads):
    # ONNX, operator ConvTranspose: the begin has the smaller half for SAME_UPPER alone.
    shape = ConvShape.of(
        (1, 1, 3), (1, 1, 4), transposed=True, auto_pad=auto_pad, output_shape=(3,)
    )
    assert shape.pads == pads


def test_an_output_shape_beyond_the_last_stride_is_refused():
    # Natural size 2 * (3 - 1) + 3 = 7; stride 2 can add one output that no tap reaches.
    arguments = {"transposed": True, "strides": (2,)}
    assert ConvShape.of((1, 1, 3), (1, 1, 3), output_shape=(8,), **arguments).output_padding == (1,)
    with pytest.raises(InputError, match="axis 0 of size 3 gives at most 8 outputs"):
        ConvShape.of((1, 1, 3), (1, 1, 3), output_shape=(9,), **arguments)


def test_output_padding_below_stride_or_dilation():
    with pytest.raises(InputError, match="must be below the stride or the dilation"):
        ConvShape.of((1, 1, 3), (1, 1, 3), transposed=True, strides=(2,), output_padding=(2,))
