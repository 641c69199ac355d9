"""The command line: verbs in the order of the chain; no arithmetic of its own."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from pebble.errors import InputError
from pebble.network import Network
from pebble.padding import AUTO_PADS
from pebble.shapes import ConvShape
from pebble.units import capacity_words
from redblue import __version__, options

if TYPE_CHECKING:
    from redblue.analysis import Report

CHECK_FAILED, BAD_INPUT, MISSING, PARTLY = 1, 2, 3, 4
"""Exit codes besides 0."""

app = typer.Typer(
    add_completion=False,
    rich_markup_mode=None,
    help="I/O lower bounds, best tilings and counted traffic of convolutions and networks. Exit "
    "codes: 0 fine; 1 a check failed; 2 bad input; 3 something is missing on this machine; 4 part "
    "of a network could not be handled.",
    epilog="Example: redblue report resnet50 --capacity 64KiB",
)


Capacity = Annotated[
    str | None,
    typer.Option(help="Fast memory with a unit: B, KB, KiB, MB, MiB, GB, GiB or words."),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
Bind = Annotated[
    list[str] | None, typer.Option(help="Size of an open dimension of an ONNX file, such as N=1.")
]
Batch = Annotated[int | None, typer.Option(help="Images, for a built-in network.")]


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"redblue {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def _common(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    del version
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def _shape(
    input: Annotated[  # noqa: A002 - ONNX's name
        str | None, typer.Option(help="Input sizes N x C x spatial, such as 1x64x56x56.")
    ] = None,
    weight: Annotated[
        str | None,
        typer.Option(help="Weight sizes K x C/group x kernel; C x K/group if transposed."),
    ] = None,
    strides: Annotated[str | None, typer.Option(help="One number an axis, such as 1,1.")] = None,
    pads: Annotated[
        str | None, typer.Option(help="All begins, then all ends, such as 1,1,1,1.")
    ] = None,
    dilations: Annotated[str | None, typer.Option(help="One number an axis.")] = None,
    group: Annotated[int, typer.Option(help="Groups of channels.")] = 1,
    auto_pad: Annotated[str, typer.Option(help=f"One of {', '.join(AUTO_PADS)}.")] = "NOTSET",
    dtype: Annotated[str, typer.Option(help="Element type; a word is one element.")] = "float32",
    transposed: Annotated[bool, typer.Option("--transposed", help="A ConvTranspose.")] = False,
    output_padding: Annotated[
        str | None, typer.Option(help="Of a ConvTranspose; one number an axis.")
    ] = None,
    output_shape: Annotated[
        str | None, typer.Option(help="Spatial output sizes of a ConvTranspose; give the pads.")
    ] = None,
    padding_mode: Annotated[str, typer.Option(help="Only zeros is analysed.")] = "zeros",
) -> ConvShape | None:
    if input is None and weight is None:
        return None
    return options.shape(
        input,
        weight,
        strides=strides,
        pads=pads,
        dilations=dilations,
        group=group,
        auto_pad=auto_pad,
        dtype=dtype,
        transposed=transposed,
        output_padding=output_padding,
        output_shape=output_shape,
        padding_mode=padding_mode,
    )


def _takes_shape(command: Callable[..., None]) -> Callable[..., None]:
    """Put the options of ``_shape`` in the place of a command's parameter ``shape``."""
    parts = signature(_shape, eval_str=True).parameters
    own = signature(command, eval_str=True).parameters

    @wraps(command)
    def run(**given: Any) -> None:
        shape = _shape(**{name: given.pop(name) for name in parts})
        command(shape=shape, **given)

    merged: list[Parameter] = []
    for name, parameter in own.items():
        merged += parts.values() if name == "shape" else [parameter]
    keyword = [p.replace(kind=Parameter.KEYWORD_ONLY) for p in merged]
    run.__signature__ = Signature(keyword)  # type: ignore[attr-defined]
    run.__annotations__ = {p.name: p.annotation for p in keyword}
    return run


_SHAPE = "--input 1x64x56x56 --weight 64x64x3x3 --pads 1,1,1,1"


@app.command(
    epilog=f"Examples: redblue bound {_SHAPE} --capacity 48KiB; "
    f"redblue bound {_SHAPE} --machine h200"
)
@_takes_shape
def bound(
    shape: ConvShape | None = None,
    capacity: Capacity = None,
    machine: Annotated[
        str | None,
        typer.Option(help="Bound every boundary of a machine: h200, a100, laptop or a .toml."),
    ] = None,
    algorithm: Annotated[
        str, typer.Option(help="direct, or Winograd's such as winograd:F(2x2,3x3).")
    ] = "direct",
    latex: Annotated[
        bool, typer.Option("--latex", help="Print the formulas in LaTeX, exact in M, and general.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Words that any schedule of a convolution must move."""
    from pebble.bounds import lower_bound
    from pebble.winograd import winograd_bound, winograd_outputs

    if latex and as_json:
        raise InputError("latex", True, "cannot be given with --json")
    if algorithm != "direct" and (latex or machine is not None):
        raise InputError("algorithm", algorithm, "cannot be given with --latex or --machine")
    shape = _needed_shape(shape)
    if machine is not None:
        if capacity is not None or latex:
            raise InputError("machine", machine, "takes the place of --capacity and --latex")
        _show_boundaries(shape, machine, as_json)
        return
    words = capacity_words(_needed(capacity), shape.dtype)
    if algorithm == "direct":
        found = lower_bound(shape, words)
    else:
        found = winograd_bound(shape, words, winograd_outputs(algorithm, shape))
    if latex:
        _print_latex(shape)
        return
    if as_json:
        from redblue.records import bound_record

        _print_json(bound_record(found))
        return
    from redblue.render import console, show_bound

    show_bound(found, console())


@app.command(epilog=f"Example: redblue tile {_SHAPE} --capacity 48KiB")
@_takes_shape
def tile(
    shape: ConvShape | None = None,
    capacity: Capacity = None,
    as_json: Json = False,
) -> None:
    """Tile sizes and loop order that move the fewest words."""
    from pebble.bounds import lower_bound
    from tiling import loglp, optimise

    shape = _needed_shape(shape)
    words = capacity_words(_needed(capacity), shape.dtype)
    found, tiling = lower_bound(shape, words), optimise(shape, words)
    # The program speaks of iterations: an empty batch has none, and one word is no log base.
    lp = loglp.solve(shape, words) if shape.batch and words > 1 else None
    if as_json:
        from redblue.records import tile_record

        _print_json(tile_record(found, tiling, lp))
        return
    from redblue.render import console, show_tile

    show_tile(found, tiling, lp, console())


@app.command(
    epilog=f"Examples: redblue verify {_SHAPE} --capacity 48KiB; "
    "redblue verify resnet18 --capacity 64KiB --backend count"
)
@_takes_shape
def verify(
    network: Annotated[
        str | None, typer.Argument(help="A built-in network, or a file ending in .onnx.")
    ] = None,
    shape: ConvShape | None = None,
    capacity: Capacity = None,
    backend: Annotated[
        str,
        typer.Option(
            help="count walks schedules; simulator and cuda also run a kernel there; auto is cuda "
            "where there is a device, else count."
        ),
    ] = "auto",
    bind: Bind = None,
    batch: Batch = None,
    as_json: Json = False,
) -> None:
    """Check bound <= model = every count of the traffic."""
    from redblue.verification import verify as check

    whole = network is not None
    if network is None:
        from redblue.analysis import single

        found = single(_needed_shape(shape))
    else:
        if shape is not None:
            raise InputError("input", str(shape), "cannot be given with a network's name")
        found = _network(network, bind, batch)
    verified = check(found, _needed(capacity), backend, _Progress("verifying"))
    if as_json:
        from redblue.records import verified_record

        _print_json(verified_record(verified))
    elif verified.layers or whole:
        from redblue.render import console, show_verified

        show_verified(verified, console())
    if not verified.ok:
        raise typer.Exit(CHECK_FAILED)
    if verified.failed:
        if not whole:
            raise InputError("layer", str(found.layers[0].shape), verified.failed[0].reason)
        raise typer.Exit(PARTLY)


@app.command(epilog="Example: redblue report resnet50 --capacity 64KiB -o report.html")
def report(
    network: Annotated[str, typer.Argument(help="A built-in network, or a file ending in .onnx.")],
    capacity: Annotated[
        str, typer.Option(help="Fast memory with a unit: B, KB, KiB, MB, MiB, GB, GiB or words.")
    ] = "64KiB",
    bind: Bind = None,
    batch: Batch = None,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="Write a file: .html (a page), .csv or .json."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Bounds, best tilings and counted traffic of a network."""
    from redblue.analysis import analyse
    from redblue.records import report_record

    if output is not None:
        _check_output(output)
    result = analyse(_network(network, bind, batch), capacity, _Progress("analysing"))
    if output is not None:
        _write(output, result)
    if as_json:
        _print_json(report_record(result))
    else:
        from redblue.render import console, show_report

        out = console()
        show_report(result, out)
        if output is not None:
            out.print(f"written: {options.one_line(str(output))}")
    for violation in result.violations:
        typer.echo(f"error: {options.one_line(violation)}", err=True)
    if result.violations:
        raise typer.Exit(CHECK_FAILED)
    if result.failed:
        raise typer.Exit(PARTLY)


@app.command(epilog="Example: redblue networks")
def networks(as_json: Json = False) -> None:
    """List the built-in networks."""
    from pebble.network import network_names

    found = [Network.load(name) for name in network_names()]
    if as_json:
        _print_json(
            [
                {
                    "name": n.name,
                    "convolutions": len(n.layers),
                    "macs_dense": sum(layer.shape.macs_dense for layer in n.layers),
                    "weight_words": sum(layer.shape.weight_words for layer in n.layers),
                }
                for n in found
            ]
        )
        return
    from redblue.render import console, show_networks

    show_networks(found, console())


def _needed_shape(shape: ConvShape | None) -> ConvShape:
    if shape is None:
        raise InputError("input", None, "is missing", "give --input NxCxHxW and --weight KxCxHxW")
    return shape


def _needed(capacity: str | None) -> str:
    if capacity is None:
        raise InputError("capacity", capacity, "is missing", "give one, such as --capacity 48KiB")
    return capacity


def _network(name: str, bind: Sequence[str] | None, batch: int | None) -> Network:
    if name.lower().endswith(".onnx"):
        if batch is not None:
            raise InputError("batch", batch, "is for built-in networks", "use --bind N=1")
        return Network.from_onnx(name, options.bindings(bind or ()))
    if bind:
        raise InputError("bind", ",".join(bind), "is for ONNX files", "use --batch")
    if Path(name).is_file():
        raise InputError("network", name, "is a file that does not end in .onnx", "rename it")
    network = Network.load(name)
    return network if batch is None else network.with_batch(batch)


def _print_json(record: object) -> None:
    typer.echo(json.dumps(record, indent=2))


def _show_boundaries(shape: ConvShape, name: str, as_json: bool) -> None:
    from pebble.machine import Machine
    from pebble.parallel import boundary_bounds

    machine = Machine.load(name)
    found = boundary_bounds(shape, machine)
    if as_json:
        from redblue.records import boundaries_record

        _print_json(boundaries_record(shape, machine, found))
        return
    from redblue.render import console, show_boundaries

    show_boundaries(shape, machine, found, console())


def _print_latex(shape: ConvShape) -> None:
    from sympy import latex

    from pebble.symbolic import expressions, formulas

    typer.echo(f"% {shape}, exact, in the fast memory M")
    for name, expression in expressions(shape).items():
        typer.echo(f"% {name}\nQ \\ge {latex(expression)}")
    typer.echo(f"% rank {shape.rank} in general: no padding, dilation 1, outputs >= taps a class")
    for name, expression in formulas(shape.rank).items():
        typer.echo(f"% {name}\nQ \\ge {latex(expression)}")


Item = TypeVar("Item")


class _Progress:
    """A progress bar on standard error that shows only when the work takes over a second."""

    def __init__(self, title: str) -> None:
        self.title = title

    def __call__(self, items: Sequence[Item]) -> Iterator[Item]:
        from rich.console import Console
        from rich.progress import Progress

        start = time.monotonic()
        quiet = not sys.stderr.isatty()
        with Progress(console=Console(stderr=True), transient=True, disable=quiet) as bar:
            task = None
            for done, item in enumerate(items):
                if task is None and time.monotonic() - start > 1:
                    task = bar.add_task(self.title, total=len(items), completed=done)
                yield item
                if task is not None:
                    bar.update(task, completed=done + 1)


_FILES = (".html", ".csv", ".json")


def _check_output(output: Path) -> None:
    if output.suffix.lower() not in _FILES:
        raise InputError("output", str(output), f"does not end in {', '.join(_FILES)}")
    if output.is_dir():
        raise InputError("output", str(output), "is a directory")
    if not output.parent.is_dir():
        raise InputError("output", str(output), f"directory {output.parent} does not exist")


def _write(output: Path, result: Report) -> None:
    from redblue.records import report_csv, report_record

    suffix = output.suffix.lower()
    if suffix == ".html":
        from redblue.page import report_page

        text = report_page(result, _Progress("drawing curves"))
    elif suffix == ".csv":
        text = report_csv(result)
    else:
        text = json.dumps(report_record(result), indent=2) + "\n"
    try:
        output.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InputError("output", str(output), f"cannot be written: {error.strerror}") from None
