"""Hoelder-Brascamp-Lieb exponents of a loop nest, as exact rationals.

The iterations of a set E touch phi_j(E) of reference j, phi_j the linear part of its subscripts.
For s_j >= 0 the inequality ``|E| <= product of |phi_j(E)|**s_j`` holds for every finite E, with
constant 1, if and only if ``rank H <= sum of s_j * rank phi_j(H)`` for every subspace H (Christ,
Demmel, Knight, Scanlon and Yelick 2013 and 2015, arXiv 1308.0068 and 1510.04190). The subspaces of
the lattice that the kernels of the phi_j generate under sum and intersection suffice (Valdimarsson
2010). Three things keep that lattice small and the inequality sharp:

* Blocks. Loops that no subscript joins fall into blocks. Every kernel is a direct sum over blocks,
  both sides of the condition add up over blocks, and so each block's own lattice suffices. Loops
  that are alone in all subscripts are blocks of one: projective nests need only the single loops.
* Short loops. A loop's own coordinate is one more projection, with at most as many values as the
  loop's extent: ``|E| <= product of |phi_j(E)|**s_j * product of extent**z`` (Dinh and Demmel,
  SPAA 2020, arXiv 2003.00119, for projective nests; Finner's inequality gives the constant 1).
* Residues. ``a*x + b*y`` with y < a / gcd(a, b) fixes x and y: two subscripts. Splitting a loop in
  quotient and remainder makes this happen in strided and dilated windows (:func:`lifted`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import gcd, log

from pebble.axis import ceil_div
from pebble.errors import InputError, UndecidedError
from pebble.nest import LoopNest
from pebble.rational import Matrix, Vector, echelon, least, null_space

LATTICE_LIMIT = 100
"""Subspaces after which a lattice of kernels counts as not closing."""
_LOG_DENOMINATOR = 1 << 20


@dataclass(frozen=True, slots=True)
class Part:
    """A loop, or the quotient (``x // step``) or remainder (``x % step``) of a split one."""

    loop: str
    step: int = 1
    remainder: bool = False

    def extent(self, whole: int) -> int:
        """Values of the part where the loop has ``whole`` values."""
        return min(whole, self.step) if self.remainder else ceil_div(whole, self.step)

    def __str__(self) -> str:
        if self.remainder:
            return f"{self.loop} % {self.step}"
        return self.loop if self.step == 1 else f"{self.loop} // {self.step}"


@dataclass(frozen=True, slots=True)
class Projections:
    """The linear parts of a nest's references.

    Attributes:
        parts: the coordinates of the iteration space.
        extents: number of values of each.
        maps: (array, integer rows over the parts), one for each reference.
        specialised: whether some loop was left out since it has one value, or separated since it
            has few, so that what follows does not hold for all extents.
    """

    parts: tuple[Part, ...]
    extents: tuple[int, ...]
    maps: tuple[tuple[str, tuple[tuple[int, ...], ...]], ...]
    specialised: bool = False


@dataclass(frozen=True, slots=True)
class Exponents:
    """``|E| <= product of words(array)**s * product of extent(part)**z`` for every set E.

    Attributes:
        arrays: (array, s), positive ones only. Several references to one array add up.
        limits: (part of a loop, z), positive ones only.
    """

    arrays: tuple[tuple[str, Fraction], ...]
    limits: tuple[tuple[Part, Fraction], ...] = ()

    @property
    def total(self) -> Fraction:
        """Sum of the arrays' exponents."""
        return sum((s for _, s in self.arrays), Fraction(0))


def hbl_exponents(nest: LoopNest) -> dict[str, Fraction]:
    """Exponents of least sum with ``|E| <= product of words(array)**s`` for every set E.

    Among those the most even ones, which give the largest bound. Arrays with exponent 0 are left
    out; several references to one array add up. The extents matter only as in :func:`projections`.

    Raises:
        InputError: different iterations touch the same elements, so that no exponents exist.
        UndecidedError: the lattice of the kernels does not close.

    >>> nest = LoopNest.from_einsum("ij,jk->ik", {"i": 4, "j": 5, "k": 6})
    >>> {array: str(s) for array, s in hbl_exponents(nest).items()}
    {'A': '1/2', 'B': '1/2', 'C': '1/2'}
    """
    system = _System.of(projections(nest), limits=False)
    point = least([1] * system.width, system.rows, system.bounds)
    if point is None:
        raise InputError(
            "nest", str(nest), "different iterations touch the same elements of every array"
        )
    return dict(system.evened([Fraction(0)] * len(system.groups), point).arrays)


def limited_exponents(projections: Projections) -> tuple[Exponents, ...]:
    """The best exponents with the extents as limits, from small to large fast memories.

    Each minimises ``sum(s) * log M + sum(z * log extent)`` for some M and has sum(s) > 1, without
    which the segment argument says no more than that each word is touched. Where the lattice of a
    block with its coordinates does not close, the block's loops share one exponent.

    Raises:
        UndecidedError: a block's lattice does not close even so.
    """
    system = _System.of(projections, limits=True)
    logs = [Fraction(log(n)).limit_denominator(_LOG_DENOMINATOR) for n in projections.extents]
    costs = [sum((logs[k] for k in group), Fraction(0)) for group in system.groups]
    return tuple(
        system.evened(costs, point)
        for point in system.envelope(costs)
        if system.line(costs, point)[0] > 1
    )


# --- the linear parts ---------------------------------------------------------------------------


def projections(nest: LoopNest) -> Projections:
    """The references with loops of one iteration left out and mixed-radix subscripts separated.

    >>> from pebble.nest import Access, Affine
    >>> digits = Access("A", (Affine.of({"i": 4, "j": 1}),), written=True)
    >>> projections(LoopNest((("i", 3), ("j", 4)), (digits,))).maps
    (('A', ((0, 1), (1, 0))),)
    """
    return _separated(_plain(nest))


def lifted(nest: LoopNest) -> Projections | None:
    """The same with the loops of strided or dilated windows split; None where nothing is to split.

    In ``a*x + b*y``, with a' = a / gcd and b' = b / gcd, y is split by a' and x by b'. The
    subscript then fixes both remainders and the sum of the quotients, as if stride and dilation
    were 1.
    """
    found = projections(nest)
    steps: dict[int, int] = {}
    for _, rows in found.maps:
        for row in rows:
            loops = [k for k, c in enumerate(row) if c]
            if len(loops) == 2:
                x, y = loops
                unit = gcd(row[x], row[y])
                for loop, other in ((x, y), (y, x)):
                    step = abs(row[other]) // unit
                    if step > 1:
                        steps.setdefault(loop, step)
    if not steps:
        return None
    parts, extents, columns = [], [], []
    for k, (part, extent) in enumerate(zip(found.parts, found.extents, strict=True)):
        step = steps.get(k, 1)
        for piece, factor in (
            (Part(part.loop, step), step),
            (Part(part.loop, step, remainder=True), 1),
        ):
            parts.append(piece)
            extents.append(piece.extent(extent))
            columns.append((k, factor))
    maps = tuple(
        (array, tuple(tuple(row[k] * factor for k, factor in columns) for row in rows))
        for array, rows in found.maps
    )
    return _separated(Projections(tuple(parts), tuple(extents), maps, found.specialised))


def _plain(nest: LoopNest) -> Projections:
    names = [name for name, _ in nest.loops]
    extents = []
    for name, extent in nest.loops:
        if not isinstance(extent, int):
            raise InputError(f"extent of loop {name}", extent, "must be an integer for a bound")
        extents.append(extent)
    maps = []
    for access in nest.accesses:
        rows = []
        for subscript in access.subscripts:
            terms = dict(subscript.terms)
            rows.append(tuple(terms.get(name, 0) for name in names))
        maps.append((access.array, tuple(rows)))
    # References that differ by constants only, as in a stencil, are one map.
    return Projections(tuple(map(Part, names)), tuple(extents), tuple(dict.fromkeys(maps)))


def _separated(found: Projections) -> Projections:
    """Drop parts of one value; make a subscript of each part that its residue fixes."""
    kept = [k for k, extent in enumerate(found.extents) if extent > 1]
    parts = tuple(found.parts[k] for k in kept)
    extents = tuple(found.extents[k] for k in kept)
    # A remainder has at most `step` values whatever the loop's extent.
    special = found.specialised or any(
        extent == 1 and not part.remainder
        for part, extent in zip(found.parts, found.extents, strict=True)
    )
    maps = []
    for array, rows in found.maps:
        separate: list[tuple[int, ...]] = []
        for row in rows:
            left, alone = _residues([row[k] for k in kept], extents)
            separate += [_unit(len(kept), k) for k in alone]
            separate += [left] if any(left) else []
            special = special or any(not parts[k].remainder for k in alone)
        maps.append((array, tuple(separate)))
    return Projections(parts, extents, tuple(dict.fromkeys(maps)), special)


def _residues(row: list[int], extents: Sequence[int]) -> tuple[tuple[int, ...], list[int]]:
    """What is left of a subscript, without common divisor, and the parts that it shows alone."""
    alone: list[int] = []
    changed = True
    while changed:
        changed = False
        for k, coefficient in enumerate(row):
            others = gcd(*(c for j, c in enumerate(row) if j != k))
            # Modulo the others' common divisor the subscript shows this part alone.
            if coefficient and others and extents[k] <= others // gcd(others, coefficient):
                alone.append(k)
                row = [c if j != k else 0 for j, c in enumerate(row)]
                changed = True
    unit = gcd(*row) or 1
    return tuple(c // unit for c in row), alone


def _unit(width: int, k: int) -> tuple[int, ...]:
    return tuple(int(j == k) for j in range(width))


# --- subspaces and their conditions -------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _System:
    """The conditions ``rows . (s, z) >= bounds``: s for each map, z for each group of parts."""

    parts: tuple[Part, ...]
    arrays: tuple[str, ...]
    groups: tuple[tuple[int, ...], ...]
    rows: tuple[tuple[int, ...], ...]
    bounds: tuple[int, ...]

    @property
    def width(self) -> int:
        return len(self.arrays) + len(self.groups)

    @classmethod
    def of(cls, found: Projections, *, limits: bool) -> _System:
        matrices = [rows for _, rows in found.maps]
        blocks = joined(len(found.parts), [row for rows in matrices for row in rows])
        groups: list[tuple[int, ...]] = []
        conditions: list[tuple[list[int], dict[tuple[int, ...], int], int]] = []
        for block in blocks:
            local = [
                echelon([[row[k] for k in block] for row in rows if any(row[k] for k in block)])
                for rows in matrices
            ]
            own, lattice = _block_lattice(local, block, limits=limits)
            groups += own
            for subspace in lattice:
                ranks = [_image_rank(rows, subspace) for rows in local]
                inside = {group: _image_rank(_coordinates(group, block), subspace) for group in own}
                conditions.append((ranks, inside, len(subspace)))
        needed = _strongest(
            ((*ranks, *(inside.get(group, 0) for group in groups)), rank)
            for ranks, inside, rank in conditions
        )
        # An exponent above 1 is never needed: capped at 1, every condition still holds.
        count = len(matrices)
        caps = [tuple(-x for x in _unit(count + len(groups), k)) for k in range(count)]
        return cls(
            found.parts,
            tuple(array for array, _ in found.maps),
            tuple(groups),
            (*(row for row, _ in needed), *caps),
            (*(rank for _, rank in needed), *[-1] * count),
        )

    def line(self, costs: Sequence[Fraction], point: Vector) -> tuple[Fraction, Fraction]:
        """Slope and value at log M = 0 of the cost of a point."""
        count = len(self.arrays)
        value = sum((c * z for c, z in zip(costs, point[count:], strict=True)), Fraction(0))
        return sum(point[:count], Fraction(0)), value

    def envelope(self, costs: Sequence[Fraction]) -> list[Vector]:
        """Points of least ``log M * sum(s) + costs . z``, one for each line, by rising log M."""
        count = len(self.arrays)
        no_limits = [0] * len(costs)

        def solve(
            prices: Sequence[Fraction | int], held: Sequence[Fraction | int], top: Fraction
        ) -> Vector:
            rows, bounds = [*self.rows], [*self.bounds]
            point = least(prices, [*rows, [-h for h in held]], [*bounds, -top])
            if point is None:
                raise UndecidedError("the conditions of the lattice have no solution")
            return point

        def extreme(first: Sequence[Fraction | int], second: Sequence[Fraction | int]) -> Vector:
            start = solve(first, [0] * self.width, Fraction(0))
            top = sum((a * x for a, x in zip(first, start, strict=True)), Fraction(0))
            return solve(second, first, top)

        by_sum: list[Fraction | int] = [*[1] * count, *no_limits]
        by_cost: list[Fraction | int] = [*[0] * count, *costs]

        def between(left: Vector, right: Vector) -> list[Vector]:
            (s0, c0), (s1, c1) = self.line(costs, left), self.line(costs, right)
            if s0 <= s1 or c1 <= c0:
                return []
            t = (c1 - c0) / (s0 - s1)
            middle = solve([*[t] * count, *costs], [0] * self.width, Fraction(0))
            s, c = self.line(costs, middle)
            if s * t + c >= s0 * t + c0 or s in (s0, s1):
                return []
            after = between(middle, right) if s > 1 else []
            return [*between(left, middle), middle, *after]

        left, right = extreme(by_cost, by_sum), extreme(by_sum, by_cost)
        last = [] if self.line(costs, left) == self.line(costs, right) else [right]
        return [left, *between(left, right), *last]

    def evened(self, costs: Sequence[Fraction], point: Vector) -> Exponents:
        """Of the points on the same line the one whose arrays share most evenly.

        The constant of a bound grows with the entropy of the exponents, so the largest of them is
        made as small as possible, then the next.
        """
        slope, value = self.line(costs, point)
        count = len(self.arrays)
        names = list(dict.fromkeys(self.arrays))
        shares = {n: [int(a == n) for a in self.arrays] + [0] * len(costs) for n in names}
        rows: list[list[Fraction | int]] = [
            *(list[Fraction | int]([*row, 0]) for row in self.rows),
            [*[-1] * count, *[0] * len(costs), 0],
            [*[0] * count, *(-c for c in costs), 0],
        ]
        bounds: list[Fraction | int] = [*self.bounds, -slope, -value]
        free, top = list(names), point
        while free:
            level = least(
                [0] * self.width + [1],
                [*rows, *([-x for x in shares[n]] + [1] for n in free)],
                [*bounds, *[0] * len(free)],
            )
            if level is None:
                raise UndecidedError("the optimal exponents cannot be evened")
            highest, top = level[-1], level[:-1]
            for name in free:
                rows.append([*(-x for x in shares[name]), 0])
                bounds.append(-highest)
            tight = [n for n in free if self._least_share(shares[n], rows, bounds) == highest]
            free = [n for n in free if n not in tight]
        arrays: dict[str, Fraction] = {}
        for name, s in zip(self.arrays, top[:count], strict=True):
            arrays[name] = arrays.get(name, Fraction(0)) + s
        limits = {
            self.parts[k]: z
            for group, z in zip(self.groups, top[count:], strict=True)
            for k in group
        }
        return Exponents(
            tuple((n, s) for n, s in arrays.items() if s),
            tuple((part, z) for part, z in limits.items() if z),
        )

    def _least_share(
        self,
        share: list[int],
        rows: list[list[Fraction | int]],
        bounds: list[Fraction | int],
    ) -> Fraction:
        point = least([*share, 0], rows, bounds)
        if point is None:
            raise UndecidedError("the optimal exponents cannot be evened")
        return sum((a * x for a, x in zip(share, point, strict=False)), Fraction(0))


def joined(count: int, rows: Iterable[Sequence[int]]) -> list[tuple[int, ...]]:
    """Coordinates joined by a row, transitively."""
    blocks = [{k} for k in range(count)]
    for row in rows:
        used = {k for k, c in enumerate(row) if c}
        met = [b for b in blocks if b & used]
        if len(met) > 1:
            blocks = [b for b in blocks if not b & used] + [set().union(*met)]
    return [tuple(sorted(b)) for b in blocks]


def _strongest(
    conditions: Iterable[tuple[tuple[int, ...], int]],
) -> list[tuple[tuple[int, ...], int]]:
    """Conditions ``row . x >= rank`` on x >= 0 that no other one implies."""
    found = sorted(set(conditions))

    def implied(row: tuple[int, ...], rank: int) -> bool:
        return any(
            other_rank >= rank
            and (other, other_rank) != (row, rank)
            and all(a <= b for a, b in zip(other, row, strict=True))
            for other, other_rank in found
        )

    return [(row, rank) for row, rank in found if not implied(row, rank)]


def _coordinates(group: Sequence[int], block: Sequence[int]) -> Matrix:
    return echelon([_unit(len(block), block.index(g)) for g in group])


def _block_lattice(
    maps: Sequence[Matrix], block: tuple[int, ...], *, limits: bool
) -> tuple[list[tuple[int, ...]], tuple[Matrix, ...]]:
    """The groups of a block's loops whose extents limit it, and the subspaces to check."""
    width = len(block)
    kernels = {null_space(rows, width) for rows in maps} | {null_space([], width)}
    if not limits:
        return [], _lattice(frozenset(kernels), width)
    single = {null_space(_coordinates([k], block), width) for k in block}
    try:
        return [(k,) for k in block], _lattice(frozenset(kernels | single), width)
    except UndecidedError:
        # All coordinates together have the kernel 0, which adds nothing to the lattice.
        return [block], _lattice(frozenset(kernels), width)


@lru_cache(maxsize=256)
def _lattice(generators: frozenset[Matrix], width: int) -> tuple[Matrix, ...]:
    """The non-zero subspaces generated under sum and intersection."""
    found = sorted(generators)
    seen = set(found)
    for i, first in enumerate(found):
        for second in found[:i]:
            meet = null_space([*null_space(first, width), *null_space(second, width)], width)
            for new in (echelon([*first, *second]), meet):
                if new not in seen:
                    seen.add(new)
                    found.append(new)
        if len(found) > LATTICE_LIMIT:
            raise UndecidedError(
                f"the lattice of the {len(generators)} kernels in {width} joined loops does not "
                f"close below {LATTICE_LIMIT} subspaces"
            )
    return tuple(subspace for subspace in found if subspace)


def _image_rank(rows: Matrix, subspace: Matrix) -> int:
    return len(
        echelon(
            [[sum(a * x for a, x in zip(row, v, strict=True)) for row in rows] for v in subspace]
        )
    )
