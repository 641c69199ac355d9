"""Direct convolution, output-stationary: the plain kernel that fits every shape.

Computes ``y[n, k, o] = sum over c, t of x[n, c, q(o, t)] * w[k, c, t]`` for the taps t whose input
position q(o, t) is real; x, w and y are flat arrays in ONNX's layouts (NC + spatial, and KC/group
or, transposed, CK/group + kernel). Ranks 1 and 2 run as rank 3 with axes of one point.

Mapping: one block computes one output tile of one group; the grid is one-dimensional, and a block's
number counts, from the slowest, tiles of n, groups, and tiles of k, d, h, w. Inside a block thread
i computes the outputs i, i + threads, ... of its tile, in registers. Input channels pass in steps
of the tile's c: a step stages its input words and its weights from global to shared memory, each
once, and adds its products. Each output is stored once, after the last step.

What is staged: per axis, the positions that some (output, tap) of the tile reads, and the taps that
meet a real input there. Holes of a stride above the kernel or of a dilation, and padding, are
never loaded. The block finds both by itself (``survey``), so that it loads no tables.

Words of a block, with touched and used counted for its tile and sizes cut at the extents:
    input loads    n * C * prod(touched)        over all steps, C channels of the group
    weight loads   k * C * prod(used taps)
    output stores  n * k * prod(outputs)        no output is loaded
Shared bytes: ``DirectPlan.shared_bytes``, that is word * (n * c * prod(touched) +
k * c * prod(taps)) and per axis 2 * outputs * kernel + 8 * touched + 8 * kernel, each array rounded
up to 8.

Limits: those of ``DirectPlan``; float16, float32 and float64, added in float32, float32 and
float64. Offsets have 64 bits. Subnormal numbers are kept. More than a few outputs a thread may lie
in the thread's local memory, which is not counted; it is read and written once an output and step.
"""

from __future__ import annotations

from functools import lru_cache
from math import gcd
from typing import Any

from numba import cuda, int16, int32, int64

from backends.cuda.intrinsics import (
    ACCUMULATOR,
    WORD,
    device_function,
    global_load,
    global_store,
)
from backends.cuda.plan import DirectPlan
from pebble.axis import Axis

UNKNOWN = -2
PADDING = -1


@device_function
def source(relation: tuple[int, ...], output: int, tap: int) -> int:
    """Input position that a tap of an output reads, or PADDING where there is none."""
    stride, dilation, pad, read, _, transposed = relation
    if transposed:
        spread = output + pad - dilation * tap
        position = spread // stride
        return position if spread == stride * position and 0 <= position < read else PADDING
    position = stride * output + dilation * tap - pad
    return position if 0 <= position < read else PADDING


@device_function
def first_pair(relation: tuple[int, ...], common: int, pair: int) -> int:
    """First pair of the tile that reads the same input position as ``pair``.

    Pairs of one position lie on a line: the output goes ``back`` while the tap goes ``on``.
    """
    stride, dilation, _, _, kernel, transposed = relation
    tap = pair % kernel
    if transposed:
        back, on, room = dilation, -1, tap
    else:
        back, on = dilation // common, stride // common
        room = (kernel - 1 - tap) // on
    steps = min(pair // kernel // back, room)
    return pair - steps * (back * kernel - on)


@device_function
def survey(
    relation: tuple[int, ...], common: int, threads: int, begin: int, size: int, slots: Any,
    positions: Any, taps: Any, used: Any, counts: Any, which: int,
) -> None:  # fmt: skip
    """Find what a tile of one axis touches, with all threads of the block.

    A pair is ``output * kernel + tap`` with the output counted from the tile's begin. Afterwards
    ``slots[pair]`` numbers the pair's input position among the touched ones, or is PADDING;
    ``positions[slot]`` is that position; ``taps`` lists the used taps in order; and ``counts``
    holds the number of touched positions at ``which`` and of used taps at ``which + 3``, which must
    be zero before.

    Args:
        relation: stride, dilation, pad, input positions, taps, and whether transposed.
        common: greatest common divisor of stride and dilation.
    """
    thread = cuda.threadIdx.x
    kernel = relation[4]
    for tap in range(thread, kernel, threads):
        used[tap] = 0
    cuda.syncthreads()
    for pair in range(thread, size * kernel, threads):
        position = source(relation, begin + pair // kernel, pair % kernel)
        if position == PADDING:
            slots[pair] = PADDING
            continue
        used[pair % kernel] = 1
        if first_pair(relation, common, pair) == pair:
            slot = cuda.atomic.add(counts, which, 1)
            slots[pair] = slot
            positions[slot] = position
        else:
            slots[pair] = UNKNOWN
    cuda.syncthreads()
    for pair in range(thread, size * kernel, threads):
        if slots[pair] == UNKNOWN:
            slots[pair] = slots[first_pair(relation, common, pair)]
    for tap in range(thread, kernel, threads):
        if used[tap] == 1:
            before = 0
            for other in range(tap):
                before += used[other]
            taps[before] = tap
            cuda.atomic.add(counts, which + 3, 1)


def _relation(axis: Axis) -> tuple[int, ...]:
    return (
        axis.stride,
        axis.dilation,
        axis.pad_begin,
        axis.read,
        axis.kernel,
        int(axis.transposed),
    )


@lru_cache(maxsize=256)
def direct_kernel(plan: DirectPlan, counted: bool) -> Any:
    """The kernel of a plan: launch ``kernel[plan.blocks, plan.threads](x, w, y, counters)``.

    Args:
        plan: a plan made by ``DirectPlan.of``.
        counted: whether the threads count their own global loads and stores.

    Returns:
        A kernel of four flat arrays: input, weights, output, and three int64 counters (input loads,
        weight loads, output stores), which are added to where ``counted`` and left alone otherwise.
    """
    shape, threads = plan.shape, plan.threads
    word, real = WORD[shape.dtype], ACCUMULATOR[shape.dtype]
    batch, groups, transposed = shape.batch, shape.group, shape.transposed
    in_channels, out_channels = shape.group_in_channels, shape.group_out_channels
    n_tile, k_tile, c_tile = plan.n, plan.k, plan.c
    tile0, tile1, tile2 = (cut.size for cut in plan.cuts)
    tiles0, tiles1, tiles2 = (cut.tiles for cut in plan.cuts)
    k_tiles = -(-out_channels // k_tile)
    read0, read1, read2 = (axis.read for axis in plan.axes)
    written0, written1, written2 = (axis.written for axis in plan.axes)
    kernel0, kernel1, kernel2 = (axis.kernel for axis in plan.axes)
    relation0, relation1, relation2 = (_relation(axis) for axis in plan.axes)
    common0, common1, common2 = (gcd(axis.stride, axis.dilation) for axis in plan.axes)
    slot_room0, slot_room1, slot_room2 = plan.slot_room
    position_room0, position_room1, position_room2 = plan.position_room
    input_room, weight_room, accumulators = plan.input_room, plan.weight_room, plan.accumulators

    def direct(x: Any, w: Any, y: Any, counters: Any) -> None:
        thread = cuda.threadIdx.x
        rest = int64(cuda.blockIdx.x)
        begin2 = rest % tiles2 * tile2
        rest //= tiles2
        begin1 = rest % tiles1 * tile1
        rest //= tiles1
        begin0 = rest % tiles0 * tile0
        rest //= tiles0
        first_k = rest % k_tiles * k_tile
        rest //= k_tiles
        group = rest % groups
        first_n = rest // groups * n_tile

        n_size = min(n_tile, batch - first_n)
        k_size = min(k_tile, out_channels - first_k)
        size0 = min(tile0, written0 - begin0)
        size1 = min(tile1, written1 - begin1)
        size2 = min(tile2, written2 - begin2)

        slots0 = cuda.shared.array(slot_room0, int16)
        slots1 = cuda.shared.array(slot_room1, int16)
        slots2 = cuda.shared.array(slot_room2, int16)
        positions0 = cuda.shared.array(position_room0, int64)
        positions1 = cuda.shared.array(position_room1, int64)
        positions2 = cuda.shared.array(position_room2, int64)
        taps0 = cuda.shared.array(kernel0, int32)
        taps1 = cuda.shared.array(kernel1, int32)
        taps2 = cuda.shared.array(kernel2, int32)
        used0 = cuda.shared.array(kernel0, int32)
        used1 = cuda.shared.array(kernel1, int32)
        used2 = cuda.shared.array(kernel2, int32)
        counts = cuda.shared.array(6, int32)
        pixels = cuda.shared.array(input_room, word)
        weights = cuda.shared.array(weight_room, word)
        sums = cuda.local.array(accumulators, real)

        for i in range(thread, 6, threads):
            counts[i] = 0
        survey(
            relation0, common0, threads, begin0, size0, slots0, positions0, taps0,
            used0, counts, 0,
        )  # fmt: skip
        survey(
            relation1, common1, threads, begin1, size1, slots1, positions1, taps1,
            used1, counts, 1,
        )  # fmt: skip
        survey(
            relation2, common2, threads, begin2, size2, slots2, positions2, taps2,
            used2, counts, 2,
        )  # fmt: skip
        cuda.syncthreads()
        touched0, touched1, touched2 = counts[0], counts[1], counts[2]
        used_taps0, used_taps1, used_taps2 = counts[3], counts[4], counts[5]

        for j in range(accumulators):
            sums[j] = real(0)
        outputs = n_size * k_size * size0 * size1 * size2
        input_loads = 0
        weight_loads = 0
        output_stores = 0

        for first_c in range(0, in_channels, c_tile):
            c_size = min(c_tile, in_channels - first_c)

            words = n_size * c_size * touched0 * touched1 * touched2
            for i in range(thread, words, threads):
                rest = i
                q2 = positions2[rest % touched2]
                rest //= touched2
                q1 = positions1[rest % touched1]
                rest //= touched1
                q0 = positions0[rest % touched0]
                rest //= touched0
                c = (group * in_channels) + first_c + rest % c_size
                n = first_n + rest // c_size
                place = (((n * groups * in_channels + c) * read0 + q0) * read1 + q1) * read2 + q2
                pixels[i] = global_load(x, place)
                if counted:
                    input_loads += 1

            words = k_size * c_size * used_taps0 * used_taps1 * used_taps2
            for i in range(thread, words, threads):
                rest = i
                t2 = taps2[rest % used_taps2]
                rest //= used_taps2
                t1 = taps1[rest % used_taps1]
                rest //= used_taps1
                t0 = taps0[rest % used_taps0]
                rest //= used_taps0
                c = first_c + rest % c_size
                k = first_k + rest // c_size
                if transposed:
                    row = (group * in_channels + c) * out_channels + k
                else:
                    row = (group * out_channels + k) * in_channels + c
                place = ((row * kernel0 + t0) * kernel1 + t1) * kernel2 + t2
                weights[i] = global_load(w, place)
                if counted:
                    weight_loads += 1
            cuda.syncthreads()

            for j in range(accumulators):
                output = thread + j * threads
                if output >= outputs:
                    break
                rest = output
                o2 = rest % size2
                rest //= size2
                o1 = rest % size1
                rest //= size1
                o0 = rest % size0
                rest //= size0
                k = rest % k_size
                n = rest // k_size
                total = sums[j]
                for c in range(c_size):
                    image = (n * c_size + c) * touched0
                    filter0 = (k * c_size + c) * used_taps0
                    for a0 in range(used_taps0):
                        slot0 = slots0[o0 * kernel0 + taps0[a0]]
                        if slot0 < 0:
                            continue
                        plane = (image + slot0) * touched1
                        filter1 = (filter0 + a0) * used_taps1
                        for a1 in range(used_taps1):
                            slot1 = slots1[o1 * kernel1 + taps1[a1]]
                            if slot1 < 0:
                                continue
                            line = (plane + slot1) * touched2
                            filter2 = (filter1 + a1) * used_taps2
                            for a2 in range(used_taps2):
                                slot2 = slots2[o2 * kernel2 + taps2[a2]]
                                if slot2 >= 0:
                                    total += real(pixels[line + slot2]) * real(
                                        weights[filter2 + a2]
                                    )
                sums[j] = total
            cuda.syncthreads()

        for j in range(accumulators):
            output = thread + j * threads
            if output >= outputs:
                break
            rest = output
            o2 = begin2 + rest % size2
            rest //= size2
            o1 = begin1 + rest % size1
            rest //= size1
            o0 = begin0 + rest % size0
            rest //= size0
            k = group * out_channels + first_k + rest % k_size
            n = first_n + rest // k_size
            place = ((n * groups * out_channels + k) * written0 + o0) * written1 + o1
            global_store(y, place * written2 + o2, sums[j])
            if counted:
                output_stores += 1

        if counted:
            cuda.atomic.add(counters, 0, input_loads)
            cuda.atomic.add(counters, 1, weight_loads)
            cuda.atomic.add(counters, 2, output_stores)

    return cuda.jit(direct)
