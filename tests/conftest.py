"""Settings that hold for every test."""

import pytest


def pytest_collection_modifyitems(items):
    """Skip the tests marked ``gpu`` where no CUDA device can be used."""
    marked = [item for item in items if item.get_closest_marker("gpu")]
    if not marked:
        return
    from backends.cuda.launch import available

    if not available():
        for item in marked:
            item.add_marker(pytest.mark.skip(reason="no CUDA device"))
