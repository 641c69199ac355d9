"""The red-blue pebble game on explicit graphs: its rules, exact least I/O, and schedules.

Red pebbles are words of fast memory, of which there are ``capacity``; blue pebbles are words of
slow memory, unlimited. Inputs start blue, every output must end blue, fast memory starts empty.

* load: a red pebble on a blue vertex; costs 1.
* store: a blue pebble on a red vertex; costs 1.
* compute: a red pebble on a vertex whose operands are all red; free.
* discard: a red pebble is taken away; free.

``sliding`` lets the result of a computation take the pebble of one of its operands. Without it the
result needs a pebble of its own beside them. ``recomputation`` lets a vertex be computed more than
once. Source: Hong and Kung 1981.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from pebble.cdag import Cdag
from pebble.errors import InfeasibleError, InputError
from pebble.exact import Search, Step, bits

Action = Literal["load", "store", "compute", "slide", "discard"]


@dataclass(frozen=True, slots=True)
class Move:
    """One move of the game; ``slid`` is the operand whose pebble a sliding result takes."""

    action: Action
    vertex: int
    slid: int | None = None


@dataclass(frozen=True, slots=True)
class Pebbling:
    """A schedule that moves the fewest words.

    Attributes:
        graph: what it computes.
        words: loads and stores.
        moves: in order; :func:`replay` checks them.
    """

    graph: Cdag
    words: int
    moves: tuple[Move, ...]

    def __str__(self) -> str:
        """One line a move: its cost, the move, and fast memory after it."""
        names, red = self.graph.names, set[int]()
        width = max((len(_text(move, names)) for move in self.moves), default=0)
        lines = [f"{self.words} words, {len(self.moves)} moves"]
        for move in self.moves:
            _place(move, red)
            cost = "1" if move.action in ("load", "store") else " "
            held = " ".join(names[v] for v in sorted(red))
            lines.append(f"{cost} {_text(move, names):<{width}} | {held}".rstrip())
        return "\n".join(lines)


def least_capacity(graph: Cdag, *, sliding: bool = False) -> int:
    """Fewest red pebbles with which the game can be finished.

    It is the largest number of operands of a needed vertex, plus one without sliding: every vertex
    can be computed from slow memory alone, and none with fewer.

    >>> least_capacity(Cdag(((), (), (0, 1)), (2,)))
    3
    """
    counts = [len(graph.predecessors[v]) for v in graph.needed()]
    return max((max(c, 1) if sliding else c + 1 for c in counts), default=1)


def least_io(
    graph: Cdag,
    capacity: int,
    *,
    sliding: bool = False,
    recomputation: bool = True,
    limit: int = 500_000,
) -> Pebbling:
    """The exact least number of loads and stores, with a schedule.

    Args:
        graph: layers and products of 24 vertices take seconds at any capacity, graphs without such
            structure up to about a minute at the smallest ones.
        capacity: red pebbles, words of fast memory.
        sliding, recomputation: rules of the game, see the module.
        limit: states that the search may hold, each about half a kilobyte.

    Raises:
        InfeasibleError: the capacity is below :func:`least_capacity`.
        TooLargeError: the limit was reached.

    >>> graph = Cdag.mac_chains({"y": [("x0", "w0"), ("x1", "w1")]})
    >>> print(least_io(graph, 4))
    5 words, 9 moves
    1 load x0     | x0
    1 load w0     | x0 w0
      compute y+1 | x0 w0 y+1
      discard x0  | w0 y+1
      discard w0  | y+1
    1 load x1     | y+1 x1
    1 load w1     | y+1 x1 w1
      compute y   | y+1 x1 w1 y
    1 store y     | y+1 x1 w1 y
    """
    least = least_capacity(graph, sliding=sliding)
    if capacity < least:
        raise InfeasibleError(
            f"capacity {capacity}: the graph needs at least {least} red pebbles "
            f"{'with' if sliding else 'without'} sliding",
            least,
        )
    search = Search(graph, capacity, sliding=sliding, recomputation=recomputation, limit=limit)
    words, steps = search.run()
    return Pebbling(graph, words, tuple(_moves(graph, steps)))


def replay(
    graph: Cdag,
    moves: Iterable[Move],
    capacity: int,
    *,
    sliding: bool = False,
    recomputation: bool = True,
) -> int:
    """Check a schedule move by move and return the words that it moves.

    Raises:
        InputError: a move that the rules forbid, or an output missing at the end.
    """
    red, blue, computed = set[int](), set(graph.inputs), set[int]()
    inputs, words, number = frozenset(graph.inputs), 0, 0
    for number, move in enumerate(moves, 1):
        vertex = move.vertex
        if not 0 <= vertex < graph.vertices:
            raise InputError(f"move {number}", vertex, f"the graph has {graph.vertices} vertices")
        wrong = _breach(graph, move, red, blue)
        if move.action in ("compute", "slide"):
            if vertex in inputs:
                wrong = "an input is not computed"
            elif vertex in computed and not recomputation:
                wrong = "the vertex was computed before"
            elif move.action == "slide" and not sliding:
                wrong = "sliding is not allowed"
            computed.add(vertex)
        _place(move, red)
        if not wrong and len(red) > capacity:
            wrong = f"{len(red)} red pebbles where {capacity} are allowed"
        if wrong:
            raise InputError(f"move {number}", _text(move, graph.names), wrong)
        if move.action == "store":
            blue.add(vertex)
        words += move.action in ("load", "store")
    missing = [graph.names[v] for v in graph.outputs if v not in blue]
    if missing:
        raise InputError("moves", number, f"end with outputs {', '.join(missing)} not stored")
    return words


def _breach(graph: Cdag, move: Move, red: set[int], blue: set[int]) -> str:
    """The rule that a move breaks, capacity and history apart; empty where it breaks none."""
    vertex, operands = move.vertex, graph.predecessors[move.vertex]
    if move.action == "load" and vertex not in blue:
        return "the vertex is not blue"
    if move.action in ("store", "discard") and vertex not in red:
        return "the vertex is not red"
    if move.action in ("load", "compute", "slide") and vertex in red:
        return "the vertex is red already"
    if move.action in ("compute", "slide") and not red.issuperset(operands):
        return "an operand is not red"
    if move.action == "slide" and move.slid not in operands:
        return "slides from a vertex that is no operand"
    return ""


def _place(move: Move, red: set[int]) -> None:
    if move.action in ("load", "compute", "slide"):
        red.add(move.vertex)
    if move.action == "discard":
        red.discard(move.vertex)
    if move.slid is not None:
        red.discard(move.slid)


def _text(move: Move, names: tuple[str, ...]) -> str:
    over = "" if move.slid is None else f" over {names[move.slid]}"
    return f"{move.action} {names[move.vertex]}{over}"


def _moves(graph: Cdag, steps: Iterable[Step]) -> Iterable[Move]:
    """The single moves of the search's steps; what a step drops goes when the next one begins."""
    red, kept, wanted = 0, 0, set(graph.outputs)
    for step in steps:
        slid = None if step.slid < 0 else step.slid
        for v in bits(red & ~kept):
            yield Move("discard", v)
        red = kept
        for v in bits(step.evicted):
            if step.stored >> v & 1:
                yield Move("store", v)
            if v != slid:
                yield Move("discard", v)
                red &= ~(1 << v)
        for v in graph.predecessors[step.vertex]:
            if not red >> v & 1:
                yield Move("load", v)
                red |= 1 << v
        if slid is None:
            yield Move("compute", step.vertex)
        else:
            yield Move("slide", step.vertex, slid)
            red &= ~(1 << slid)
        red |= 1 << step.vertex
        if step.vertex in wanted:
            wanted.discard(step.vertex)
            yield Move("store", step.vertex)
        kept = step.red_after
