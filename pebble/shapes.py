"""Convolution shapes: validated sizes in ONNX's names and order, and everything counted from them.

All sizes are Python integers, so nothing overflows; all counts are closed forms of the axes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod

from pebble.axis import Axis
from pebble.errors import InputError
from pebble.fields import channel_counts, integers, per_axis
from pebble.nest import Access, Affine, LoopNest
from pebble.padding import AUTO_PADS, same_pads, transposed_pads
from pebble.units import itemsize

_AXES = {1: ("w",), 2: ("h", "w"), 3: ("d", "h", "w")}


@dataclass(frozen=True)
class ConvShape:
    """A convolution, or a transposed one, of rank 1 to 3. Build it with :meth:`of`.

    Attributes:
        batch: images; 0 is an empty batch.
        in_channels, out_channels: channels of the layer's input and output, over all groups.
        spatial: input pixels per axis.
        kernel: taps per axis.
        strides, dilations: per axis.
        pads: all begins, then all ends, as ONNX orders them.
        group: independent groups of channels.
        dtype: element type of all operands; a word is one element.
        transposed: a ConvTranspose, whose stride spreads the input out.
        output_padding: pixels added at the end of each output axis of a transposed convolution.
    """

    batch: int
    in_channels: int
    out_channels: int
    spatial: tuple[int, ...]
    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    pads: tuple[int, ...]
    dilations: tuple[int, ...]
    group: int = 1
    dtype: str = "float32"
    transposed: bool = False
    output_padding: tuple[int, ...] = ()

    @classmethod
    def of(
        cls,
        input: Sequence[int],  # noqa: A002 - ONNX's name
        weight: Sequence[int],
        *,
        strides: Sequence[int] | None = None,
        pads: Sequence[int] | None = None,
        dilations: Sequence[int] | None = None,
        group: int = 1,
        auto_pad: str = "NOTSET",
        dtype: str = "float32",
        transposed: bool = False,
        output_padding: Sequence[int] | None = None,
        output_shape: Sequence[int] | None = None,
        padding_mode: str = "zeros",
    ) -> ConvShape:
        """A shape from ONNX's attributes.

        Args:
            input: N, C and the spatial sizes.
            weight: K, C/group and the kernel; for a transposed convolution C, K/group, kernel.
            strides, dilations: one number an axis; default 1.
            pads: begin of each axis, then end of each axis; default 0.
            group: number of groups; divides C and K.
            auto_pad: NOTSET, VALID, SAME_UPPER or SAME_LOWER.
            dtype: element type, a key of ``pebble.units.ITEMSIZE``.
            transposed: a ConvTranspose.
            output_padding, output_shape: as in ONNX's ConvTranspose; output_shape holds the
                spatial sizes only, and the pads follow from it.
            padding_mode: only ``zeros`` is a convolution here; any other is refused by name.

        Raises:
            InputError: names the field, the value, the limit and what to do.

        >>> shape = ConvShape.of((1, 64, 56, 56), (64, 64, 3, 3), pads=(1, 1, 1, 1))
        >>> shape.output_shape, shape.compulsory_words
        ((1, 64, 56, 56), 438272)
        """
        if padding_mode != "zeros":
            raise InputError(
                "padding-mode", padding_mode, "only zero padding is analysed", "pad the input first"
            )
        input_sizes = integers("input", input, least=0)
        if not 3 <= len(input_sizes) <= 5:
            raise InputError("input", input_sizes, "must have N, C and 1 to 3 spatial sizes")
        rank = len(input_sizes) - 2
        weight_sizes = integers("weight", weight, least=1)
        if len(weight_sizes) != rank + 2:
            raise InputError(
                "weight",
                weight_sizes,
                f"has {len(weight_sizes)} dimensions where the input has {rank + 2}",
            )
        for size in input_sizes[1:]:
            if size < 1:
                raise InputError("input", input_sizes, "only the batch may be 0")
        stride = per_axis("strides", strides, rank, 1)
        dilation = per_axis("dilations", dilations, rank, 1)
        pad = integers("pads", pads if pads is not None else (0,) * (2 * rank), least=0)
        if len(pad) != 2 * rank:
            raise InputError(
                "pads", pad, f"must hold {2 * rank} numbers: {rank} begins, then {rank} ends"
            )
        extra = per_axis("output_padding", output_padding, rank, 0, least=0)
        (groups,) = integers("group", (group,), least=1)
        itemsize(dtype)
        channels, kernel = input_sizes[1], weight_sizes[2:]
        in_channels, out_channels = channel_counts(channels, weight_sizes, groups, transposed)
        if auto_pad not in AUTO_PADS:
            raise InputError("auto-pad", auto_pad, f"is none of {', '.join(AUTO_PADS)}")
        if auto_pad != "NOTSET" and any(pad):
            raise InputError(
                "pads", pad, f"cannot be given together with auto-pad {auto_pad}", "drop one"
            )
        sizes = (input_sizes[2:], kernel, stride, dilation)
        if transposed:
            extra, pad = transposed_pads(sizes, pad, auto_pad, extra, output_shape)
        else:
            if output_shape is not None or any(extra):
                raise InputError(
                    "output_shape", output_shape or extra, "belongs to a transposed convolution"
                )
            if auto_pad.startswith("SAME"):
                pad = same_pads(sizes, auto_pad)
        shape = cls(
            batch=input_sizes[0],
            in_channels=in_channels,
            out_channels=out_channels,
            spatial=input_sizes[2:],
            kernel=kernel,
            strides=stride,
            pads=pad,
            dilations=dilation,
            group=groups,
            dtype=dtype,
            transposed=transposed,
            output_padding=extra if transposed else (),
        )
        shape._check_outputs()
        return shape

    # --- geometry -------------------------------------------------------------------------------
    @property
    def rank(self) -> int:
        """Number of spatial axes."""
        return len(self.spatial)

    @property
    def axis_names(self) -> tuple[str, ...]:
        """Names of the spatial axes: w, then h, then d as the rank grows."""
        return _AXES[self.rank]

    @cached_property
    def output_spatial(self) -> tuple[int, ...]:
        """Output positions per axis."""
        return tuple(axis.written for axis in self.axes)

    @property
    def input_shape(self) -> tuple[int, ...]:
        """N, C, spatial."""
        return (self.batch, self.in_channels, *self.spatial)

    @property
    def weight_shape(self) -> tuple[int, ...]:
        """K, C/group, kernel; C, K/group, kernel for a transposed convolution."""
        if self.transposed:
            return (self.in_channels, self.out_channels // self.group, *self.kernel)
        return (self.out_channels, self.in_channels // self.group, *self.kernel)

    @property
    def output_shape(self) -> tuple[int, ...]:
        """N, K, spatial."""
        return (self.batch, self.out_channels, *self.output_spatial)

    @cached_property
    def axes(self) -> tuple[Axis, ...]:
        """One :class:`pebble.axis.Axis` for each spatial axis."""
        rank, axes = self.rank, []
        for i, size in enumerate(self.spatial):
            kernel, stride, dilation = self.kernel[i], self.strides[i], self.dilations[i]
            begin, end = self.pads[i], self.pads[rank + i]
            reach = dilation * (kernel - 1) + 1
            if self.transposed:
                out = stride * (size - 1) + reach + self.output_padding[i] - begin - end
                axes.append(Axis(out, size, kernel, stride, dilation, begin, True))
            else:
                out = (size + begin + end - reach) // stride + 1
                axes.append(Axis(size, out, kernel, stride, dilation, begin))
        return tuple(axes)

    @property
    def group_in_channels(self) -> int:
        """Input channels of one group."""
        return self.in_channels // self.group

    @property
    def group_out_channels(self) -> int:
        """Output channels of one group."""
        return self.out_channels // self.group

    # --- counts ---------------------------------------------------------------------------------
    @cached_property
    def macs(self) -> int:
        """Multiply-accumulates whose input is not padding."""
        return self._pairs * prod(axis.macs(0, axis.written) for axis in self.axes)

    @property
    def macs_dense(self) -> int:
        """Multiply-accumulates with those on padding, the usual convention of model tables."""
        return self._pairs * prod(axis.outputs * axis.kernel for axis in self.axes)

    @cached_property
    def weighted_macs(self) -> tuple[tuple[int, int], ...]:
        """Multiply-accumulates by reuse: pairs (count, reuse); the counts add up to ``macs``.

        See :meth:`pebble.axis.Axis.weighted_macs`; the reuse of a tap is the product over axes.
        """
        terms = {1: self._pairs}
        for axis in self.axes:
            grown: dict[int, int] = {}
            for reuse, count in terms.items():
                for pairs, slices in axis.weighted_macs():
                    grown[reuse * slices] = grown.get(reuse * slices, 0) + count * pairs
            terms = grown
        return tuple(sorted((count, reuse) for reuse, count in terms.items() if count))

    @cached_property
    def input_words(self) -> int:
        """Distinct input elements that some multiply-accumulate reads."""
        return (
            self.batch
            * self.in_channels
            * prod(axis.touched(0, axis.written) for axis in self.axes)
        )

    @cached_property
    def weight_words(self) -> int:
        """Weights that meet a real input element at least once."""
        if self.macs == 0:
            return 0
        taps = prod(axis.used_taps(0, axis.written) for axis in self.axes)
        return self.out_channels * self.group_in_channels * taps

    @property
    def output_words(self) -> int:
        """Output elements; all are written, also those whose window sees only padding."""
        return self.batch * self.out_channels * prod(self.output_spatial)

    @property
    def compulsory_words(self) -> int:
        """Touched inputs, used weights and outputs: what any schedule moves at least."""
        return self.input_words + self.weight_words + self.output_words

    @property
    def _pairs(self) -> int:
        return self.batch * self.out_channels * self.group_in_channels

    # --- as loops -------------------------------------------------------------------------------
    def nest(self) -> LoopNest:
        """The layer as an affine loop nest of its dense iterations, group loop outermost.

        For a transposed convolution the loops run over the input positions and the *output*
        carries the affine subscript.
        """
        loops: dict[str, int] = {
            "g": self.group,
            "n": max(self.batch, 1),
            "k": self.group_out_channels,
            "c": self.group_in_channels,
        }
        window: list[Affine] = []
        for name, axis in zip(self.axis_names, self.axes, strict=True):
            loops[f"o{name}"] = axis.outputs
            loops[f"k{name}"] = axis.kernel
            window.append(
                Affine.of({f"o{name}": axis.stride, f"k{name}": axis.dilation}, -axis.pad_begin)
            )
        plain = [Affine.of({f"o{name}": 1}) for name in self.axis_names]
        taps = [Affine.of({f"k{name}": 1}) for name in self.axis_names]
        n = Affine.of({"n": 1})
        c = Affine.of({"g": self.group_in_channels, "c": 1})
        k = Affine.of({"g": self.group_out_channels, "k": 1})
        read, wrote = (plain, window) if self.transposed else (window, plain)
        if self.transposed:
            weight = (c, Affine.of({"k": 1}), *taps)
        else:
            weight = (k, Affine.of({"c": 1}), *taps)
        accesses = (
            Access("input", (n, c, *read)),
            Access("weight", weight),
            Access("output", (n, k, *wrote), written=True),
        )
        return LoopNest(tuple(loops.items()), accesses)

    # --- checks ---------------------------------------------------------------------------------
    def _check_outputs(self) -> None:
        for i, (name, axis) in enumerate(zip(self.axis_names, self.axes, strict=True)):
            if axis.written >= 1:
                continue
            begin, end = self.pads[i], self.pads[self.rank + i]
            reach = self.dilations[i] * (self.kernel[i] - 1) + 1
            if self.transposed:
                raise InputError(
                    "pads",
                    self.pads,
                    f"leave {axis.written} outputs on axis {name}, where the unpadded output is "
                    f"{axis.written + begin + end}",
                    "pad less",
                )
            raise InputError(
                "input",
                self.input_shape,
                f"axis {name} has padded size {self.spatial[i] + begin + end}, below the effective "
                f"kernel {reach} = {self.dilations[i]} * ({self.kernel[i]} - 1) + 1",
                "pad more or use a smaller kernel or dilation",
            )

    def __str__(self) -> str:
        join = "x".join
        text = f"{join(map(str, self.input_shape))} * {join(map(str, self.weight_shape))}"
        if any(s != 1 for s in self.strides):
            text += f" stride {','.join(map(str, self.strides))}"
        if any(self.pads):
            text += f" pads {','.join(map(str, self.pads))}"
        if any(d != 1 for d in self.dilations):
            text += f" dilation {','.join(map(str, self.dilations))}"
        if self.group != 1:
            text += f" group {self.group}"
        return text + (" transposed" if self.transposed else "")
