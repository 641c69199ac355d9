from itertools import product

import pytest
from hypothesis import given, settings
from shapes import conv_shapes

from pebble import Access, Affine, InputError, LoopNest, NotAffineError


@settings(max_examples=60, deadline=None)
@given(conv_shapes(most_channels=3, most_size=4))
def test_nest_of_a_shape_touches_what_the_shape_counts(shape):
    nest = shape.nest()
    names = [name for name, _ in nest.loops]
    arrays = {a.array: a for a in nest.accesses}
    limits = shape.output_spatial if shape.transposed else shape.spatial
    window = arrays["output" if shape.transposed else "input"]
    touched = {name: set() for name in arrays}
    macs = 0
    for values in product(*(range(extent) for _, extent in nest.loops)):
        point = dict(zip(names, values, strict=True))
        pixel = [s.at(point) for s in window.subscripts[2:]]
        if all(0 <= x < limit for x, limit in zip(pixel, limits, strict=True)):
            macs += 1
            for name, access in arrays.items():
                touched[name].add(tuple(s.at(point) for s in access.subscripts))
    assert macs == shape.macs
    assert len(touched["input"]) == shape.input_words
    assert len(touched["weight"]) == shape.weight_words
    assert nest.points == shape.macs_dense


def test_errors():
    with pytest.raises(NotAffineError, match=r"coefficient 0\.5 of loop 'i'"):
        Affine.of({"i": 0.5})
    with pytest.raises(InputError, match="extent of loop i 0: must be positive"):
        LoopNest((("i", 0),), ())
    with pytest.raises(InputError, match="use loops \\['j'\\]"):
        LoopNest((("i", 2),), (Access("A", (Affine.of({"j": 1}),)),))
    with pytest.raises(InputError, match="more than once"):
        LoopNest((("i", 2), ("i", 3)), ())


def test_printing():
    assert str(Affine.of({"o": 2, "k": 1, "z": 0}, -3)) == "k + 2*o - 3"


def test_einsum():
    nest = LoopNest.from_einsum("ii, ij -> j", {"i": 2, "j": 3})
    assert str(nest) == "for i < 2, j < 3: C[j] += A[i, i] * B[i, j]"
    scalar = LoopNest.from_einsum("i,i->", {"i": 2})
    assert str(scalar) == "for i < 2: C[] += A[i] * B[i]"


@pytest.mark.parametrize(
    "einsum, extents, message",
    [
        ("ij,jk", {}, "must hold one '->'"),
        ("i->i->i", {"i": 2}, "must hold one '->'"),
        ("i...->i", {"i": 2}, "'.' is no letter"),
        ("i->ij", {"i": 2}, "no operand has the output's 'j'"),
        ("ij->ii", {"i": 2, "j": 2}, "the output repeats 'i'"),
        ("ij->i", {"i": 2}, "must name each of i, j"),
        ("i->i", {"i": 2, "j": 2}, "must name each of i, and no other"),
        ("i->i", {"i": 0}, "extent of loop i 0: must be positive"),
        (",".join("i" * 26) + "->i", {"i": 2}, "over 25 operands"),
    ],
)
def test_einsum_errors(einsum, extents, message):
    with pytest.raises(InputError, match=message):
        LoopNest.from_einsum(einsum, extents)
