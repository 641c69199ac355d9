from importlib import resources
from pathlib import Path

import onnx
import pytest

from pebble import ConvShape, InputError, Layer, Network
from pebble.network import network_names

LIGHT = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"

# Convolutions, dense multiply-accumulates and weights of the convolutions. The published totals of
# the whole networks: torchvision's model table (GFLOPS there are multiply-accumulates) for AlexNet
# 0.71, ResNet-18/34/50 1.81/3.66/4.09, VGG-16 15.47, Inception-v3 5.71, MobileNet-V2 0.30,
# SqueezeNet 1.0/1.1 0.82/0.35, of which the classifiers are the small rest; MobileNets' papers
# 0.569 and 0.300.
TOTALS = {
    "alexnet": (5, 655566528, 2468544),
    "bvlc_alexnet": (5, 595938432, 2332704),
    "inception_v1": (57, 1430532352, 5966272),
    "inception_v3": (94, 5711168096, 21751136),
    "mobilenet_v1": (27, 567716352, 3185088),
    "mobilenet_v2": (52, 299494272, 2189760),
    "resnet18": (20, 1813561344, 11166912),
    "resnet34": (36, 3663249408, 21267648),
    "resnet50": (53, 4087136256, 23454912),
    "squeezenet": (26, 349151936, 1231552),
    "squeezenet1_0": (26, 818924576, 1244448),
    "vgg16": (13, 15346630656, 14710464),
    "vgg19": (16, 19508428800, 20018880),
}

# Parameters of whole networks as torchvision publishes them, minus classifier, normalisation and
# biases, each a product of the papers' widths. They do not come from the tables they check.
PARAMETERS = {
    "resnet18": 11689512 - (512 * 1000 + 1000) - 2 * 4800,
    "resnet34": 21797672 - (512 * 1000 + 1000) - 2 * 8512,
    "resnet50": 25557032 - (2048 * 1000 + 1000) - 2 * 26560,
    "vgg16": 138357544 - (25088 * 4096 + 4096 * 4096 + 4096 * 1000 + 2 * 4096 + 1000) - 4224,
    "alexnet": 61100840 - (9216 * 4096 + 4096 * 4096 + 4096 * 1000 + 2 * 4096 + 1000) - 1152,
}


def weights(shape):
    return shape.out_channels * shape.group_in_channels * shape.kernel[0] * shape.kernel[1]


def test_every_built_in_network_is_checked():
    assert network_names() == tuple(sorted(TOTALS))


@pytest.mark.parametrize("name", TOTALS)
def test_totals(name):
    shapes = [layer.shape for layer in Network.load(name).layers]
    macs = sum(shape.macs_dense for shape in shapes)
    assert (len(shapes), macs, sum(map(weights, shapes))) == TOTALS[name]


@pytest.mark.parametrize("name", PARAMETERS)
def test_weights_are_those_of_the_published_parameter_counts(name):
    assert sum(weights(v.shape) for v in Network.load(name).layers) == PARAMETERS[name]


@pytest.mark.parametrize("name", TOTALS)
def test_layers_have_names_of_their_own_and_batch_1(name):
    layers = Network.load(name).layers
    assert len({layer.name for layer in layers}) == len(layers)
    assert {layer.shape.batch for layer in layers} == {1}
    assert {layer.count for layer in layers} == {1}


@pytest.mark.parametrize("name", TOTALS)
def test_each_file_names_its_source(name):
    text = (resources.files("pebble") / "networks" / f"{name}.toml").read_text(encoding="utf-8")
    assert text.startswith("# ")


@pytest.mark.parametrize(
    "name", ["bvlc_alexnet", "inception_v1", "resnet50", "squeezenet", "vgg19"]
)
def test_same_shapes_as_the_onnx_package_has(name):
    def shapes(network):
        return sorted(str(layer.shape) for layer in network.layers)

    imported = Network.from_onnx(LIGHT / f"light_{name}.onnx")
    assert shapes(Network.load(name)) == shapes(imported)


@pytest.mark.parametrize("name", ["squeezenet", "vgg19", "bvlc_alexnet", "inception_v1"])
def test_same_biases_as_the_onnx_package_has(name):
    imported = Network.from_onnx(LIGHT / f"light_{name}.onnx")
    assert [v.bias for v in imported.layers] == [v.bias for v in Network.load(name).layers]


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("resnet50", "resnet50"),
        ("ResNet-50", "resnet50"),
        ("RESNET_50", "resnet50"),
        ("MobileNetV2", "mobilenet_v2"),
        ("mobilenet-v2", "mobilenet_v2"),
        ("SqueezeNet-1.0", "squeezenet1_0"),
    ],
)
def test_spelling_of_names(written, name):
    assert Network.load(written).name == name


def test_an_unknown_name_lists_the_known_ones():
    with pytest.raises(InputError, match=r"network 'resnet51': is none of alexnet, .*, vgg19"):
        Network.load("resnet51")


def test_merged_counts_add_up():
    merged = Network.load("resnet50").merged()
    assert sum(layer.count for layer in merged.layers) == 53
    shapes = [layer.shape for layer in merged.layers]
    assert len(set(shapes)) == len(shapes)
    assert merged.merged() == merged


def test_merging_keeps_what_differs_apart():
    shape = ConvShape.of((1, 2, 4, 4), (2, 2, 3, 3))
    layers = [
        Layer("a", shape, count=2),
        Layer("b", shape, bias=True),
        Layer("c", shape, note="conditional"),
        Layer("d", shape, count=3),
    ]
    merged = Network("n", tuple(layers)).merged()
    assert [(v.name, v.count) for v in merged.layers] == [("a", 5), ("b", 1), ("c", 1)]


@pytest.mark.parametrize("batch", [0, 1, 32])
def test_another_batch(batch):
    network = Network.load("resnet18").with_batch(batch)
    assert {layer.shape.batch for layer in network.layers} == {batch}
    macs = sum(layer.shape.macs_dense for layer in network.layers)
    assert macs == batch * TOTALS["resnet18"][1]


@pytest.mark.parametrize("batch", [-1, 1.5, True, "4"])
def test_a_batch_is_a_count(batch):
    with pytest.raises(InputError, match=r"batch .*must be an integer of at least 0"):
        Network.load("alexnet").with_batch(batch)
