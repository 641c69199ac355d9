"""Imports run one way, heavy libraries load on use, and the packages are this checkout's."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
ORDER = ["pebble", "tiling", "backends", "redblue", "papers"]
BOUND_MODULES = {"pebble.bounds", "pebble.symbolic"}


def imports(path):
    """Modules that a file imports, anywhere in it."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def sources(package):
    return sorted((ROOT / package).rglob("*.py"))


@pytest.mark.parametrize("package", [p for p in ORDER if sources(p)])
def test_imports_run_one_way(package):
    later = ORDER[ORDER.index(package) + 1 :]
    for path in sources(package):
        wrong = {name for name in imports(path) if name.split(".")[0] in later}
        assert not wrong, f"{path} imports {wrong}"


@pytest.mark.parametrize("package", ["tiling", "backends"])
def test_counts_do_not_know_bounds(package):
    for path in sources(package):
        wrong = BOUND_MODULES & set(imports(path))
        assert not wrong, f"{path} imports {wrong}"


@pytest.mark.parametrize("package", ["pebble", "tiling", "backends", "redblue"])
def test_import_loads_no_heavy_library(package):
    code = (
        f"import sys, {package}; heavy = ['numpy', 'scipy', 'sympy', 'numba', 'onnx', 'plotly'];"
        "print([h for h in heavy if h in sys.modules])"
    )
    shown = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert shown.stdout.strip() == "[]"


@pytest.mark.parametrize("package", ["pebble", "tiling", "backends", "redblue"])
def test_packages_are_ours(package):
    # The PyPI package Pebble has the same import name.
    module = __import__(package)
    assert ROOT in Path(module.__file__).resolve().parents


def test_doctests():
    import doctest
    import importlib

    tried = 0
    for name in ("pebble.axis", "pebble.units", "pebble.nest", "pebble.shapes", "pebble.bounds",
                 "pebble.symbolic", "pebble.cdag", "pebble.game", "pebble.rational",
                 "pebble.projections", "pebble.nest_bounds",
                 "tiling.cuts", "tiling.search", "tiling.loglp"):  # fmt: skip
        result = doctest.testmod(importlib.import_module(name))
        assert result.failed == 0, name
        tried += result.attempted
    assert tried > 15


def test_front_door_names_stay_themselves_once_everything_is_loaded():
    # A module of the same name as a function would take its place when it is imported.
    code = (
        "import types, redblue, redblue.cli, redblue.page, tiling.search, backends.counting;"
        "print([n for n in redblue.__all__ if isinstance(getattr(redblue, n), types.ModuleType)])"
    )
    shown = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert shown.stdout.strip() == "[]"
