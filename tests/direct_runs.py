"""Runs of the direct kernel that the simulator and a device do alike, and what they must give."""

import random
from dataclasses import dataclass
from itertools import product
from math import prod

import numpy as np
from shapes import shape_from

from backends.cuda.plan import DirectPlan
from backends.reference import convolve
from pebble import ConvShape
from tiling import Schedule, Traffic, evaluate, tile_extents

# Relative to the sum of the absolute products: sums of a few thousand terms stay well inside.
TOLERANCE = {"float16": 2e-3, "float32": 1e-5, "float64": 1e-13}


@dataclass(frozen=True)
class Run:
    """A layer with random arrays and a tile."""

    shape: ConvShape
    tile: dict[str, int]
    x: np.ndarray
    w: np.ndarray

    @classmethod
    def of(cls, shape, tile, seed=0):
        rng = np.random.default_rng(seed)
        x = rng.standard_normal(shape.input_shape).astype(shape.dtype)
        w = rng.standard_normal(shape.weight_shape).astype(shape.dtype)
        return cls(shape, tile, x, w)


def random_runs(count, seed):
    """Small runs: every rank, strides, pads, dilations, groups, transposed, ragged tiles."""
    chance = random.Random(seed)
    runs = []
    while len(runs) < count:
        shape = shape_from(chance.randint, most_channels=4, most_size=6)
        if shape is None or shape.macs > 4000 or shape.output_words > 4000:
            continue
        tile = {loop: chance.randint(1, extent) for loop, extent in tile_extents(shape).items()}
        if DirectPlan.of(shape, tile, 4).blocks <= 40:
            runs.append(Run.of(shape, tile, seed=len(runs)))
    return runs


def tile_traffic(shape, tile):
    """Words of the kernel, from counts of each output tile and channel step of one group."""
    if shape.batch == 0:
        return Traffic(0, 0, 0, 0)
    cut = {
        loop: [(begin, min(begin + tile[loop], extent)) for begin in range(0, extent, tile[loop])]
        for loop, extent in tile_extents(shape).items()
    }
    inputs = weights = outputs = 0
    for n, k, *places in product(*(cut[loop] for loop in ("n", "k", *shape.axis_names))):
        spans = list(zip(shape.axes, places, strict=True))
        touched = prod(axis.touched(*place) for axis, place in spans)
        taps = prod(axis.used_taps(*place) for axis, place in spans)
        outputs += (n[1] - n[0]) * (k[1] - k[0]) * prod(end - begin for begin, end in places)
        for c in cut["c"]:
            inputs += (n[1] - n[0]) * (c[1] - c[0]) * touched
            weights += (k[1] - k[0]) * (c[1] - c[0]) * taps
    return Traffic(inputs, weights, 0, outputs).times(shape.group)


def model_traffic(shape, tile):
    """Words of the same schedule from the closed-form model."""
    return kernel_tiling(shape, tile).traffic


def kernel_tiling(shape, tile):
    """The kernel's schedule with a tile."""
    schedule = Schedule(("n", *shape.axis_names, "k", "c"), private=True)
    return evaluate(shape, 1, tile, schedule)


def check_values(run, output):
    """The output is the reference's up to the rounding of its sums."""
    wide = [array.astype(np.float64) for array in (run.x, run.w)]
    assert output.dtype == run.shape.dtype and output.shape == run.shape.output_shape
    right = convolve(*wide, run.shape)
    scale = convolve(*map(np.abs, wide), run.shape)
    assert (np.abs(output - right) <= TOLERANCE[run.shape.dtype] * scale).all()
