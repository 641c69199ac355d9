"""Results as plain data: what ``--json`` prints and what the files hold."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from typing import Any

from pebble.bounds import LowerBound
from pebble.layer import Skipped
from pebble.machine import Machine
from pebble.parallel import BoundaryBound
from pebble.shapes import ConvShape
from pebble.units import capacity_words, itemsize
from redblue.analysis import LayerResult, Report
from redblue.verification import Verified
from tiling import Tiling
from tiling.loglp import LogSolution

Record = dict[str, Any]


def shape_record(shape: ConvShape) -> Record:
    """Sizes in ONNX's order."""
    return {
        "input": list(shape.input_shape),
        "weight": list(shape.weight_shape),
        "output": list(shape.output_shape),
        "strides": list(shape.strides),
        "pads": list(shape.pads),
        "dilations": list(shape.dilations),
        "group": shape.group,
        "dtype": shape.dtype,
        "transposed": shape.transposed,
    }


def _counts(shape: ConvShape) -> Record:
    return {
        "macs": shape.macs,
        "macs_dense": shape.macs_dense,
        "input_words": shape.input_words,
        "weight_words": shape.weight_words,
        "output_words": shape.output_words,
        "compulsory_words": shape.compulsory_words,
    }


def bound_record(bound: LowerBound) -> Record:
    """One layer's bounds."""
    return {
        "shape": shape_record(bound.shape),
        **_counts(bound.shape),
        "capacity_words": bound.capacity_words,
        "word_bytes": itemsize(bound.shape.dtype),
        "lower_bound_words": bound.words,
        "binding": bound.binding,
        "bounds": [
            {
                "name": b.name,
                "words": b.words,
                "source": b.source,
                "valid": b.valid,
                "asymptotic": b.asymptotic,
                "note": b.note,
            }
            for b in bound.bounds
        ],
    }


def boundaries_record(
    shape: ConvShape, machine: Machine, bounds: Sequence[BoundaryBound]
) -> Record:
    """A layer's bound at every boundary of a machine, innermost first."""
    return {
        "shape": shape_record(shape),
        **_counts(shape),
        "machine": machine.name,
        "word_bytes": itemsize(shape.dtype),
        "boundaries": [
            {
                "level": b.level,
                "outer": b.outer,
                "instances": machine.level(b.level).instances,
                "capacity_words": b.capacity_words,
                "instance_words": b.instance_words,
                "lower_bound_words": b.words,
                "binding": b.binding,
            }
            for b in bounds
        ],
    }


def _tiling_record(tiling: Tiling) -> Record:
    traffic, footprint, schedule = tiling.traffic, tiling.footprint, tiling.schedule
    return {
        "traffic_words": traffic.words,
        "traffic": {
            "input_loads": traffic.input_loads,
            "weight_loads": traffic.weight_loads,
            "output_loads": traffic.output_loads,
            "output_stores": traffic.output_stores,
        },
        "tile": tiling.sizes,
        "schedule": {
            "stationary": schedule.stationary,
            "order": list(schedule.order),
            "streamed": schedule.streamed,
        },
        "footprint_words": footprint.words,
        "footprint": {
            "input": footprint.input_words,
            "weight": footprint.weight_words,
            "output": footprint.output_words,
        },
        "exhaustive": tiling.exhaustive,
    }


def tile_record(bound: LowerBound, tiling: Tiling, lp: LogSolution | None) -> Record:
    """One layer's bounds with its best tiling and the log-space program."""
    gap = tiling.traffic.words / bound.words if bound.words else None
    return {
        **bound_record(bound),
        **_tiling_record(tiling),
        "gap": gap,
        "lp": None
        if lp is None
        else {
            "exponent": lp.exponent,
            "words": lp.words,
            "binding": list(lp.binding),
            "duals": {name: str(value) for name, value in lp.duals},
            "tile": dict(lp.tile),
        },
    }


def _skipped(rows: Sequence[Skipped]) -> list[Record]:
    return [{"name": r.name, "op": r.op, "reason": r.reason} for r in rows]


def layer_record(result: LayerResult) -> Record:
    """One row of a report."""
    layer = result.layer
    return {
        "name": layer.name,
        "count": layer.count,
        "op": layer.op,
        **bound_record(result.bound),
        **_tiling_record(result.tiling),
        "gap": result.gap,
        "counted_words": result.counted_words,
        "uncounted": result.uncounted,
        "bias_words": layer.shape.out_channels if layer.bias else 0,
        "note": layer.note,
    }


def totals(report: Report) -> Record:
    """Sums over all layers, each as often as it occurs."""
    bound = report.total(lambda r: r.bound.words)
    traffic = report.total(lambda r: r.tiling.traffic.words)
    return {
        "count": report.total(lambda r: 1),
        "macs": report.total(lambda r: r.layer.shape.macs),
        "macs_dense": report.total(lambda r: r.layer.shape.macs_dense),
        "compulsory_words": report.total(lambda r: r.layer.shape.compulsory_words),
        "lower_bound_words": bound,
        "traffic_words": traffic,
        "counted_words": report.total(lambda r: r.counted_words),
        "gap": traffic / bound if traffic and bound else None,
    }


def report_record(report: Report) -> Record:
    """A whole report."""
    dtype = report.layers[0].layer.shape.dtype if report.layers else "float32"
    return {
        "network": report.network,
        "capacity": report.capacity,
        "capacity_words": capacity_words(report.capacity, dtype),
        "layers": [layer_record(result) for result in report.layers],
        "totals": totals(report),
        "failed": _skipped(report.failed),
        "skipped": _skipped(report.skipped),
        "notes": list(report.notes),
        "violations": list(report.violations),
    }


_COLUMNS = (
    "name", "count", "op", "input", "weight", "output", "strides", "pads", "dilations", "group",
    "dtype", "macs", "macs_dense", "capacity_words", "compulsory_words", "lower_bound_words",
    "binding", "traffic_words", "counted_words", "gap", "tile", "schedule", "footprint_words",
    "bias_words", "note",
)  # fmt: skip


def report_csv(report: Report) -> str:
    """One row a layer, under a header whose names carry the unit."""
    out = io.StringIO()
    writer = csv.DictWriter(out, _COLUMNS, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    for result in report.layers:
        record = layer_record(result)
        record |= {
            key: "x".join(map(str, value)) if isinstance(value, list) else value
            for key, value in shape_record(result.layer.shape).items()
        }
        record["tile"] = " ".join(f"{loop}{size}" for loop, size in result.tiling.tile)
        record["schedule"] = str(result.tiling.schedule)
        # A spreadsheet would run a name that begins like a formula.
        record["name"] = "'" + record["name"] if record["name"][:1] in "=+-@" else record["name"]
        writer.writerow(record)
    return out.getvalue()


def verified_record(verified: Verified) -> Record:
    """All checks of all layers."""
    return {
        "network": verified.network,
        "capacity": verified.capacity,
        "backend": verified.backend,
        "ok": verified.ok,
        "layers": [
            {
                "name": v.layer.name,
                "count": v.layer.count,
                "shape": shape_record(v.layer.shape),
                "ok": v.ok,
                "checks": [
                    {"name": c.name, "words": c.words, "rule": c.rule, "ok": c.ok} for c in v.checks
                ],
            }
            for v in verified.layers
        ],
        "failed": _skipped(verified.failed),
    }
