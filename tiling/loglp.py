"""The tile as a linear program: logarithms of tile sizes, one row for each array's footprint.

For a nest whose subscripts are sums of loops, the footprint of a tile is at most a constant times
the product over subscripts of its largest loop. Taking logarithms, the tile of most iterations
that fits M words is a linear program; its dual is a certificate that no larger one exists, at the
exponent's precision. Log space exists only between :meth:`LogProgram.apply` and
:meth:`LogProgram.invert`.

Source: Demmel and Dinh 2018 (arXiv 1802.06905) for convolutions, Dinh and Demmel, SPAA 2020 (arXiv
2003.00119) for projective nests.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from math import exp, gcd, log

from pebble.errors import InputError, SolverError
from pebble.nest import Access, Affine, LoopNest
from pebble.shapes import ConvShape

TOLERANCE = 1e-6
"""Largest relative violation of a row, or gap between primal and dual, that a solution may have."""
_DENOMINATORS = 64


@dataclass(frozen=True, slots=True)
class LogSolution:
    """The real-valued tile of most iterations, and its certificate.

    Attributes:
        exponent: log of the tile's iterations to the base M; iterations per tile = M**exponent.
        words: M * iterations of the nest / iterations of the tile, the order of the traffic.
        tile: (loop, real tile size).
        binding: names of the rows with a positive dual: an array's footprint, or a loop's extent.
        duals: (row, exact dual value), positive ones only. For arrays A with s_A and loops j with
            z_j, every tile has at most M**sum(s_A) * product(extent_j**z_j) iterations.
    """

    exponent: float
    words: float
    tile: tuple[tuple[str, float], ...]
    binding: tuple[str, ...]
    duals: tuple[tuple[str, Fraction], ...]


def solve(shape: ConvShape, capacity_words: int) -> LogSolution:
    """Solve the program of a convolution: its lifted nest at this capacity.

    Raises:
        InputError: fewer than 2 words, where logarithms to that base mean nothing.
        SolverError: the solver's answer failed its check.

    >>> shape = ConvShape.of((1, 64, 56, 56), (256, 64, 1, 1))
    >>> solution = solve(shape, 4096)
    >>> round(solution.exponent, 6), round(solution.words)
    (1.5, 802816)
    """
    return LogProgram.of(lifted_nest(shape), capacity_words).solve()


def lifted_nest(shape: ConvShape) -> LoopNest:
    """The convolution with window and tap split so that pixels are sums of two plain loops.

    With D = gcd(stride, dilation), s = stride / D and d = dilation / D on an axis, take the tap as
    k = s*q + r and the position as o = d*p + t. The pixel is fixed by (p + q, t, r): a projective
    subscript but for p + q. Extents are the real ratios, so that log space sees no rounding.
    """
    loops: dict[str, int | Fraction] = {
        "g": shape.group,
        "n": max(shape.batch, 1),
        "k": shape.group_out_channels,
        "c": shape.group_in_channels,
    }
    window: list[Affine] = []
    position: list[Affine] = []
    taps: list[Affine] = []
    for name, axis in zip(shape.axis_names, shape.axes, strict=True):
        unit = gcd(axis.stride, axis.dilation)
        s, d = axis.stride // unit, axis.dilation // unit
        p, t, q, r = (f"{part}_{name}" for part in "ptqr")
        loops[p], loops[t] = max(Fraction(axis.outputs, d), Fraction(1)), min(axis.outputs, d)
        loops[q], loops[r] = max(Fraction(axis.kernel, s), Fraction(1)), min(axis.kernel, s)
        window += [Affine.of({p: 1, q: 1}), Affine.of({t: 1}), Affine.of({r: 1})]
        position += [Affine.of({p: 1}), Affine.of({t: 1})]
        taps += [Affine.of({q: 1}), Affine.of({r: 1})]
    read, wrote = (position, window) if shape.transposed else (window, position)
    g, n, k, c = (Affine.of({name: 1}) for name in "gnkc")
    accesses = (
        Access("input", (g, n, c, *read)),
        Access("weight", (g, k, c, *taps)),
        Access("output", (g, n, k, *wrote), written=True),
    )
    return LoopNest(tuple(loops.items()), accesses)


@dataclass(frozen=True)
class LogProgram:
    """maximise sum(x) with rows(x) <= log M and 0 <= x <= log extent, x the logs of tile sizes.

    Attributes:
        nest: the computation.
        capacity_words: M.
        rows: (array, loops): the sum of these loops' logs is at most log M. An array has one row
            for each way to pick one loop from each of its subscripts.
    """

    nest: LoopNest
    capacity_words: int
    rows: tuple[tuple[str, tuple[str, ...]], ...]

    @staticmethod
    def accepts(nest: LoopNest) -> bool:
        """Whether every loop that a subscript uses stands in it with coefficient 1."""
        return all(
            coefficient == 1
            for access in nest.accesses
            for subscript in access.subscripts
            for _, coefficient in subscript.terms
        )

    @classmethod
    def of(cls, nest: LoopNest, capacity_words: int) -> LogProgram:
        """The program of a nest that :meth:`accepts` takes."""
        if capacity_words < 2:
            raise InputError("capacity", capacity_words, "must be at least 2 words for a log base")
        if not cls.accepts(nest):
            raise InputError("nest", str(nest), "has a subscript with a coefficient other than 1")
        rows = []
        for access in nest.accesses:
            for choice in product(*(s.loops for s in access.subscripts if s.terms)):
                rows.append((access.array, tuple(dict.fromkeys(choice))))
        return cls(nest, capacity_words, tuple(rows))

    def apply(self) -> tuple[list[list[int]], list[float]]:
        """Matrix of the rows over the nest's loops, and the logs of the extents."""
        names = [name for name, _ in self.nest.loops]
        matrix = [[int(name in loops) for name in names] for _, loops in self.rows]
        return matrix, [log(extent) for _, extent in self.nest.loops]

    def invert(self, logs: list[float]) -> tuple[tuple[str, float], ...]:
        """Real tile sizes from the solution's logs."""
        return tuple(
            (name, exp(value)) for (name, _), value in zip(self.nest.loops, logs, strict=True)
        )

    def solve(self) -> LogSolution:
        """Solve with HiGHS and check both answers: the tile against every row, the dual exactly."""
        from scipy.optimize import linprog

        matrix, tops = self.apply()
        base = log(self.capacity_words)
        found = linprog(
            [-1.0] * len(tops),
            A_ub=matrix,
            b_ub=[base] * len(matrix),
            bounds=[(0.0, top) for top in tops],
            method="highs",
        )
        if found.status != 0 or found.x is None:
            raise SolverError(f"HiGHS did not solve the tile program: {found.message}")
        logs = [float(x) for x in found.x]
        self._check_primal(logs, matrix, tops, base)
        rows = [-float(v) for v in found.ineqlin.marginals]
        extents = [-float(v) for v in found.upper.marginals]
        duals = self._exact_dual(rows, extents, sum(logs), tops, base)
        total = sum(logs)
        iterations = float(self.nest.points)
        return LogSolution(
            exponent=total / base,
            words=exp(base + log(iterations) - total),
            tile=self.invert(logs),
            binding=tuple(name for name, _ in duals),
            duals=duals,
        )

    def _check_primal(
        self, logs: list[float], matrix: list[list[int]], tops: list[float], base: float
    ) -> None:
        slack = TOLERANCE * max(base, 1.0)
        for (array, loops), row in zip(self.rows, matrix, strict=True):
            total = sum(a * x for a, x in zip(row, logs, strict=True))
            if total > base + slack:
                raise SolverError(f"the tile's {array} {loops} overflows: {total} > {base}")
        for (loop, extent), x, top in zip(self.nest.loops, logs, tops, strict=True):
            if not -slack <= x <= top + slack:
                raise SolverError(f"the tile of loop {loop}, exp({x}), is outside 1 to {extent}")

    def _exact_dual(
        self,
        rows: list[float],
        extents: list[float],
        primal: float,
        tops: list[float],
        base: float,
    ) -> tuple[tuple[str, Fraction], ...]:
        """The dual as fractions, checked: it covers every loop exactly and closes the gap."""
        s = [Fraction(v).limit_denominator(_DENOMINATORS) for v in rows]
        z = [Fraction(v).limit_denominator(_DENOMINATORS) for v in extents]
        for j, (loop, _) in enumerate(self.nest.loops):
            cover = z[j] + sum(
                (v for v, (_, loops) in zip(s, self.rows, strict=True) if loop in loops), Fraction()
            )
            if cover < 1:
                raise SolverError(f"the dual leaves loop {loop} covered {cover} < 1 times")
        if min([*s, *z]) < 0:
            raise SolverError("the dual has a negative value")
        value = float(sum(s)) * base + sum(float(v) * t for v, t in zip(z, tops, strict=True))
        if abs(value - primal) > TOLERANCE * max(abs(primal), 1.0):
            raise SolverError(f"dual value {value} differs from the tile's {primal}")
        named: dict[str, Fraction] = {}
        for (array, _), v in zip(self.rows, s, strict=True):
            named[array] = named.get(array, Fraction()) + v
        for (loop, extent), v in zip(self.nest.loops, z, strict=True):
            if extent != 1:  # a loop of one iteration binds nothing
                named[f"extent of {loop}"] = v
        return tuple((name, v) for name, v in named.items() if v > 0)
