"""Symbolic bounds against the numeric ones, by substituting integer sizes."""

from math import ceil

import pytest
import sympy
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from shapes import conv_shapes

from pebble import ConvShape, InputError
from pebble.bounds import lower_bound
from pebble.symbolic import expressions, formulas, substitution, symbols


def words(expression, capacity, rank):
    value = sympy.N(expression.subs(symbols(rank).capacity, capacity), 40)
    return max(ceil(value - sympy.Rational(1, 10**20)), 0)


@settings(max_examples=40, deadline=None)
@given(conv_shapes(), st.integers(1, 200))
def test_expressions_hold_for_any_shape(shape, capacity):
    numeric = {b.name: b.words for b in lower_bound(shape, capacity).bounds}
    for name, expression in expressions(shape).items():
        assert words(expression, capacity, shape.rank) == numeric[name], name


@settings(max_examples=8, deadline=None)
@given(conv_shapes(), st.integers(1, 200))
def test_formulas_hold_without_padding_and_dilation(shape, capacity):
    shape = (
        ConvShape.of(
            shape.input_shape,
            (shape.out_channels, shape.group_in_channels, *(min(k, 3) for k in shape.kernel)),
            strides=shape.strides,
            group=shape.group,
        )
        if all(size >= 3 for size in shape.spatial)
        else None
    )
    assume(shape is not None)
    assume(all(a.outputs >= -(-a.kernel // a.stride) for a in shape.axes))
    numeric = {b.name: b.words for b in lower_bound(shape, capacity).bounds}
    for name, expression in formulas(shape.rank).items():
        value = words(expression.subs(substitution(shape)), capacity, shape.rank)
        assert value == pytest.approx(numeric[name], abs=1), name


def test_the_paper_leads_with_a_constant_8_sqrt_2_below():
    v, f = symbols(2), formulas(2)
    m = v.capacity
    s3 = dict.fromkeys(v.kernel, 3) | dict.fromkeys(v.strides, 1)
    ours = f["loomis-whitney"].subs(s3)
    theirs = f["zhang-xiao-tan"].subs(s3)
    # Let the channels grow: the ratio of the leading terms, exactly. A product and a sum are two
    # vertices, so that the printed |V| is twice the multiply-accumulates.
    ratio = sympy.limit(sympy.expand(ours / v.in_channels), v.in_channels, sympy.oo) / sympy.limit(
        sympy.expand(theirs / v.in_channels), v.in_channels, sympy.oo
    )
    at_infinity = sympy.limit(ratio, m, sympy.oo)
    assert sympy.simplify(at_infinity - 8 * sympy.sqrt(2)) == 0


def test_latex_and_errors():
    assert r"\sqrt{M}" in sympy.latex(formulas(2)["loomis-whitney"])
    with pytest.raises(InputError, match="rank 4: must be 1, 2 or 3"):
        formulas(4)


def test_b12_b14_sizes_are_positive_integers():
    # SymPy keeps floor(x) + ceiling(-x) and sqrt(M**2) as they are unless it knows the signs; the
    # tests here compare values at integers, never forms.
    m = symbols(2).capacity
    assert sympy.sqrt(m**2) == m
    assert (sympy.floor(m / 2) + sympy.ceiling(-m / 2)).subs(m, 7) == 0
    for expression in formulas(2).values():
        assert all(s.is_positive and s.is_integer for s in expression.free_symbols)


def test_b13_no_float_in_a_formula():
    for rank in (1, 2, 3):
        for expression in formulas(rank).values():
            assert not expression.atoms(sympy.Float)
