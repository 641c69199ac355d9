"""Every table of papers/ is recomputed."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
TABLES = sorted((ROOT / "papers").glob("*/table_*.py"))


@pytest.mark.parametrize("script", TABLES, ids=lambda p: f"{p.parent.name}/{p.name}")
def test_table_holds(script):
    done = subprocess.run(
        [sys.executable, str(script)],
        capture_output=True,
        text=True,
        check=False,
        env={"PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_paper_is_listed():
    index = (ROOT / "papers" / "README.md").read_text()
    for script in TABLES:
        assert f"`{script.parent.name}`" in index
