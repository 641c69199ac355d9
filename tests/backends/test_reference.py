"""The oracle for values, against ONNX Runtime, SciPy and public failure cases."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from shapes import conv_shapes

from backends.reference import convolve
from pebble import ConvShape, InputError


def random_arrays(shape, seed=0):
    rng = np.random.default_rng(seed)
    return (
        rng.standard_normal(shape.input_shape).astype(np.float32),
        rng.standard_normal(shape.weight_shape).astype(np.float32),
    )


def onnxruntime_output(shape, x, w):
    ort = pytest.importorskip("onnxruntime")
    from onnx import TensorProto, helper

    attributes = {
        "strides": shape.strides,
        "pads": shape.pads,
        "dilations": shape.dilations,
        "group": shape.group,
    }
    if shape.transposed:
        attributes["output_padding"] = shape.output_padding
    node = helper.make_node(
        "ConvTranspose" if shape.transposed else "Conv", ["x", "w"], ["y"], **attributes
    )
    values = {
        name: helper.make_tensor_value_info(name, TensorProto.FLOAT, sizes)
        for name, sizes in (("x", x.shape), ("w", w.shape), ("y", None))
    }
    graph = helper.make_graph([node], "layer", [values["x"], values["w"]], [values["y"]])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    session = ort.InferenceSession(model.SerializeToString(), options, ["CPUExecutionProvider"])
    return session.run(None, {"x": x, "w": w})[0]


@settings(max_examples=200, deadline=None)
@given(conv_shapes())
def test_values_of_onnxruntime(shape):
    # ONNX Runtime refuses an output padding of a stride or more, which ONNX allows with dilation.
    assume(all(extra < s for extra, s in zip(shape.output_padding, shape.strides, strict=False)))
    x, w = random_arrays(shape)
    right = onnxruntime_output(shape, x, w)
    np.testing.assert_allclose(convolve(x, w, shape), right, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("spatial", [(9,), (7, 8), (4, 5, 6)])
def test_values_of_scipy(spatial):
    from scipy.signal import correlate

    rank = len(spatial)
    shape = ConvShape.of((2, 3, *spatial), (4, 3, *[3] * rank), pads=[1] * 2 * rank)
    x, w = (array.astype(np.float64) for array in random_arrays(shape))
    right = [
        [sum(correlate(x[n, c], w[k, c], "same") for c in range(3)) for k in range(4)]
        for n in range(2)
    ]
    np.testing.assert_allclose(convolve(x, w, shape), right, rtol=1e-12, atol=1e-12)


def test_integers_are_exact():
    # 2**53 + 1 is no double.
    shape = ConvShape.of((1, 1, 2), (1, 1, 2))
    out = convolve(np.array([[[2**53, 1]]]), np.array([[[1, 1]]]), shape)
    assert out.dtype == np.int64 and out[0, 0, 0] == 2**53 + 1


def test_bias_is_added_per_channel():
    shape = ConvShape.of((1, 1, 3), (2, 1, 1))
    out = convolve(np.ones((1, 1, 3)), np.ones((2, 1, 1)), shape, np.array([10.0, 20.0]))
    assert out.tolist() == [[[11.0] * 3, [21.0] * 3]]


@pytest.mark.parametrize(
    ("x", "w", "bias", "text"),
    [
        (np.ones((1, 1, 4)), np.ones((2, 1, 1)), None, "input .*the layer's input has shape"),
        (np.ones((1, 1, 3)), np.ones((1, 2, 1)), None, "weight .*the layer's weight has shape"),
        (
            np.ones((1, 1, 3)),
            np.ones((2, 1, 1)),
            np.ones(3),
            r"bias \(3,\): must have shape \(2,\)",
        ),
        (np.ones((1, 1, 3), complex), np.ones((2, 1, 1)), None, "input 'complex128': dtype"),
    ],
)
def test_misfits_are_refused(x, w, bias, text):
    with pytest.raises(InputError, match=text):
        convolve(x, w, ConvShape.of((1, 1, 3), (2, 1, 1)), bias)


def test_a13_empty_batch():
    shape = ConvShape.of((0, 3, 3, 3), (3, 3, 3, 3))
    assert convolve(*random_arrays(shape), shape).shape == (0, 3, 1, 1)


def test_a15_all_ones():
    shape = ConvShape.of((32, 4, 1, 3), (8, 4, 1, 2))
    out = convolve(np.ones(shape.input_shape), np.ones(shape.weight_shape), shape)
    assert out.shape == (32, 8, 1, 2) and (out == 8).all()


def test_a16_asymmetric_pads():
    shape = ConvShape.of((1, 3, 8, 8), (4, 3, 3, 3), pads=(1, 2, 0, 3))
    x, w = random_arrays(shape)
    out = convolve(x, w, shape)
    assert out.shape == (1, 4, 7, 11)
    # The first output sees rows 0 and 1 and column 0 only: taps (1..2, 2).
    first = np.einsum("cr,kcr->k", x[0, :, :2, 0], w[:, :, 1:, 2], dtype=np.float64)
    np.testing.assert_allclose(out[0, :, 0, 0], first, rtol=1e-12)


def test_a20_a_nan_weight_reaches_its_channel_only():
    shape = ConvShape.of((1, 2, 6, 6), (3, 2, 3, 3), pads=(1,) * 4)
    x, w = random_arrays(shape)
    w[1, 0, 1, 1] = np.nan
    bad = np.isnan(convolve(x, w, shape))
    assert bad[:, 1].all() and not bad[:, [0, 2]].any()


def test_a21_infinite_input_stays_infinite():
    shape = ConvShape.of((1, 128, 6, 6), (256, 128, 3, 3))
    w = np.abs(random_arrays(shape)[1])
    assert (convolve(np.full(shape.input_shape, np.inf), w, shape) == np.inf).all()
    one = ConvShape.of((1, 1, 8, 8), (1, 1, 3, 3), pads=(1,) * 4)
    x = np.zeros(one.input_shape)
    x[0, 0, 4, 4] = np.inf
    assert (~np.isfinite(convolve(x, np.ones(one.weight_shape), one))).sum() == 9


@pytest.mark.parametrize("channels", range(1, 7))
@pytest.mark.parametrize("filters", [1, 16, 17])
def test_a22_padding_is_not_part_of_the_sum(channels, filters):
    shape = ConvShape.of((1, channels, 4, 4), (filters, channels, 3, 3), pads=(1,) * 4)
    x, w = random_arrays(shape)
    w[0, 0, 0, 0] = -np.inf
    finite = np.isfinite(convolve(x, w, shape)[0, 0])
    assert finite[0].all() and finite[:, 0].all() and not finite[1:, 1:].any()


def test_a23_subnormal_weights_are_kept():
    shape = ConvShape.of((1, 1, 4, 4), (1, 1, 3, 3))
    w = np.full(shape.weight_shape, 1e-42, np.float32)
    out = convolve(np.ones(shape.input_shape, np.float32), w, shape)
    np.testing.assert_allclose(out, 9 * float(w[0, 0, 0, 0]), rtol=1e-12)


def test_a28_even_kernels_at_the_right_border():
    shape = ConvShape.of((2, 2, 18, 19), (3, 2, 7, 8))
    x, w = random_arrays(shape)
    out = convolve(x, w, shape)
    assert out.shape == (2, 3, 12, 12)
    last = np.einsum("ncrs,kcrs->nk", x[:, :, 11:, 11:], w, dtype=np.float64)
    np.testing.assert_allclose(out[:, :, 11, 11], last, rtol=1e-9)
    assert ConvShape.of((1, 1, 4, 4), (1, 1, 2, 2)).output_shape == (1, 1, 3, 3)


def test_a32_channel_multiplier():
    shape = ConvShape.of((1, 16, 32, 32), (32, 1, 2, 2), strides=(2, 2), group=16)
    x, w = random_arrays(shape)
    out = convolve(x, w, shape)
    blocks = x[0].reshape(16, 16, 2, 16, 2).transpose(0, 1, 3, 2, 4).astype(np.float64)
    for k in range(32):
        right = (blocks[k // 2] * w[k, 0]).sum((-2, -1))
        np.testing.assert_allclose(out[0, k], right, rtol=1e-9, atol=1e-12)
