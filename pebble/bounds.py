"""Lower bounds on the words that any schedule of a convolution moves, with explicit constants.

Model. A fast memory holds M words, a slow memory everything. A load or a store moves one word and
costs 1; computing and discarding are free. A multiply-accumulate (MAC) needs its input element,
its weight and a partial sum of its output in fast memory. Fast memory starts empty, inputs and
weights start in slow memory, every output ends there. Sums may be formed in any order and in
parts, and anything may be computed again. Only algorithms that form the products of the
definition are meant: Winograd, FFT and Strassen are not.

Notation. G is the number of MACs on real (not padding) inputs; |I|, |F|, |O| are the inputs that
some MAC reads, the weights that some MAC uses, and the outputs. i, f, o are the distinct inputs,
weights and outputs of a set E of MACs.

Two inequalities hold for every set E, for any stride, dilation, padding and group:

* pairs: any two of (input, weight, output) fix the MAC, so |E| <= i*f, i*o and f*o.
* weighted Loomis-Whitney: give each MAC the weight 1/sqrt(n), n the reuse of its tap
  (:meth:`pebble.shapes.ConvShape.weighted_macs`). Then the weight of E is at most sqrt(i*f*o).
  Proof: fix a residue class of taps. For each of its n slices (one tap of the class on an axis, or
  one group of consecutive outputs, per axis) the map (output position, tap) -> pixel is injective,
  so the slice is a matrix product with index groups (image, position), (channel, tap), output
  channel, and Loomis and Whitney give sqrt(i*f_slice*o) or sqrt(i*f*o_slice). By Cauchy and
  Schwarz the class has at most sqrt(n*i_c*f_c*o) MACs. Classes use disjoint weights and, since a
  pixel's residue fixes the class, disjoint inputs: the sum over classes is at most sqrt(i*f*o)
  (Cauchy and Schwarz again). Groups: the same sum over groups.

The total weight is G_w. Published forms put G / sqrt(kernel / stride) in its place, which is too
high where the stride does not divide the kernel, and badly so where it exceeds it.

From an inequality to traffic, two ways (Hong and Kung's partition, with partial sums accounted):

* segments: charge the first creation of each partial sum as a load and take it back with the
  output's final store, so Q >= charged loads. Cut the execution after every T charged loads. In a
  segment i + f + o <= M + T, which caps its work at chi(M + T); all segments but the last are
  full, so Q >= T * (ceil(work / chi(M + T)) - 1) for every T.
* equal work: cut the execution in n runs of equal work. The words of a run were resident at its
  start (at most M, none at the first start) or arrive in it, so
  Q >= n * cost(work / n) - (n - 1) * M, where cost(w) is the least i + f + o that allows work w.
  In full: a residence of a word lasts from its load (of a partial sum: or its creation) to its
  discard. Each output has one creation and one final store, so Q is at least the number of
  residences, which is at least |I|, |F| and |O| per operand. A word that a run touches is resident
  at its start or begins a residence in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import ceil, isqrt, prod, sqrt

from pebble.axis import ceil_div
from pebble.fields import check_capacity
from pebble.shapes import ConvShape

_HONG_KUNG = "Hong and Kung 1981, red-blue pebble game"
_LOOMIS = "Loomis and Whitney 1949; weights per tap class derived in pebble.bounds"
FRACTION_BITS = 64
_SAFE = 1 - 1e-9
"""Factor on values found in floating point: their rounding errors are far below it."""


@dataclass(frozen=True, slots=True)
class Bound:
    """One bound on the words moved, loads and stores together.

    Attributes:
        name: the theorem.
        words: its value, rounded up; 0 where the formula is negative.
        source: where the statement comes from.
        valid: proved, with this constant, for this shape. Only valid bounds decide.
        asymptotic: an order of growth; its constant means nothing.
        note: why it is not valid, or how its parameter was chosen.
    """

    name: str
    words: int
    source: str
    valid: bool = True
    asymptotic: bool = False
    note: str = ""


@dataclass(frozen=True, slots=True)
class LowerBound:
    """Every known bound of one layer at one capacity; the largest valid one decides."""

    shape: ConvShape
    capacity_words: int
    bounds: tuple[Bound, ...]

    @property
    def deciding(self) -> Bound:
        """The largest valid bound; the first of equals."""
        return max((b for b in self.bounds if b.valid), key=lambda b: b.words)

    @property
    def words(self) -> int:
        """Words that any schedule moves at least."""
        return self.deciding.words

    @property
    def binding(self) -> str:
        """Name of the bound that decides."""
        return self.deciding.name

    def __str__(self) -> str:
        lines = [f"{self.shape}, {self.capacity_words:,} words of fast memory"]
        for bound in self.bounds:
            mark = "*" if bound is self.deciding else " "
            kind = "" if bound.valid else "  (order of growth)" if bound.asymptotic else "  (not)"
            lines.append(f"{mark} {bound.name:<16}{bound.words:>18,} words{kind}")
        return "\n".join(lines)


def lower_bound(shape: ConvShape, capacity_words: int) -> LowerBound:
    """All bounds of a layer; ``words`` of the result is provably moved by any schedule.

    Args:
        shape: any convolution or transposed convolution of rank 1 to 3.
        capacity_words: M, elements that the fast memory holds; at least 1.

    Raises:
        InputError: the capacity is below one word.

    >>> shape = ConvShape.of((1, 128, 56, 56), (256, 128, 3, 3), pads=(1, 1, 1, 1))
    >>> lower_bound(shape, 4096).binding
    'equal-work'
    """
    check_capacity(capacity_words)
    proved = (compulsory, loomis_whitney, pairs, segments, equal_work, mixed_work)
    published = (zhang_xiao_tan, demmel_dinh)
    bounds = [theorem(shape, capacity_words) for theorem in (*proved, *published)]
    return LowerBound(shape, capacity_words, tuple(b for b in bounds if b is not None))


# --- proved for every shape -------------------------------------------------------------------


def compulsory(shape: ConvShape, capacity_words: int) -> Bound:
    """Q >= |I| + |F| + |O|: each touched word moves once, whatever the capacity.

    Source: cold misses; counted on touched elements only.
    """
    del capacity_words
    return Bound("compulsory", shape.compulsory_words, "cold misses of the touched elements")


def loomis_whitney(shape: ConvShape, capacity_words: int) -> Bound:
    """Q >= 2 * G_w / sqrt(M) - 2 * M, the segment argument at T = 2 * M.

    At full reuse and stride s dividing the kernel this is 2 * G / sqrt(M * kernel / stride) - 2M.
    Source: Loomis and Whitney 1949, Irony, Toledo and Tiskin 2004 for the matrix product; weights
    and constant derived above. Computed in integers, rounded the safe way.
    """
    share = root_sum(shape.weighted_macs, divisor=capacity_words, factor=2)
    words = ceil_div(share, 1 << FRACTION_BITS) - 2 * capacity_words
    return Bound("loomis-whitney", max(words, 0), _LOOMIS)


def pairs(shape: ConvShape, capacity_words: int) -> Bound:
    """Q >= 9 * G / (4 * M) - M, the segment argument at T = M with |E| <= (i*f*o)**(2/3).

    It decides where the filter alone would fill the fast memory. Source: the n-body term of
    Demmel and Dinh 2018 (arXiv 1802.06905); constant derived above.
    """
    words = ceil_div(9 * shape.macs - 4 * capacity_words**2, 4 * capacity_words)
    return Bound("pairs", max(words, 0), "Demmel and Dinh 2018, n-body term; constant derived")


def segments(shape: ConvShape, capacity_words: int) -> Bound:
    """Q >= T * (ceil(work / chi(M + T)) - 1), the best T of a grid, with the layer's own limits.

    chi is the largest work on i + f + o <= M + T words with i <= |I|, f <= |F| and o <= |O|; the
    limits make it sharper than the closed forms where an operand nearly fits. Source: Hong and
    Kung 1981; the limits by water-filling.
    """
    limits = sorted((shape.input_words, shape.weight_words, shape.output_words))
    without = [limits[:d] + limits[d + 1 :] for d in range(3)]
    weight, macs = _weighted_work(shape), shape.macs * (1 - 1e-12)
    best, best_step = 0, 0
    for step in _grid(capacity_words):
        budget = capacity_words + step
        volume = _largest_product(budget, limits)
        by_pairs = min(volume ** (2 / 3), *(_largest_product(budget, two) for two in without))
        full = max(weight / sqrt(volume), macs / by_pairs) if volume else 0.0
        words = step * (ceil(full * (1 - 1e-12) - 1e-9) - 1)
        if words > best:
            best, best_step = words, step
    return Bound("segments", best, _HONG_KUNG, note=f"segments of {best_step} loads")


def equal_work(shape: ConvShape, capacity_words: int) -> Bound:
    """Q >= n * cost(work / n) - (n - 1) * M for the best n of a grid.

    Without limits, about 2 * G_w / sqrt(M) + M: the start is empty and the last run is full, so
    nothing of order M is lost. Source: derived above.
    """
    words, runs = equal_work_cost(shape, capacity_words, (1, 1, 1))
    return Bound("equal-work", rounded_up(words), _LOOMIS, note=f"{runs} runs of equal work")


def mixed_work(shape: ConvShape, capacity_words: int) -> Bound:
    """Q >= n * cost_l(work / n) - (n - 1) * M + the sum of (1 - l_x) * |x| over the operands x.

    cost_l counts an element of x as l_x words, 0 < l_x <= 1 with the largest 1. It mixes the
    reuse argument with the compulsory words: residences of x number at least |x|, so a share
    1 - l_x of them may be counted that way. It gains where the work per output is short, or one
    operand is nearly compulsory. Any l is valid; a coordinate search finds a good one. Source:
    derived above.
    """
    counts = (shape.input_words, shape.weight_words, shape.output_words)

    def value(share: tuple[float, ...], steps: range) -> tuple[float, int]:
        words, runs = equal_work_cost(shape, capacity_words, share, steps)
        rest = sum((1 - l_x) * count for l_x, count in zip(share, counts, strict=True))
        return words + rest * _SAFE, runs

    share: tuple[float, ...] = (1.0, 1.0, 1.0)
    step = 0.5
    best, _ = value(share, _COARSE)
    while step < 0.97:
        moved = False
        for operand in range(3):
            for factor in (step, 1 / step):
                trial = list(share)
                trial[operand] = min(1.0, max(1e-3, share[operand] * factor))
                if max(trial) < 1 or tuple(trial) == share:
                    continue
                words, _ = value(tuple(trial), _COARSE)
                if words > best:
                    best, share, moved = words, tuple(trial), True
        if not moved:
            step = sqrt(step)
    best, runs = value(share, _FINE)
    note = f"{runs} runs; shares of input, weight, output " + ", ".join(f"{s:.3f}" for s in share)
    return Bound("mixed-work", rounded_up(best), _LOOMIS, note=note)


_FINE, _COARSE = range(20, 101), range(30, 81, 10)
"""Numbers of runs to try, in fiftieths of the real optimum."""


def equal_work_cost(
    shape: ConvShape, capacity: float, element_cost: tuple[float, ...], steps: range = _FINE
) -> tuple[float, int]:
    """The equal-work bound where an input, a weight and an output cost and take different room.

    cost(w) is then the least p_i * i + p_f * f + p_o * o that allows work w. The proof does not
    change: every residence of a word costs its p once, and at most M of weighted words are resident
    at the start of a run.

    Args:
        shape: the layer.
        capacity: M, in the unit of the costs.
        element_cost: p_i, p_f, p_o, for example bytes an element.
        steps: numbers of runs to try, in fiftieths of the real optimum.

    Returns:
        The bound in the unit of the costs, safely below its real value, and the number of runs.
    """
    counts = (shape.input_words, shape.weight_words, shape.output_words)
    limits = sorted(p * count for p, count in zip(element_cost, counts, strict=True))
    scale = prod(element_cost)
    best, best_runs = 0.0, 1
    # work <= sqrt(i*f*o) for the weighted MACs, and <= (i*f*o)**(2/3) for the plain ones. The last
    # number is the real optimum of runs for a unit of work, without limits.
    for work, power, optimum in (
        (_weighted_work(shape), 2.0, scale**0.5 / capacity**1.5),
        (shape.macs * (1 - 1e-12), 1.5, 2.25 * scale ** (2 / 3) / capacity**2),
    ):
        around = work * optimum / 50
        numbers = {1, 2, 3}.union(*((int(around * s), int(around * s) + 1) for s in steps))
        for runs in sorted(numbers - {0}):
            # A MAC weighs at most 1, so a run's work may fall short of its share by less than 1.
            share = work / runs - (1 if runs > 1 else 0)
            if share <= 0:
                continue
            cost = _least_sum((share * (1 - 1e-12)) ** power * scale, limits)
            total = (runs * cost - (runs - 1) * capacity) * _SAFE
            if total > best:
                best, best_runs = total, runs
    return best, best_runs


# --- as printed in papers: shown, never deciding ------------------------------------------------


def zhang_xiao_tan(shape: ConvShape, capacity_words: int) -> Bound | None:
    """Q >= M * (|V| / T(2M) - 1) with T(2M) = 8*sqrt(2)*M*sqrt(R*M) + 2M - 1, R = kernel/stride.

    |V| = (2 * kernel * C - 1) * outputs counts products and sums. R must not be below 1 and the
    printed counts include padding. Source: Zhang, Xiao and Tan, PPoPP 2021 (arXiv 2012.15667).
    """
    if shape.transposed:
        return None
    kernel, stride = prod(shape.kernel), prod(shape.strides)
    vertices = (2 * kernel * shape.group_in_channels - 1) * shape.output_words
    m = capacity_words
    part = 8 * sqrt(2) * m * sqrt(kernel / stride * m) + 2 * m - 1
    words = ceil(m * (vertices / part - 1) * _SAFE) if vertices else 0
    plain = (
        all(k % s == 0 for k, s in zip(shape.kernel, shape.strides, strict=True))
        and all(d == 1 for d in shape.dilations)
        and shape.macs == shape.macs_dense
    )
    return Bound(
        "zhang-xiao-tan",
        max(words, 0),
        "Zhang, Xiao and Tan, PPoPP 2021, arXiv 2012.15667",
        # Where its premises hold it lies below loomis-whitney and needs no proof of its own.
        valid=plain and words <= loomis_whitney(shape, m).words,
        note="constant 8*sqrt(2) below the provable one"
        if plain
        else "premises not met: the stride must divide the kernel, without dilation and padding",
    )


def demmel_dinh(shape: ConvShape, capacity_words: int) -> Bound:
    """Largest of the five terms of Demmel and Dinh: an order of growth without constants.

    max(outputs, stride-spread inputs, filter, N/M, N/sqrt(M * kernel/stride)), N the dense MACs.
    Source: Demmel and Dinh 2018, arXiv 1802.06905.
    """
    strides, kernel = prod(shape.strides), prod(shape.kernel)
    positions = prod(axis.outputs for axis in shape.axes)
    forward_in, forward_out = shape.in_channels, shape.out_channels
    if shape.transposed:
        forward_in, forward_out = forward_out, forward_in
    dense = shape.macs_dense
    terms = (
        shape.batch * forward_out * positions,
        shape.batch * forward_in * positions * strides,
        prod(shape.weight_shape) if shape.batch else 0,
        dense / capacity_words,
        dense / sqrt(capacity_words * kernel / strides),
    )
    return Bound(
        "demmel-dinh",
        ceil(max(terms)),
        "Demmel and Dinh 2018, arXiv 1802.06905",
        valid=False,
        asymptotic=True,
        note="order of growth; ignores padding, and strides above the kernel",
    )


def root_sum(terms: Iterable[tuple[int, int]], divisor: int = 1, factor: int = 1) -> int:
    """``factor * sum of count / sqrt(reuse * divisor)`` in units of 2**-64, rounded down."""
    return sum(
        isqrt(((factor * count) ** 2 << 2 * FRACTION_BITS) // (reuse * divisor))
        for count, reuse in terms
    )


# --- optimisations behind the theorems ----------------------------------------------------------


def _weighted_work(shape: ConvShape) -> float:
    """G_w, rounded down."""
    return sum(count / sqrt(reuse) for count, reuse in shape.weighted_macs) * (1 - 1e-12)


def _grid(capacity_words: int) -> list[int]:
    """Segment lengths to try: any is valid, and the closed forms' own are among them."""
    lengths = {capacity_words, 2 * capacity_words}
    length = 1
    while length < 50 * capacity_words:
        lengths.add(length)
        length = max(length + 1, length * 51 // 50)
    return sorted(lengths)


def rounded_up(value: float) -> int:
    """A bound found in floating point, below its real value, as a bound on whole words."""
    return max(ceil(value - 1e-6), 0)


def _largest_product(budget: float, limits: Sequence[float]) -> float:
    """Largest product of values with sum <= budget, each at most its limit; rounded up.

    Water-filling: all values at one level, those whose limits lie lower cut there. ``limits``
    ascend.
    """
    volume = 1 + 1e-12
    for done, limit in enumerate(limits):
        free = len(limits) - done
        level = budget / free
        if limit >= level:
            return volume * level**free
        volume *= limit
        budget -= limit
    return volume


def _least_sum(product: float, limits: Sequence[float]) -> float:
    """Least sum of values with at least this product, each at most its limit; ``limits`` ascend.

    The limits allow the layer's whole work, so a product above theirs is a rounding error.
    """
    total = 0.0
    for done, limit in enumerate(limits):
        free = len(limits) - done
        level: float = product ** (1 / free)
        if limit >= level:
            return total + free * level
        total += limit
        product /= limit
    return total
