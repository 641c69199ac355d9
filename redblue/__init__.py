"""The numbers: bounds, tilings and counted traffic of convolutions and whole networks.

Front door of the chain ``pebble`` (bounds), ``tiling`` (tiles), ``backends`` (runs). Names load on
first use, so that importing it costs nothing.

>>> import redblue
>>> shape = redblue.ConvShape.of((1, 64, 56, 56), (64, 64, 3, 3), pads=(1, 1, 1, 1))
>>> redblue.lower_bound(shape, 12288).words
691071
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOME = {
    "ConvShape": "pebble",
    "LoopNest": "pebble",
    "Machine": "pebble",
    "Network": "pebble",
    "capacity_words": "pebble",
    "lower_bound": "pebble.bounds",
    "Schedule": "tiling",
    "Tiling": "tiling",
    "evaluate": "tiling",
    "optimise": "tiling",
    "walk": "backends.counting",
    "Report": "redblue.analysis",
    "analyse": "redblue.analysis",
    "verify": "redblue.verification",
}

__all__ = [
    "ConvShape",
    "LoopNest",
    "Machine",
    "Network",
    "Report",
    "Schedule",
    "Tiling",
    "analyse",
    "capacity_words",
    "evaluate",
    "lower_bound",
    "optimise",
    "verify",
    "walk",
]

if TYPE_CHECKING:
    from backends.counting import walk
    from pebble import ConvShape, LoopNest, Machine, Network, capacity_words
    from pebble.bounds import lower_bound
    from redblue.analysis import Report, analyse
    from redblue.verification import verify
    from tiling import Schedule, Tiling, evaluate, optimise


def __getattr__(name: str) -> Any:
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module 'redblue' has no attribute {name!r}")
    return getattr(import_module(home), name)


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
