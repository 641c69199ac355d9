"""A report as one self-contained page: the table, and two plots that follow a click."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from html import escape
from importlib import resources
from typing import Any

from pebble.layer import Skipped
from pebble.units import capacity_words
from redblue import __version__
from redblue.analysis import LayerResult, Report, capacity_curve
from redblue.options import one_line
from redblue.records import totals


def report_page(
    report: Report,
    progress: Callable[[Sequence[LayerResult]], Iterable[LayerResult]] = lambda results: results,
) -> str:
    """HTML of a report; needs no network and no other file.

    The curves hold bound and best traffic of every distinct layer at powers of two around the
    report's capacity.
    """
    from plotly.offline import get_plotlyjs

    worst = max(range(len(report.layers)), key=lambda i: report.layers[i].gap or 0.0, default=None)
    data = {
        "layers": [_layer_data(result, report.capacity) for result in progress(report.layers)],
        "selected": worst,
    }
    parts = {
        "TITLE": _text(f"{report.network}, fast memory {report.capacity}"),
        "SUMMARY": _summary(report),
        "HEAD": "".join(_HEADERS),
        "ROWS": "".join(_row(i, result) for i, result in enumerate(report.layers)),
        "FOOT": _foot(report),
        "LEFT_OUT": _left_out("Not handled", report.failed, " open")
        + _left_out("Not analysed", report.skipped)
        + "".join(f"<p>note: {_text(note)}</p>" for note in report.notes),
        "VERSION": escape(__version__),
        "STYLE": _asset("page.css"),
        # A closing tag inside a string would end the script early.
        "DATA": json.dumps(data).replace("</", "<\\/"),
        "PLOTLY": get_plotlyjs(),
        "SCRIPT": _asset("page.js"),
    }
    # One pass over the template, so that nothing put in is searched for further marks.
    pieces = _asset("page.html").split("{{")
    text = [pieces[0]]
    for piece in pieces[1:]:
        name, _, rest = piece.partition("}}")
        text += [parts[name], rest]
    return "".join(text)


def _text(text: str) -> str:
    """A text from a file as HTML."""
    return escape(one_line(text))


def _asset(name: str) -> str:
    return (resources.files("redblue") / name).read_text(encoding="utf-8")


def _layer_data(result: LayerResult, capacity: str) -> dict[str, Any]:
    shape = result.layer.shape
    curve = capacity_curve(shape, result.bound.capacity_words)
    return {
        "name": one_line(result.layer.name),
        "shape": str(shape),
        "count": result.layer.count,
        "bound": result.bound.words,
        "traffic": result.tiling.traffic.words,
        "compulsory": shape.compulsory_words,
        "capacity": capacity_words(capacity, shape.dtype),
        "curve": {
            "capacity": [point.capacity_words for point in curve],
            "bound": [point.lower_bound_words for point in curve],
            "traffic": [point.traffic_words for point in curve],
        },
    }


_HEADERS = [
    f'<th scope="col" aria-sort="none"><button type="button">{name}</button></th>'
    for name in (
        "layer", "count", "shape", "bound, words", "decided by", "traffic, words", "counted, words",
        "gap", "tile", "stays", "streamed",
    )
]  # fmt: skip


def _cell(text: str, value: float | int | None = None, kind: str = "") -> str:
    order = "" if value is None else f' data-value="{value}"'
    name = f' class="{kind}"' if kind else ""
    return f"<td{name}{order}>{text}</td>"


def _number(value: int | None, missing: str = "") -> str:
    return _cell(f"{value:,}" if value is not None else escape(missing), value or 0, "number")


def _gap_cell(gap: float | None) -> str:
    if gap is None:
        return _cell("-", 0, "number")
    level = "good" if gap < 1.1 else "fair" if gap < 1.5 else "poor"
    share = round(min(max(gap - 1, 0.0), 1.0) * 100)
    bar = f'<span class="bar"><span class="{level}" style="width:{share}%"></span></span>'
    return _cell(f"{gap:.3f} {bar}", gap, "number")


def _stays_cell(result: LayerResult) -> str:
    schedule = result.tiling.schedule
    return f'<td title="{escape(" > ".join(schedule.order))}">{escape(schedule.stationary)}</td>'


def _row(index: int, result: LayerResult) -> str:
    layer, tiling = result.layer, result.tiling
    note = f"<br><small>{_text(layer.note)}</small>" if layer.note else ""
    cells = [
        f'<th scope="row"><button type="button">{_text(layer.name)}</button>{note}</th>',
        _number(layer.count),
        _cell(escape(str(layer.shape))),
        _number(result.bound.words),
        _cell(escape(result.bound.binding)),
        _number(tiling.traffic.words),
        _number(result.counted_words, "not walked"),
        _gap_cell(result.gap),
        _cell(escape(" ".join(f"{loop}{size}" for loop, size in tiling.tile))),
        _stays_cell(result),
        _cell(tiling.schedule.streamed or "-"),
    ]
    return f'<tr data-index="{index}">{"".join(cells)}</tr>\n'


def _foot(report: Report) -> str:
    sums = totals(report)
    return (
        "<tr>"
        + "".join(
            [
                '<th scope="row">all layers</th>',
                _number(sums["count"]),
                _cell(""),
                _number(sums["lower_bound_words"]),
                _cell(""),
                _number(sums["traffic_words"]),
                _number(sums["counted_words"], "not all walked"),
                _gap_cell(sums["gap"]),
                *[_cell("")] * 3,
            ]
        )
        + "</tr>"
    )


def _summary(report: Report) -> str:
    sums = totals(report)
    gap = f", a gap of {sums['gap']:.3f}" if sums["gap"] else ""
    checked = (
        "Every traffic was counted a second time by walking its schedule: no difference."
        if not report.violations and sums["counted_words"] is not None
        else "Some traffic differs from its count, or was not walked: see the table."
    )
    return (
        f"<p>{sums['count']} convolutions, {sums['macs']:,} multiply-accumulates on real inputs. "
        f"With {escape(report.capacity)} of fast memory any schedule moves at least "
        f"<b>{sums['lower_bound_words']:,}</b> words; the best tilings found move "
        f"<b>{sums['traffic_words']:,}</b> words{gap}. {checked}</p>"
    )


def _left_out(title: str, rows: tuple[Skipped, ...], state: str = "") -> str:
    if not rows:
        return ""
    items = "".join(
        f"<tr><td>{_text(r.name)}</td><td>{_text(r.op)}</td><td>{_text(r.reason)}</td></tr>"
        for r in rows
    )
    return (
        f"<details{state}><summary>{title} ({len(rows)})</summary><table><thead><tr>"
        '<th scope="col">node</th><th scope="col">operator</th><th scope="col">reason</th>'
        f"</tr></thead><tbody>{items}</tbody></table></details>"
    )
