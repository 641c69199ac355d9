"""Exact linear algebra and linear programming over the rationals, for small systems."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import gcd, lcm

Matrix = tuple[tuple[int, ...], ...]
Vector = tuple[Fraction, ...]


def echelon(rows: Sequence[Sequence[int]]) -> Matrix:
    """The canonical basis of the rows' span over the rationals.

    Reduced row echelon form without zero rows, each scaled to coprime integers with a positive
    leading one.

    >>> echelon([[2, 4, 0], [1, 2, 3], [3, 6, 3]])
    ((1, 2, 0), (0, 0, 1))
    """
    left = [tuple(row) for row in rows]
    done: list[tuple[int, ...]] = []
    for column in range(len(left[0]) if left else 0):
        k = next((k for k, row in enumerate(left) if row[column]), None)
        if k is None:
            continue
        pivot = _coprime(left.pop(k), column)
        left = [_cleared(row, pivot, column) for row in left]
        done = [_cleared(row, pivot, column) for row in done] + [pivot]
    leads = [next(c for c, x in enumerate(row) if x) for row in done]
    return tuple(_coprime(row, lead) for row, lead in zip(done, leads, strict=True))


def _coprime(row: tuple[int, ...], lead: int) -> tuple[int, ...]:
    unit = gcd(*row) if row[lead] > 0 else -gcd(*row)
    return row if unit == 1 else tuple(x // unit for x in row)


def _cleared(row: tuple[int, ...], pivot: tuple[int, ...], column: int) -> tuple[int, ...]:
    factor = row[column]
    if not factor:
        return row
    scale = pivot[column]
    return tuple(scale * x - factor * p for x, p in zip(row, pivot, strict=True))


def null_space(rows: Sequence[Sequence[int]], columns: int) -> Matrix:
    """Canonical basis of all x of this many columns with ``row . x == 0`` for each row.

    >>> null_space([[1, 1]], 2)
    ((1, -1),)
    """
    reduced = echelon(rows)
    leads = [next(c for c, x in enumerate(row) if x) for row in reduced]
    scale = lcm(*(row[lead] for row, lead in zip(reduced, leads, strict=True)))
    basis = []
    for free in sorted(set(range(columns)) - set(leads)):
        vector = [0] * columns
        vector[free] = scale
        for row, lead in zip(reduced, leads, strict=True):
            vector[lead] = -row[free] * scale // row[lead]
        basis.append(vector)
    return echelon(basis)


def least(
    costs: Sequence[Fraction | int],
    rows: Sequence[Sequence[Fraction | int]],
    limits: Sequence[Fraction | int],
) -> Vector | None:
    """A vertex x >= 0 of least ``costs . x`` under ``rows . x >= limits``; None where none exists.

    The costs must not be negative, so that the slack basis is dual feasible: one dual simplex with
    Bland's rule, which cannot cycle.

    >>> least([1, 1, 1], [[1, 1, 0], [1, 0, 1], [0, 1, 1]], [1, 1, 1])
    (Fraction(1, 2), Fraction(1, 2), Fraction(1, 2))
    """
    width = len(costs)
    # Dictionary form: basic = constant + sum of coefficient * nonbasic.
    free = list(range(width))
    basic = [width + i for i in range(len(rows))]
    table = [[Fraction(x) for x in row] for row in rows]
    constants = [-Fraction(limit) for limit in limits]
    prices = [Fraction(c) for c in costs]
    while True:
        negative = [i for i, value in enumerate(constants) if value < 0]
        if not negative:
            break
        i = min(negative, key=lambda row: basic[row])
        row = table[i]
        entering = [k for k, x in enumerate(row) if x > 0]
        if not entering:
            return None
        j = min(entering, key=lambda k: (prices[k] / row[k], free[k]))
        # Solve row i for the entering variable and put it into the others.
        pivot = row[j]
        solved = [-x / pivot for x in row]
        solved[j] = 1 / pivot
        start = -constants[i] / pivot
        for k, other in enumerate(table):
            factor = other[j]
            if k != i and factor:
                constants[k] += factor * start
                table[k] = [x + factor * s for x, s in zip(other, solved, strict=True)]
                table[k][j] = factor * solved[j]
        factor = prices[j]
        prices = [x + factor * s for x, s in zip(prices, solved, strict=True)]
        prices[j] = factor * solved[j]
        table[i], constants[i] = solved, start
        free[j], basic[i] = basic[i], free[j]
    values = dict(zip(basic, constants, strict=True))
    return tuple(values.get(k, Fraction(0)) for k in range(width))
