"""Bounds against a table of recomputed values, brute force, and exact pebbling."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from shapes import conv_shapes

from pebble import ConvShape, InputError
from pebble.bounds import lower_bound
from pebble.cdag import Cdag, conv_terms
from pebble.game import least_io
from tiling import optimise

# Shapes (N, Ci, Co, side, kernel, stride, pad, dilation, group), capacity, then G, |I|, |F|, |O|,
# G_w, the bounds compulsory, loomis-whitney (real value, rounded), segments on a coarser grid,
# pairs, the formula of Zhang et al., and the words of a schedule found by exhaustive search.
# Recomputed for this project by an independent script that loops over all triples of each axis.
TABLE = {
    "alexnet1": (1, 3, 96, 227, 11, 4, 0, 1, 1, 8192, 105415200, 154587, 34848, 290400,
                 38068772.783, 479835, 824825, 840400, 20761, 66521, 1356675),
    "vgg-a": (1, 128, 256, 56, 3, 1, 1, 1, 1, 4096, 902955008, 401408, 294912, 802816,
              300985002.667, 1499136, 9397589, 9404118, 491912, 846267, 12409856),
    "vgg-b": (1, 128, 256, 56, 3, 1, 1, 1, 1, 24576, 902955008, 401408, 294912, 802816,
              300985002.667, 1499136, 3790742, 3831075, 58092, 322772, 5244928),
    "res1x1": (1, 64, 256, 56, 1, 1, 0, 1, 1, 4096, 51380224, 200704, 16384, 802816,
               51380224, 1019904, 1597440, 1605120, 24128, 136327, 1822720),
    "res1x1s2": (1, 256, 512, 56, 1, 2, 0, 1, 1, 1024, 102760448, 200704, 131072, 401408,
                 102760448, 733184, 6420480, 6421586, 224768, 1119735, 7081984),
    "stem": (1, 3, 64, 224, 7, 2, 3, 1, 1, 12288, 116214528, 150528, 9408, 802816,
             33040909.220, 962752, 571555, 670082, 8992, 41276, 1021237),
    "dil2": (1, 256, 256, 28, 3, 1, 2, 2, 1, 4096, 419430400, 200704, 589824, 200704,
             139810133.333, 991232, 4360875, 4367616, 226304, 421178, 6230016),
    "s2d2": (1, 64, 64, 56, 3, 2, 2, 2, 1, 2048, 27541504, 50176, 36864, 50176,
             9180501.333, 137216, 401629, 405168, 28210, 72955, 578560),
    "depthw": (1, 256, 256, 28, 3, 1, 1, 1, 256, 2048, 1721344, 200704, 2304, 200704,
               573781.333, 403712, 21262, 24906, 0, 170, 403712),
    "res5": (8, 512, 512, 7, 3, 1, 1, 1, 1, 12288, 757071872, 200704, 2359296, 200704,
             252357290.667, 2760704, 4528504, 4551120, 126336, 479020, 6172672),
    "group4": (1, 128, 128, 14, 3, 1, 1, 1, 4, 512, 6553600, 25088, 36864, 25088,
               2184533.333, 87040, 192063, 192962, 28288, 18223, 303616),
    "tiny": (1, 16, 16, 8, 3, 1, 1, 1, 1, 64, 123904, 1024, 2304, 1024,
             41301.333, 4352, 10197, 10318, 4292, 1010, 23040),
}  # fmt: skip


def row(name):
    n, ci, co, side, k, s, p, d, g, capacity, *values = TABLE[name]
    shape = ConvShape.of(
        (n, ci, side, side),
        (co, ci // g, k, k),
        strides=(s, s),
        pads=(p,) * 4,
        dilations=(d, d),
        group=g,
    )
    return shape, capacity, values


def near(words, value):
    """Words is the value rounded up, where the table rounds to the nearest."""
    return value - 1 <= words <= value + 1


@pytest.mark.parametrize("name", TABLE)
def test_table(name):
    shape, capacity, values = row(name)
    macs, i, f, o, weighted, compulsory, lw, segments, pairs, paper, schedule = values
    assert (shape.macs, shape.input_words, shape.weight_words) == (macs, i, f)
    assert shape.output_words == o
    g_w = sum(count / reuse**0.5 for count, reuse in shape.weighted_macs)
    assert g_w == pytest.approx(weighted, rel=1e-9, abs=1e-3)
    found = {b.name: b for b in lower_bound(shape, capacity).bounds}
    assert found["compulsory"].words == compulsory
    assert near(found["loomis-whitney"].words, lw)
    assert near(found["pairs"].words, pairs)
    assert near(found["zhang-xiao-tan"].words, paper)
    # The best segment length depends on the grid; any is valid.
    assert max(segments * 0.999, lw - 1) <= found["segments"].words <= schedule
    assert lower_bound(shape, capacity).words <= schedule


@pytest.mark.parametrize("name", TABLE)
def test_tilings_reach_the_best_known_schedule_of_the_family(name):
    shape, capacity, values = row(name)
    assert optimise(shape, capacity).traffic.words <= values[-1]


def test_vgg_by_hand():
    # Per axis 54 outputs see 3 taps and 2 see 2, over sqrt(3): G_w = G / 3.
    shape, capacity, _ = row("vgg-a")
    assert shape.macs == 128 * 256 * (54 * 3 + 2 * 2) ** 2
    (bound,) = [b for b in lower_bound(shape, capacity).bounds if b.name == "loomis-whitney"]
    assert bound.words == -(-2 * shape.macs // (3 * 64)) - 8192


def test_published_forms_never_decide():
    # 1x1 with stride 2: kernel / stride = 1/4 would double the bound beyond an attained schedule.
    shape, capacity, values = row("res1x1s2")
    found = {b.name: b for b in lower_bound(shape, capacity).bounds}
    assert not found["zhang-xiao-tan"].valid
    assert found["demmel-dinh"].asymptotic and not found["demmel-dinh"].valid
    wrong = 2 * shape.macs / (0.25 * capacity) ** 0.5 - 2 * capacity
    assert lower_bound(shape, capacity).words <= values[-1] < wrong


@given(conv_shapes(), st.integers(1, 2000))
@settings(max_examples=150, deadline=None)
def test_deciding_bound_is_the_largest_valid_one(shape, capacity):
    result = lower_bound(shape, capacity)
    assert result.words == max(b.words for b in result.bounds if b.valid)
    assert result.binding not in ("demmel-dinh",)
    more = lower_bound(shape, capacity + 1 + capacity // 3)
    assert more.words <= result.words * 1.02 + 2  # grids differ; the truth never rises


def test_capacity_below_one_word_is_refused():
    with pytest.raises(InputError, match="capacity 0: must be at least 1 word"):
        lower_bound(row("tiny")[0], 0)


# --- exact pebbling: Q*(S) by search, on fused multiply-accumulate chains -------------------------

CONV = [
    # outputs, kernel, stride, Ci, Co, {S: least I/O without sliding}
    (3, 2, 1, 1, 1, {4: 11, 5: 9, 6: 9}),
    (3, 2, 2, 1, 1, {4: 13, 5: 11, 6: 11}),
    (4, 3, 1, 1, 1, {6: 14, 8: 13}),
]


@pytest.mark.parametrize(("outputs", "kernel", "stride", "ci", "co", "least"), CONV)
def test_bound_is_not_above_the_exact_optimum(outputs, kernel, stride, ci, co, least):
    shape = ConvShape.of(
        (1, ci, (outputs - 1) * stride + kernel), (co, ci, kernel), strides=(stride,)
    )
    graph = Cdag.mac_chains(conv_terms(shape))
    for capacity, words in least.items():
        assert least_io(graph, capacity).words == words
        assert lower_bound(shape, capacity).words <= words


def test_bound_is_not_above_the_exact_optimum_of_a_matrix_product():
    # 2x2x2 as a 1x1 convolution: two positions, two input and two output channels.
    shape = ConvShape.of((1, 2, 2), (2, 2, 1))
    graph = Cdag.mac_chains(conv_terms(shape))
    for capacity, words in {4: 17, 5: 14, 6: 13, 8: 12}.items():
        assert least_io(graph, capacity).words == words
        assert lower_bound(shape, capacity).words <= words
