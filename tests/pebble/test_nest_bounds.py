"""Bounds of nests: closed forms, the convolution's bounds, explicit schedules, exact pebbling."""

from itertools import permutations, product

import pytest
import sympy
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from nests import affine_nests, points_in, schedule_traffic, touched

from pebble import Access, Affine, ConvShape, InputError, LoopNest, UndecidedError
from pebble.bounds import compulsory, loomis_whitney, pairs
from pebble.cdag import Cdag, nest_terms
from pebble.game import least_capacity, least_io
from pebble.nest_bounds import EqualWorkBound, SegmentBound, nest_bounds, nest_lower_bound

M = sympy.Symbol("M", integer=True, positive=True)


def extents(names):
    return [sympy.Symbol(f"L_{name}", integer=True, positive=True) for name in names]


def by_segments(nest):
    return [bound for bound in nest_bounds(nest) if isinstance(bound, SegmentBound)]


def test_matrix_product():
    compulsory_bound, segments, equal_work = nest_bounds(
        LoopNest.from_einsum("ij,jk->ik", {"i": 300, "j": 200, "k": 100})
    )
    i, j, k = extents("ijk")
    assert sympy.expand(compulsory_bound.expression - (i * j + j * k + i * k)) == 0
    assert sympy.simplify(segments.expression - (2 * i * j * k / sympy.sqrt(M) - 2 * M)) == 0
    assert segments.leading == 2 * i * j * k / sympy.sqrt(M)
    assert segments.validity.startswith("every M; all extents")
    assert segments.latex() == r"Q \ge \frac{2 L_{i} L_{j} L_{k}}{\sqrt{M}} - 2 M"
    assert segments.words(100) == 2 * 300 * 200 * 100 // 10 - 200
    # n runs of work i*j*k/n, each on three operands of (i*j*k/n)**(2/3) words.
    n = sympy.Symbol("n", integer=True, positive=True)
    runs = 3 * n * (i * j * k / n) ** sympy.Rational(2, 3) - (n - 1) * M
    assert sympy.simplify(equal_work.expression - runs) == 0
    assert equal_work.leading == segments.leading
    # At n = i*j*k / M**(3/2) runs a cube of M**(1/2) each: the leading term and M.
    assert equal_work.words(100) == 2 * 300 * 200 * 100 // 10 + 100


@pytest.mark.parametrize(
    "einsum, leading, rest",
    [
        # The formula of the module at sigma = 5/3: (2/3)**(2/3) * (3/2)**(2/3) * 3 = 3.
        ("ijk,jr,kr->ir", lambda i, j, k, r: 3 * i * j * k * r / M ** sympy.Rational(2, 3), 1.5),
        ("ijr,jk->ikr", lambda i, j, r, k: 2 * i * j * k * r / sympy.sqrt(M), 2),
    ],
)
def test_contractions(einsum, leading, rest):
    letters = dict.fromkeys(x for x in einsum if x.isalpha())
    (bound,) = by_segments(LoopNest.from_einsum(einsum, dict.fromkeys(letters, 100)))
    assert sympy.simplify(bound.leading - leading(*extents(letters))) == 0
    assert sympy.simplify(bound.leading - bound.expression - sympy.Rational(rest) * M) == 0


def test_n_body():
    # |E| <= (F*x)**(1/2) * y is largest on K words at F = x = K/4, y = K/2: K**2 / 8, K = 2*M.
    nest = LoopNest.projective({"i": 500, "j": 400}, {"F": "i", "x": "i", "y": "j"}, written="F")
    i, j = extents("ij")
    assert sympy.simplify(by_segments(nest)[0].expression - (2 * i * j / M - M)) == 0


def test_matrix_vector_is_compulsory():
    (only,) = nest_bounds(LoopNest.from_einsum("ij,j->i", {"i": 30, "j": 40}))
    assert only.words(1) == 30 * 40 + 40 + 30


def test_short_loops():
    # k = 2 is too short for the cube: from some capacity on each word moves once.
    nest = LoopNest.from_einsum("ij,jk->ik", {"i": 1000, "j": 1000, "k": 2})
    only_once = nest_bounds(nest)[0]
    assert only_once.words(1) == 1_000_000 + 4000
    assert nest_lower_bound(nest, 10_000) == only_once.words(10_000)
    assert nest_lower_bound(nest, 3) > only_once.words(3)


@pytest.mark.parametrize("capacity", [1, 3, 4, 10, 50, 200])
@pytest.mark.parametrize("einsum", ["ij,jk->ik", "ijk,jr,kr->ir", "ij,ik->i"])
def test_the_best_number_of_runs_is_chosen(einsum, capacity):
    nest = LoopNest.from_einsum(einsum, dict.fromkeys(set(einsum) - set(",->"), 6))
    n = sympy.Symbol("n", integer=True, positive=True)
    values = dict.fromkeys(extents("ijkr"), 6) | {M: capacity}
    for bound in nest_bounds(nest):
        if isinstance(bound, EqualWorkBound):
            for runs in sympy.divisors(nest.points):
                exact = float(bound.expression.subs(values | {n: runs}))
                assert exact * (1 - 1e-6) <= bound.words(capacity)


# --- convolutions -------------------------------------------------------------------------------

# Without padding and dilation; strides that divide the kernel, where the reuse is the same for all
# taps: there pebble.bounds has the same closed forms, proved for convolutions alone.
SHAPES = [
    ConvShape.of((1, 64, 56, 56), (256, 64, 1, 1)),
    ConvShape.of((2, 256, 56, 56), (512, 256, 1, 1), strides=(2, 2)),
    ConvShape.of((1, 128, 58, 58), (256, 128, 3, 3)),
    ConvShape.of((1, 32, 60, 60), (64, 32, 4, 6), strides=(2, 3)),
    ConvShape.of((1, 32, 60, 60), (64, 8, 4, 4), strides=(2, 1), group=4),
    ConvShape.of((3, 16, 100), (64, 16, 5)),
    ConvShape.of((1, 8, 20, 20, 20), (8, 8, 3, 3, 3)),
]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("capacity", [5, 64, 1000, 16384])
def test_convolutions_equal_their_own_bounds(shape, capacity):
    nest = shape.nest()
    found = {bound.words(capacity) for bound in by_segments(nest)}
    assert nest_bounds(nest)[0].words(capacity) == compulsory(shape, capacity).words
    theorems = [loomis_whitney]
    if any(k > s for k, s in zip(shape.kernel, shape.strides, strict=True)):
        theorems.append(pairs)
    for theorem in theorems:
        words = theorem(shape, capacity).words
        # Floating point is rounded down by 1e-9 of the whole share.
        assert any(words - 1 - 2e-9 * (words + 2 * capacity) <= w <= words for w in found)


def test_small_filter_symbols():
    shape = ConvShape.of((4, 64, 58, 58), (64, 64, 3, 3))
    bound = by_segments(shape.nest())[1]
    n, k, c, oh, kh, ow, kw = extents(["n", "k", "c", "oh", "kh", "ow", "kw"])
    work = n * k * c * oh * kh * ow * kw
    assert sympy.simplify(bound.expression - (2 * work / sympy.sqrt(M * kh * kw) - 2 * M)) == 0


def test_strided_filter_symbols():
    bound = by_segments(ConvShape.of((4, 64, 59), (64, 64, 5), strides=(2,)).nest())[-1]
    n, k, c, ow, kw = extents(["n", "k", "c", "ow", "kw"])
    share = 2 * n * k * c * ow * kw / sympy.sqrt(M * sympy.ceiling(kw / 2))
    assert sympy.simplify(bound.expression - (share - 2 * M)) == 0


# --- against schedules --------------------------------------------------------------------------


def best_traffic(nest, capacity, orders, tiles):
    names = [name for name, _ in nest.loops]
    found = [
        schedule_traffic(
            nest, points_in(nest, order, dict(zip(names, sizes, strict=True))), capacity
        )
        for order in orders
        for sizes in tiles
    ]
    return min((words for words in found if words is not None), default=None)


@settings(max_examples=220, deadline=None)
@given(affine_nests(), st.data())
def test_no_schedule_beats_the_bound(nest, data):
    assume(nest.points <= 150)
    try:
        bounds = nest_bounds(nest)
    except UndecidedError:
        assume(False)
    names = [name for name, _ in nest.loops]
    orders = data.draw(st.lists(st.permutations(names), min_size=1, max_size=2, unique_by=tuple))
    sizes = st.tuples(*(st.integers(1, extent) for _, extent in nest.loops))
    tiles = [(1,) * len(names), *data.draw(st.lists(sizes, min_size=1, max_size=2))]
    for capacity in (2, 3, 4, 6, 12):
        traffic = best_traffic(nest, capacity, orders, tiles)
        if traffic is not None:
            assert max(bound.words(capacity) for bound in bounds) <= traffic


@pytest.mark.parametrize(
    "einsum, loops",
    [
        ("ij,jk->ik", {"i": 6, "j": 6, "k": 6}),
        ("ijk,jr,kr->ir", {"i": 4, "j": 4, "k": 4, "r": 4}),
    ],
)
@pytest.mark.parametrize("capacity", [4, 8, 16])
def test_schedules_come_near_the_bound(einsum, loops, capacity):
    """Every order with cubes of three sizes: bounds 2.5 times as high would be refuted."""
    nest = LoopNest.from_einsum(einsum, loops)
    tiles = [(size,) * len(loops) for size in (1, 2, 3)]
    traffic = best_traffic(nest, capacity, list(permutations(loops)), tiles)
    bound = nest_lower_bound(nest, capacity)
    assert bound <= traffic < 2.5 * bound


@settings(max_examples=100, deadline=None)
@given(affine_nests())
def test_touched_elements_are_counted(nest):
    try:
        bound = nest_bounds(nest)[0]
    except UndecidedError:
        assume(False)
    names = [name for name, _ in nest.loops]
    points = [dict(zip(names, p, strict=True)) for p in product(*(range(n) for _, n in nest.loops))]
    count = sum(len(elements) for elements in touched(nest, points).values())
    assert bound.words(1) == count
    numbers = {sympy.Symbol(f"L_{n}", integer=True, positive=True): e for n, e in nest.loops}
    assert bound.expression.subs(numbers) == count


@pytest.mark.parametrize(
    "nest",
    [
        LoopNest.from_einsum("ij,jk->ik", {"i": 2, "j": 2, "k": 2}),
        LoopNest.from_einsum("ij,j->i", {"i": 3, "j": 3}),
        LoopNest.from_einsum("i,j->ij", {"i": 3, "j": 3}),
        LoopNest.from_einsum("ij,ij->j", {"i": 3, "j": 2}),
        LoopNest.from_einsum("i,j->", {"i": 4, "j": 4}),
        ConvShape.of((1, 1, 4), (1, 1, 2)).nest(),
        ConvShape.of((1, 1, 6), (1, 1, 3)).nest(),
        ConvShape.of((1, 1, 5), (1, 1, 3), strides=(2,)).nest(),
    ],
    ids=str,
)
def test_exact_pebbling_is_never_below(nest):
    graph = Cdag.mac_chains(nest_terms(nest))
    least = least_capacity(graph)
    for capacity in range(least, least + 4):
        assert nest_lower_bound(nest, capacity) <= least_io(graph, capacity).words


# --- input --------------------------------------------------------------------------------------


def test_nests_without_a_bound():
    i, j = Affine.of({"i": 1}), Affine.of({"j": 1})
    loops = (("i", 4), ("j", 4))
    with pytest.raises(InputError, match="must write one array, and writes 2"):
        nest_bounds(LoopNest(loops, (Access("A", (i,), True), Access("B", (j,), True))))
    with pytest.raises(InputError, match="must write one array, and writes 0"):
        nest_bounds(LoopNest(loops, (Access("A", (i,)),)))
    with pytest.raises(InputError, match="reads A, which it writes"):
        nest_bounds(LoopNest(loops, (Access("A", (i,), True), Access("A", (j,)))))
    joined = Affine.of({"i": 1, "j": 1, "k": 1})
    cube = (*loops, ("k", 4))
    reads = tuple(Access(x, (Affine.of({x: 1}),)) for x in "ijk")
    with pytest.raises(UndecidedError, match="kernels in 3 joined loops does not close"):
        nest_bounds(LoopNest(cube, (Access("A", (joined,), True), *reads)))
    with pytest.raises(InputError, match="capacity 0: must be at least 1 word"):
        nest_lower_bound(LoopNest(loops, (Access("A", (i, j), True),)), 0)
