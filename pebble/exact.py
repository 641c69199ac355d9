"""The search behind :func:`pebble.game.least_io`: A* over normal forms of the red-blue game.

A state is (red, blue), bit masks over the vertices: what fast memory holds, and which computed
vertices slow memory holds. Inputs are always in slow memory. A step is one computation with all
that it needs: evictions, each with or without a store, loads of the missing operands, and the
computation. Only schedules of the following form are searched. None of the rules costs a word,
since every schedule can be brought into the form without moving more; the tests compare with a
search that has none of them.

Larger is better: with more red or more blue vertices at equal cost nothing is lost, since
discarding is free. (S) below refers to this.

1. A load waits until the computation that reads it first: the slot is idle before. A load that is
   read by none is left out.
2. An eviction waits until its slot is needed, by (S); the store of a vertex that is no output
   waits until its eviction.
3. An output is stored the moment it is first computed: the word is due, and blue only grows.
4. With recomputation, only ancestors of outputs still missing ("open" vertices) are computed.
   Without it, the open vertices are those not computed yet. A red vertex without open successors
   is dropped at once, a blue one forgotten.
5. With recomputation: let w be the only open successor of v, or of such a one in turn (w is "on
   the chain" of v). Then red w is worth at least red v, and blue w at least blue v: play any
   schedule that holds v with w in its slot (or place) instead, until it computes the last vertex
   of the chain before w, which needs nothing then. All vertices on the chain before w have been
   computed once, so by 3 no output among them is missing. So a red v with a red w is dropped, a
   blue v with a blue w forgotten, and v is not computed while w is red.
6. A vertex whose operands are all red is computed at once, if a slot is free: by (S) with
   recomputation. Without recomputation it is, if its result needs no slot afterwards, or if it
   frees, by 4, an operand that is not blue (hold, store and load the result where the schedule
   does so with the operand; one that is blue would be cheaper to evict than the result). When
   sliding it is also done in a full memory where such an operand, or with recomputation any that
   is dropped by 4 or 5, gives its slot.
7. Among the vertices to evict, those that are dropped after the step by 4 or 5 go first, and a
   sliding result takes the slot of such an operand if there is one, by (S).
8. Without recomputation, what is evicted and still has open successors is stored.

Without recomputation it must be known which vertices were computed: a computed vertex that was
dropped keeps its blue bit, which is harmless since nothing open reads it.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

from pebble.cdag import Cdag
from pebble.errors import TooLargeError

State = tuple[int, int]


class Step(NamedTuple):
    """One computation; masks of the vertices evicted before it and of those of them stored.

    ``slid`` is the operand whose slot the result takes, or -1.
    """

    vertex: int
    evicted: int
    stored: int
    slid: int
    red_after: int


def bits(mask: int) -> Iterator[int]:
    """Positions of the set bits, lowest first."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


@dataclass(frozen=True, slots=True)
class _Frame:
    """What depends only on which vertices are open.

    ``read`` are the operands of open vertices; ``before[w]`` the vertices that have w on their
    chain; ``ends`` those w that are on any chain.
    """

    open: int
    read: int
    before: tuple[int, ...]
    ends: int

    def covered(self, held: int) -> int:
        """Vertices with a held one on their chain."""
        found = 0
        for w in bits(held & self.ends):
            found |= self.before[w]
        return found


class Search:
    """A* from the empty fast memory to all outputs in slow memory."""

    def __init__(
        self, graph: Cdag, capacity: int, *, sliding: bool, recomputation: bool, limit: int
    ) -> None:
        count = graph.vertices
        self._capacity, self._limit = capacity, limit
        self._sliding, self._recomputation = sliding, recomputation
        self._operands = [sum(1 << p for p in operands) for operands in graph.predecessors]
        self._outputs = sum(1 << v for v in graph.outputs)
        self._inputs = sum(1 << v for v in graph.inputs)
        self._inner = sum(1 << v for v in graph.needed()) & ~self._inputs
        self._successors = [0] * count
        self._ancestors = [1 << v for v in range(count)]
        for v, operands in enumerate(graph.predecessors):
            for p in operands:
                self._successors[p] |= 1 << v
                self._ancestors[v] |= self._ancestors[p]
        self._frames: dict[int, _Frame] = {}

    def run(self) -> tuple[int, list[Step]]:
        """Least words and the steps of a schedule that moves no more.

        Raises:
            TooLargeError: more states than the limit.
        """
        start = (0, 0)
        cost_of = {start: 0}
        came: dict[State, tuple[State, Step]] = {}
        heap = [(self._remaining(*start), 0, start)]
        while True:
            _, rank, state = heapq.heappop(heap)
            cost = -rank
            if cost > cost_of[state]:
                continue
            if not self._outputs & ~state[1]:
                return cost, _path(came, state)
            for words, after, step in self._steps(*state):
                total = cost + words
                known = cost_of.get(after)
                if known is not None and known <= total:
                    continue
                cost_of[after] = total
                came[after] = state, step
                if len(cost_of) > self._limit:
                    raise TooLargeError(
                        f"exact pebbling: more than limit = {self._limit} states; raise limit, or "
                        "take a smaller graph"
                    )
                # Equal estimates: the deepest first.
                heapq.heappush(heap, (total + self._remaining(*after), -total, after))

    def _remaining(self, red: int, blue: int) -> int:
        """Never more than what is left to move: stores due and loads that no schedule avoids.

        Vertices below a missing output that are neither red nor blue must be computed, so their
        operands that only slow memory can supply must be loaded.
        """
        todo = self._outputs & ~blue
        stores, seen, loads = todo.bit_count(), 0, 0
        supplied = self._inputs if self._recomputation else self._inputs | blue
        while todo:
            vertex = todo & -todo
            todo ^= vertex
            seen |= vertex
            missing = self._operands[vertex.bit_length() - 1] & ~red
            loads |= missing & supplied
            todo |= missing & ~self._inputs & ~blue & ~seen
        return stores + loads.bit_count()

    # --- open vertices ----------------------------------------------------------------------------
    def _frame(self, red: int, blue: int) -> _Frame:
        missing = self._outputs & ~blue
        key = missing if self._recomputation else self._inner & ~(red | blue)
        found = self._frames.get(key)
        if found is None:
            found = self._frames[key] = self._make_frame(key)
        return found

    def _make_frame(self, key: int) -> _Frame:
        open_ = key
        if self._recomputation:
            for output in bits(key):
                open_ |= self._ancestors[output]
            open_ &= self._inner
        read = 0
        for v in bits(open_):
            read |= self._operands[v]
        before = [0] * len(self._successors)
        if self._recomputation:
            for v in bits(read):
                chain = self._successors[v] & open_
                while chain and not chain & (chain - 1):
                    w = chain.bit_length() - 1
                    before[w] |= 1 << v
                    chain = self._successors[w] & open_
        return _Frame(open_, read, tuple(before), sum(1 << w for w, m in enumerate(before) if m))

    # --- steps ------------------------------------------------------------------------------------
    def _steps(self, red: int, blue: int) -> list[tuple[int, State, Step]]:
        """(words, state after, step) of each step in normal form; only one where rule 6 applies."""
        frame = self._frame(red, blue)
        supply = red | blue | self._inputs
        free = red.bit_count() < self._capacity
        found: list[tuple[int, State, Step]] = []
        for w in bits(frame.open & ~red & ~frame.covered(red)):
            operands = self._operands[w]
            if operands & ~supply:
                continue
            held = red | operands | 1 << w
            stored = blue | self._outputs & 1 << w
            after = self._frame(held, stored)
            keep = held & after.read & ~after.before[w]
            if not operands & ~red:
                idle = operands & ~keep
                if not self._recomputation:
                    idle &= self._inner & ~blue
                at_once = self._recomputation or idle or not keep >> w & 1
                if (free and at_once) or (self._sliding and idle):
                    return self._with_evictions(red, blue, w, keep, after)
            found += self._with_evictions(red, blue, w, keep, after)
        return found

    def _with_evictions(
        self, red: int, blue: int, w: int, keep: int, after: _Frame
    ) -> list[tuple[int, State, Step]]:
        operands, new = self._operands[w], 1 << w
        full = red | operands
        words = (operands & ~red).bit_count() + (self._outputs & new & ~blue).bit_count()
        blue |= self._outputs & new
        found = []
        for evicted, slid in self._evictions(full, operands, keep):
            kept = (full | new) & keep & ~evicted
            if kept & after.ends:
                kept &= ~after.covered(kept)
            if not self._recomputation:
                storable = evicted & keep & self._inner & ~blue
                marked = blue | (full | new) & self._inner & ~kept
                step = Step(w, evicted, storable, slid, kept)
                found.append((words + storable.bit_count(), (kept, marked), step))
                continue
            for stored in _subsets(evicted & keep & self._inner & ~blue):
                state = kept, self._forget(blue | stored, after)
                step = Step(w, evicted, stored, slid, kept)
                found.append((words + stored.bit_count(), state, step))
        return found

    def _evictions(self, full: int, operands: int, keep: int) -> Iterator[tuple[int, int]]:
        """(evicted, operand slid over or -1) of each way to make room for one more."""
        excess = full.bit_count() + 1 - self._capacity
        others, first = full & ~operands, 0
        for v in bits(others & ~keep):
            if excess > 0:
                first |= 1 << v
                excess -= 1
        if excess <= 0:
            yield first, -1
            return
        choices = [1 << v for v in bits(others & keep)]
        idle = operands & ~keep if self._sliding else 0
        if not idle:
            for chosen in combinations(choices, excess):
                yield first | sum(chosen), -1
        if self._sliding:
            for slid in bits(idle & -idle or operands):
                for chosen in combinations(choices, excess - 1):
                    yield first | sum(chosen) | 1 << slid, slid

    def _forget(self, blue: int, after: _Frame) -> int:
        intermediate = blue & ~self._outputs
        if not intermediate:
            return blue
        intermediate &= after.read
        if blue & after.ends:
            intermediate &= ~after.covered(blue)
        return blue & self._outputs | intermediate


def _subsets(mask: int) -> Iterator[int]:
    subset = mask
    while True:
        yield subset
        if not subset:
            return
        subset = (subset - 1) & mask


def _path(came: dict[State, tuple[State, Step]], state: State) -> list[Step]:
    steps = []
    while state in came:
        state, step = came[state]
        steps.append(step)
    return steps[::-1]
