"""Exact linear algebra and linear programming over the rationals, for small systems."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

Vector = tuple[Fraction, ...]
Matrix = tuple[Vector, ...]


def echelon(rows: Sequence[Sequence[Fraction | int]]) -> Matrix:
    """Reduced row echelon form without zero rows: the canonical basis of the rows' span.

    >>> [[int(x) for x in row] for row in echelon([[2, 4, 0], [1, 2, 3], [3, 6, 3]])]
    [[1, 2, 0], [0, 0, 1]]
    """
    left = [[Fraction(x) for x in row] for row in rows]
    done: list[list[Fraction]] = []
    for column in range(len(left[0]) if left else 0):
        pivot = next((row for row in left if row[column]), None)
        if pivot is None:
            continue
        left.remove(pivot)
        scaled = [x / pivot[column] for x in pivot]
        left = [_cleared(row, scaled, column) for row in left]
        done = [_cleared(row, scaled, column) for row in done] + [scaled]
    return tuple(tuple(row) for row in done)


def _cleared(row: list[Fraction], pivot: list[Fraction], column: int) -> list[Fraction]:
    factor = row[column]
    if not factor:
        return row
    return [x - factor * p for x, p in zip(row, pivot, strict=True)]


def null_space(rows: Sequence[Sequence[Fraction | int]], columns: int) -> Matrix:
    """Canonical basis of all x of this many columns with ``row . x == 0`` for each row.

    >>> null_space([[1, 1]], 2)
    ((Fraction(1, 1), Fraction(-1, 1)),)
    """
    reduced = echelon(rows)
    leads = [next(c for c, x in enumerate(row) if x) for row in reduced]
    basis = []
    for free in sorted(set(range(columns)) - set(leads)):
        vector = [Fraction(0)] * columns
        vector[free] = Fraction(1)
        for row, lead in zip(reduced, leads, strict=True):
            vector[lead] = -row[free]
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
