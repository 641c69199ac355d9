"""Run the direct kernel in Numba's CUDA simulator, on memory that counts and checks each access.

The simulator must be chosen before Numba is imported and then holds for the whole process: jobs run
in a child process, many in one. Nothing here needs a GPU, a driver or a CUDA toolkit.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from backends.cuda.execution import Execution, flat_operands, kernel_traffic
from backends.cuda.plan import DirectPlan
from pebble.errors import PebbleError, TooLargeError
from pebble.shapes import ConvShape
from tiling.tile import Traffic

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[Any]

MACS_LIMIT = 2_000_000
"""Most multiply-accumulates of one call: about a minute."""
THREADS_LIMIT = 20_000
"""Most threads of one call over all blocks: about a minute."""


@dataclass(frozen=True, slots=True, eq=False)
class Job:
    """One run of the kernel.

    Attributes:
        x, w: input and weights of the layer's shapes and dtype.
        shape: the layer.
        tile: size per loop n, k, c (channels of one group) and output axis.
        threads: threads per block; a simulated thread is a thread of the system, so take few.
    """

    x: Array
    w: Array
    shape: ConvShape
    tile: dict[str, int]
    threads: int = 4


def simulate(jobs: Sequence[Job]) -> list[Execution]:
    """Run jobs in one child process.

    Every output is checked to be stored exactly once and every index to lie in its array.

    Returns:
        An execution for each job, with the kernel's own counts as ``traffic`` and those of the
        memory as ``observed``.

    Raises:
        InputError, LaunchError: as ``run_direct`` does.
        TooLargeError: more work than the simulator does in about a minute.
        PebbleError: the child failed; its last words are in the message.
    """
    tasks = []
    for job in jobs:
        plan = DirectPlan.of(job.shape, job.tile, job.threads)
        tasks.append((plan, *flat_operands(job.x, job.w, job.shape)))
    _check_work([plan for plan, _, _ in tasks])
    return [
        Execution(y.reshape(plan.shape.output_shape), kernel_traffic(counters), observed)
        for (plan, _, _), (y, counters, observed) in zip(tasks, _in_child(tasks), strict=True)
    ]


def _check_work(plans: Sequence[DirectPlan]) -> None:
    macs = sum(plan.shape.macs for plan in plans)
    threads = sum(plan.blocks * plan.threads for plan in plans)
    for what, value, limit in (
        ("multiply-accumulates", macs, MACS_LIMIT),
        ("threads", threads, THREADS_LIMIT),
    ):
        if value > limit:
            raise TooLargeError(
                f"{value} {what} are too many for the simulator, which takes at most {limit} a call"
            )


def _in_child(tasks: list[tuple[DirectPlan, Array, Array]]) -> list[Any]:
    paths = [str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")]
    child = subprocess.run(
        [sys.executable, "-m", "backends.cuda.simulator"],
        input=pickle.dumps(tasks),
        capture_output=True,
        check=False,
        env={
            **os.environ,
            "NUMBA_ENABLE_CUDASIM": "1",
            "PYTHONPATH": os.pathsep.join(path for path in paths if path),
        },
    )
    if child.returncode:
        last = child.stderr.decode(errors="replace").strip().splitlines()[-3:]
        raise PebbleError(
            f"the simulator's process ended with code {child.returncode}: {' / '.join(last)}"
        )
    results: list[Any] = pickle.loads(child.stdout)
    return results


class _Memory:
    """A flat array in simulated global memory that counts its accesses, and checks each."""

    def __init__(self, name: str, array: Array, writable: bool = False) -> None:
        import numpy as np

        self.name, self.array = name, array
        self.loads = 0
        self.stored = np.zeros(array.size if writable else 0, dtype=bool)

    def __getitem__(self, index: int) -> Any:
        self._check(index)
        self.loads += 1
        return self.array[index]

    def __setitem__(self, index: int, value: Any) -> None:
        self._check(index)
        if self.stored.size == 0 or self.stored[index]:
            raise PebbleError(f"the kernel stored word {index} of its {self.name} twice")
        self.stored[index] = True
        self.array[index] = value

    def _check(self, index: int) -> None:
        if not 0 <= index < self.array.size:
            raise PebbleError(
                f"the kernel used word {index} of its {self.name}, which has {self.array.size}"
            )


def _run(plan: DirectPlan, x: Array, w: Array) -> tuple[Array, Array, Traffic]:
    """One job, in the child process."""
    import numpy as np

    from backends.cuda.direct import direct_kernel

    y = np.empty(plan.shape.output_words, dtype=plan.shape.dtype)
    counters = np.zeros(3, dtype=np.int64)
    inputs, weights = _Memory("input", x), _Memory("weights", w)
    output = _Memory("output", y, writable=True)
    if plan.blocks:
        kernel = direct_kernel(plan, True)[plan.blocks, plan.threads]
        kernel(inputs, weights, output, counters)
    if not output.stored.all():
        raise PebbleError(f"the kernel left {int((~output.stored).sum())} outputs unwritten")
    stores = int(output.stored.sum())
    return y, counters, Traffic(inputs.loads, weights.loads, output.loads, stores)


def main() -> None:
    """Read jobs from standard input, run them, and write the results to standard output."""
    from backends.cuda.turns import take_turns

    take_turns()
    results = [_run(*task) for task in pickle.load(sys.stdin.buffer)]
    sys.stdout.buffer.write(pickle.dumps(results))


if __name__ == "__main__":
    main()
