"""One spatial axis of a convolution, counted in closed form.

An axis is the relation of all triples (o, k, x) of an output position o, a tap k and an input
pixel x with::

    x = stride * o + dilation * k - pad_begin,   0 <= o < outputs, 0 <= k < kernel, 0 <= x < inputs.

Every count below is the size of this relation, or of one of its projections, inside a box. A
convolution's counts are products over its axes, since the relation of the whole layer is the
product of the relations of its axes. Nothing here loops over an axis: the work is a number of
Euclidean steps times at most the square root of the padded size, so a pad of 2**31 or an axis of
10**9 costs microseconds.

A transposed convolution is the same relation read the other way: its output is x, its input is o.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd


def ceil_div(a: int, b: int) -> int:
    """Least integer not below a / b, for b > 0."""
    return -(-a // b)


def floor_sum(n: int, m: int, a: int, b: int) -> int:
    """Sum of ``(a * i + b) // m`` over ``0 <= i < n``, for n, a, b >= 0 and m > 0.

    Lattice points under a line, counted by the Euclidean algorithm in O(log m) steps.

    >>> floor_sum(4, 10, 6, 3) == sum((6 * i + 3) // 10 for i in range(4))
    True
    """
    total = 0
    while n > 0:
        total += (n - 1) * n // 2 * (a // m) + n * (b // m)
        a, b = a % m, b % m
        if a == 0:
            break
        n, b, m, a = (a * n + b) // m, (a * n + b) % m, a, m
    return total


def _clipped_ceil_sum(y: int, step: int, n: int, s: int, limit: int) -> int:
    """Sum of ``min(max(ceil((y - step * i) / s), 0), limit)`` over ``0 <= i < n``."""
    # The terms fall with i: first `full` of them are cut at limit, those from `end` on are zero.
    full = min(max((y - s * limit) // step + 1, 0), n) if y >= s * limit else 0
    end = min(max(ceil_div(y, step), full), n) if y > 0 else full
    total = full * limit
    count = end - full
    if count > 0:
        last = y - step * (end - 1) + s - 1
        total += floor_sum(count, s, step, last)
    return total


def _covered_below(z: int, count: int, step: int, length: int) -> int:
    """Integers in [0, z) that lie in the union of [step*q, step*q + length) over 0 <= q < count."""
    if z <= 0 or count <= 0 or length <= 0:
        return 0
    if length >= step:
        return min(z, step * (count - 1) + length)
    whole = min(z // step, count)
    rest = min(z - step * whole, length) if whole < count else 0
    return whole * length + rest


@dataclass(frozen=True, slots=True)
class Axis:
    """The sizes of one axis.

    Attributes:
        inputs: pixels of the forward convolution's input.
        outputs: positions of the forward convolution's output.
        kernel: taps.
        stride, dilation: distance of windows, and of taps, in pixels.
        pad_begin: padding pixels before the first real one.
        transposed: the layer computes x from o, so that ``inputs`` is what it writes.
    """

    inputs: int
    outputs: int
    kernel: int
    stride: int = 1
    dilation: int = 1
    pad_begin: int = 0
    transposed: bool = False

    # --- the relation in a box ----------------------------------------------------------------
    def _pairs(self, o0: int, o1: int, x0: int, x1: int, first: int, step: int, count: int) -> int:
        """Triples with o in [o0,o1), x in [x0,x1) and a tap in {first + step*i, i < count}."""
        if o1 <= o0 or x1 <= x0 or count <= 0:
            return 0
        shift = self.pad_begin - self.dilation * first - self.stride * o0
        args = (self.dilation * step, count, self.stride, o1 - o0)
        return _clipped_ceil_sum(x1 + shift, *args) - _clipped_ceil_sum(x0 + shift, *args)

    def _pixels(self, o0: int, o1: int, x0: int, x1: int) -> int:
        """Distinct x of the triples with o in [o0,o1) and x in [x0,x1)."""
        if o1 <= o0 or x1 <= x0:
            return 0
        s, d, length = self._reduced_stride, self._reduced_dilation, o1 - o0
        unit = self.stride // s
        # In units of the common divisor, counted from window o0: y = s * (o - o0) + d * k.
        y0 = ceil_div(x0 + self.pad_begin, unit) - s * o0
        y1 = ceil_div(x1 + self.pad_begin, unit) - s * o0
        total = 0
        if min(s, self.kernel) <= min(d, length):
            # Taps k = s*q + r: y = s*(o + d*q) + d*r, and r is fixed by y modulo s.
            for r in range(min(s, self.kernel)):
                count = ceil_div(self.kernel - r, s)
                lo, hi = ceil_div(y0 - d * r, s), ceil_div(y1 - d * r, s)
                total += _covered_below(hi, count, d, length) - _covered_below(lo, count, d, length)
        else:
            # Windows o = d*m + t: y = d*(s*m + k) + s*t, and t is fixed by y modulo d.
            for t in range(min(d, length)):
                count = ceil_div(length - t, d)
                lo, hi = ceil_div(y0 - s * t, d), ceil_div(y1 - s * t, d)
                total += _covered_below(hi, count, s, self.kernel)
                total -= _covered_below(lo, count, s, self.kernel)
        return total

    def _taps(self, o0: int, o1: int, x0: int, x1: int) -> int:
        """Distinct k of the triples with o in [o0,o1) and x in [x0,x1)."""
        if o1 <= o0 or x1 <= x0:
            return 0
        if x1 - x0 < self.stride:  # a tap meets the box at most once
            return self._pairs(o0, o1, x0, x1, 0, 1, self.kernel)
        lo = ceil_div(x0 + self.pad_begin - self.stride * (o1 - 1), self.dilation)
        hi = (x1 - 1 + self.pad_begin - self.stride * o0) // self.dilation
        return max(min(hi, self.kernel - 1) - max(lo, 0) + 1, 0)

    def _positions(self, o0: int, o1: int, x0: int, x1: int) -> int:
        """Distinct o of the triples with o in [o0,o1) and x in [x0,x1)."""
        if o1 <= o0 or x1 <= x0:
            return 0
        if x1 - x0 < self.dilation:  # a window meets the box at most once
            return self._pairs(o0, o1, x0, x1, 0, 1, self.kernel)
        lo = ceil_div(x0 + self.pad_begin - self.dilation * (self.kernel - 1), self.stride)
        hi = (x1 - 1 + self.pad_begin) // self.stride
        return max(min(hi, o1 - 1) - max(lo, o0) + 1, 0)

    @property
    def _reduced_stride(self) -> int:
        return self.stride // gcd(self.stride, self.dilation)

    @property
    def _reduced_dilation(self) -> int:
        return self.dilation // gcd(self.stride, self.dilation)

    # --- the layer's view: what a range of its own outputs needs ---------------------------------
    @property
    def written(self) -> int:
        """Positions that the layer writes along this axis."""
        return self.inputs if self.transposed else self.outputs

    @property
    def read(self) -> int:
        """Positions that the layer's input has along this axis."""
        return self.outputs if self.transposed else self.inputs

    def _box(self, begin: int, end: int) -> tuple[int, int, int, int]:
        if self.transposed:
            return 0, self.outputs, begin, end
        return begin, end, 0, self.inputs

    def touched(self, begin: int, end: int) -> int:
        """Distinct input positions that the outputs in [begin, end) read."""
        if self.transposed:
            return self._positions(*self._box(begin, end))
        return self._pixels(*self._box(begin, end))

    def used_taps(self, begin: int, end: int) -> int:
        """Distinct taps that meet a real input for some output in [begin, end)."""
        return self._taps(*self._box(begin, end))

    def macs(self, begin: int, end: int) -> int:
        """Multiply-accumulates of the outputs in [begin, end) whose input is not padding."""
        return self._pairs(*self._box(begin, end), 0, 1, self.kernel)

    def weighted_macs(self) -> tuple[tuple[int, int], ...]:
        """The axis' multiply-accumulates split by reuse: pairs (count, reuse).

        Taps of one residue class modulo ``s' = stride / gcd(stride, dilation)`` meet the same
        pixels. Its reuse is the number of slices, each an injective (o, k) -> x pattern, that
        cover the class: one a tap of the class, or one a group of ``d' = dilation / gcd``
        consecutive outputs, whichever are fewer. At most two reuses occur on an axis, since the
        sizes of the classes differ by at most one.
        """
        s, d = self._reduced_stride, self._reduced_dilation
        box = self._box(0, self.written)
        slices = ceil_div(self.outputs, d)
        rounds, large = divmod(self.kernel, s)  # `large` classes hold rounds + 1 taps
        if rounds == 0:
            return ((self._pairs(*box, 0, 1, self.kernel), 1),)
        every = self._pairs(*box, 0, 1, self.kernel)
        if large == 0 or slices <= rounds:
            return ((every, min(rounds, slices)),)
        if large <= rounds + 1:
            in_large = sum(self._pairs(*box, r, s, rounds + 1) for r in range(large))
        else:
            in_large = sum(self._pairs(*box, s * q, 1, large) for q in range(rounds + 1))
        terms = ((in_large, min(rounds + 1, slices)), (every - in_large, min(rounds, slices)))
        return tuple(t for t in terms if t[0]) or ((0, 1),)
