"""Settings that hold for every test."""

import os

import pytest
from hypothesis import settings

# A change is judged on the same examples each time it is checked; new ones are looked for in runs
# by hand, and by tests/soak_laws.py.
settings.register_profile("ci", derandomize=True)
if os.environ.get("CI"):
    settings.load_profile("ci")


def pytest_collection_modifyitems(items):
    """Skip the tests marked ``gpu`` where no CUDA device can be used."""
    marked = [item for item in items if item.get_closest_marker("gpu")]
    if not marked:
        return
    from backends.cuda.launch import available

    if not available():
        for item in marked:
            item.add_marker(pytest.mark.skip(reason="no CUDA device"))
