"""Lower bounds of composite algorithms: several steps, each feeding the next.

The theory of Zhang, Xiao and Tan (PPoPP 2021, arXiv 2012.15667), after Hong and Kung (1981). Split
the computation's graph in steps. For a part of it that at most k vertices dominate at step j, let
phi_j(k) bound the vertices of the step that the part can hold, and psi_j(k) those among them that
the next step reads. Distributing S dominators over the steps, a part holds at most

    T(S) = S + max over k_1 + ... + k_n = S of
           phi_1(k_1) + phi_2(k_2 + psi_1(k_1)) + phi_3(k_3 + psi_2(k_2 + psi_1(k_1))) + ...

vertices, the S in front being the pebbled inputs themselves, and any schedule moves at least
Q >= S * (|V| / T(2S) - 1) words.

The maximum is found and proved with symbols: where all phi and psi are concave and do not fall, the
sum is concave in (k_1, ..., k_n), so that giving everything to one step is best as soon as no other
step would gain faster at that point. Where SymPy cannot decide a sign, the engine raises and names
the two expressions; it never puts numbers in for symbols.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

from pebble.errors import InputError, UndecidedError

# A SymPy expression; SymPy has no types of its own.
Expr = Any


@cache
def dominators() -> Expr:
    """The symbol k of phi(k) and psi(k): dominators that a step can use; positive."""
    import sympy

    return sympy.Symbol("k", positive=True)


@cache
def capacity() -> Expr:
    """The symbol S: words of fast memory, at least 1."""
    import sympy

    return sympy.Symbol("S", positive=True)


@dataclass(frozen=True)
class Step:
    """One step of a composite algorithm.

    Attributes:
        name: for the reader.
        vertices: phi, an expression in :func:`dominators`, :func:`capacity` and the sizes.
        outputs: psi, likewise; what the next step reads. Unused in the last step.
    """

    name: str
    vertices: Expr
    outputs: Expr = 0


@dataclass(frozen=True)
class Composite:
    """An algorithm of several steps.

    Attributes:
        name: for the reader.
        steps: in order.
        total: |V|, all vertices but the inputs.
        at_least: (symbol, least value) of size symbols beside S, as far as signs depend on them.
    """

    name: str
    steps: tuple[Step, ...]
    total: Expr
    at_least: tuple[tuple[Expr, int], ...] = ()

    def largest_part(self) -> Expr:
        """T(S), the largest part that S dominators and S stored results allow.

        Raises:
            UndecidedError: a step is not provably concave and rising, or no single step provably
                takes all dominators best.
        """
        import sympy

        if not self.steps:
            raise InputError("steps", (), "must hold at least one step")
        for step in self.steps:
            self._check_concave(step)
        budgets = [sympy.Symbol(f"k_{j + 1}", positive=True) for j in range(len(self.steps))]
        held = self._nested(budgets)
        undecided: list[tuple[Expr, Expr]] = []
        for chosen, budget in enumerate(budgets):
            at = {b: capacity() if b is budget else 0 for b in budgets}
            slopes = [_slope(held, b, at) for b in budgets]
            others = [slope for j, slope in enumerate(slopes) if j != chosen]
            signs = [self._at_least_as_large(slopes[chosen], other) for other in others]
            if all(signs):
                return sympy.expand(capacity() + held.subs(at))
            undecided += [
                (slopes[chosen], other)
                for other, sign in zip(others, signs, strict=True)
                if not sign
            ]
        first, second = undecided[0]
        raise UndecidedError(
            f"{self.name}: cannot prove that giving all dominators to one step is best: neither "
            f"{first} >= {second} nor the like for another step follows from the assumptions"
        )

    def bound(self) -> Expr:
        """Q >= S * (|V| / T(2S) - 1), exact in S and the sizes."""
        s = capacity()
        return s * (self.total / self.largest_part().subs(s, 2 * s) - 1)

    def leading_term(self) -> Expr:
        """The bound's leading term as the computation grows: S * |V| over the leading part."""
        import sympy

        s = capacity()
        part = self.largest_part().subs(s, 2 * s)
        degree = max(_degree(term, s) for term in sympy.Add.make_args(sympy.expand(part)))
        lead = sum(t for t in sympy.Add.make_args(sympy.expand(part)) if _degree(t, s) == degree)
        return sympy.simplify(s * self.total / lead)

    def _nested(self, budgets: list[Expr]) -> Expr:
        """Vertices of a part whose dominators are dealt out as ``budgets``."""
        held, passed = 0, 0
        for step, budget in zip(self.steps, budgets, strict=True):
            available = budget + passed
            held = held + _at(step.vertices, available)
            passed = _at(step.outputs, available)
        return held

    def _check_concave(self, step: Step) -> None:
        import sympy

        k = dominators()
        for part, expression in (("vertices", step.vertices), ("outputs", step.outputs)):
            slope = sympy.diff(expression, k)
            if not self._at_least_as_large(slope, 0):
                raise UndecidedError(
                    f"{self.name}: {part} of step {step.name} may fall: {slope} >= 0 is not proved"
                )
            bend = sympy.diff(slope, k)
            if not self._at_least_as_large(0, bend):
                raise UndecidedError(
                    f"{self.name}: {part} of step {step.name} may be convex: {bend} <= 0 is not "
                    "proved"
                )

    def _at_least_as_large(self, left: Expr, right: Expr) -> bool:
        """Whether left >= right provably, for S >= 1 and the sizes at their least or above."""
        import sympy

        if left == sympy.oo:
            return True
        if right == sympy.oo:
            return False
        difference = sympy.sympify(left) - sympy.sympify(right)
        for symbol, least in ((capacity(), 1), *self.at_least):
            # What lies above the least value is a symbol of its own that is not negative; squared,
            # since sizes mostly stand under roots.
            extra = sympy.Symbol(f"{symbol}_extra", nonnegative=True)
            difference = difference.subs(symbol, least + extra)
        difference = sympy.simplify(difference)
        if difference.is_nonnegative:
            return True
        return _root_dominates(difference)


def _slope(held: Expr, budget: Expr, at: dict[Expr, Expr]) -> Expr:
    """How fast ``held`` rises with one budget at a point; infinite where a root starts."""
    import sympy

    slope = sympy.diff(held, budget)
    if at[budget] == 0:
        slope = sympy.limit(slope, budget, 0, "+")
    return sympy.simplify(slope.subs(at))


def _at(expression: Expr, available: Expr) -> Expr:
    import sympy

    return sympy.sympify(expression).subs(dominators(), available)


def _degree(term: Expr, symbol: Expr) -> Expr:
    return term.as_powers_dict().get(symbol, 0)


def _root_dominates(difference: Expr) -> bool:
    """Whether a sum with one positive root and one negative number is provably not negative.

    root - c >= 0 follows from root**2 - c**2 >= 0 when both are not negative.
    """
    import sympy

    terms = sympy.Add.make_args(difference)
    falling = [t for t in terms if t.is_number and t.is_negative]
    rising = [t for t in terms if t not in falling]
    if len(falling) != 1 or not all(t.is_nonnegative for t in rising):
        return False
    squares = sympy.expand(sum(rising) ** 2 - falling[0] ** 2)
    return bool(squares.is_nonnegative)


def direct_convolution() -> Composite:
    """Direct convolution in two steps: products, then summation trees.

    R = taps / strides, at least 1, windows share a pixel: k dominators give at most
    2 * S * sqrt(R * k) products, all read by the trees, and k summands at most k - 1 sums.
    |V| = (2 * taps * C - 1) * outputs. Source: Zhang, Xiao and Tan, PPoPP 2021.
    """
    import sympy

    k, s = dominators(), capacity()
    reuse, taps, channels, outputs = sympy.symbols("R K_taps C O", positive=True)
    products = 2 * s * sympy.sqrt(reuse * k)
    return Composite(
        "direct convolution",
        (Step("products", products, products), Step("sums", k - 1)),
        (2 * taps * channels - 1) * outputs,
        ((reuse, 1),),
    )
