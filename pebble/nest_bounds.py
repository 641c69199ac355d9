"""Lower bounds on the words that any schedule of an affine loop nest moves, derived from the nest.

Model, as in :mod:`pebble.bounds`: a fast memory of M words, loads and stores cost 1, computing and
discarding are free, fast memory starts empty. Each point of the box of loops needs the elements
that it reads and a partial sum of the element that it writes in fast memory; every written element
is stored at least once. Sums may be formed in any order and in parts, and anything may be computed
again. A nest means what it says: every point of the box is computed, and different subscript
values are different elements (no padding).

Segments. Charge the first creation of each partial sum as a load and take it back with the
element's final store, so Q >= charged loads. Cut after every T charged loads: a segment touches at
most M + T words, which allows ``C * (K / sigma)**sigma * product of s**s`` points at K = M + T when
``|E| <= C * product of words(array)**s`` and sigma is the sum of the s. All segments but the last
are full. At T = M / (sigma - 1), for G points::

    Q >= G/C * (sigma-1)**(sigma-1) * product of (1/s)**s * M**(1-sigma) - M/(sigma-1)

Equal work. Cut in n runs of equal work instead. The words of a run were resident at its start (at
most M, none at the first start) or arrive in it as charged loads::

    Q >= n * sigma * (G / (n * C * product of s**s))**(1/sigma) - (n - 1) * M

for every n that divides G. The best n is near the number of segments above, has the same leading
term, and adds M where segments subtract M / (sigma - 1).

The exponents come from :mod:`pebble.projections`; C is the product of the powers of the extents.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import chain, product
from math import ceil, exp, log, prod
from typing import Any

from pebble.axis import Axis
from pebble.errors import InputError, UndecidedError
from pebble.fields import check_capacity
from pebble.nest import LoopNest
from pebble.projections import (
    Exponents,
    Part,
    Projections,
    joined,
    lifted,
    limited_exponents,
    projections,
)
from pebble.rational import echelon

# A SymPy expression; SymPy has no types of its own.
Expr = Any

ENUMERATION_LIMIT = 1 << 16
"""Points up to which the elements of a general access are counted one by one."""
_SCHEDULES = "any order, partial sums and recomputation"
_SAFE = 1 - 1e-9
"""Factor on values found in floating point: their rounding errors are far below it."""


@dataclass(frozen=True)
class NestBound(ABC):
    """One valid bound of a nest.

    Attributes:
        name: the theorem.
        nest: the computation.
        source: where the statement comes from.
        validity: for which capacities, extents and schedules the expression holds;
            :meth:`words` holds at every capacity.
    """

    name: str
    nest: LoopNest
    source: str
    validity: str

    @property
    @abstractmethod
    def expression(self) -> Expr:
        """The bound in words: a SymPy expression in M and the extents L_loop, all exact."""

    @property
    @abstractmethod
    def leading(self) -> Expr:
        """The expression without the term that is subtracted."""

    @abstractmethod
    def words(self, capacity_words: int) -> int:
        """Words that any schedule moves at least, at this capacity; not below 0.

        Raises:
            InputError: the capacity is below one word.
        """

    def latex(self) -> str:
        """The inequality, for a paper."""
        import sympy

        return rf"Q \ge {sympy.latex(self.expression)}"

    def __str__(self) -> str:
        return f"{self.name}: Q >= {self.expression}"


@dataclass(frozen=True)
class CompulsoryBound(NestBound):
    """Q >= the sum over arrays of the elements touched: each moves once."""

    @property
    def expression(self) -> Expr:
        """Symbols for an array whose count has one form for all extents, else the number."""
        import sympy

        found = projections(self.nest)
        return sympy.sympify(sum(_touched_symbolic(found, maps) for maps in _by_array(found)))

    @property
    def leading(self) -> Expr:
        """The expression itself."""
        return self.expression

    def words(self, capacity_words: int) -> int:
        """Elements touched, at any capacity."""
        check_capacity(capacity_words)
        found = projections(self.nest)
        return sum(_touched_words(found, maps) for maps in _by_array(found))


@dataclass(frozen=True)
class ExponentBound(NestBound):
    """A bound from one choice of exponents.

    Attributes:
        exponents: with ``|E| <= product of words(array)**s * product of extent(part)**z``.
    """

    exponents: Exponents

    @property
    def leading(self) -> Expr:
        """G/C times the constant and the power of M, in exact radicals."""
        import sympy

        sigma = _rational(self.exponents.total)
        value = self._work / self._set_limit
        return sympy.powsimp(value * (sigma - 1) ** (sigma - 1) * _capacity() ** (1 - sigma))

    @property
    def _work(self) -> Expr:
        """G. A loop of one iteration has no symbol: the exponents need not know it."""
        return prod(_extent(loop) for loop, extent in self.nest.loops if extent > 1)

    @property
    def _set_limit(self) -> Expr:
        """C * product of s**s: points that sigma words, one a unit of exponent, allow."""
        value = _rational(Fraction(1))
        for _, s in self.exponents.arrays:
            value *= _rational(s) ** _rational(s)
        for part, z in self.exponents.limits:
            value *= _part_extent(part) ** _rational(z)
        return value

    @property
    def _log_set_limit(self) -> float:
        extents = dict(self.nest.loops)
        return sum(float(s) * log(s) for _, s in self.exponents.arrays) + sum(
            float(z) * log(part.extent(int(extents[part.loop])))
            for part, z in self.exponents.limits
        )


@dataclass(frozen=True)
class SegmentBound(ExponentBound):
    """The segment argument of the module's head."""

    @property
    def expression(self) -> Expr:
        """The closed form at T = M / (sigma - 1)."""
        return self.leading - _capacity() / (_rational(self.exponents.total) - 1)

    def words(self, capacity_words: int) -> int:
        """The better of the two whole segment lengths beside M / (sigma - 1)."""
        check_capacity(capacity_words)
        best = capacity_words / (self.exponents.total - 1)
        return max(self._with_segments(capacity_words, t) for t in {int(best), ceil(best)})

    def _with_segments(self, capacity_words: int, length: int) -> int:
        """T * (G / chi(M + T) - 1), rounded the safe way; valid for every whole T."""
        if length < 1:
            return 0
        sigma = float(self.exponents.total)
        largest = sigma * log((capacity_words + length) / sigma) + self._log_set_limit
        share = exp(log(length) + log(self.nest.points) - largest)
        return max(ceil(share * _SAFE - length), 0)


@dataclass(frozen=True)
class EqualWorkBound(ExponentBound):
    """The equal-work argument of the module's head."""

    @property
    def expression(self) -> Expr:
        """The bound with n, the number of runs, a symbol."""
        import sympy

        runs = sympy.Symbol("n", integer=True, positive=True)
        sigma = _rational(self.exponents.total)
        share = (self._work / (runs * self._set_limit)) ** (1 / sigma)
        return sympy.powsimp(runs * sigma * share) - (runs - 1) * _capacity()

    def words(self, capacity_words: int) -> int:
        """The best of a few numbers of runs, whose works differ by at most one point."""
        check_capacity(capacity_words)
        sigma = float(self.exponents.total)
        work = int(self.nest.points)
        # The real optimum: runs as large as a segment that touches M * sigma / (sigma - 1) words.
        largest = sigma * log(capacity_words / (sigma - 1)) + self._log_set_limit
        share = min(max(exp(largest), 1.0), float(work))
        near = (work / share, work / int(share), work / ceil(share))
        counts = {1, *(int(n) for n in near), *(ceil(n) for n in near)}
        return max(self._with_runs(capacity_words, n) for n in counts)

    def _with_runs(self, capacity_words: int, runs: int) -> int:
        small, larger = divmod(int(self.nest.points), runs)
        words = (runs - larger) * self._cost(small) + larger * self._cost(small + 1)
        return max(ceil(words * _SAFE - (runs - 1) * capacity_words), 0)

    def _cost(self, work: int) -> float:
        """Fewest words on which so many points may be computed."""
        sigma = float(self.exponents.total)
        return sigma * exp((log(work) - self._log_set_limit) / sigma)


@lru_cache(maxsize=256)
def nest_bounds(nest: LoopNest) -> tuple[NestBound, ...]:
    """The bounds of a nest ``written += product of the others``: compulsory, then by exponents.

    The exponents are those that are best for some capacity at the nest's extents; each bound holds
    at every capacity, and its expression for all extents. Strided and dilated windows are also
    split in quotients and remainders (:func:`pebble.projections.lifted`), which is what makes the
    bounds of small filters sharp.

    Raises:
        InputError: not exactly one written reference, a written array that is also read, or an
            extent that is no integer.
        UndecidedError: the lattice of the subscripts' kernels does not close.

    >>> for bound in nest_bounds(LoopNest.from_einsum("ij,jk->ik", {"i": 9, "j": 9, "k": 9})):
    ...     print(bound)
    compulsory: Q >= L_i*L_j + L_i*L_k + L_j*L_k
    brascamp-lieb: Q >= 2*L_i*L_j*L_k/sqrt(M) - 2*M
    brascamp-lieb, equal work: Q >= 3*L_i**(2/3)*L_j**(2/3)*L_k**(2/3)*n**(1/3) - M*(n - 1)
    """
    _check_nest(nest)
    plain = projections(nest)
    found = dict.fromkeys(limited_exponents(plain), plain)
    split = lifted(nest)
    if split is not None:
        with suppress(UndecidedError):  # the bounds without splitting stand
            for exponents in limited_exponents(split):
                found.setdefault(exponents, split)
    return (
        CompulsoryBound(
            "compulsory",
            nest,
            "cold misses of the touched elements",
            f"every M; {_sizes(plain)}; {_SCHEDULES}",
        ),
        *chain.from_iterable(_from_exponents(nest, e, used) for e, used in found.items()),
    )


def nest_lower_bound(nest: LoopNest, capacity_words: int) -> int:
    """Words that any schedule of the nest moves at least: the largest of :func:`nest_bounds`.

    Args:
        nest: ``written += product of the others``.
        capacity_words: M, elements that the fast memory holds; at least 1.

    Raises:
        InputError, UndecidedError: as :func:`nest_bounds`; a capacity below one word.

    >>> nest_lower_bound(LoopNest.from_einsum("ij,jk->ik", {"i": 64, "j": 64, "k": 64}), 256)
    33024
    """
    check_capacity(capacity_words)
    return max(bound.words(capacity_words) for bound in nest_bounds(nest))


def _from_exponents(
    nest: LoopNest, exponents: Exponents, used: Projections
) -> tuple[NestBound, NestBound]:
    short = ", ".join(str(part) for part, _ in exponents.limits)
    name = f"brascamp-lieb, short {short}" if short else "brascamp-lieb"
    source, sizes = _source(exponents), f"{_sizes(used)}; {_SCHEDULES}"
    return (
        SegmentBound(name, nest, source, f"{_whole(exponents)}; {sizes}", exponents),
        EqualWorkBound(
            f"{name}, equal work",
            nest,
            source,
            f"every M and every n that divides the work; {sizes}",
            exponents,
        ),
    )


def _source(exponents: Exponents) -> str:
    base = "Christ et al. 2013, arXiv 1308.0068"
    if exponents.limits:
        base += "; limits after Dinh and Demmel 2020, arXiv 2003.00119"
    return f"{base}; constant derived in pebble.nest_bounds"


def _whole(exponents: Exponents) -> str:
    """Where the best segment, M / (sigma - 1) words, is whole."""
    step = (exponents.total - 1).numerator
    return "every M" if step == 1 else f"M a multiple of {step}"


def _sizes(used: Projections) -> str:
    if used.specialised:
        return "extents whose one-iteration loops and mixed-radix digits stay such"
    return "all extents"


# --- checks -------------------------------------------------------------------------------------


def _check_nest(nest: LoopNest) -> None:
    written = [a.array for a in nest.accesses if a.written]
    if len(written) != 1:
        raise InputError("nest", str(nest), f"must write one array, and writes {len(written)}")
    if any(a.array == written[0] for a in nest.accesses if not a.written):
        raise InputError(
            "nest", str(nest), f"reads {written[0]}, which it writes", "bound its parts instead"
        )


# --- symbols ------------------------------------------------------------------------------------


def _capacity() -> Expr:
    import sympy

    return sympy.Symbol("M", integer=True, positive=True)


def _extent(loop: str) -> Expr:
    import sympy

    return sympy.Symbol(f"L_{loop}", integer=True, positive=True)


def _part_extent(part: Part) -> Expr:
    import sympy

    whole = _extent(part.loop)
    if part.remainder:
        return sympy.Min(whole, part.step)
    return sympy.ceiling(whole / part.step)


def _rational(value: Fraction) -> Expr:
    import sympy

    return sympy.Rational(value.numerator, value.denominator)


# --- elements touched ---------------------------------------------------------------------------

_Map = tuple[tuple[int, ...], ...]


def _by_array(found: Projections) -> list[list[_Map]]:
    arrays: dict[str, list[_Map]] = {}
    for array, rows in found.maps:
        arrays.setdefault(array, []).append(rows)
    return list(arrays.values())


def _touched_words(found: Projections, maps: list[_Map]) -> int:
    """Elements that the references to one array touch, at least; of several the largest counts."""
    return max(prod(_values(*group) for group in _groups(found, rows)) for rows in maps)


def _touched_symbolic(found: Projections, maps: list[_Map]) -> Expr:
    """The same with the extents as symbols, where one form fits all; else the number."""
    total = 1
    for k, (rows, _) in zip(_group_parts(found, maps[0]), _groups(found, maps[0]), strict=True):
        symbols = [_part_extent(found.parts[j]) for j in k]
        if len(echelon(rows)) == len(symbols):
            total *= prod(symbols)
        elif len(rows) == 1 and {abs(c) for c in rows[0]} == {1}:
            total *= sum(symbols) - (len(symbols) - 1)
        else:
            return _touched_words(found, maps)
    return total if len(maps) == 1 else _touched_words(found, maps)


def _group_parts(found: Projections, rows: _Map) -> list[tuple[int, ...]]:
    used = {k for row in rows for k, c in enumerate(row) if c}
    return [block for block in joined(len(found.parts), rows) if used.intersection(block)]


def _groups(found: Projections, rows: _Map) -> list[tuple[_Map, tuple[int, ...]]]:
    """Subscripts that share loops, together: coefficients and extents of these loops."""
    return [
        (
            tuple(tuple(row[k] for k in block) for row in rows if any(row[k] for k in block)),
            tuple(found.extents[k] for k in block),
        )
        for block in _group_parts(found, rows)
    ]


def _values(rows: _Map, extents: tuple[int, ...]) -> int:
    """Distinct values of joined subscripts.

    In closed form where every point has its own value or there is one subscript of two loops; by
    enumeration for few points; else a lower bound, the largest set of loops whose points all have
    their own values.
    """
    if len(echelon(rows)) == len(extents):
        return prod(extents)
    if len(rows) == 1 and len(extents) == 2:
        # A negative coefficient counts the same values from the other end.
        stride, dilation = (abs(c) for c in rows[0])
        pixels = stride * (extents[0] - 1) + dilation * (extents[1] - 1) + 1
        return Axis(pixels, *extents, stride, dilation).touched(0, extents[0])
    if prod(extents) <= ENUMERATION_LIMIT:
        return len(
            {
                tuple(sum(c * x for c, x in zip(row, point, strict=True)) for row in rows)
                for point in product(*map(range, extents))
            }
        )
    chosen: list[int] = []
    for k in sorted(range(len(extents)), key=lambda k: -extents[k]):
        if len(echelon([[row[j] for j in (*chosen, k)] for row in rows])) > len(chosen):
            chosen.append(k)
    return prod(extents[k] for k in chosen)
