"""Loop nests with affine array accesses: the computation that bounds and tilings speak about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from pebble.errors import InputError, NotAffineError


@dataclass(frozen=True, slots=True)
class Affine:
    """An integer-affine subscript: ``constant + sum of coefficient * loop``.

    ``terms`` holds (loop name, non-zero coefficient), sorted by name.
    """

    terms: tuple[tuple[str, int], ...]
    constant: int = 0

    @classmethod
    def of(cls, terms: Mapping[str, int], constant: int = 0) -> Affine:
        """Build from a mapping of loop names to coefficients; zero coefficients are dropped."""
        for loop, coefficient in terms.items():
            if not isinstance(coefficient, int) or isinstance(coefficient, bool):
                raise NotAffineError(f"coefficient {coefficient!r} of loop {loop!r} is no integer")
        return cls(tuple(sorted((n, c) for n, c in terms.items() if c)), constant)

    @property
    def loops(self) -> tuple[str, ...]:
        """Names of the loops that move this subscript."""
        return tuple(name for name, _ in self.terms)

    def at(self, point: Mapping[str, int]) -> int:
        """Value at a point of the iteration space."""
        return self.constant + sum(c * point[name] for name, c in self.terms)

    def __str__(self) -> str:
        parts = [name if c == 1 else f"{c}*{name}" for name, c in self.terms]
        if self.constant or not parts:
            parts.append(str(self.constant))
        return " + ".join(parts).replace("+ -", "- ")


@dataclass(frozen=True, slots=True)
class Access:
    """One array reference, with an affine subscript for each dimension."""

    array: str
    subscripts: tuple[Affine, ...]
    written: bool = False

    @property
    def loops(self) -> frozenset[str]:
        """Names of the loops that any subscript depends on."""
        return frozenset(name for s in self.subscripts for name in s.loops)

    def __str__(self) -> str:
        return f"{self.array}[{', '.join(map(str, self.subscripts))}]"


@dataclass(frozen=True, slots=True)
class LoopNest:
    """A perfect nest ``written array += product of the others``.

    Attributes:
        loops: (name, extent) from outermost to innermost. Extents are positive; they are integers
            in a nest that runs, and may be fractions in a nest that only a log-space program sees.
        accesses: one reference for each array.
    """

    loops: tuple[tuple[str, int | Fraction], ...]
    accesses: tuple[Access, ...]

    def __post_init__(self) -> None:
        names = [name for name, _ in self.loops]
        for name, extent in self.loops:
            if extent <= 0:
                raise InputError(f"extent of loop {name}", extent, "must be positive")
            if names.count(name) > 1:
                raise InputError("loops", names, f"name {name!r} occurs more than once")
        for access in self.accesses:
            unknown = access.loops - set(names)
            if unknown:
                raise InputError(
                    f"subscripts of {access.array}",
                    str(access),
                    f"use loops {sorted(unknown)} that the nest does not have",
                )

    @classmethod
    def projective(
        cls, loops: Mapping[str, int], arrays: Mapping[str, Sequence[str]], written: str
    ) -> LoopNest:
        """A nest whose subscripts are single loops, for example a matrix product.

        >>> nest = LoopNest.projective(
        ...     {"i": 4, "j": 5, "k": 6}, {"A": "ik", "B": "kj", "C": "ij"}, written="C"
        ... )
        >>> print(nest)
        for i < 4, j < 5, k < 6: C[i, j] += A[i, k] * B[k, j]
        """
        accesses = tuple(
            Access(array, tuple(Affine.of({name: 1}) for name in names), array == written)
            for array, names in arrays.items()
        )
        return cls(tuple(loops.items()), accesses)

    @property
    def points(self) -> int | Fraction:
        """Product of the extents: iterations of the innermost statement."""
        total: int | Fraction = 1
        for _, extent in self.loops:
            total *= extent
        return total

    def __str__(self) -> str:
        loops = ", ".join(f"{name} < {extent}" for name, extent in self.loops)
        left = [str(a) for a in self.accesses if a.written]
        right = [str(a) for a in self.accesses if not a.written]
        return f"for {loops}: {', '.join(left)} += {' * '.join(right)}"
