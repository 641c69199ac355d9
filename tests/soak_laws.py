"""Many random shapes: bound <= traffic == counted. Run it outside the tests:

    PYTHONPATH=.:tests python tests/soak_laws.py --shapes 100000 --seed 1 --jobs 2

Every shape counted has a tiling and was walked; the rest is drawn again. Prints one line with the
numbers of shapes and violations and the closest ratio of traffic to bound; exits with 1 on any
violation.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from concurrent.futures import ProcessPoolExecutor

from shapes import shape_from

from backends.counting import walk
from pebble import InfeasibleError, TooLargeError
from pebble.bounds import lower_bound
from tiling import optimise

BLOCK = 500


def block(seed: int) -> tuple[int, float, list[str]]:
    """Check one block of shapes that have a tiling; returns their number, ratio, violations."""
    rng = random.Random(seed)
    checked, closest, wrong = 0, float("inf"), []
    while checked < BLOCK:
        channels = rng.choice((2, 6, 24, 64))
        size = rng.choice((3, 9, 14, 28))
        shape = shape_from(rng.randint, most_channels=channels, most_size=size)
        if shape is None or (shape.rank == 3 and size > 14):
            continue
        capacity = int(2 ** rng.uniform(0, 15))
        try:
            tiling = optimise(shape, capacity, private=rng.random() < 0.3)
            count = walk(tiling)
        except (InfeasibleError, TooLargeError):
            continue
        checked += 1
        bound = lower_bound(shape, capacity)
        if bound.words:
            closest = min(closest, tiling.traffic.words / bound.words)
        if not (
            bound.words <= tiling.traffic.words
            and count.traffic == tiling.traffic
            and count.peak_words <= tiling.footprint.words <= capacity
        ):
            wrong.append(f"{shape!r} at {capacity}: {bound}, {tiling}, {count}")
    return checked, closest, wrong


def main() -> int:
    """Run all blocks and report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--shapes", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    args = parser.parse_args()
    start, blocks = time.time(), -(-args.shapes // BLOCK)
    seeds = [args.seed * 1_000_003 + i for i in range(blocks)]
    with ProcessPoolExecutor(args.jobs) as pool:
        found = list(pool.map(block, seeds))
    checked = sum(row[0] for row in found)
    wrong = [line for row in found for line in row[2]]
    closest = min(row[1] for row in found)
    for line in wrong[:10]:
        print(line)
    print(
        f"{checked} shapes, {len(wrong)} violations, closest traffic/bound "
        f" {closest:.4f}, seed {args.seed}, {time.time() - start:.0f} s"
    )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
