"""The tile program against its closed form."""

from math import log

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pebble import ConvShape, InputError, LoopNest
from tiling.loglp import LogProgram, lifted_nest, solve


def closed_form(b, c, k, w, h, r, s, sw, sh, m):
    """Words of the program: five terms of Demmel and Dinh, with W, H as limits, and M."""
    n = b * c * k * w * h * r * s
    reuse = min(max(r / sw, 1), w) * min(max(s / sh, 1), h)
    image = b * c * max(w, r / sw) * min(r, sw) * max(h, s / sh) * min(s, sh)
    return max(b * k * w * h, image, c * k * r * s, n / m, n / (m * reuse) ** 0.5, m)


def shape(b, c, k, w, h, r, s, sw, sh):
    return ConvShape.of((b, c, (h - 1) * sh + s, (w - 1) * sw + r), (k, c, s, r), strides=(sh, sw))


# (B, C, K, W, H, R, S, stride_W, stride_H, M) -> exponent, words; recomputed with HiGHS and with
# the closed form.
ROWS = {
    "alexnet1": ((1, 3, 96, 55, 55, 11, 11, 4, 4, 8192), 1.612264, 423521.6),
    "vgg3x3": ((1, 128, 256, 56, 56, 3, 3, 1, 1, 4096), 1.632080, 4816896.0),
    "res1x1": ((1, 64, 256, 56, 56, 1, 1, 1, 1, 4096), 1.5, 802816.0),
    "1x1s2": ((1, 256, 512, 28, 28, 1, 1, 2, 2, 1024), 1.5, 3211264.0),
    "stem": ((1, 3, 64, 112, 112, 7, 7, 2, 2, 12288), 1.529974, 802816.0),
    "one column": ((508, 6, 307, 960, 1, 6, 11, 1, 1, 149), 1.679035, 1982895135.4),
}


@pytest.mark.parametrize("name", ROWS)
def test_known_rows(name):
    (*sizes, capacity), exponent, words = ROWS[name]
    solution = solve(shape(*sizes), capacity)
    assert solution.exponent == pytest.approx(exponent, abs=1e-6)
    assert solution.words == pytest.approx(words, rel=1e-6)


def test_binding_rows():
    # A 3x3 layer is bound by all three arrays, each at 1/2, and by the small filter.
    found = solve(shape(*ROWS["vgg3x3"][0][:-1]), 4096)
    assert found.binding == ("input", "weight", "output", "extent of q_h", "extent of q_w")
    assert {str(v) for _, v in found.duals} == {"1/2"}


sides = st.integers(1, 12)


@settings(max_examples=150, deadline=None)
@given(
    st.tuples(
        st.integers(1, 600), st.integers(1, 600), st.integers(1, 600), st.integers(1, 1000),
        st.integers(1, 1000), sides, sides, st.integers(1, 6), st.integers(1, 6),
        st.integers(2, 10**6),
    )
)  # fmt: skip
def test_program_equals_its_closed_form(sizes):
    *shape_sizes, capacity = sizes
    solution = solve(shape(*shape_sizes), capacity)
    assert solution.words == pytest.approx(closed_form(*sizes), rel=1e-6)
    # The exact dual certifies the tile: M**sum(s) * product(extent**z) is its iterations.
    nest = dict(lifted_nest(shape(*shape_sizes)).loops)
    logs = {f"extent of {loop}": log(extent) for loop, extent in nest.items()}
    value = sum(float(v) * logs.get(name, log(capacity)) for name, v in solution.duals)
    assert value == pytest.approx(solution.exponent * log(capacity), abs=1e-6)


def test_matrix_product():
    nest = LoopNest.projective(
        {"i": 1000, "j": 1000, "k": 1000}, {"A": "ik", "B": "kj", "C": "ij"}, written="C"
    )
    solution = LogProgram.of(nest, 10_000).solve()
    assert solution.exponent == pytest.approx(1.5)
    assert solution.words == pytest.approx(1000**3 / 100)
    assert dict(solution.tile)["i"] == pytest.approx(100)


def test_a_strided_subscript_is_not_accepted():
    nest = ConvShape.of((1, 1, 9), (1, 1, 3), strides=(2,)).nest()
    with pytest.raises(InputError, match="coefficient other than 1"):
        LogProgram.of(nest, 64)


def test_one_word_has_no_logarithm():
    with pytest.raises(InputError, match="capacity 1: must be at least 2 words"):
        solve(ConvShape.of((1, 1, 9), (1, 1, 3)), 1)


def test_a_wrong_answer_is_caught(monkeypatch):
    import scipy.optimize

    from pebble import SolverError

    right = scipy.optimize.linprog

    def too_large(*args, **kwargs):
        found = right(*args, **kwargs)
        found.x = found.x + 1
        return found

    def no_dual(*args, **kwargs):
        found = right(*args, **kwargs)
        found.ineqlin.marginals = found.ineqlin.marginals * 0
        return found

    layer = ConvShape.of((1, 64, 58, 58), (64, 64, 3, 3))
    monkeypatch.setattr(scipy.optimize, "linprog", too_large)
    with pytest.raises(SolverError, match="overflows"):
        solve(layer, 4096)
    monkeypatch.setattr(scipy.optimize, "linprog", no_dual)
    with pytest.raises(SolverError, match="covered 0 < 1"):
        solve(layer, 4096)
