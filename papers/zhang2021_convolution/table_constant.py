"""The printed bound of Zhang, Xiao and Tan beside the provable one, as channels grow.

Prints both bounds and their ratio, which tends to 8*sqrt(2); exits with 1 if it does not.
"""

from __future__ import annotations

import sys
from math import sqrt

from pebble import ConvShape
from pebble.bounds import lower_bound

CAPACITY_WORDS = 1024


def rows() -> list[tuple[int, int, int, float]]:
    """(channels, printed words, provable words, ratio) for a 3x3 layer on 34x34 pixels."""
    found = []
    for channels in (16, 128, 1024, 8192, 65536):
        shape = ConvShape.of((1, channels, 34, 34), (channels, channels, 3, 3))
        words = {b.name: b.words for b in lower_bound(shape, CAPACITY_WORDS).bounds}
        printed, provable = words["zhang-xiao-tan"], words["loomis-whitney"]
        found.append((channels, printed, provable, provable / printed))
    return found


def main() -> int:
    """Print the table and check its last row."""
    print(f"{'channels':>10}{'printed, words':>20}{'provable, words':>20}{'ratio':>10}")
    table = rows()
    for channels, printed, provable, ratio in table:
        print(f"{channels:>10}{printed:>20,}{provable:>20,}{ratio:>10.4f}")
    # T(2S) holds 2S - 1 besides its leading term: a share of 1 / (4 sqrt(2 R S)).
    expected = (
        8
        * sqrt(2)
        * (1 + (2 * CAPACITY_WORDS - 1) / (8 * sqrt(2) * CAPACITY_WORDS * sqrt(9 * CAPACITY_WORDS)))
    )
    print(f"8*sqrt(2) with the paper's lower-order term: {expected:.4f}")
    return 0 if abs(table[-1][3] / expected - 1) < 1e-3 else 1


if __name__ == "__main__":
    sys.exit(main())
