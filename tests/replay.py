"""Replay a tiling multiply-accumulate by multiply-accumulate on an explicit fast memory.

The slowest and plainest count of all: sets of words, a capacity that is asserted, and every
multiply-accumulate asserted to be done exactly once with its operands resident.
"""

from itertools import product

from tiling import Traffic, tile_extents


def macs_of(shape):
    """All (n, g, k, c, output position, taps, input position), by enumeration."""
    relations = []
    for axis in shape.axes:
        triples = []
        for o, k in product(range(axis.outputs), range(axis.kernel)):
            x = axis.stride * o + axis.dilation * k - axis.pad_begin
            if 0 <= x < axis.inputs:
                triples.append((x, k, o) if axis.transposed else (o, k, x))
        relations.append(triples)
    return relations


def slides(before, after):
    """Whether an input tile moved forward along one axis and nothing else of it changed."""
    if before is None or before[:2] != after[:2]:
        return False
    moved = [b - a for a, b in zip(before[2], after[2], strict=True) if a != b]
    return len(moved) == 1 and moved[0] > 0


def replay(tiling):
    """Traffic and peak of a tiling, word by word."""
    shape, tile, schedule = tiling.shape, tiling.sizes, tiling.schedule
    relations = macs_of(shape)
    extents = tile_extents(shape)
    blocks = {
        loop: [range(s, min(s + tile[loop], extent)) for s in range(0, extent, tile[loop])]
        for loop, extent in extents.items()
    }
    loads = {"input": 0, "weight": 0, "output": 0}
    stores, peak, done = 0, 0, 0
    for group in range(shape.group):
        fast = {"input": set(), "weight": set(), "output": set()}
        held = dict.fromkeys(fast)
        begun, stored = set(), set()
        for step in product(*(range(len(blocks[loop])) for loop in schedule.order)):
            at = {loop: blocks[loop][i] for loop, i in zip(schedule.order, step, strict=True)}
            positions = [
                [t for t in relation if t[0] in at[name]]
                for name, relation in zip(shape.axis_names, relations, strict=True)
            ]
            macs = [
                (n, k, c, tuple(t[0] for t in p), tuple(t[1] for t in p), tuple(t[2] for t in p))
                for n, k, c in product(at["n"], at["k"], at["c"])
                for p in product(*positions)
            ]
            if not macs:
                continue
            where = tuple(at[name].start for name in shape.axis_names)
            tiles = {
                "input": (at["n"].start, at["c"].start, where),
                "weight": (at["k"].start, at["c"].start),
                "output": (at["n"].start, at["k"].start, where),
            }
            needs = {
                "input": {(n, c, x) for n, _, c, _, _, x in macs},
                "weight": {(k, c, t) for _, k, c, _, t, _ in macs},
                # The whole tile is held, also outputs of it that see only padding.
                "output": set(
                    product(
                        at["n"],
                        at["k"],
                        product(*(at[name] for name in shape.axis_names)),
                    )
                ),
            }
            if schedule.private and held["output"] != tiles["output"]:
                fast["input"], fast["weight"] = set(), set()
            for operand, need in needs.items():
                moved_away = held[operand] != tiles[operand] or operand == schedule.streamed
                if moved_away:
                    if operand == "output":
                        stores += len(fast["output"])
                        stored |= fast["output"]
                    stays = operand == "input" != schedule.streamed and slides(
                        held["input"], tiles["input"]
                    )
                    fast[operand] &= need if stays else set()
                missing = need - fast[operand]
                if operand == "output":
                    loads["output"] += len(missing & begun)
                    begun |= missing
                else:
                    loads[operand] += len(missing)
                fast[operand] |= need
                held[operand] = tiles[operand]
            for n, k, c, o, t, x in macs:
                assert (n, c, x) in fast["input"]
                assert (k, c, t) in fast["weight"]
                assert (n, k, o) in fast["output"]
            done += len(macs)
            used = {operand: len(words) for operand, words in fast.items()}
            if schedule.streamed:
                used[schedule.streamed] = 1
            peak = max(peak, sum(used.values()))
        stores += len(fast["output"])
        stored |= fast["output"]
        everything = (
            max(shape.batch, 0)
            * shape.group_out_channels
            * len(list(product(*map(range, shape.output_spatial))))
        )
        stores += everything - len(stored)
        del group
    assert done == shape.macs
    return Traffic(loads["input"], loads["weight"], loads["output"], stores), peak
