"""Bounds for several processors, and at every boundary of a machine's memory.

Model of P processors. Each has a fast memory of M words of its own and does some of the layer's
multiply-accumulates (MACs); a word sent or received, or loaded or stored, costs 1. How the work is
split is free. The inequalities and the notation are those of :mod:`pebble.bounds`: a set of MACs
that touches i inputs, f weights and o outputs has at most min(i*f, i*o, f*o) MACs, and weight at
most sqrt(i*f*o); G is their number and G_w their weight in the whole layer.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isqrt

from pebble.axis import ceil_div
from pebble.bounds import FRACTION_BITS, Bound, lower_bound, root_sum
from pebble.errors import InputError
from pebble.machine import Machine
from pebble.shapes import ConvShape

_IRONY = "Irony, Toledo and Tiskin 2004 for the matrix product; weights and constant derived"


def touched_by_busiest(shape: ConvShape, processors: int) -> Bound:
    """Some processor touches i + f + o >= max(3 * (G_w/P)**(2/3), 3 * sqrt(G/P)) words.

    The processor with the most weight does at least G_w / P, the one with the most MACs at least
    G / P; the arithmetic-geometric mean turns i*f*o >= (G_w/P)**2 into the first term, and
    i*f, i*o, f*o >= G/P into the second. Whatever it does not hold at the start it must receive,
    and partial sums that it does not own it must send. Independent of the size of its memory.

    Source: Irony, Toledo and Tiskin 2004 and Ballard et al. 2012 for the matrix product; constants
    derived above.
    """
    _check(processors)
    # Integer roots round down, which is the safe side.
    by_pairs = isqrt(9 * ceil_div(shape.macs, processors))
    weight = root_sum(shape.weighted_macs)
    by_weight = _cube_root(27 * weight**2 // (processors**2 << 2 * FRACTION_BITS))
    words = max(by_pairs, by_weight)
    return Bound("busiest processor", words, _IRONY, note=f"of {processors} processors")


def received_by_busiest(shape: ConvShape, processors: int, held_words: int) -> Bound:
    """Some processor moves at least its touched words less those that it holds for free.

    Args:
        shape: the layer.
        processors: P, at least 1.
        held_words: words that each processor may hold at the start, or leave at the end, without
            cost: a balanced distribution of one copy is ``compulsory_words / P``.
    """
    touched = touched_by_busiest(shape, processors)
    words = max(touched.words - held_words, 0)
    note = f"of {processors} processors that hold {held_words} words each"
    return Bound("busiest processor", words, _IRONY, note=note)


def moved_by_busiest(shape: ConvShape, processors: int, capacity_words: int) -> Bound:
    """Some processor of memory M moves at least 2 * G_w / (P * sqrt(M)) - 2 * M words.

    The segment argument of :func:`pebble.bounds.loomis_whitney` for the processor with the most
    weight, G_w / P. Source: as there.
    """
    _check(processors)
    share = root_sum(shape.weighted_macs, divisor=processors**2 * capacity_words, factor=2)
    words = max(ceil_div(share, 1 << FRACTION_BITS) - 2 * capacity_words, 0)
    note = f"of {processors} processors with {capacity_words} words each"
    return Bound("busiest processor", words, _IRONY, note=note)


def moved_by_all(shape: ConvShape, processors: int, capacity_words: int) -> Bound:
    """All P processors together move at least 2 * G_w / sqrt(M) - 2 * M * P words.

    The segment argument on each processor, whose partial sums are created and stored there, added
    up: the weights of their shares add up to G_w however the work is split. It is the bound on the
    traffic between the multiprocessors of a GPU and its L2, with M one multiprocessor's memory.

    Source: as :func:`pebble.bounds.loomis_whitney`.
    """
    _check(processors)
    share = root_sum(shape.weighted_macs, divisor=capacity_words, factor=2)
    words = max(ceil_div(share, 1 << FRACTION_BITS) - 2 * capacity_words * processors, 0)
    return Bound("summed", words, _IRONY, note=f"{processors} memories of {capacity_words} words")


@dataclass(frozen=True, slots=True)
class BoundaryBound:
    """Least words between one memory level and the next one outwards.

    Attributes:
        level: the inner level's name.
        outer: the outer level's name.
        capacity_words: everything on the inner side of the boundary, all instances together.
        instance_words: the inner side of one instance.
        words: the largest valid bound.
        binding: its name.
    """

    level: str
    outer: str
    capacity_words: int
    instance_words: int
    words: int
    binding: str


def boundary_bounds(shape: ConvShape, machine: Machine) -> tuple[BoundaryBound, ...]:
    """A bound at every boundary of a machine, innermost first; never compare two boundaries.

    The fast memory of a boundary is all that lies on its inner side: the level itself and those
    inside it, of all instances. Where there are several instances, the summed form with the inner
    side of one holds as well, and the larger of the two is taken.

    Args:
        shape: the layer; words are of its dtype.
        machine: its levels, innermost first.
    """
    found = []
    for level, outer in zip(machine.levels, machine.levels[1:], strict=False):
        whole = machine.inside_words(level.name, shape.dtype)
        one = machine.inside_words(level.name, shape.dtype, instance=True)
        together = lower_bound(shape, whole)
        words, binding = together.words, together.binding
        if level.instances > 1:
            summed = moved_by_all(shape, level.instances, one)
            if summed.words > words:
                words, binding = summed.words, summed.name
        found.append(BoundaryBound(level.name, outer.name, whole, one, words, binding))
    return tuple(found)


def _check(processors: int) -> None:
    if processors < 1:
        raise InputError("processors", processors, "must be at least 1")


def _cube_root(value: int) -> int:
    """Largest integer whose cube is at most ``value``."""
    root = 1 << ceil_div(value.bit_length(), 3)
    while root**3 > value:
        root = (2 * root + value // root**2) // 3
    return root
