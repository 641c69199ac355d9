"""Exponents against closed forms, the inequality itself on random sets and random subspaces."""

from fractions import Fraction
from math import prod

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from nests import affine_nests, touched

from pebble import Access, Affine, ConvShape, InputError, LoopNest, UndecidedError
from pebble.projections import (
    Part,
    hbl_exponents,
    lifted,
    limited_exponents,
    projections,
)
from pebble.rational import echelon, null_space

HALF, THIRD = Fraction(1, 2), Fraction(1, 3)

# Closed forms: a contraction whose loops split in three groups, each missing from one array, is a
# matrix product (Loomis and Whitney 1949); the rest from their linear programs, solved by hand:
# each loop's exponents add up to at least 1.
EINSUMS = {
    "ij,jk->ik": {"A": HALF, "B": HALF, "C": HALF},
    "abef,efcd->abcd": {"A": HALF, "B": HALF, "C": HALF},
    "aebf,dfce->abcd": {"A": HALF, "B": HALF, "C": HALF},
    "ijk,jr,kr->ir": {"A": 2 * THIRD, "B": THIRD, "C": THIRD, "D": THIRD},  # MTTKRP
    "ij,j->i": {"A": Fraction(1)},
    "i,j->ij": {"C": Fraction(1)},
    "ij,ik,jk->i": {"A": HALF, "B": HALF, "C": HALF},  # i, j, k: any two operands fix the point
    "i,j,k->ijk": {"D": Fraction(1)},
}


@pytest.mark.parametrize("einsum", EINSUMS)
def test_contractions(einsum):
    letters = set(einsum) - set(",->")
    nest = LoopNest.from_einsum(einsum, dict.fromkeys(letters, 10))
    assert hbl_exponents(nest) == EINSUMS[einsum]


def test_n_body():
    # s_F + s_x >= 1 for loop i and s_y >= 1 for loop j: total 2, F and x share evenly.
    nest = LoopNest.projective({"i": 50, "j": 50}, {"F": "i", "x": "i", "y": "j"}, written="F")
    assert hbl_exponents(nest) == {"F": HALF, "x": HALF, "y": Fraction(1)}


CONVOLUTIONS = [
    (ConvShape.of((2, 8, 20), (8, 8, 3)), ("kw",), None),
    (ConvShape.of((2, 8, 20, 20), (8, 8, 3, 5)), ("kh", "kw"), None),
    (ConvShape.of((2, 8, 9, 9, 9), (8, 8, 3, 3, 3)), ("kd", "kh", "kw"), None),
    (ConvShape.of((1, 8, 40, 40), (8, 8, 7, 7), strides=(2, 2)), ("kh", "kw"), (2, 2)),
    (
        ConvShape.of((1, 8, 40, 40), (8, 4, 7, 7), strides=(4, 2), dilations=(2, 3), group=2),
        ("kh", "kw"),
        (2, 2),
    ),
]


@pytest.mark.parametrize("shape, taps, steps", CONVOLUTIONS)
def test_convolution(shape, taps, steps):
    """The vertex set is sum 2; short filters give (1/2, 1/2, 1/2) and the root of their taps.

    Source: Demmel and Dinh 2018 for both; stride and dilation enter by their reduced ratio.
    """
    nest = shape.nest()
    names = ("input", "weight", "output")
    assert hbl_exponents(nest) == dict.fromkeys(names, 2 * THIRD)
    split = lifted(nest)
    assert (split is None) == (steps is None)
    found = limited_exponents(projections(nest) if split is None else split)
    assert [e.total for e in found] == [2, Fraction(3, 2)]
    assert found[0].limits == ()
    assert dict(found[1].arrays) == dict.fromkeys(names, HALF)
    expected = {Part(t, s) for t, s in zip(taps, steps or (1,) * len(taps), strict=True)}
    assert dict(found[1].limits) == dict.fromkeys(expected, HALF)


def test_references_to_one_array_share_their_words():
    # C[i,j] += A[i,k] * A[j,k] may read one set of words through both references.
    one = {x: Affine.of({x: 1}) for x in "ijk"}
    nest = LoopNest(
        (("i", 9), ("j", 9), ("k", 9)),
        (
            Access("C", (one["i"], one["j"]), written=True),
            Access("A", (one["i"], one["k"])),
            Access("A", (one["j"], one["k"])),
        ),
    )
    assert hbl_exponents(nest) == {"C": HALF, "A": Fraction(1)}


def test_errors():
    constant = LoopNest((("i", 4),), (Access("A", (Affine.of({}),), written=True),))
    with pytest.raises(InputError, match="touch the same elements"):
        hbl_exponents(constant)
    real = LoopNest((("i", Fraction(3, 2)),), (Access("A", (Affine.of({"i": 1}),)),))
    with pytest.raises(InputError, match="must be an integer"):
        projections(real)


# --- the inequality ------------------------------------------------------------------------------


def all_exponents(nest):
    """(exponents, whether extents limit them) of everything that the module derives."""
    for found in (projections(nest), lifted(nest)):
        if found is not None:
            try:
                yield from limited_exponents(found)
            except UndecidedError:
                assume(False)


@settings(max_examples=150, deadline=None)
@given(affine_nests(), st.data())
def test_no_set_breaks_the_inequality(nest, data):
    points = [
        dict(zip((n for n, _ in nest.loops), values, strict=True))
        for values in data.draw(
            st.lists(
                st.tuples(*(st.integers(0, extent - 1) for _, extent in nest.loops)),
                min_size=1,
                max_size=60,
                unique=True,
            )
        )
    ]
    words = {name: len(elements) for name, elements in touched(nest, points).items()}
    extents = dict(nest.loops)
    for found in all_exponents(nest):
        allowed = prod(words[name] ** float(s) for name, s in found.arrays)
        allowed *= prod(p.extent(extents[p.loop]) ** float(z) for p, z in found.limits)
        assert len(points) <= allowed * (1 + 1e-9)


def test_a_subspace_that_only_meets_of_kernels_show():
    # The k axis lies in two coordinate planes and in no kernel. Without its condition the exponents
    # of a matrix product with the limits i and j would be allowed: 2 * 2 * 10 for the 100 points of
    # that axis.
    one = {x: Affine.of({x: 1}) for x in "pqr"}
    skew = (Affine.of({"i": 1, "k": 1}), Affine.of({"j": 1, "k": 1}))
    nest = LoopNest(
        (("i", 2), ("j", 2), ("k", 100), ("p", 1000), ("q", 1000), ("r", 1000)),
        (
            Access("A", (*skew, one["p"], one["q"])),
            Access("B", (one["q"], one["r"])),
            Access("C", (one["p"], one["r"]), written=True),
        ),
    )
    found = limited_exponents(projections(nest))
    assert HALF in {dict(e.arrays)["A"] for e in found}
    assert breaches(nest, [[0, 0, 1, 0, 0, 0]]) == []


WIDE = affine_nests(extent=st.sampled_from([2, 3, 8, 100]), projective=False)


@settings(max_examples=60, deadline=None)
@given(WIDE, st.data())
def test_every_subspace_satisfies_the_condition(nest, data):
    """The lattice stands for all subspaces: drawn ones, of any rank, satisfy the condition too."""
    found = projections(nest)
    width = len(found.parts)
    kernels = [v for _, rows in found.maps for v in null_space(rows, width)]
    axes = null_space([], width)
    vectors = st.sampled_from([*kernels, *axes]) | st.lists(
        st.integers(-3, 3), min_size=width, max_size=width
    )
    for _ in range(5):
        subspace = data.draw(st.lists(vectors, min_size=1, max_size=width))
        assert breaches(nest, subspace) == []


def breaches(nest, vectors):
    """Derived exponents whose rank condition fails on the span of these vectors."""
    found = projections(nest)
    subspace = echelon(vectors)
    ranks = {name: image_rank(rows, subspace) for name, rows in found.maps}
    seen = {part for k, part in enumerate(found.parts) if any(v[k] for v in subspace)}
    try:
        exponents = limited_exponents(found)
    except UndecidedError:
        assume(False)
    return [
        chosen
        for chosen in exponents
        if len(subspace)
        > sum(ranks[name] * s for name, s in chosen.arrays)
        + sum(z for part, z in chosen.limits if part in seen)
    ]


def image_rank(rows, subspace):
    images = [[sum(a * x for a, x in zip(row, v, strict=True)) for row in rows] for v in subspace]
    return len(echelon(images))
