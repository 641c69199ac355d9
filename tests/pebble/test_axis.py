"""Closed-form counts of one axis against plain enumeration."""

from collections import Counter
from math import ceil, gcd

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pebble.axis import Axis, floor_sum


@st.composite
def axes(draw):
    kernel, stride, dilation = (draw(st.integers(1, 7)) for _ in range(3))
    inputs, outputs = draw(st.integers(1, 14)), draw(st.integers(1, 12))
    return Axis(
        inputs, outputs, kernel, stride, dilation, draw(st.integers(0, 12)), draw(st.booleans())
    )


def triples(axis):
    """(written, tap, read) of every multiply-accumulate, by enumeration."""
    found = []
    for o in range(axis.outputs):
        for k in range(axis.kernel):
            x = axis.stride * o + axis.dilation * k - axis.pad_begin
            if 0 <= x < axis.inputs:
                found.append((x, k, o) if axis.transposed else (o, k, x))
    return found


@settings(max_examples=1500, deadline=None)
@given(axes(), st.data())
def test_counts_of_a_range_equal_enumeration(axis, data):
    begin = data.draw(st.integers(0, axis.written))
    end = data.draw(st.integers(begin, axis.written))
    inside = [t for t in triples(axis) if begin <= t[0] < end]
    assert axis.macs(begin, end) == len(inside)
    assert axis.used_taps(begin, end) == len({k for _, k, _ in inside})
    assert axis.touched(begin, end) == len({r for _, _, r in inside})


@settings(max_examples=1500, deadline=None)
@given(axes())
def test_weighted_macs_equal_enumeration(axis):
    unit = gcd(axis.stride, axis.dilation)
    s, d = axis.stride // unit, axis.dilation // unit
    expected = Counter()
    for written, k, read in triples(axis):
        del written, read
        taps = len(range(k % s, axis.kernel, s))
        expected[min(taps, ceil(axis.outputs / d))] += 1
    got = Counter()
    for count, reuse in axis.weighted_macs():
        got[reuse] += count
    assert +got == expected


@given(st.integers(0, 40), st.integers(1, 30), st.integers(0, 60), st.integers(0, 60))
def test_floor_sum(n, m, a, b):
    assert floor_sum(n, m, a, b) == sum((a * i + b) // m for i in range(n))


@pytest.mark.parametrize("transposed", [False, True])
def test_huge_axes_do_not_loop(transposed):
    axis = Axis(10**9, 10**9 + 2**31, 10**5, 10**5 + 3, 7, 2**31, transposed)
    whole = (0, axis.written)
    # Every triple has one tap, one read and one written position: projections never exceed it.
    assert 0 < axis.touched(*whole) <= axis.macs(*whole)
    assert axis.used_taps(*whole) == 10**5
    assert sum(count for count, _ in axis.weighted_macs()) == axis.macs(*whole)


def test_a_pad_of_two_to_the_31_leaves_the_macs_of_the_image():
    # Stride 1: each of the 10**9 pixels meets each of the 3 taps in exactly one output.
    pad = 2**31
    axis = Axis(10**9, 10**9 + 2 * pad - 2, 3, 1, 1, pad)
    assert axis.macs(0, axis.outputs) == 3 * 10**9
    assert axis.touched(0, axis.outputs) == 10**9


def test_a_stride_beyond_64_bits():
    axis = Axis(8, 1, 3, 4634247419717959497, 1, 1)
    assert (axis.macs(0, 1), axis.touched(0, 1), axis.used_taps(0, 1)) == (2, 2, 2)
