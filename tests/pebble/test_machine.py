import pytest

from pebble import InputError, Machine, machine_names


@pytest.mark.parametrize("name", machine_names())
def test_built_in_machines_grow_outwards(name):
    machine = Machine.load(name)
    totals = [level.capacity_bytes * level.instances for level in machine.levels]
    assert machine.title and len(totals) >= 3
    assert totals[-1] == max(totals)
    for level in machine.levels:
        assert machine.inside_bytes(level.name) >= level.capacity_bytes


def test_h200_fast_side_of_device_memory():
    # Registers and shared memory of 132 multiprocessors, and L2.
    machine = Machine.load("h200")
    assert machine.inside_bytes("L2") == 132 * (262144 + 233472) + 52428800
    assert machine.level("shared memory").capacity_words("float16") == 116736


def test_errors(tmp_path):
    with pytest.raises(InputError, match="machine 'h900': is none of a100, h200, laptop"):
        Machine.load("h900")
    with pytest.raises(InputError, match="is no file"):
        Machine.load(tmp_path / "no.toml")
    broken = tmp_path / "broken.toml"
    broken.write_text("title = 'x'\n[[level]]\nname = 'a'\n")
    with pytest.raises(InputError, match="cannot be read: KeyError"):
        Machine.load(broken)
    with pytest.raises(InputError, match="level 'L9': is none of"):
        Machine.load("laptop").level("L9")
