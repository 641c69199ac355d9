"""Random affine nests, and what sets of their iterations touch."""

from hypothesis import strategies as st

from pebble import Access, Affine, LoopNest


@st.composite
def affine_nests(draw):
    """Nests of 2 to 4 loops and 2 or 3 arrays: projective ones, or small coefficients."""
    names = "ijkl"[: draw(st.integers(2, 4))]
    extents = [draw(st.integers(1, 6)) for _ in names]
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
