"""Exact pebbling against a table, a search without any pruning, and a replay of every schedule."""

from random import Random

import pytest
from plain_pebbling import plain_least_io, random_graph

from pebble import ConvShape, InfeasibleError, InputError, LoopNest, TooLargeError
from pebble.bounds import lower_bound
from pebble.cdag import Cdag, conv_terms, nest_terms
from pebble.game import Move, least_capacity, least_io, replay


def product_terms(m, n, k):
    nest = LoopNest.projective({"i": m, "j": n, "l": k}, {"A": "il", "B": "lj", "C": "ij"}, "C")
    return nest_terms(nest)


def line_terms(outputs, kernel, stride=1, ci=1, co=1):
    size = (outputs - 1) * stride + kernel
    return conv_terms(ConvShape.of((1, ci, size), (co, ci, kernel), strides=(stride,)))


CHAINS, SUMS = Cdag.mac_chains, Cdag.products_and_sums
# Least words by capacity without sliding, found by an A* search that shares no code with this one.
TABLE = {
    "matmul 2x2x2": (CHAINS(product_terms(2, 2, 2)), 16, {4: 17, 5: 14, 6: 13, 8: 12}),
    "matmul 2x2x2 sums": (SUMS(product_terms(2, 2, 2)), 20, {4: 17, 5: 14, 6: 13}),
    "matmul 2x2x1": (CHAINS(product_terms(2, 2, 1)), 8, {3: 9, 4: 8}),
    "matmul 3x2x2": (CHAINS(product_terms(3, 2, 2)), 22, {5: 20, 6: 18, 8: 16}),
    "line 3 by 2": (CHAINS(line_terms(3, 2)), 12, {4: 11, 5: 9, 6: 9}),
    "line 3 by 2 sums": (SUMS(line_terms(3, 2)), 15, {3: 18, 4: 13, 5: 10, 6: 9}),
    "line 3 by 2 stride 2": (CHAINS(line_terms(3, 2, 2)), 14, {4: 13, 5: 11, 6: 11}),
    "line 4 by 3": (CHAINS(line_terms(4, 3)), 21, {5: 16, 6: 14, 8: 13}),
    "line 3 by 2, 2 in": (CHAINS(line_terms(3, 2, ci=2)), 24, {5: 19}),
    "line 3 by 2, 2 out": (CHAINS(line_terms(3, 2, co=2)), 20, {5: 17}),
}
SLIDING = {
    "line 3 by 2": {3: 11, 4: 9},
    "line 3 by 2 sums": {3: 13, 4: 10, 5: 9},
    "matmul 2x2x2": {3: 17, 4: 14, 5: 13, 6: 12},
}


def checked(graph, capacity, **rules):
    """Least words, after a replay of the schedule that reaches them."""
    found = least_io(graph, capacity, **rules)
    assert replay(graph, found.moves, capacity, **rules) == found.words
    return found.words


@pytest.mark.parametrize("name", TABLE)
def test_table(name):
    graph, vertices, least = TABLE[name]
    assert graph.vertices == vertices
    assert {capacity: checked(graph, capacity) for capacity in least} == least


@pytest.mark.parametrize("name", SLIDING)
def test_sliding(name):
    graph, _, _ = TABLE[name]
    # A multiply-accumulate has three operands, a product or a sum two.
    assert least_capacity(graph, sliding=True) == (2 if "sums" in name else 3)
    for capacity, words in SLIDING[name].items():
        assert checked(graph, capacity, sliding=True) == words


@pytest.mark.parametrize("name", [n for n in TABLE if "sums" not in n])
def test_on_chains_sliding_saves_exactly_one_pebble(name):
    graph, _, least = TABLE[name]
    for capacity, words in least.items():
        assert least_io(graph, capacity - 1, sliding=True).words == words


@pytest.mark.parametrize("seed", range(200))
def test_normal_forms_cost_nothing(seed):
    graph = random_graph(Random(seed), most=7)
    for sliding in (False, True):
        least = least_capacity(graph, sliding=sliding)
        assert plain_least_io(graph, least - 1, sliding=sliding) is None
        capacity = least + seed % 3
        for recomputation in (True, False):
            rules = {"sliding": sliding, "recomputation": recomputation}
            assert checked(graph, capacity, **rules) == plain_least_io(graph, capacity, **rules)


def test_a_blue_operand_is_cheaper_to_evict_than_a_result():
    # Found by random search: without recomputation, 4 must not be computed as soon as it can be.
    graph = Cdag(((), (), (1,), (2, 0), (1,), (0, 3), (4, 3)), (2, 3, 6))
    for rules in ({"recomputation": False}, {"recomputation": False, "sliding": True}):
        capacity = least_capacity(graph, sliding=rules.get("sliding", False))
        assert checked(graph, capacity, **rules) == plain_least_io(graph, capacity, **rules) == 6


def test_recomputation_saves_words():
    # Found by random search. With three pebbles, 1 is dropped and computed again from input 0:
    # one load and three stores are compulsory, and nothing else moves.
    graph = Cdag(((), (0,), (1, 0), (1, 0), (0, 3), (4, 0), (0, 2)), (3, 4, 6))
    assert checked(graph, 3) == plain_least_io(graph, 3) == 4
    once = {"recomputation": False}
    assert checked(graph, 3, **once) == plain_least_io(graph, 3, **once) == 5


def test_constants_and_useless_vertices():
    # Vertex 3 is computed from nothing, vertex 2 is needed by none and needs more pebbles.
    graph = Cdag(((), (0,), (0, 1), ()), (1, 3))
    assert least_capacity(graph) == 2
    assert least_capacity(graph, sliding=True) == 1
    assert checked(graph, 2) == checked(graph, 1, sliding=True) == 3


def test_nothing_to_do():
    graph = Cdag(((),), ())
    assert least_capacity(graph) == 1
    assert least_io(graph, 1).moves == ()
    assert replay(graph, (), 1) == 0


def test_drawing():
    graph = CHAINS({"y": [("a", "b")]})
    assert str(least_io(graph, 2, sliding=True)) == (
        "3 words, 4 moves\n"
        "1 load a         | a\n"
        "1 load b         | a b\n"
        "  slide y over a | b y\n"
        "1 store y        | b y"
    )


def test_too_little_memory_names_the_least():
    graph, _, _ = TABLE["matmul 2x2x2"]
    with pytest.raises(InfeasibleError, match="at least 4 red pebbles without sliding") as caught:
        least_io(graph, 3)
    assert caught.value.needed_words == 4


def test_limit():
    graph, _, _ = TABLE["matmul 3x2x2"]
    with pytest.raises(TooLargeError, match="more than limit = 100 states"):
        least_io(graph, 5, limit=100)


PAIR = Cdag(((), (), (0, 1)), (2,))
LOADS = (Move("load", 0), Move("load", 1))


@pytest.mark.parametrize(
    ("moves", "rule"),
    [
        ((Move("load", 2),), "move 1 'load 2': the vertex is not blue"),
        ((Move("store", 0),), "move 1 'store 0': the vertex is not red"),
        ((Move("discard", 0),), "the vertex is not red"),
        ((Move("load", 0), Move("load", 0)), "move 2 .*: the vertex is red already"),
        ((Move("load", 0), Move("compute", 2)), "an operand is not red"),
        ((Move("compute", 0),), "an input is not computed"),
        ((*LOADS, Move("slide", 2, 0)), "sliding is not allowed"),
        ((*LOADS, Move("slide", 2)), "slides from a vertex that is no operand"),
        ((Move("load", 7),), "the graph has 3 vertices"),
        (
            (*LOADS, Move("compute", 2), Move("discard", 2), Move("compute", 2)),
            "the vertex was computed before",
        ),
        ((*LOADS, Move("compute", 2)), "moves 3: end with outputs 2 not stored"),
        ((), "moves 0: end with outputs 2 not stored"),
    ],
)
def test_replay_refuses(moves, rule):
    with pytest.raises(InputError, match=rule):
        replay(PAIR, moves, 3, sliding=moves[-1:] == (Move("slide", 2),), recomputation=False)


def test_replay_counts_pebbles():
    moves = (*LOADS, Move("compute", 2), Move("store", 2))
    assert replay(PAIR, moves, 3) == 3
    with pytest.raises(InputError, match="3 red pebbles where 2 are allowed"):
        replay(PAIR, moves, 2)


def test_bounds_of_layers_are_not_above_the_optimum():
    # Many more in papers/pebbling/table_ratios.py.
    shapes = [
        ConvShape.of((1, 2, 2), (2, 2, 1)),
        ConvShape.of((1, 1, 3), (1, 1, 2), pads=(1, 0)),
        ConvShape.of((1, 1, 2), (1, 1, 3), strides=(2,), transposed=True),
        ConvShape.of((1, 2, 3), (2, 1, 2), group=2),
    ]
    for shape in shapes:
        graph = CHAINS(conv_terms(shape))
        least = least_capacity(graph, sliding=True)
        for capacity in range(least, least + 4):
            words = checked(graph, capacity, sliding=True)
            assert lower_bound(shape, capacity).words <= words
