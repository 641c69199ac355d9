"""Explicit computation graphs of small nests: what the red-blue pebble game is played on."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from pebble.errors import InputError, TooLargeError
from pebble.nest import Access, LoopNest
from pebble.shapes import ConvShape

Terms = Mapping[Hashable, Sequence[Sequence[Hashable]]]
"""Of each output, the products that it sums, each given by its operands."""

MOST_POINTS = 100_000


@dataclass(frozen=True, slots=True)
class Cdag:
    """A computation graph, vertices numbered so that operands come first.

    A vertex without predecessors is an input, which starts in slow memory. If it is an output, it
    is a constant instead, computed from nothing: a convolution's output that sees only padding.

    Attributes:
        predecessors: the operands of each vertex.
        outputs: vertices that must end in slow memory.
        names: what each vertex is called; numbers where none are given.

    Raises:
        InputError: an operand that does not come before its vertex, a vertex named twice among
            the operands or outputs, an output that is no vertex, or a wrong number of names.

    >>> Cdag(((), (), (0, 1)), (2,)).inputs
    (0, 1)
    """

    predecessors: tuple[tuple[int, ...], ...]
    outputs: tuple[int, ...]
    names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        count = len(self.predecessors)
        for vertex, operands in enumerate(self.predecessors):
            if any(not 0 <= p < vertex for p in operands):
                raise InputError(
                    f"predecessors of vertex {vertex}",
                    operands,
                    f"must be vertices from 0 to {vertex - 1}",
                    "number operands first",
                )
            if len(set(operands)) != len(operands):
                raise InputError(f"predecessors of vertex {vertex}", operands, "repeat a vertex")
        if any(not 0 <= v < count for v in self.outputs):
            raise InputError("outputs", self.outputs, f"must be vertices from 0 to {count - 1}")
        if len(set(self.outputs)) != len(self.outputs):
            raise InputError("outputs", self.outputs, "repeat a vertex")
        if not self.names:
            object.__setattr__(self, "names", tuple(map(str, range(count))))
        if len(self.names) != count:
            raise InputError("names", len(self.names), f"must be {count}, one a vertex")

    @property
    def vertices(self) -> int:
        """Number of vertices."""
        return len(self.predecessors)

    @property
    def inputs(self) -> tuple[int, ...]:
        """Vertices that start in slow memory."""
        wanted = set(self.outputs)
        return tuple(
            v for v, operands in enumerate(self.predecessors) if not operands and v not in wanted
        )

    def needed(self) -> frozenset[int]:
        """The outputs and all that they depend on."""
        found = set(self.outputs)
        for vertex in reversed(range(self.vertices)):
            if vertex in found:
                found.update(self.predecessors[vertex])
        return frozenset(found)

    @classmethod
    def mac_chains(cls, terms: Terms) -> Cdag:
        """One vertex a multiply-accumulate, chained along each output in the order given.

        A vertex reads the operands of its product and the partial sum before it. The inputs are
        the operands; an output without terms is a constant.

        >>> graph = Cdag.mac_chains({"y": [("x0", "w0"), ("x1", "w1")]})
        >>> graph.predecessors, graph.outputs
        (((), (), (0, 1), (), (), (3, 4, 2)), (5,))
        """
        graph = _Builder()
        for output, products in terms.items():
            last: int | None = None
            for step, operands in enumerate(products, 1):
                name = str(output) if step == len(products) else f"{output}+{step}"
                last = graph.add(name, graph.inputs(operands), last)
            graph.finish(output, last)
        return graph.build()

    @classmethod
    def products_and_sums(cls, terms: Terms, *, tree: bool = False) -> Cdag:
        """A vertex for each product and for each addition of two values.

        Args:
            terms: of each output, the operands of its products.
            tree: add neighbours in a balanced tree rather than one after the other.

        >>> graph = Cdag.products_and_sums({"y": [("x0", "w0"), ("x1", "w1")]})
        >>> graph.predecessors[-1], graph.outputs
        ((2, 5), (6,))
        """
        graph = _Builder()
        for output, products in terms.items():
            row: list[int] = []
            for step, operands in enumerate(products, 1):
                name = str(output) if len(products) == 1 else f"{output}*{step}"
                row.append(graph.add(name, graph.inputs(operands)))
                if not tree and len(row) == 2:
                    row = [graph.add(_sum_name(output, step == len(products), step), row)]
            while len(row) > 1:
                pairs = [row[i : i + 2] for i in range(0, len(row), 2)]
                row = [
                    graph.add(_sum_name(output, len(pairs) == 1, len(graph.predecessors)), pair)
                    if len(pair) == 2
                    else pair[0]
                    for pair in pairs
                ]
            graph.finish(output, row[0] if row else None)
        return graph.build()


class _Builder:
    """Vertices so far, and the input of each operand."""

    def __init__(self) -> None:
        self.predecessors: list[tuple[int, ...]] = []
        self._names: list[str] = []
        self._outputs: list[int] = []
        self._inputs: dict[Hashable, int] = {}
        self._finished: set[Hashable] = set()

    def add(self, name: str, operands: Iterable[int], more: int | None = None) -> int:
        read = [*operands] if more is None else [*operands, more]
        self.predecessors.append(tuple(dict.fromkeys(read)))
        self._names.append(name)
        return len(self.predecessors) - 1

    def inputs(self, operands: Sequence[Hashable]) -> list[int]:
        if not operands:
            raise InputError("terms", operands, "a product needs at least one operand")
        for operand in operands:
            self._refuse_if(operand in self._finished, operand)
            if operand not in self._inputs:
                self._inputs[operand] = self.add(str(operand), ())
        return [self._inputs[operand] for operand in operands]

    def finish(self, output: Hashable, last: int | None) -> None:
        self._refuse_if(output in self._inputs, output)
        self._finished.add(output)
        self._outputs.append(self.add(str(output), ()) if last is None else last)

    @staticmethod
    def _refuse_if(both: bool, name: Hashable) -> None:
        if both:
            raise InputError("terms", name, "is an output and an operand", "rename one")

    def build(self) -> Cdag:
        return Cdag(tuple(self.predecessors), tuple(self._outputs), tuple(self._names))


def _sum_name(output: Hashable, last: bool, step: int) -> str:
    return str(output) if last else f"{output}+{step}"


def nest_terms(nest: LoopNest) -> dict[Hashable, list[tuple[Hashable, ...]]]:
    """Of each element that a nest writes, the operands of the products that it sums.

    Args:
        nest: integer extents, one written array that is not read; at most 100,000 points.

    Raises:
        InputError: another kind of nest.
        TooLargeError: more points.

    >>> nest = LoopNest.projective(
    ...     {"i": 1, "k": 2}, {"A": "ik", "x": "k", "y": "i"}, written="y"
    ... )
    >>> nest_terms(nest)
    {'y[0]': [('A[0,0]', 'x[0]'), ('A[0,1]', 'x[1]')]}
    """
    written = [access for access in nest.accesses if access.written]
    if len(written) != 1:
        raise InputError("accesses", str(nest), f"{len(written)} arrays are written", "write one")
    read = [access for access in nest.accesses if not access.written]
    if not read or any(access.array == written[0].array for access in read):
        raise InputError("accesses", str(nest), "must read other arrays than the one written")
    terms: dict[Hashable, list[tuple[Hashable, ...]]] = {}
    for point in _points(nest):
        operands = tuple(_element(access, _place(access, point)) for access in read)
        output = _element(written[0], _place(written[0], point))
        terms.setdefault(output, []).append(operands)
    return terms


def conv_terms(shape: ConvShape) -> dict[Hashable, list[tuple[Hashable, ...]]]:
    """Of each output of a layer, the (input, weight) pairs that it sums, padding left out.

    Args:
        shape: at most 100,000 dense multiply-accumulates.

    Raises:
        TooLargeError: more of them.

    >>> conv_terms(ConvShape.of((1, 1, 2), (1, 1, 2), pads=(1, 0)))
    {'output[0,0,0]': [('input[0,0,0]', 'weight[0,0,1]')], 'output[0,0,1]': \
[('input[0,0,0]', 'weight[0,0,0]'), ('input[0,0,1]', 'weight[0,0,1]')]}
    """
    nest = shape.nest()
    read, weight, written = nest.accesses
    terms: dict[Hashable, list[tuple[Hashable, ...]]] = {
        _element(written, place): [] for place in product(*map(range, shape.output_shape))
    }
    if not shape.batch:
        return terms
    for point in _points(nest):
        source, target = _place(read, point), _place(written, point)
        if _inside(source, shape.input_shape) and _inside(target, shape.output_shape):
            operands = (_element(read, source), _element(weight, _place(weight, point)))
            terms[_element(written, target)].append(operands)
    return terms


def _points(nest: LoopNest) -> Iterable[dict[str, int]]:
    names = [name for name, _ in nest.loops]
    if nest.points > MOST_POINTS:
        raise TooLargeError(f"{nest.points} points of the nest: at most {MOST_POINTS} are listed")
    ranges = []
    for name, extent in nest.loops:
        if extent != int(extent):
            raise InputError(f"extent of loop {name}", extent, "must be an integer to be listed")
        ranges.append(range(int(extent)))
    return (dict(zip(names, point, strict=True)) for point in product(*ranges))


def _place(access: Access, point: Mapping[str, int]) -> tuple[int, ...]:
    return tuple(subscript.at(point) for subscript in access.subscripts)


def _inside(place: tuple[int, ...], sizes: tuple[int, ...]) -> bool:
    return all(0 <= at < size for at, size in zip(place, sizes, strict=True))


def _element(access: Access, place: Iterable[int]) -> str:
    return f"{access.array}[{','.join(map(str, place))}]"
