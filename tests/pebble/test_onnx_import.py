"""ONNX files as networks. The cases of data/onnx_cases.json name the threads they come from."""

import json
import warnings
from pathlib import Path

import numpy as np
import onnx
import onnx.backend.test.case.node as node_cases
import onnx.backend.test.case.node.conv
import onnx.backend.test.case.node.convinteger
import onnx.backend.test.case.node.convtranspose
import onnx.backend.test.case.node.qlinearconv
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper, parser

from pebble import ConvShape, InputError, Network
from pebble.onnx_model import load_model

TESTS = Path(onnx.__file__).parent / "backend" / "test" / "data"
CASES = {
    case["id"]: case
    for case in json.loads((Path(__file__).parents[1] / "data" / "onnx_cases.json").read_text())[
        "cases"
    ]
}
TEXTS = {name: case for name, case in CASES.items() if "onnx_text" in case["input"]}


@pytest.fixture
def read(tmp_path):
    """Import a model, or its text, through a file."""

    def read(model, **bind):
        if isinstance(model, str):
            model = parser.parse_model(model)
        path = tmp_path / "model.onnx"
        path.write_bytes(model.SerializeToString())
        return Network.from_onnx(path, bind)

    return read


def text(body, inputs="float[1,8,16,16] X, float[8,8,3,3] W", outputs="float[] Y", opset=13):
    """An ONNX model in the textual form of onnx.parser."""
    head = f'<ir_version: 8, opset_import: ["" : {opset}, "com.microsoft" : 1, "my" : 1]>'
    return f"{head} g ({inputs}) => ({outputs}) {{ {body} }}"


def model_of(nodes, inputs, outputs=("Y",), constants=(), opset=13):
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info(name, kind, dims) for name, kind, dims in inputs],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs],
        list(constants),
    )
    opsets = [helper.make_opsetid("", opset)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def only(network):
    """The one layer of a network that has nothing else."""
    assert (network.failed, network.notes) == ((), ())
    (layer,) = network.layers
    return layer


# --- cases with one operator --------------------------------------------------------------------
@pytest.mark.parametrize("name", [n for n in TEXTS if "error" not in CASES[n]["expected"]])
def test_output_shape_of_a_case(read, name):
    expected = CASES[name]["expected"]
    bind = {"N": 5} if "N" in expected["out_shape"] else {}
    layer = only(read(CASES[name]["input"]["onnx_text"], **bind))
    assert layer.shape.output_shape == tuple(bind.get(v, v) for v in expected["out_shape"])
    if "pads" in expected:
        assert list(layer.shape.pads) == expected["pads"]
    if "total_pad" in expected:
        halves = layer.shape.pads[:2], layer.shape.pads[2:]
        assert [a + b for a, b in zip(*halves, strict=True)] == expected["total_pad"]


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("D06", "has 5 dimensions where the input has 4"),
        ("D09", "64 * group 1 is not the input's 1 channels"),
    ],
)
def test_an_illegal_case_is_listed_with_its_reason(read, name, reason):
    network = read(CASES[name]["input"]["onnx_text"])
    assert network.layers == ()
    (failed,) = network.failed
    assert (failed.name, failed.op) == ("Y", "Conv")
    assert reason in failed.reason


def test_every_case_is_tested():
    source = Path(__file__).read_text()
    assert [name for name in CASES if name not in TEXTS and f"_{name.lower()}_" not in source] == []


def test_d10_stale_shapes_are_recomputed_and_reported(read):
    model = parser.parse_model(
        text(
            "A = Conv <strides = [2,2]> (X, W) Y = Relu(A)",
            inputs="float[N,8,11,11] X, float[8,8,3,3] W",
            outputs="float[N,8,6,6] Y",
        )
    )
    model.graph.value_info.append(
        helper.make_tensor_value_info("A", TensorProto.FLOAT, ["N", 8, 6, 6])
    )
    network = read(model, N=3)
    assert network.layers[0].shape.output_shape == (3, 8, 5, 5)
    assert network.notes == (
        "2 declared shapes are not the recomputed ones, which are used; the first is 'A': "
        "declared Nx8x6x6, recomputed 3x8x5x5",
    )


def test_d11_weights_are_found_by_operator(read):
    scales = "float xs, uint8 xz, float ws, uint8 wz, float ys, uint8 yz"
    network = read(
        text(
            "Y = QLinearConv (X, xs, xz, W, ws, wz, ys, yz, B)",
            inputs=f"uint8[1,4,9,9] X, uint8[6,4,3,3] W, {scales}, int32[6] B",
        )
    )
    layer = only(network)
    assert layer.shape == ConvShape.of((1, 4, 9, 9), (6, 4, 3, 3), dtype="uint8")
    assert (layer.op, layer.bias, layer.note) == ("QLinearConv", True, "")


def test_d11_an_unknown_dimension_stays_unknown_and_the_rest_is_planned(read):
    network = read(
        text(
            "Y = Conv (X, W) Z = Conv (V, W)",
            inputs="float[1,8,?,16] X, float[1,8,20,20] V, float[8,8,3,3] W",
            outputs="float[] Y, float[] Z",
        )
    )
    assert [layer.shape.output_shape for layer in network.layers] == [(1, 8, 18, 18)]
    (failed,) = network.failed
    assert failed.reason == (
        "input 'X': size of axis 2 depends on the open dimension X:2; --bind X:2=VALUE"
    )


def test_d12_zero_points_are_no_bias(read):
    layer = only(
        read(
            text(
                "Y = ConvInteger (x, w, x_zero_point, w_zero_point)",
                inputs="uint8[1,1,3,3] x, uint8[1,1,2,2] w, uint8 x_zero_point, uint8 w_zero_point",
            )
        )
    )
    assert list(layer.shape.output_shape) == CASES["D12"]["expected"]["out_shape"]
    assert (layer.bias, layer.note) == (False, "output int32 (4 bytes)")


def test_d13_weights_from_dequantize_linear(read):
    case = CASES["D13"]
    weight = numpy_helper.from_array(np.ones(case["input"]["w"], np.int8), "W8")
    scale = numpy_helper.from_array(np.float32(0.5), "scale")
    nodes = [
        helper.make_node("DequantizeLinear", ["W8", "scale"], ["W"]),
        helper.make_node("Conv", ["X", "W"], ["Y"]),
    ]
    inputs = [("X", TensorProto.FLOAT, case["input"]["x"])]
    network = read(model_of(nodes, inputs, constants=[weight, scale]))
    layer = only(network)
    assert list(layer.shape.output_shape) == case["expected"]["out_shape"]
    assert (layer.shape.dtype, layer.note) == ("float32", "weights stored as int8 (1 bytes)")
    assert network.skipped == ()


@pytest.mark.parametrize("name", CASES["D14"]["expected"]["conv_counts"])
def test_d14_light_models(name):
    network = Network.from_onnx(TESTS / "light" / f"{name}.onnx")
    assert network.failed == network.notes == ()
    assert len(network.layers) == CASES["D14"]["expected"]["conv_counts"][name]
    model = onnx.load(TESTS / "light" / f"{name}.onnx")
    silent = {"Conv", "ConstantOfShape", "Unsqueeze"}  # the last makes only constants here
    listed = [node.op_type for node in model.graph.node if node.op_type not in silent]
    # A node on constants alone carries no data: none of these operators has one in these files,
    # apart from the first reshape of the weights in light_inception_v1.
    found = [v.op for v in network.skipped]
    if name == "light_inception_v1":
        listed.remove("Reshape")
    assert found == listed


@pytest.mark.parametrize("location", ["weights.bin", *CASES["D16"]["input"]["location"]])
def test_d15_d16_external_data_is_never_opened(read, monkeypatch, location):
    weight = TensorProto(
        name="W",
        data_type=TensorProto.FLOAT,
        dims=[64, 3, 7, 7],
        data_location=TensorProto.EXTERNAL,
    )
    weight.external_data.add(key="location", value=location)
    model = model_of(
        [helper.make_node("Conv", ["X", "W"], ["Y"])],
        [("X", TensorProto.FLOAT, [1, 3, 32, 32])],
        constants=[weight],
    )

    def refuse(*_arguments):
        raise AssertionError("external data was asked for")

    monkeypatch.setattr("onnx.external_data_helper.load_external_data_for_tensor", refuse)
    network = read(model)
    assert [layer.shape.output_shape for layer in network.layers] == [(1, 64, 26, 26)]
    warned = [f"{location!r}, outside the model's folder" in note for note in network.notes]
    assert warned == ([] if location == "weights.bin" else [True])


def test_d19_convolutions_in_branches(read):
    network = read(
        text(
            """Y = If (c) <
              then_branch = t () => (float[] A) { B = Relu(X) A = Conv (B, W) },
              else_branch = e () => (float[] A) { A = Conv <pads = [1,1,1,1]> (X, W) }>""",
            inputs="bool c, float[1,8,16,16] X, float[8,8,3,3] W",
        )
    )
    assert network.failed == ()
    assert [(v.name, v.shape.output_shape, v.note) for v in network.layers] == [
        ("Y/then_branch/A", (1, 8, 14, 14), "conditional: in then_branch of If 'Y'"),
        ("Y/else_branch/A", (1, 8, 16, 16), "conditional: in else_branch of If 'Y'"),
    ]
    assert [(v.name, v.op) for v in network.skipped] == [("Y/then_branch/B", "Relu")]


def test_d20_a_dead_convolution_is_listed_apart(read):
    network = read(text("D = Conv (X, W) E = Relu (D) Y = Conv <pads = [1,1,1,1]> (X, W)"))
    assert [layer.name for layer in network.layers] == ["Y"]
    assert [(v.name, v.op, v.reason) for v in network.skipped] == [
        ("D", "Conv", "its result reaches no output of the graph")
    ]


def test_d21_a_bias_is_flagged_and_adds_no_multiply_accumulates(read):
    case, right = CASES["D21"]["input"], CASES["D21"]["expected"]
    layer = only(
        read(
            text(
                "Y = Conv <pads = [1,1,1,1]> (X, W, B)",
                inputs="float[1,16,32,32] X, float[32,16,3,3] W, float[32] B",
            )
        )
    )
    assert layer.bias is case["bias"]
    assert layer.shape.macs_dense == right["macs_dense"]
    assert layer.shape.macs == right["macs_nonpad"]
    assert layer.shape.compulsory_words == right["compulsory_words"]
    assert layer.shape.out_channels == right["bias_words"]


# --- operators ----------------------------------------------------------------------------------
def test_fused_convolutions_follow_one_another(read):
    network = read(
        text(
            """A = com.microsoft.FusedConv <activation = "Relu", pads = [1,1,1,1]> (X, W, B, X)
               Y = com.microsoft.FusedConv <strides = [2,2]> (A, W)"""
            "",
            inputs="float[1,8,16,16] X, float[8,8,3,3] W, float[8] B",
        )
    )
    assert network.failed == ()
    assert [(v.op, v.shape.output_shape, v.bias) for v in network.layers] == [
        ("FusedConv", (1, 8, 16, 16), True),
        ("FusedConv", (1, 8, 7, 7), False),
    ]
    assert network.layers[0].note == "adds a fourth operand, which is not counted"


@pytest.mark.parametrize(
    "maker",
    [
        "W = Constant <value = float[8,8,1,1] {}> ()".replace("{}", "{" + "0," * 63 + "0}"),
        "s = Constant <value = int64[4] {8,8,1,1}> () W = ConstantOfShape (s)",
        "W = Identity (V)",
        "H = Cast <to = 10> (V) W = Cast <to = 1> (H)",
        "s = Constant <value = int64[4] {8,8,1,1}> () F = Flatten (V) W = Reshape (F, s)",
    ],
)
def test_weights_that_are_no_initializers(read, maker):
    constant = numpy_helper.from_array(np.ones((8, 8, 1, 1), np.float32), "V")
    model = parser.parse_model(text(f"{maker} Y = Conv (X, W)", inputs="float[1,8,5,5] X"))
    model.graph.initializer.append(constant)
    network = read(model)
    assert only(network).shape == ConvShape.of((1, 8, 5, 5), (8, 8, 1, 1))
    assert network.skipped == ()


def test_initializers_among_the_inputs_are_constants(read):
    model = parser.parse_model(
        '<ir_version: 3, opset_import: ["" : 9]> '
        "g (float[1,8,5,5] X, float[8,8,2,2] W) => (float[] Y) { V = Relu (W) Y = Conv (X, V) }"
    )
    model.graph.initializer.append(numpy_helper.from_array(np.ones((8, 8, 3, 3), np.float32), "W"))
    network = read(model)
    assert [v.shape.output_shape for v in network.layers] == [(1, 8, 3, 3)]
    assert network.skipped == ()
    assert "'W': declared 8x8x2x2, recomputed 8x8x3x3" in network.notes[0]


@pytest.mark.parametrize(
    ("operator", "name"),
    [
        ("DeformConv", "DeformConv"),
        ("com.microsoft.NhwcFusedConv", "com.microsoft.NhwcFusedConv"),
        ("my.Conv", "my.Conv"),
    ],
)
def test_other_convolutions_are_no_silent_zero(read, operator, name):
    network = read(text(f"Y = {operator} (X, W, X)"))
    assert network.layers == network.skipped == ()
    assert [(v.op, v.reason) for v in network.failed] == [(name, f"no analysis of {name} yet")]


def test_channels_last_weights_are_refused(read):
    scales = "float xs, uint8 xz, float ws, uint8 wz, float ys, uint8 yz"
    network = read(
        text(
            "Y = com.microsoft.QLinearConv<channels_last = 1> (X, xs, xz, W, ws, wz, ys, yz)",
            inputs=f"uint8[1,9,9,4] X, uint8[6,4,3,3] W, {scales}",
        )
    )
    assert "only channels-first data is analysed" in network.failed[0].reason


def test_data_carrying_nodes_are_listed_and_shape_arithmetic_is_not(read):
    network = read(
        text(
            """s = Shape (X) two = Constant <value = int64[1] {2}> () h = Gather (s, two)
               A = Conv (X, W) P = MaxPool <kernel_shape = [2,2]> (A) F = Flatten (P)
               L = my.Custom (F) Y = Gemm (L, M)""",
            inputs="float[1,8,16,16] X, float[8,8,3,3] W, float[1352,10] M",
        )
    )
    assert [(v.op, v.reason) for v in network.skipped] == [
        ("MaxPool", "no analysis of MaxPool yet"),
        ("Flatten", "no analysis of Flatten yet"),
        ("my.Custom", "no analysis of my.Custom yet"),
        ("Gemm", "no analysis of Gemm yet"),
    ]


@pytest.mark.parametrize(("opset", "kind"), [(11, "Loop"), (13, "Loop"), (13, "Scan")])
def test_convolutions_in_loops(read, opset, kind):
    if kind == "Loop":
        body = """Y = Loop (n, c, X) <body = b (int64 i, bool d, float[] s) => (bool e, float[] A) {
                    e = Identity (d) A = Conv <pads = [1,1,1,1]> (s, W) }>"""
        note = "in a loop: body of Loop 'Y', counted once, with the shapes of the first iteration"
    else:
        body = """Z = Identity (X) H, Y = Scan <num_scan_inputs = 1,
                  body = b (float[] h, float[] s) => (float[] j, float[] A) { j = Identity (h)
                    A = Conv <pads = [1,1,1,1]> (s, W) }> (h0, V)"""
        note = "in a loop: body of Scan 'H', counted once"
    network = read(
        text(
            body,
            inputs="int64 n, bool c, float[1,8,16,16] X, float[8,8,3,3] W, float[4] h0, "
            "float[6,1,8,16,16] V",
            opset=opset,
        )
    )
    assert network.failed == ()
    (layer,) = network.layers
    assert (layer.shape.output_shape, layer.note) == ((1, 8, 16, 16), note)


def test_local_functions_are_read(read):
    model = parser.parse_model(
        """<ir_version: 8, opset_import: ["" : 13, "local" : 1]>
           g (float[1,8,16,16] X, float[8,8,3,3] W) => (float[] Y) {
             A = local.block (X, W) Y = local.block (A, W) }
           <domain: "local", opset_import: ["" : 13]>
           block (x, w) => (y) { c = Conv <strides = [2,2]> (x, w) y = Relu (c) }"""
    )
    network = read(model)
    assert [v.shape.output_shape for v in network.layers] == [(1, 8, 7, 7), (1, 8, 3, 3)]
    assert [v.op for v in network.skipped] == ["Relu", "Relu"]
    assert len({v.name for v in network.layers}) == 2


def test_a_local_function_that_cannot_be_inlined_is_listed(read):
    # The inliner leaves a function that asks for another version of the operators alone.
    model = parser.parse_model(
        """<ir_version: 8, opset_import: ["" : 13, "local" : 1]>
           g (float[1,8,16,16] X, float[8,8,3,3] W) => (float[] Y) { Y = local.block (X, W) }
           <domain: "local", opset_import: ["" : 11]> block (x, w) => (y) { y = Conv (x, w) }"""
    )
    network = read(model)
    assert network.layers == ()
    assert [(v.op, v.reason) for v in network.failed] == [
        ("local.block", "local function block could not be inlined")
    ]


# --- sizes --------------------------------------------------------------------------------------
def test_open_dimensions_are_bound_by_name(read):
    model = text(
        "A = Relu (X) B = Conv (A, W) Y = Conv (B, W)",
        inputs="float[N,8,H,16] X, float[8,8,3,3] W",
    )
    network = read(model, N=2)
    assert network.layers == ()
    assert [v.reason for v in network.failed] == [
        "input 'A': size of axis 2 depends on the open dimension H; --bind H=VALUE",
        "input 'B': size of axis 2 depends on the open dimension H; --bind H=VALUE",
    ]
    shapes = [v.shape.output_shape for v in read(model, N=2, H=20).layers]
    assert shapes == [(2, 8, 18, 14), (2, 8, 16, 12)]


def test_a_nameless_dimension_is_bound_by_its_place(read):
    model = text("Y = Conv (X, W)", inputs="float[?,8,?,16] X, float[8,8,3,3] W")
    network = read(model, **{"X:0": 1, "X:2": 9})
    assert only(network).shape.output_shape == (1, 8, 7, 14)


def test_a_size_found_at_run_time_is_bound_by_its_place(read):
    model = text(
        "T = Tile (X, r) Q = Concat <axis = 0> (X, T) Y = Conv (Q, W)",
        inputs="float[1,8,16,16] X, int64[4] r, float[8,8,3,3] W",
    )
    (failed,) = read(model).failed
    assert failed.reason == (
        "input 'Q': size of axis 0 is known only when the network runs; --bind Q:0=VALUE"
    )
    assert only(read(model, **{"Q:0": 3})).shape.output_shape == (3, 8, 14, 14)


def test_a_rank_found_at_run_time_is_bound_axis_by_axis(read):
    model = text("A = my.Custom (X) B = Relu (A) Y = Conv (B, W)")
    (failed,) = read(model).failed
    assert failed.reason == (
        "input 'B': has no known rank: it stems from my.Custom 'A'; "
        "bind each of its axes: --bind B:0=VALUE and so on"
    )
    for tensor in "AB":
        bound = read(model, **{f"{tensor}:{i}": size for i, size in enumerate((1, 8, 5, 7))})
        assert only(bound).shape.output_shape == (1, 8, 3, 5)
    with pytest.raises(InputError, match="'A:1': is no open dimension"):
        read(model, **{"A:1": 8})


@pytest.mark.parametrize(
    ("bind", "message"),
    [
        ({"M": 1}, "bind 'M': is no open dimension of the model; the inputs' are N, X:2"),
        ({"N": -1}, "bind 'N=-1': needs an integer of at least 0"),
        ({"N": 1.5}, "bind 'N=1.5': needs an integer of at least 0"),
        ({"X:1": 8}, "bind 'X:1': this dimension is 8 in the model"),
        ({"X:7": 8}, "bind 'X:7': 'X' has 4 axes, counted from 0"),
    ],
)
def test_a_binding_must_fit(read, bind, message):
    model = text("Y = Conv (X, W)", inputs="float[N,8,?,16] X, float[8,8,3,3] W")
    with pytest.raises(InputError) as error:
        read(model, **bind)
    assert str(error.value) == message


def test_a_binding_for_a_model_without_open_dimensions(read):
    with pytest.raises(InputError, match="inputs have none"):
        read(text("Y = Conv (X, W)"), N=1)


@pytest.mark.parametrize("opset", [11, 13, 18, 21])
def test_shape_arithmetic_is_evaluated(read, opset):
    unsqueeze = "Unsqueeze <axes = [0]> (q)" if opset < 13 else "Unsqueeze (q, zero)"
    network = read(
        text(
            f"""s = Shape (X) three = Constant <value = int64 {{3}}> ()
                zero = Constant <value = int64[1] {{0}}> ()
                h = Gather (s, three) two = Constant <value = int64 {{2}}> () d = Div (h, two)
                f = Cast <to = 1> (d) g = Floor (f) q = Cast <to = 7> (g) u = {unsqueeze}
                lead = Constant <value = int64[3] {{1,8,-1}}> ()
                t = Concat <axis = 0> (lead, u) R = Reshape (X, t) Y = Conv (R, W)""",
            opset=opset,
        )
    )
    # 16 * 16 pixels as rows of 16 / 2: 32 x 8.
    assert [v.shape.output_shape for v in network.layers] == [(1, 8, 30, 6)]
    assert [v.op for v in network.skipped] == ["Reshape"]


def test_sizes_of_an_illegal_convolution_reach_no_arithmetic(read):
    # ONNX infers one column for A, where 2 columns hold no tap pair 3 apart.
    network = read(
        text(
            """A = Conv <dilations = [1,2], strides = [1,2]> (X, W) s = Shape (A)
               R = Reshape (A, s) Y = Conv (R, V)""",
            inputs="float[1,8,3,2] X, float[8,8,2,2] W, float[8,8,1,1] V",
        )
    )
    assert [v.name for v in network.failed] == ["A", "Y"]


def test_a_long_chain_of_reshapes_by_computed_sizes(read):
    links = "".join(
        f"s{i} = Shape (x{i}) r{i} = Reshape (x{i}, s{i}) "
        f"x{i + 1} = Conv <pads = [1,1,1,1]> (r{i}, W) "
        for i in range(60)
    )
    model = text(
        f"x0 = Relu (X) {links} Y = Relu (x60)", inputs="float[N,8,9,7] X, float[8,8,3,3] W"
    )
    network = read(model, N=2)
    assert {v.shape.output_shape for v in network.layers} == {(2, 8, 9, 7)}
    assert (len(network.layers), network.failed) == (60, ())


def test_what_a_custom_operator_makes_is_taken_as_declared(read):
    model = parser.parse_model(text("A = my.Custom (X) B = Relu (A) Y = Conv (B, W)"))
    model.graph.value_info.append(
        helper.make_tensor_value_info("A", TensorProto.FLOAT, [1, 8, 5, 7])
    )
    network = read(model)
    assert [v.shape.output_shape for v in network.layers] == [(1, 8, 3, 5)]
    assert network.notes == ("output shapes of Custom are taken as the file declares them",)


def test_what_follows_an_illegal_convolution_is_not_guessed(read):
    network = read(
        text("A = Conv (X, W) Y = Conv (A, W)", inputs="float[1,8,2,2] X, float[8,8,3,3] W")
    )
    assert [v.name for v in network.failed] == ["A", "Y"]
    assert "axis h has padded size 2, below the effective kernel 3" in network.failed[0].reason
    assert "input 'A': has no known rank: it stems from Conv 'A'" in network.failed[1].reason


@pytest.mark.parametrize(
    ("inputs", "attributes", "reason"),
    [
        ("float[1,8,9,9] X, float[8,8,3,3] W", "kernel_shape = [3,2]", "kernel is (3, 3)"),
        ("float[1,8,9,9] X, float[8,8,3,3] W", "group = 3", "3 is not the input's 8 channels"),
        ("float[1,8,9,9] X, float[8,8,3,3] W", "strides = [1]", "must hold 2 numbers"),
        ("float[1,8,9,9] X, float[8,8,3,3] W", "strides = [0,1]", "must be at least 1"),
        ("float[1,8,9,9] X, float[8,8,3,3] W", "strides = 2", "is not a list of integers"),
        ("float[1,8,9,9] X, float[8,8,3,3] W", "pads = [-1,0,0,0]", "must be at least 0"),
        ("float[1,8,9,9] X, float[8,8,3,3] W", 'auto_pad = "SAME"', "is none of NOTSET"),
        ("float[1,8,9,9] X, float[8,8,3,3] W", 'padding_mode = "circular"', "only zero padding"),
        ("float[1,8,0,9] X, float[8,8,3,3] W", "group = 1", "only the batch may be 0"),
        ("float[1,8] X, float[8,8] W", "group = 1", "1 to 3 spatial sizes"),
        ("float[1,8,3,3,3,3] X, float[8,8,1,1,1,1] W", "group = 1", "1 to 3 spatial sizes"),
        ("string[1,8,9,9] X, float[8,8,3,3] W", "group = 1", "element type is not analysed"),
    ],
)
def test_illegal_convolutions_are_listed(read, inputs, attributes, reason):
    network = read(text(f"Y = Conv <{attributes}> (X, W)", inputs=inputs))
    assert network.layers == ()
    assert reason in network.failed[0].reason


def test_a_convolution_without_weights(read):
    assert "is missing" in read(text("Y = Conv (X)")).failed[0].reason


def test_an_empty_batch_is_legal(read):
    layer = only(read(text("Y = Conv (X, W)", inputs="float[0,8,9,9] X, float[8,8,3,3] W")))
    assert layer.shape.output_shape == (0, 8, 7, 7)


def test_a_stride_beyond_64_bits_of_output_arithmetic(read):
    # tensorflow/tensorflow#74914: the process died; one output position is right.
    layer = only(read(text(f"Y = Conv <strides = [{2**62},{2**62}], pads = [1,1,1,1]> (X, W)")))
    assert layer.shape.output_shape == (1, 8, 1, 1)


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (TensorProto.FLOAT, "float32"),
        (TensorProto.FLOAT16, "float16"),
        (TensorProto.BFLOAT16, "bfloat16"),
        (TensorProto.DOUBLE, "float64"),
    ],
)
def test_element_types(read, kind, name):
    nodes = [helper.make_node("Conv", ["X", "W"], ["Y"])]
    inputs = [("X", kind, [1, 2, 5, 5]), ("W", kind, [3, 2, 3, 3])]
    assert only(read(model_of(nodes, inputs, opset=22))).shape.dtype == name


# --- files --------------------------------------------------------------------------------------
@pytest.mark.parametrize("content", [b"", b"no model at all", bytes(range(256))])
def test_no_onnx_file(tmp_path, content):
    path = tmp_path / "x.onnx"
    path.write_bytes(content)
    with pytest.raises(InputError, match="is no ONNX model"):
        Network.from_onnx(path)


def test_a_missing_file_and_a_folder(tmp_path):
    with pytest.raises(InputError, match="cannot be read: No such file"):
        Network.from_onnx(tmp_path / "none.onnx")
    with pytest.raises(InputError, match="cannot be read: Is a directory"):
        Network.from_onnx(tmp_path)


def test_no_length_of_a_cut_file_crashes(tmp_path):
    whole = (TESTS / "light" / "light_bvlc_alexnet.onnx").read_bytes()
    path, refused = tmp_path / "x.onnx", 0
    for length in range(0, len(whole), 97):
        path.write_bytes(whole[:length])
        try:
            Network.from_onnx(path)
        except InputError:
            refused += 1
    assert refused > 0.9 * len(whole) / 97


def test_a_text_that_is_not_utf_8(tmp_path):
    whole = parser.parse_model(text("Y = Conv (X, W)")).SerializeToString()
    path = tmp_path / "x.onnx"
    path.write_bytes(whole.replace(b"Conv", b"Con\xe4"))
    with pytest.raises(InputError, match="a text in it is not UTF-8"):
        Network.from_onnx(path)


def test_numbers_that_no_element_type_has(read):
    model = parser.parse_model(text("Y = Conv (X, W)"))
    model.graph.input[0].type.tensor_type.elem_type = 99
    model.graph.initializer.add(name="c", data_type=99, dims=[1])
    assert "element type is not analysed" in read(model).failed[0].reason


def test_large_weights_do_not_travel(tmp_path, read):
    weight = numpy_helper.from_array(np.zeros((256, 256, 3, 3), np.float32), "W")
    nodes = [helper.make_node("Conv", ["X", "W"], ["Y"])]
    inputs = [("X", TensorProto.FLOAT, [1, 256, 8, 8])]
    read(model_of(nodes, inputs, constants=[weight]))
    model, _ = load_model(tmp_path / "model.onnx")
    assert model.ByteSize() < 1000 < weight.ByteSize()


# --- against ONNX itself ------------------------------------------------------------------------
STORED = sorted(
    path.parent.name
    for kind in ("pytorch-converted", "pytorch-operator")
    for path in TESTS.glob(f"{kind}/*[Cc]onv*/model.onnx")
)


def test_the_stored_models_are_there():
    assert len(STORED) == 30


@pytest.mark.parametrize("name", STORED)
def test_output_shape_of_the_stored_models(name):
    (folder,) = TESTS.glob(f"*/{name}")
    layer = only(Network.from_onnx(folder / "model.onnx"))
    output = onnx.load_tensor(folder / "test_data_set_0" / "output_0.pb")
    assert layer.shape.output_shape == tuple(output.dims)


NODE_CASES = {
    case.name: case
    for case in node_cases._NodeTestCases
    if {"Conv", "ConvTranspose", "ConvInteger", "QLinearConv"}
    & {node.op_type for node in case.model.graph.node}
}


@pytest.mark.parametrize("name", sorted(NODE_CASES))
def test_output_shape_of_the_node_tests(read, name):
    layer = only(read(NODE_CASES[name].model))
    ((_, (output, *_)),) = NODE_CASES[name].data_sets
    assert layer.shape.output_shape == output.shape


@st.composite
def convolutions(draw):
    """A node with legal attributes, and its operands' sizes."""
    rank, transposed = draw(st.integers(1, 3)), draw(st.booleans())

    def per_axis(least, most, count=rank):
        return draw(st.lists(st.integers(least, most), min_size=count, max_size=count))

    group, kernel = draw(st.integers(1, 3)), per_axis(1, 4)
    channels = group * draw(st.integers(1, 3))
    attributes = {"group": group, "strides": per_axis(1, 3), "dilations": per_axis(1, 3)}
    padding = draw(st.sampled_from(["none", "pads", "VALID", "SAME_UPPER", "SAME_LOWER"]))
    if padding == "pads":
        attributes["pads"] = per_axis(0, 3, 2 * rank)
    elif padding != "none":
        attributes["auto_pad"] = padding
    if transposed and padding in ("none", "pads") and draw(st.booleans()):
        attributes["output_padding"] = [v - 1 for v in attributes["strides"]]
    if draw(st.booleans()):
        attributes["kernel_shape"] = kernel
    filters = draw(st.integers(1, 3))
    if transposed:
        weight = [channels, filters, *kernel]
    else:
        weight = [group * filters, channels // group, *kernel]
    data = [draw(st.integers(1, 2)), channels, *per_axis(1, 12)]
    return "ConvTranspose" if transposed else "Conv", data, weight, attributes


@settings(max_examples=150, deadline=None)
@given(convolutions())
def test_output_shape_as_onnx_infers_it(tmp_path_factory, convolution):
    operator, data, weight, attributes = convolution
    model = model_of(
        [helper.make_node(operator, ["X", "W"], ["Y"], **attributes)],
        [("X", TensorProto.FLOAT, data), ("W", TensorProto.FLOAT, weight)],
    )
    path = tmp_path_factory.mktemp("random") / "model.onnx"
    path.write_bytes(model.SerializeToString())
    network = Network.from_onnx(path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        inferred = onnx.shape_inference.infer_shapes(model).graph.output[0]
    sizes = tuple(dim.dim_value for dim in inferred.type.tensor_type.shape.dim)
    attributes = {"pads": [0] * 6, **attributes}
    padded = [
        size + attributes["pads"][i] + attributes["pads"][len(data) - 2 + i]
        for i, size in enumerate(data[2:])
    ]
    reach = [
        dilation * (taps - 1) + 1
        for dilation, taps in zip(attributes["dilations"], weight[2:], strict=True)
    ]
    too_small = operator == "Conv" and any(a < b for a, b in zip(padded, reach, strict=True))
    if min(sizes) < 1 or (too_small and "SAME" not in attributes.get("auto_pad", "")):
        # Where a stride hides it, ONNX rounds a negative quotient up and infers one output.
        assert network.layers == ()
        assert len(network.failed) == 1
        return
    (layer,) = network.layers
    if operator == "ConvTranspose" and attributes.get("auto_pad", "").startswith("SAME"):
        # ONNX's text asks for input * stride; its inference stops at what the taps reach.
        assert layer.shape.output_spatial == tuple(
            size * stride for size, stride in zip(data[2:], attributes["strides"], strict=True)
        )
        return
    assert layer.shape.output_shape == sizes
