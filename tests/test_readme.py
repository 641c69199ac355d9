"""The README is true: its commands run, its table is today's, its Python prints what it says."""

import doctest
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"^    (redblue .*)$", README, re.M)


def run(line, cwd=ROOT, **env):
    return subprocess.run(
        [sys.executable, "-m", *shlex.split(line)],
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT), **env},
    )


def test_the_two_commands_stand_as_written():
    assert re.findall(r"^    (python3 -m pip .*)$", README, re.M) == [
        "python3 -m pip install . && redblue report resnet50 --capacity 64KiB",
        "python3 -m pip install '.[test]' && python3 -m pytest",
    ]


@pytest.mark.parametrize("line", COMMANDS)
def test_commands_run(line, tmp_path):
    done = run(line, cwd=tmp_path)
    assert done.returncode == 0, done.stderr


def test_the_table_is_what_the_command_prints():
    command, table = re.search(r"`(redblue report .*?)`\n\n```\n(.*?)\n```", README, re.S).groups()
    shown = run(command, COLUMNS="96").stdout
    assert [line.rstrip() for line in shown.splitlines()] == table.splitlines()


def test_python_example():
    result = doctest.testfile(str(ROOT / "README.md"), module_relative=False)
    assert result.attempted >= 4 and result.failed == 0
