"""Every bound of small layers beside the exact optimum of the pebble game.

Prints, for each kind of layer, the number of instances (a graph and a capacity, from the least
feasible capacity up to the first at which the optimum is compulsory) and the median and largest
ratio of optimum to bound. Exits with 1 if a bound is above an optimum.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from random import Random
from statistics import median

from pebble import ConvShape, InputError
from pebble.bounds import lower_bound
from pebble.cdag import Cdag, conv_terms
from pebble.game import least_capacity, least_io

MOST_VERTICES = 16
FEWEST_INSTANCES = 300


def matrix_products() -> Iterator[ConvShape]:
    """Products of m x k and k x n as 1x1 convolutions, n positions; n = 1 is fully connected."""
    for m in range(1, 4):
        for k in range(1, 5):
            for n in range(1, 4):
                yield ConvShape.of((1, k, n), (m, k, 1))
                yield ConvShape.of((n, k, 1), (m, k, 1))


def lines() -> Iterator[ConvShape]:
    """One axis: kernel, stride, dilation, and padding at either end."""
    for kernel in (2, 3):
        for stride in (1, 2, 3):
            for dilation in (1, 2):
                for pads in ((0, 0), (1, 0), (1, 1)):
                    for size in range(3, 7):
                        yield from _legal((1, 1, size), (1, 1, kernel), stride, dilation, pads)


def planes() -> Iterator[ConvShape]:
    """Two axes."""
    for kernel in ((1, 2), (2, 2), (2, 1)):
        for size in ((2, 2), (2, 3), (3, 3)):
            for stride in (1, 2):
                for pads in ((0, 0, 0, 0), (0, 1, 0, 0), (1, 0, 0, 1)):
                    yield from _legal((1, 1, *size), (1, 1, *kernel), stride, 1, pads)


def groups() -> Iterator[ConvShape]:
    """Depthwise and grouped layers."""
    for size in (2, 3):
        yield from _legal((1, 2, size), (2, 1, 2), 1, 1, (0, 0), group=2)
        yield from _legal((1, 2, size), (4, 1, 1), 1, 1, (0, 0), group=2)
        yield from _legal((1, 4, size - 1), (2, 2, 1), 1, 1, (0, 0), group=2)


def transposed() -> Iterator[ConvShape]:
    """Transposed layers; a stride above the kernel leaves outputs that nothing reaches."""
    for size in (2, 3):
        for kernel in (2, 3):
            for stride in (1, 2, 3):
                for dilation in (1, 2):
                    weight = (1, 1, kernel)
                    yield from _legal(
                        (1, 1, size), weight, stride, dilation, (0, 0), transposed=True
                    )


def random_layers() -> Iterator[ConvShape]:
    """Layers of one and two axes drawn with a fixed seed."""
    random = Random(1981)
    for _ in range(500):
        rank = random.randint(1, 2)
        group = random.choice((1, 1, 2))
        channels = group * random.randint(1, 2)
        yield from _legal(
            (random.randint(1, 2), channels, *(random.randint(1, 4) for _ in range(rank))),
            (
                group * random.randint(1, 2),
                channels // group,
                *(random.randint(1, 3) for _ in range(rank)),
            ),
            random.randint(1, 3),
            random.randint(1, 2),
            tuple(random.randint(0, 1) for _ in range(2 * rank)),
            group=group,
        )


def _legal(
    size: tuple[int, ...],
    weight: tuple[int, ...],
    stride: int,
    dilation: int,
    pads: tuple[int, ...],
    *,
    group: int = 1,
    transposed: bool = False,
) -> Iterator[ConvShape]:
    rank = len(size) - 2
    try:
        yield ConvShape.of(
            size,
            weight,
            strides=(stride,) * rank,
            dilations=(dilation,) * rank,
            pads=pads,
            group=group,
            transposed=transposed,
        )
    except InputError:
        return


def ratios(shape: ConvShape, graph: Cdag) -> Iterator[float]:
    """Optimum over bound at every capacity; sliding, the rule that needs the fewer words."""
    capacity = least_capacity(graph, sliding=True)
    while True:
        words = least_io(graph, capacity, sliding=True).words
        yield words / lower_bound(shape, capacity).words
        if words == shape.compulsory_words:
            return
        capacity += 1


def main() -> int:
    """Print the table and check every instance."""
    print(f"{'layers':<18}{'graphs':>8}{'instances':>11}{'median':>9}{'largest':>9}")
    everything: list[float] = []
    total = 0
    seen: set[ConvShape] = set()
    for family in (matrix_products, lines, planes, groups, transposed, random_layers):
        graphs, found = 0, []
        for shape in family():
            if shape in seen or shape.macs == 0:
                continue
            seen.add(shape)
            terms = conv_terms(shape)
            for graph in (Cdag.mac_chains(terms), Cdag.products_and_sums(terms, tree=True)):
                if graph.vertices <= MOST_VERTICES:
                    graphs += 1
                    found += ratios(shape, graph)
        _print_row(family.__name__.replace("_", " "), graphs, found)
        everything += found
        total += graphs
    _print_row("all", total, everything)
    violated = sum(ratio < 1 for ratio in everything)
    print(f"{violated} bounds above the optimum")
    return 1 if violated or len(everything) < FEWEST_INSTANCES else 0


def _print_row(name: str, graphs: int, found: list[float]) -> None:
    print(f"{name:<18}{graphs:>8}{len(found):>11}{median(found):>9.3f}{max(found):>9.3f}")


if __name__ == "__main__":
    sys.exit(main())
