"""Loop nests with affine array accesses: the computation that bounds and tilings speak about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from string import ascii_letters, ascii_uppercase

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

    @classmethod
    def from_einsum(cls, subscripts: str, extents: Mapping[str, int]) -> LoopNest:
        """The nest of an einsum with explicit output; operands are named A, B, ... in order.

        Args:
            subscripts: one letter a loop, for example ``"ij,jk->ik"``; a letter may occur twice in
                an operand (a diagonal), not in the output.
            extents: the extent of each letter.

        Raises:
            InputError: no or several arrows, a character that is no letter, an output letter that
                repeats or that no operand has, an extent missing or not used.

        >>> print(LoopNest.from_einsum("ij,jk->ik", {"i": 2, "j": 3, "k": 4}))
        for i < 2, j < 3, k < 4: C[i, k] += A[i, j] * B[j, k]
        """
        left, arrow, output = "".join(subscripts.split()).partition("->")
        if not arrow or "->" in output:
            raise InputError("einsum", subscripts, "must hold one '->'", "as in ij,jk->ik")
        operands = left.split(",")
        if len(operands) >= len(ascii_uppercase):
            raise InputError("einsum", subscripts, f"has over {len(ascii_uppercase) - 1} operands")
        letters = dict.fromkeys("".join(operands))
        for letter in (*letters, *output):
            if letter not in ascii_letters:
                raise InputError("einsum", subscripts, f"{letter!r} is no letter from a to Z")
        for letter in output:
            if letter not in letters:
                raise InputError("einsum", subscripts, f"no operand has the output's {letter!r}")
            if output.count(letter) > 1:
                raise InputError("einsum", subscripts, f"the output repeats {letter!r}")
        if set(extents) != set(letters):
            raise InputError(
                "extents", dict(extents), f"must name each of {', '.join(letters)}, and no other"
            )
        names = ascii_uppercase[: len(operands) + 1]
        arrays = dict(zip(names, (*operands, output), strict=True))
        return cls.projective({x: extents[x] for x in letters}, arrays, written=names[-1])

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
