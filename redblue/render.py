"""Results as tables for a person: units in the headers, totals, a bar for the gap."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from pebble.bounds import Bound, LowerBound
from pebble.layer import Skipped
from pebble.machine import Machine
from pebble.network import Network
from pebble.parallel import BoundaryBound
from pebble.shapes import ConvShape
from pebble.units import capacity_words, itemsize
from redblue.analysis import LayerResult, Report
from redblue.options import one_line
from redblue.verification import Verified
from tiling import Tiling
from tiling.loglp import LogSolution

WIDE = 118
NARROW = 92
_FILE_WIDTH = 200
_BAR = 8


def console() -> Console:
    """Standard output: as wide as the terminal or COLUMNS say, else wide enough for all columns."""
    terminal = sys.stdout is not None and sys.stdout.isatty()
    width = None if terminal or "COLUMNS" in os.environ else _FILE_WIDTH
    return Console(width=width, highlight=False, markup=False, emoji=False)


def size_text(words: int, dtype: str) -> str:
    """A capacity in words and bytes."""
    return f"{words:,} {dtype} words ({words * itemsize(dtype):,} bytes)"


def gap_text(gap: float | None, bar: bool = True) -> Text:
    """A gap, green to red, with a bar from 1 (nothing) to 2 and more (full)."""
    if gap is None:
        return Text("-")
    colour = "green" if gap < 1.1 else "yellow" if gap < 1.5 else "red"
    if not bar:
        return Text(f"{gap:.3f}", colour)
    excess = min(max(gap - 1, 0.0), 1.0)
    filled = round(excess * _BAR)
    return Text.assemble(f"{gap:.3f} ", ("#" * filled + "." * (_BAR - filled), colour))


def _table(title: str, columns: Iterable[str | tuple[str, str]], narrow: bool = False) -> Table:
    table = Table(title=Text(one_line(title)), title_justify="left", title_style="bold")
    if narrow:
        table.box, table.show_edge, table.padding = SIMPLE_HEAD, False, (0, 1, 0, 0)
    for column in columns:
        name, kind = column if isinstance(column, tuple) else (column, "text")
        if kind == "number":
            table.add_column(name, justify="right", no_wrap=True)
        else:
            table.add_column(name, overflow="fold")
    return table


def _kind(bound: Bound) -> str:
    if bound.asymptotic:
        return "order of growth"
    return "proved" if bound.valid else "as printed, no bound here"


def show_bound(bound: LowerBound, out: Console) -> None:
    """All bounds of a layer, the deciding one marked."""
    shape = bound.shape
    out.print(Text(str(shape), style="bold"))
    out.print(f"fast memory   {size_text(bound.capacity_words, shape.dtype)}")
    out.print(
        f"output        {'x'.join(map(str, shape.output_shape))}\n"
        f"MACs          {shape.macs:,} on real inputs, {shape.macs_dense:,} with padding\n"
        f"compulsory    {shape.compulsory_words:,} words = {shape.input_words:,} input + "
        f"{shape.weight_words:,} weight + {shape.output_words:,} output"
    )
    table = _table("Lower bounds", ["", "bound", ("words", "number"), "status", "source"])
    for row in bound.bounds:
        decides = row is bound.deciding
        table.add_row(
            ">" if decides else "",
            row.name,
            f"{row.words:,}",
            _kind(row),
            row.source,
            style="bold" if decides else "" if row.valid else "dim",
        )
    out.print(table)
    out.print(f"Every schedule moves at least {bound.words:,} words ({bound.binding}).")


def show_boundaries(
    shape: ConvShape, machine: Machine, bounds: Sequence[BoundaryBound], out: Console
) -> None:
    """A layer's bound at every boundary of a machine; boundaries are never compared."""
    out.print(Text(str(shape), style="bold"))
    table = _table(
        f"Least traffic at each boundary of {machine.title}",
        [
            "between", "and", ("instances", "number"),
            (f"inner side, {shape.dtype} words", "number"), ("least words", "number"),
            ("least bytes", "number"), "decided by",
        ],
    )  # fmt: skip
    size = itemsize(shape.dtype)
    for b in bounds:
        table.add_row(
            b.level,
            b.outer,
            f"{machine.level(b.level).instances}",
            f"{b.capacity_words:,}",
            f"{b.words:,}",
            f"{b.words * size:,}",
            b.binding,
        )
    out.print(table)
    out.print(
        "The inner side is a level and all that lies inside it, of all instances together;\n"
        "'summed' adds up the bounds of the instances, each with its own memory."
    )


def show_tile(bound: LowerBound, tiling: Tiling, lp: LogSolution | None, out: Console) -> None:
    """The best tiling of a layer beside its bound."""
    shape, traffic, schedule = bound.shape, tiling.traffic, tiling.schedule
    out.print(Text(str(shape), style="bold"))
    out.print(f"fast memory   {size_text(bound.capacity_words, shape.dtype)}")
    table = _table("Tile", ["loop", ("size", "number"), ("of", "number"), ("tiles", "number")])
    extents = _extents(shape)
    for loop in schedule.order:
        size, extent = tiling.sizes[loop], extents[loop]
        table.add_row(loop, f"{size:,}", f"{extent:,}", f"{-(-extent // size):,}")
    out.print(table)
    streamed = f", {schedule.streamed} streamed word by word" if schedule.streamed else ""
    out.print(f"schedule      {schedule.stationary} stays, {' > '.join(schedule.order)}{streamed}")
    words = tiling.footprint
    out.print(
        f"footprint     {words.words:,} words = {words.input_words:,} input + "
        f"{words.weight_words:,} weight + {words.output_words:,} output"
    )
    moved = _table(
        "Traffic",
        ["", ("input", "number"), ("weight", "number"), ("output", "number"), ("total", "number")],
    )
    loads = traffic.input_loads + traffic.weight_loads + traffic.output_loads
    moved.add_row(
        "words loaded", f"{traffic.input_loads:,}", f"{traffic.weight_loads:,}",
        f"{traffic.output_loads:,}", f"{loads:,}",
    )  # fmt: skip
    moved.add_row(
        "words stored", "0", "0", f"{traffic.output_stores:,}", f"{traffic.output_stores:,}"
    )
    out.print(moved)
    gap = traffic.words / bound.words if bound.words else None
    out.print(
        Text.assemble(
            f"moves {traffic.words:,} words; bound {bound.words:,} words ({bound.binding}); gap ",
            gap_text(gap),
        )
    )
    if not tiling.exhaustive:
        out.print("The axes are so long that only a spread of tile sizes was searched.")
    if lp is not None:
        duals = ", ".join(f"{name} {value}" for name, value in lp.duals)
        out.print(
            f"log program   {lp.words:,.0f} words at exponent {lp.exponent:.4f}; binding: {duals}"
        )


def _extents(shape: ConvShape) -> dict[str, int]:
    from tiling import tile_extents

    return tile_extents(shape)


def show_report(report: Report, out: Console) -> None:
    """One row a layer, totals, and what was left out."""
    wide, narrow = out.width >= WIDE, out.width < NARROW
    dtype = report.layers[0].layer.shape.dtype if report.layers else "float32"
    words = capacity_words(report.capacity, dtype)
    columns: list[str | tuple[str, str]] = ["layer", ("count", "number")]
    if wide:
        columns.append("shape")
    space = "\n" if narrow else " "
    columns += [(f"bound,{space}words", "number"), "binding", (f"traffic,{space}words", "number")]
    columns += ["counted", "gap"]
    if wide:
        columns += ["tile", "stays"]
    title = f"{report.network}, fast memory {report.capacity} = {size_text(words, dtype)}"
    table = _table(title, columns, narrow)
    for result in report.layers:
        table.add_row(*_report_cells(result, wide, not narrow))
    table.add_section()
    bound, traffic = (
        report.total(lambda r: r.bound.words) or 0,
        report.total(lambda r: r.tiling.traffic.words) or 0,
    )
    counted = report.total(lambda r: r.counted_words)
    cells: list[str | Text] = ["all layers", f"{report.total(lambda r: 1):,}"]
    cells += [""] * wide
    cells += [f"{bound:,}", "", f"{traffic:,}", _counted_text(counted, traffic)]
    cells += [gap_text(traffic / bound if bound else None, not narrow)]
    cells += ["", ""] * wide
    table.add_row(*cells, style="bold")
    out.print(table)
    out.print(
        "bound: words that any schedule moves between this fast memory and the slow one.\n"
        "traffic: words that the best tiling found moves; counted: by walking it tile by tile.\n"
        "gap: traffic over bound; 1 cannot be beaten."
    )
    if any(result.layer.bias for result in report.layers):
        out.print("Biases are not counted; each adds its number of output channels, once.")
    for reason in dict.fromkeys(r.uncounted for r in report.layers if r.uncounted):
        out.print(f"not walked: {one_line(reason)}")
    for note in report.notes:
        out.print(f"note: {one_line(note)}")
    show_left_out("Not handled", report.failed, out)
    show_left_out("Not analysed", report.skipped, out)


def _report_cells(result: LayerResult, wide: bool, bar: bool) -> list[str | Text]:
    layer, tiling = result.layer, result.tiling
    name = one_line(layer.name + (f" ({layer.note})" if layer.note else ""))
    cells: list[str | Text] = [name, f"{layer.count}"]
    if wide:
        cells.append(str(layer.shape))
    cells += [f"{result.bound.words:,}", result.bound.binding, f"{tiling.traffic.words:,}"]
    cells += [_counted_text(result.counted_words, tiling.traffic.words), gap_text(result.gap, bar)]
    if wide:
        cells.append(" ".join(f"{loop}{size}" for loop, size in tiling.tile))
        cells.append(tiling.schedule.stationary)
    return cells


def _counted_text(counted: int | None, traffic: int) -> Text:
    if counted is None:
        return Text("not walked", style="yellow")
    if counted == traffic:
        return Text("same", style="green")
    return Text(f"{counted:,}", style="bold red")


def show_left_out(title: str, rows: Sequence[Skipped], out: Console) -> None:
    """Layers or nodes with the reason why they are not in the table; nothing when there are none.

    Nodes of one operator and reason share a line.
    """
    if not rows:
        return
    groups: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        groups.setdefault((row.op, row.reason), []).append(row.name)
    table = _table(title, [("nodes", "number"), "operator", "names", "reason"])
    for (op, reason), names in groups.items():
        shown = ", ".join(names[:3]) + (f", and {len(names) - 3} more" if len(names) > 3 else "")
        table.add_row(f"{len(names)}", one_line(op), one_line(shown), one_line(reason))
    out.print(table)


def show_verified(verified: Verified, out: Console) -> None:
    """Every count of every layer, with ok or FAILED."""
    columns: list[str | tuple[str, str]] = ["layer", "count", ("words", "number"), "must be", ""]
    title = f"{verified.network}, fast memory {verified.capacity}, backend {verified.backend}"
    table = _table(title, columns, out.width < NARROW)
    for layer in verified.layers:
        name = layer.layer.name + (f" (x{layer.layer.count})" if layer.layer.count > 1 else "")
        for i, check in enumerate(layer.checks):
            table.add_row(
                one_line(name) if i == 0 else "",
                check.name,
                "" if check.words is None else f"{check.words:,}",
                check.rule,
                Text("ok", style="green") if check.ok else Text("FAILED", style="bold red"),
            )
        table.add_section()
    out.print(table)
    passed = sum(layer.ok for layer in verified.layers)
    out.print(f"{passed} of {len(verified.layers)} distinct layers verified.")
    show_left_out("Not verified", verified.failed, out)


def show_networks(networks: Iterable[Network], out: Console) -> None:
    """The built-in networks with their sizes."""
    table = _table(
        "Built-in networks, batch 1",
        ["name", ("convolutions", "number"), ("GMACs, dense", "number"), ("weights, M", "number")],
    )
    for network in networks:
        macs = sum(layer.shape.macs_dense for layer in network.layers)
        weights = sum(layer.shape.weight_words for layer in network.layers)
        table.add_row(
            network.name, f"{len(network.layers)}", f"{macs / 1e9:.3f}", f"{weights / 1e6:.3f}"
        )
    out.print(table)
