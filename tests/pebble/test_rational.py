"""Exact elimination and the dual simplex against SymPy and SciPy."""

import numpy as np
import pytest
import sympy
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from pebble.rational import echelon, least, null_space


def matrices(low, high, most_rows=5, most_columns=5):
    return st.integers(1, most_columns).flatmap(
        lambda n: st.lists(
            st.lists(st.integers(low, high), min_size=n, max_size=n),
            min_size=1,
            max_size=most_rows,
        )
    )


@settings(max_examples=100, deadline=None)
@given(matrices(-4, 4))
def test_elimination(rows):
    reduced, _ = sympy.Matrix(rows).rref()
    found = echelon(rows)
    assert len(found) == sympy.Matrix(rows).rank()
    for k, row in enumerate(found):
        lead = next(x for x in row if x)
        assert lead > 0
        assert list(reduced.row(k) * lead) == list(row)
    kernel = null_space(rows, len(rows[0]))
    assert len(kernel) == len(rows[0]) - len(found)
    for vector in kernel:
        assert all(sum(a * x for a, x in zip(row, vector, strict=True)) == 0 for row in rows)


@settings(max_examples=200, deadline=None)
@given(matrices(-3, 4, most_rows=8, most_columns=6), st.data())
def test_dual_simplex(rows, data):
    width = len(rows[0])
    costs = data.draw(st.lists(st.integers(0, 5), min_size=width, max_size=width))
    limits = data.draw(st.lists(st.integers(-5, 6), min_size=len(rows), max_size=len(rows)))
    found = least(costs, rows, limits)
    peer = linprog(costs, A_ub=-np.array(rows), b_ub=-np.array(limits), method="highs")
    assert (found is None) == (peer.status == 2)
    if found is not None:
        assert min(found) >= 0
        for row, limit in zip(rows, limits, strict=True):
            assert sum(a * x for a, x in zip(row, found, strict=True)) >= limit
        value = sum(c * x for c, x in zip(costs, found, strict=True))
        assert float(value) == pytest.approx(peer.fun, abs=1e-7)
