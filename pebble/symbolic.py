"""The bounds as SymPy expressions, for reading and for deriving; LaTeX through ``sympy.latex``.

Two forms. :func:`formulas` keeps every size a symbol, and holds where no window meets padding, the
dilation is 1, and each axis has at least as many outputs as a residue class has taps.
:func:`expressions` takes any shape and keeps only the fast memory M a symbol, with exact radicals.
Neither puts a number in to decide a symbol.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from math import prod
from typing import Any

from pebble.errors import InputError
from pebble.shapes import ConvShape

# A SymPy expression; SymPy has no types of its own.
Expr = Any

_NAMES = {1: ("w",), 2: ("h", "w"), 3: ("d", "h", "w")}


@dataclass(frozen=True)
class Symbols:
    """The sizes as positive integer symbols: N, C, K, g, and per axis outputs, kernel, stride."""

    batch: Expr
    in_channels: Expr
    out_channels: Expr
    group: Expr
    outputs: tuple[Expr, ...]
    kernel: tuple[Expr, ...]
    strides: tuple[Expr, ...]
    capacity: Expr


@cache
def symbols(rank: int) -> Symbols:
    """Symbols of a convolution of rank 1 to 3: N, C, K, g, O_h, k_h, s_h and so on, and M."""
    import sympy

    if rank not in _NAMES:
        raise InputError("rank", rank, "must be 1, 2 or 3")

    def make(*names: str) -> tuple[Expr, ...]:
        return tuple(sympy.Symbol(name, integer=True, positive=True) for name in names)

    axes = _NAMES[rank]
    batch, in_channels, out_channels, group, capacity = make("N", "C", "K", "g", "M")
    return Symbols(
        batch,
        in_channels,
        out_channels,
        group,
        outputs=make(*(f"O_{a}" for a in axes)),
        kernel=make(*(f"k_{a}" for a in axes)),
        strides=make(*(f"s_{a}" for a in axes)),
        capacity=capacity,
    )


def formulas(rank: int) -> dict[str, Expr]:
    """Each closed-form bound with every size a symbol, by the names of ``pebble.bounds``.

    >>> print(formulas(1)["pairs"])
    9*C*K*N*O_w*k_w/(4*M*g) - M
    """
    import sympy

    v = symbols(rank)
    m = v.capacity
    positions, taps, stride = prod(v.outputs), prod(v.kernel), prod(v.strides)
    channels = v.batch * v.out_channels * v.in_channels / v.group
    macs = channels * positions * taps
    touched = v.batch * v.in_channels
    weighted = channels
    for o, k, s in zip(v.outputs, v.kernel, v.strides, strict=True):
        # Windows overlap or touch where k >= s; else each touches its own k pixels.
        touched *= sympy.Piecewise((s * (o - 1) + k, k >= s), (o * k, True))
        rounds, large = sympy.floor(k / s), sympy.Mod(k, s)
        weighted *= o * (
            large * sympy.sqrt(rounds + 1) + (sympy.Min(s, k) - large) * sympy.sqrt(rounds)
        )
    outputs = v.batch * v.out_channels * positions
    weights = v.out_channels * v.in_channels / v.group * taps
    found = {
        "compulsory": touched + weights + outputs,
        "loomis-whitney": 2 * weighted / sympy.sqrt(m) - 2 * m,
        "pairs": sympy.Rational(9, 4) * macs / m - m,
        "zhang-xiao-tan": m
        * (
            (2 * taps * v.in_channels / v.group - 1)
            * outputs
            / (8 * sympy.sqrt(2) * m * sympy.sqrt(taps / stride * m) + 2 * m - 1)
            - 1
        ),
        "demmel-dinh": sympy.Max(
            outputs,
            stride * v.batch * v.in_channels * positions,
            weights,
            macs / m,
            macs / sympy.sqrt(m * taps / stride),
        ),
    }
    return {name: sympy.sympify(expression) for name, expression in found.items()}


def expressions(shape: ConvShape) -> dict[str, Expr]:
    """Each proved closed-form bound of one shape as an exact expression in M.

    >>> shape = ConvShape.of((1, 3, 227, 227), (96, 3, 11, 11), strides=(4, 4))
    >>> print(expressions(shape)["pairs"])
    -M + 237184200/M
    """
    import sympy

    m = symbols(shape.rank).capacity
    weighted = sum(
        (sympy.Integer(count) / sympy.sqrt(reuse) for count, reuse in shape.weighted_macs),
        sympy.Integer(0),
    )
    return {
        "compulsory": sympy.Integer(shape.compulsory_words),
        "loomis-whitney": 2 * weighted / sympy.sqrt(m) - 2 * m,
        "pairs": sympy.Rational(9 * shape.macs, 4) / m - m,
    }


def substitution(shape: ConvShape) -> dict[Expr, int]:
    """Values of :func:`symbols` for a shape, without M; for ``expression.subs``."""
    v = symbols(shape.rank)
    values = {
        v.batch: shape.batch,
        v.in_channels: shape.in_channels,
        v.out_channels: shape.out_channels,
        v.group: shape.group,
    }
    for i, axis in enumerate(shape.axes):
        values[v.outputs[i]] = axis.outputs
        values[v.kernel[i]] = axis.kernel
        values[v.strides[i]] = axis.stride
    return values
