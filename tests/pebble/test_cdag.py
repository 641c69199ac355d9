"""Graphs of small nests against enumerations of their own."""

from itertools import product

import pytest
from replay import macs_of

from pebble import Access, Affine, ConvShape, InputError, LoopNest, TooLargeError
from pebble.cdag import Cdag, conv_terms, nest_terms

SHAPES = [
    ConvShape.of((2, 4, 5), (6, 2, 3), strides=(2,), pads=(2, 1), dilations=(2,), group=2),
    ConvShape.of((1, 2, 3, 4), (2, 2, 2, 3), pads=(1, 0, 0, 2), strides=(1, 3)),
    ConvShape.of((1, 2, 3), (2, 2, 2), strides=(3,), transposed=True),
    ConvShape.of((1, 4, 2, 2), (4, 1, 2, 1), group=2, pads=(1, 0, 0, 0), transposed=True),
]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_terms_of_a_layer_by_a_second_enumeration(shape):
    expected = {
        f"output[{','.join(map(str, place))}]": set()
        for place in product(*map(range, shape.output_shape))
    }
    for n, g in product(range(shape.batch), range(shape.group)):
        for k, c in product(range(shape.group_out_channels), range(shape.group_in_channels)):
            for triples in product(*macs_of(shape)):
                o, taps, x = (",".join(str(t[i]) for t in triples) for i in range(3))
                ci, co = g * shape.group_in_channels + c, g * shape.group_out_channels + k
                weight = f"{ci},{k}" if shape.transposed else f"{co},{c}"
                expected[f"output[{n},{co},{o}]"].add(
                    (f"input[{n},{ci},{x}]", f"weight[{weight},{taps}]")
                )
    found = conv_terms(shape)
    assert {output: set(products) for output, products in found.items()} == expected
    assert sum(map(len, found.values())) == shape.macs


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_graphs_hold_the_words_of_the_layer(shape):
    terms = conv_terms(shape)
    constants = sum(not products for products in terms.values())
    chains = Cdag.mac_chains(terms)
    assert len(chains.inputs) == shape.input_words + shape.weight_words
    assert len(chains.outputs) == shape.output_words
    assert chains.vertices == len(chains.inputs) + shape.macs + constants
    for tree in (False, True):
        sums = Cdag.products_and_sums(terms, tree=tree)
        assert len(sums.outputs) == shape.output_words
        # n products and n - 1 sums an output; a constant is a vertex of its own.
        inner = 2 * shape.macs - shape.output_words + 2 * constants
        assert sums.vertices == len(sums.inputs) + inner


def test_a_tree_is_balanced():
    terms = {"y": [(f"x{i}",) for i in range(8)]}
    depths = {}
    for tree in (False, True):
        graph = Cdag.products_and_sums(terms, tree=tree)
        depth = []
        for operands in graph.predecessors:
            depth.append(1 + max((depth[p] for p in operands), default=-1))
        depths[tree] = depth[graph.outputs[0]]
    assert depths == {False: 8, True: 4}


def test_terms_of_a_nest():
    nest = LoopNest.projective({"i": 2, "j": 2, "k": 2}, {"A": "ik", "B": "kj", "C": "ij"}, "C")
    terms = nest_terms(nest)
    assert terms["C[1,0]"] == [("A[1,0]", "B[0,0]"), ("A[1,1]", "B[1,0]")]
    assert Cdag.mac_chains(terms).vertices == 16


def test_empty_batch_and_outputs_of_padding_only():
    assert conv_terms(ConvShape.of((0, 1, 3), (1, 1, 2))) == {}
    graph = Cdag.mac_chains(conv_terms(ConvShape.of((1, 1, 1), (1, 1, 1), pads=(1, 0))))
    assert graph.predecessors == ((), (), (), (1, 2))
    assert graph.inputs == (1, 2)
    assert graph.outputs == (0, 3)


def test_a_square_reads_its_operand_once():
    assert Cdag.mac_chains({"y": [("x", "x")]}).predecessors == ((), (0,))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((((1,), ()), (0,)), r"predecessors of vertex 0 \(1,\): must be vertices from 0 to -1"),
        ((((), (0, 0)), (1,)), r"predecessors of vertex 1 \(0, 0\): repeat a vertex"),
        ((((), (0,)), (2,)), r"outputs \(2,\): must be vertices from 0 to 1"),
        ((((), (0,)), (1, 1)), r"outputs \(1, 1\): repeat a vertex"),
        ((((), (0,)), (1,), ("x",)), "names 1: must be 2, one a vertex"),
    ],
)
def test_malformed_graphs_are_refused(arguments, message):
    with pytest.raises(InputError, match=message):
        Cdag(*arguments)


def test_terms_that_make_no_graph_are_refused():
    with pytest.raises(InputError, match="a product needs at least one operand"):
        Cdag.mac_chains({"y": [()]})
    with pytest.raises(InputError, match="is an output and an operand"):
        Cdag.mac_chains({"y": [("x",)], "x": [("z",)]})
    with pytest.raises(InputError, match="is an output and an operand"):
        Cdag.mac_chains({"x": [("z",)], "y": [("x",)]})


def test_nests_that_are_not_listed():
    with pytest.raises(TooLargeError, match="at most 100000"):
        nest_terms(LoopNest.projective({"i": 10**6}, {"x": "i", "y": "i"}, "y"))
    i = Affine.of({"i": 1})
    with pytest.raises(InputError, match="2 arrays are written"):
        nest_terms(LoopNest((("i", 2),), (Access("x", (i,), True), Access("y", (i,), True))))
    with pytest.raises(InputError, match="must read other arrays"):
        nest_terms(LoopNest((("i", 2),), (Access("x", (i,)), Access("x", (i,), True))))
