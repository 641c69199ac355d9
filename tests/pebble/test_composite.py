"""The composite engine against the printed formula, and its refusals."""

import pytest
import sympy

from pebble import ConvShape, InputError, UndecidedError
from pebble.bounds import lower_bound
from pebble.composite import Composite, Step, capacity, direct_convolution, dominators

K, S = dominators(), capacity()


def same(left, right):
    return sympy.simplify(left - right) == 0


def sizes(composite):
    return {str(symbol): symbol for symbol in composite.bound().free_symbols}


def test_direct_convolution_is_the_printed_formula():
    # Zhang, Xiao and Tan 2021: T(S) = 4 S sqrt(R S) + S - 1.
    composite = direct_convolution()
    v = sizes(composite)
    reuse = v["R"]
    assert same(composite.largest_part(), 4 * S * sympy.sqrt(reuse * S) + S - 1)
    vertices = (2 * v["K_taps"] * v["C"] - 1) * v["O"]
    part = 8 * sympy.sqrt(2) * S * sympy.sqrt(reuse * S) + 2 * S - 1
    assert same(composite.bound(), S * (vertices / part - 1))
    assert same(composite.leading_term(), vertices / (8 * sympy.sqrt(2) * sympy.sqrt(reuse * S)))


def test_direct_convolution_in_numbers():
    shape = ConvShape.of((1, 64, 32, 32), (128, 64, 3, 3))
    composite = direct_convolution()
    v = sizes(composite)
    value = composite.bound().subs(
        {v["R"]: 9, v["K_taps"]: 9, v["C"]: 64, v["O"]: 128 * 30 * 30, S: 512}
    )
    (printed,) = [b for b in lower_bound(shape, 512).bounds if b.name == "zhang-xiao-tan"]
    assert printed.words == pytest.approx(float(value), abs=1.01)


def test_a_step_of_ones_own():
    # One step whose parts grow with the root of their dominators: T(S) = S + S**2 / 2.
    part = S * sympy.sqrt(S * K) / 2
    found = Composite("own", (Step("only", part),), sympy.Symbol("V", positive=True))
    assert same(found.largest_part(), S + S**2 / 2)


def test_all_dominators_go_to_the_last_step_where_that_is_best():
    steps = (Step("slow", sympy.Integer(0), sympy.Integer(0)), Step("fast", 3 * K))
    found = Composite("late", steps, sympy.Symbol("V", positive=True))
    assert same(found.largest_part(), 4 * S)


@pytest.mark.parametrize(
    ("steps", "least", "parts"),
    [
        ((Step("pairs", K**2 / 4),), (), ["may be convex", "1/2 <= 0"]),
        ((Step("shrinking", -K),), (), ["may fall", "-1 >= 0"]),
        # Two equal roots share best: no step takes all.
        (
            (Step("a", sympy.sqrt(K)), Step("b", sympy.sqrt(K))),
            (),
            ["giving all dominators to one step", "oo"],
        ),
    ],
)
def test_what_cannot_be_decided_is_named(steps, least, parts):
    with pytest.raises(UndecidedError) as caught:
        Composite("doubtful", steps, sympy.Integer(1), least).largest_part()
    for part in parts:
        assert part in str(caught.value)


def test_signs_that_depend_on_a_size_need_its_least_value():
    known = direct_convolution()
    unknown = Composite(known.name, known.steps, known.total)
    with pytest.raises(UndecidedError, match="giving all dominators to one step"):
        unknown.largest_part()


def test_no_steps():
    with pytest.raises(InputError, match="must hold at least one step"):
        Composite("empty", (), sympy.Integer(1)).largest_part()
