"""Random convolution shapes for the property tests."""

from hypothesis import strategies as st

from pebble import ConvShape, InputError


def shape_from(draw, most_channels=6, most_size=9):
    """A legal shape drawn by ``draw(least, most)``, or None where the drawn sizes are not legal."""
    rank, group = draw(1, 3), draw(1, 3)
    transposed = draw(0, 3) == 0
    c, k = draw(1, max(1, most_channels // group)), draw(1, max(1, most_channels // group))
    spatial = [draw(1, most_size) for _ in range(rank)]
    kernel = [draw(1, 7 if rank == 1 else 5) for _ in range(rank)]
    strides = [draw(1, 4) for _ in range(rank)]
    dilations = [draw(1, 3) for _ in range(rank)]
    pads = [draw(0, 4) if draw(0, 2) else 0 for _ in range(2 * rank)]
    extra = None
    if transposed:
        extra = [draw(0, max(s, d) - 1) for s, d in zip(strides, dilations, strict=True)]
    channels = (c * group, k) if transposed else (k * group, c)
    try:
        return ConvShape.of(
            (draw(1, 3), c * group, *spatial),
            (*channels, *kernel),
            strides=strides,
            pads=pads,
            dilations=dilations,
            group=group,
            transposed=transposed,
            output_padding=extra,
        )
    except InputError:
        return None


@st.composite
def conv_shapes(draw, **limits):
    """Legal shapes of rank 1 to 3: any stride, padding, dilation, group, and transposed ones."""
    shape = shape_from(lambda low, high: draw(st.integers(low, high)), **limits)
    if shape is None:
        from hypothesis import reject

        reject()
    return shape
