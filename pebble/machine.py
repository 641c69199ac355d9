"""Machines as data: memory levels with their capacities and rates, read from small files."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from pebble.errors import InputError
from pebble.units import itemsize


@dataclass(frozen=True, slots=True)
class MemoryLevel:
    """One level of a hierarchy.

    Attributes:
        name: for example ``shared memory``.
        capacity_bytes: what one instance holds.
        instances: how many exist side by side, for example one for each multiprocessor.
        bandwidth_bytes_per_s: rate of all instances together towards the next level outwards;
            None where no published or measured figure is known.
    """

    name: str
    capacity_bytes: int
    instances: int = 1
    bandwidth_bytes_per_s: float | None = None

    def capacity_words(self, dtype: str = "float32") -> int:
        """Elements of ``dtype`` that one instance holds."""
        return self.capacity_bytes // itemsize(dtype)


@dataclass(frozen=True, slots=True)
class Machine:
    """A processor's memory levels, innermost first, and its arithmetic peak.

    Attributes:
        name: the file's name.
        title: what a person calls it.
        levels: innermost first; the last is the slow memory.
        peak_macs_per_s: (dtype, multiply-accumulates per second) pairs.
    """

    name: str
    title: str
    levels: tuple[MemoryLevel, ...]
    peak_macs_per_s: tuple[tuple[str, float], ...] = ()

    @classmethod
    def load(cls, name: str | Path) -> Machine:
        """A built-in machine by name, or one from the path of a TOML file of the same form.

        Raises:
            InputError: unknown name, or a file without the needed keys.
        """
        text = str(name)
        if text.endswith(".toml"):
            path = Path(text)
            if not path.is_file():
                raise InputError("machine", text, "is no file")
            return cls._parse(path.stem, path.read_text(encoding="utf-8"))
        if text not in machine_names():
            raise InputError(
                "machine", text, f"is none of {', '.join(machine_names())}", "or a path to a .toml"
            )
        source = resources.files("pebble") / "machines" / f"{text}.toml"
        return cls._parse(text, source.read_text(encoding="utf-8"))

    @classmethod
    def _parse(cls, name: str, text: str) -> Machine:
        try:
            data = tomllib.loads(text)
            levels = tuple(
                MemoryLevel(
                    row["name"],
                    int(row["capacity_bytes"]),
                    int(row.get("instances", 1)),
                    row.get("bandwidth_bytes_per_s"),
                )
                for row in data["level"]
            )
            peaks = tuple((k, float(v)) for k, v in data.get("peak_macs_per_s", {}).items())
            return cls(name, data["title"], levels, peaks)
        except (KeyError, TypeError, ValueError) as error:
            raise InputError("machine", name, f"the file cannot be read: {error!r}") from None

    def level(self, name: str) -> MemoryLevel:
        """The level of a name; raises ``InputError`` where there is none."""
        for level in self.levels:
            if level.name == name:
                return level
        raise InputError("level", name, f"is none of {', '.join(v.name for v in self.levels)}")

    def inside_bytes(self, name: str, *, instance: bool = False) -> int:
        """Capacity on the inner side of the boundary above a level: it and all levels inside.

        Args:
            name: the level.
            instance: only one instance of the level, with its share of those inside.
        """
        outermost = self.level(name)
        total = 0
        for level in self.levels:
            total += level.capacity_bytes * level.instances
            if level is outermost:
                break
        return total // outermost.instances if instance else total

    def inside_words(self, name: str, dtype: str = "float32", *, instance: bool = False) -> int:
        """:meth:`inside_bytes` in elements of ``dtype``."""
        return self.inside_bytes(name, instance=instance) // itemsize(dtype)


def machine_names() -> tuple[str, ...]:
    """Names of the built-in machines."""
    folder = resources.files("pebble") / "machines"
    return tuple(
        sorted(p.name.removesuffix(".toml") for p in folder.iterdir() if ".toml" in p.name)
    )
