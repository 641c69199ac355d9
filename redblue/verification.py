"""Every count of a layer's traffic side by side: bound, model, walk, a kernel's own accesses."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from backends.counting import walk
from pebble.bounds import lower_bound
from pebble.errors import (
    InfeasibleError,
    InputError,
    LaunchError,
    MissingError,
    PebbleError,
    TooLargeError,
)
from pebble.layer import Layer, Skipped
from pebble.network import Network
from pebble.shapes import ConvShape
from pebble.units import capacity_words
from tiling import Tiling, Traffic, optimise

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from backends.cuda.execution import Execution

    Array = NDArray[Any]

BACKENDS = ("auto", "count", "simulator", "cuda")


@dataclass(frozen=True, slots=True)
class Check:
    """One number of a layer and whether it agrees with those before it.

    Attributes:
        name: what was counted, and by whom.
        words: the count; None for a check of values.
        rule: what it must satisfy.
        ok: whether it does.
    """

    name: str
    words: int | None
    rule: str
    ok: bool


@dataclass(frozen=True, slots=True)
class Verification:
    """All checks of one layer."""

    layer: Layer
    checks: tuple[Check, ...]

    @property
    def ok(self) -> bool:
        """Whether every check holds."""
        return all(check.ok for check in self.checks)


@dataclass(frozen=True, slots=True)
class Verified:
    """All layers of a network, and those that could not be verified with the reason."""

    network: str
    capacity: str
    backend: str
    layers: tuple[Verification, ...]
    failed: tuple[Skipped, ...]

    @property
    def ok(self) -> bool:
        """Whether every check of every layer holds."""
        return all(layer.ok for layer in self.layers)


def verify(
    network: Network,
    capacity: str,
    backend: str = "auto",
    progress: Callable[[Sequence[Layer]], Iterable[Layer]] = lambda layers: layers,
) -> Verified:
    """Check bound <= model == walk for each layer, and with a kernel its own accesses and values.

    Args:
        network: its equal layers are verified once.
        capacity: fast memory with its unit.
        backend: ``count`` walks schedules; ``simulator`` and ``cuda`` also run the direct kernel
            there, on a tiling private to each block; ``auto`` is ``cuda`` where there is a device
            and ``count`` elsewhere.
        progress: wraps the sequence of layers that is worked through.

    Raises:
        InputError: unknown backend, or a capacity without a unit.
        MissingError: ``cuda`` without a device.
    """
    if backend not in BACKENDS:
        raise InputError("backend", backend, f"is none of {', '.join(BACKENDS)}")
    capacity_words(capacity)
    chosen = _choose(backend)
    verified, failed = [], list(network.failed)
    for layer in progress(network.merged().layers):
        try:
            verified.append(Verification(layer, tuple(_checks(layer.shape, capacity, chosen))))
        except (InfeasibleError, TooLargeError, LaunchError, InputError) as error:
            failed.append(Skipped(layer.name, layer.op, str(error)))
    return Verified(network.name, capacity, chosen, tuple(verified), tuple(failed))


def _choose(backend: str) -> str:
    if backend in ("count", "simulator"):
        return backend
    from backends.cuda.launch import device_count

    try:
        device_count()
    except MissingError:
        if backend == "cuda":
            raise
        return "count"
    return "cuda"


def _checks(shape: ConvShape, capacity: str, backend: str) -> list[Check]:
    words = capacity_words(capacity, shape.dtype)
    bound = lower_bound(shape, words)
    tiling = optimise(shape, words)
    checks = [
        Check(f"lower bound ({bound.binding})", bound.words, "is proved", True),
        *_model_and_walk("best tiling", tiling, bound.words),
    ]
    if backend != "count":
        private = optimise(shape, words, private=True)
        checks += _model_and_walk("kernel's tiling", private, bound.words)
        checks += _kernel_checks(private, backend)
    return checks


def _model_and_walk(name: str, tiling: Tiling, bound_words: int) -> list[Check]:
    model, counted = tiling.traffic.words, walk(tiling)
    return [
        Check(f"{name}, model", model, "bound <= model", bound_words <= model),
        Check(f"{name}, walk", counted.traffic.words, "= model", counted.traffic == tiling.traffic),
        Check(
            f"{name}, most words held",
            counted.peak_words,
            f"<= {tiling.capacity_words:,}",
            counted.peak_words <= tiling.capacity_words,
        ),
    ]


def _kernel_checks(tiling: Tiling, backend: str) -> list[Check]:
    import numpy as np

    from backends.reference import convolve

    shape = tiling.shape
    # Small integers: every sum is exact in float32, so that values must agree to the bit.
    rng = np.random.default_rng(0)
    x = rng.integers(-2, 3, shape.input_shape).astype(shape.dtype)
    w = rng.integers(-2, 3, shape.weight_shape).astype(shape.dtype)
    run = _run(backend, x, w, tiling)
    checks = [
        _traffic_check(f"kernel on {backend}, its own counters", run.traffic, tiling),
    ]
    if run.observed is not None:
        checks.append(
            _traffic_check(f"kernel on {backend}, its memory's counters", run.observed, tiling)
        )
    expected = convolve(x, w, shape)
    same = bool(np.array_equal(run.output.astype(np.float64), expected.astype(np.float64)))
    checks.append(Check(f"kernel on {backend}, values", None, "= reference", same))
    return checks


def _traffic_check(name: str, traffic: Traffic | None, tiling: Tiling) -> Check:
    if traffic is None:
        raise PebbleError(f"{name}: the kernel returned no count")
    return Check(name, traffic.words, "= model", traffic == tiling.traffic)


def _run(backend: str, x: Array, w: Array, tiling: Tiling) -> Execution:
    if backend == "cuda":
        from backends.cuda.launch import run_direct

        return run_direct(x, w, tiling.shape, tiling.sizes, counted=True)
    from backends.cuda.simulator import Job, simulate

    (run,) = simulate([Job(x, w, tiling.shape, tiling.sizes)])
    return run
