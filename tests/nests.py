"""Random affine nests, and what sets of their iterations touch."""

from hypothesis import strategies as st

from pebble import Access, Affine, LoopNest

EXTENTS = st.integers(1, 6)


@st.composite
def affine_nests(draw, extent=EXTENTS, projective=None):
    """Nests of 2 to 4 loops and 2 or 3 arrays: projective ones, or small coefficients."""
    names = "ijkl"[: draw(st.integers(2, 4))]
    extents = [draw(extent) for _ in names]
    if projective is None:
        projective = draw(st.booleans())
    accesses = []
    for k, array in enumerate("CAB"[: draw(st.integers(2, 3))]):
        if projective:
            chosen = draw(st.sets(st.sampled_from(names)))
            subscripts = [Affine.of({name: 1}) for name in sorted(chosen)]
        else:
            subscripts = [
                Affine.of(
                    draw(st.dictionaries(st.sampled_from(names), st.integers(-2, 3), max_size=2)),
                    draw(st.integers(0, 2)),
                )
                for _ in range(draw(st.integers(1, 2)))
            ]
        accesses.append(Access(array, tuple(subscripts), written=k == 0))
    return LoopNest(tuple(zip(names, extents, strict=True)), tuple(accesses))


def touched(nest, points):
    """Distinct elements of each array over these points."""
    found = {access.array: set() for access in nest.accesses}
    for point in points:
        for access in nest.accesses:
            found[access.array].add(tuple(s.at(point) for s in access.subscripts))
    return found


def points_in(nest, order, tile):
    """Iterations in tiles of these sizes, both levels with the loops in this order."""
    extents = dict(nest.loops)

    def walk(level, point):
        if level == 2 * len(order):
            yield dict(point)
            return
        loop = order[level % len(order)]
        size = tile[loop]
        if level < len(order):
            values = range(0, extents[loop], size)
        else:
            values = range(point[loop], min(point[loop] + size, extents[loop]))
        kept = point.get(loop)
        for value in values:
            point[loop] = value
            yield from walk(level + 1, point)
        if kept is None:
            del point[loop]
        else:
            point[loop] = kept

    return walk(0, {})


def schedule_traffic(nest, points, capacity):
    """Loads and stores of the iterations in this order, evicting what is used last again.

    Every iteration needs all its words at once; a sum starts in fast memory, is stored when it is
    evicted or at the end, and is loaded when it is needed again. None where an iteration's words
    do not fit.
    """
    written = next(a.array for a in nest.accesses if a.written)
    steps = [
        {(a.array, tuple(s.at(point) for s in a.subscripts)) for a in nest.accesses}
        for point in points
    ]
    following, later = [], {}
    for i in reversed(range(len(steps))):
        following.append({word: later.get(word, len(steps)) for word in steps[i]})
        later.update(dict.fromkeys(steps[i], i))
    following.reverse()
    held, started, words = {}, set(), 0
    for needed, next_use in zip(steps, following, strict=True):
        if len(needed) > capacity:
            return None
        missing = [word for word in needed if word not in held]
        for _ in range(len(held) + len(missing) - capacity):
            victim = max((w for w in held if w not in needed), key=held.__getitem__)
            # A complete sum leaves for good; so must one that is needed again.
            words += victim[0] == written
            del held[victim]
        for word in missing:
            words += word[0] != written or word in started
        started |= needed
        held.update(next_use)
    return words + sum(word[0] == written for word in held)
