"""The command line as a user meets it: output, JSON, exit codes, one error line, no traceback."""

import json
import os
import re
import shlex
import subprocess
import sys
import time

import pytest

from pebble import ConvShape
from pebble.bounds import lower_bound
from redblue.__main__ import main

SHAPE = "--input 1x64x56x56 --weight 64x64x3x3 --pads 1,1,1,1"


@pytest.fixture
def run(capsys, monkeypatch):
    """Run a command line in this process: (exit code, standard output, standard error)."""
    monkeypatch.delenv("COLUMNS", raising=False)

    def call(line):
        code = main(shlex.split(line))
        shown = capsys.readouterr()
        return code, shown.out, shown.err

    return call


def bad(run, line):
    """The one error line of bad input."""
    code, out, err = run(line)
    assert (code, out) == (2, ""), (code, out, err)
    assert err.startswith("error: ") and err.count("\n") == 1 and err.endswith("\n"), err
    return err


# --- bound -----------------------------------------------------------------------------------


def test_bound_json(run):
    code, out, err = run(f"bound {SHAPE} --capacity 48KiB --json")
    assert (code, err) == (0, "")
    found = json.loads(out)
    assert found["shape"]["output"] == [1, 64, 56, 56]
    assert found["macs"] == 64 * 64 * (54 * 3 + 2 * 2) ** 2
    assert found["macs_dense"] == 64 * 64 * 56**2 * 9
    assert found["input_words"] == found["output_words"] == 64 * 56**2
    assert found["weight_words"] == 64 * 64 * 9
    assert found["compulsory_words"] == 2 * 64 * 56**2 + 64 * 64 * 9
    assert found["capacity_words"] == 12288
    valid = [b["words"] for b in found["bounds"] if b["valid"]]
    assert found["lower_bound_words"] == max(valid)
    assert all(b["source"] for b in found["bounds"])


def test_bound_table(run):
    code, out, _ = run(f"bound {SHAPE} --capacity 48KiB")
    assert code == 0
    words = lower_bound(ConvShape.of((1, 64, 56, 56), (64, 64, 3, 3), pads=(1,) * 4), 12288).words
    assert f"Every schedule moves at least {words:,} words" in out


def test_b19_units(run):
    def capacity(text):
        return json.loads(run(f"bound {SHAPE} --capacity {text} --json")[1])["capacity_words"]

    assert (capacity("48KiB"), capacity("48KB"), capacity("48words")) == (49152 // 4, 12000, 48)


def test_bound_latex(run):
    code, out, _ = run(f"bound {SHAPE} --capacity 48KiB --latex")
    assert code == 0 and r"\frac" in out and "% loomis-whitney" in out


def test_bound_of_a_machine(run):
    code, out, _ = run(f"bound {SHAPE} --machine h200 --json")
    found = json.loads(out)
    assert code == 0 and found["machine"] == "h200"
    levels = {b["level"]: b for b in found["boundaries"]}
    assert list(levels) == ["registers", "shared memory", "L2"]
    # 132 multiprocessors with 256 KiB of registers and 228 KiB of shared memory each.
    assert levels["shared memory"]["instance_words"] == (256 + 228) * 1024 // 4
    assert levels["L2"]["lower_bound_words"] == found["compulsory_words"]
    code, out, _ = run(f"bound {SHAPE} --machine laptop")
    assert code == 0 and "L3" in out and "438,272" in out


def test_bound_of_winograd(run):
    line = "bound --input 1x128x56x56 --weight 256x128x3x3 --pads 1,1,1,1 --capacity 16KiB"
    code, out, _ = run(f"{line} --algorithm 'winograd:F(2x2,3x3)' --json")
    found = json.loads(out)
    assert code == 0
    assert (found["lower_bound_words"], found["binding"]) == (6221824, "winograd:F(2x2,3x3)")
    assert "6,221,824" in run(f"{line} --algorithm 'winograd:F(2x2,3x3)'")[1]


def test_a13_empty_batch(run):
    line = "--input 0x3x3x3 --weight 3x3x3x3 --capacity 1KiB --json"
    assert json.loads(run(f"bound {line}")[1])["lower_bound_words"] == 0
    found = json.loads(run(f"tile {line}")[1])
    assert (found["traffic_words"], found["gap"], found["lp"]) == (0, None, None)


def test_a07_stride_beyond_64_bits(run):
    stride = 4634247419717959497
    line = f"--input 1x1x8x8 --weight 1x1x3x3 --strides {stride},{stride} --pads 1,1,1,1"
    found = json.loads(run(f"tile {line} --capacity 1KiB --json")[1])
    assert found["shape"]["output"] == [1, 1, 1, 1]
    assert (found["macs"], found["compulsory_words"], found["traffic_words"]) == (4, 9, 9)


@pytest.mark.parametrize(
    "line",
    [
        "--input 2x6x20 --weight 4x3x5 --group 2 --strides 2 --pads 1,3 --dilations 2",
        "--input 1x2x5x6x7 --weight 3x2x3x2x1 --auto-pad SAME_UPPER",
        "--input 1x4x9x9 --weight 4x3x3x3 --transposed --strides 2,2 --output-padding 1,1",
        "--input 1x4x9x9 --weight 4x3x3x3 --transposed --strides 2,2 --output-shape 18,18",
    ],
)
def test_every_rank_and_kind(run, line):
    for command in ("bound", "tile", "verify"):
        code, out, _ = run(f"{command} {line} --capacity 256words --json")
        assert code == 0
        assert json.loads(out)


# --- tile ------------------------------------------------------------------------------------


def test_tile_json(run):
    code, out, _ = run(f"tile {SHAPE} --capacity 48KiB --json")
    found = json.loads(out)
    assert code == 0
    assert found["lower_bound_words"] <= found["traffic_words"]
    assert found["gap"] == found["traffic_words"] / found["lower_bound_words"]
    assert set(found["tile"]) == {"n", "k", "c", "h", "w"}
    assert found["footprint_words"] == sum(found["footprint"].values()) <= 12288
    assert sum(found["traffic"].values()) == found["traffic_words"]
    assert set(found["schedule"]["order"]) == set(found["tile"])
    # Demmel and Dinh: N / sqrt(M * 9), bound by all three arrays at 1/2.
    assert found["lp"]["words"] == pytest.approx(64**2 * 56**2 * 9 / (12288 * 9) ** 0.5)
    assert {found["lp"]["duals"][a] for a in ("input", "weight", "output")} == {"1/2"}
    assert found["lp"]["binding"] == list(found["lp"]["duals"])


def test_tile_table(run):
    code, out, _ = run(f"tile {SHAPE} --capacity 48KiB")
    assert code == 0 and "words loaded" in out and "log program" in out


def test_b21_b23_nothing_fits(run):
    line = "--input 1x1x64x64 --weight 1x1x32x32 --capacity 1024words"
    assert "1024 input words, 1024 weights" in bad(run, f"tile {line}")
    assert "give at least 1026 words" in bad(run, f"verify {line}")
    assert run(f"tile {line.replace('1024words', '1026words')}")[0] == 0


# --- bad input ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "parts"),
    [
        (f"bound {SHAPE} --capacity 64", ["capacity '64': has no unit", "KiB"]),
        (f"bound {SHAPE} --capacity 64kb", ["unit 'kb'"]),
        (f"bound {SHAPE} --capacity {'9' * 5000}KiB", ["is not a size"]),
        (f"bound {SHAPE} --capacity 1KiB --latex --json", ["latex True", "with --json"]),
        (f"bound {SHAPE}", ["capacity None: is missing"]),
        (f"bound {SHAPE} --capacity 1KiB --algorithm fft", ["algorithm 'fft': is none of direct"]),
        (
            f"bound {SHAPE} --capacity 1KiB --algorithm 'winograd:F(2x2,5x5)'",
            ["is for kernel (5, 5)"],
        ),
        (
            f"bound {SHAPE} --strides 2,2 --capacity 1KiB --algorithm 'winograd:F(2x2,3x3)'",
            ["strides (2, 2): Winograd convolution needs 1"],
        ),
        (f"bound {SHAPE} --machine h900", ["machine 'h900': is none of a100, h200, laptop"]),
        (f"bound {SHAPE} --machine h200 --capacity 1KiB", ["takes the place of --capacity"]),
        ("bound --capacity 1KiB", ["input None: is missing"]),
        ("bound --input 1x1x4 --capacity 1KiB", ["weight None: is missing"]),
        ("bound --input 1x1xq --weight 1x1x1 --capacity 1KiB", ["input '1x1xq'", "joined by 'x'"]),
        ("bound --input 1x1x4 --weight 1x1x1 --pads 1x1 --capacity 1KiB", ["pads '1x1'"]),
        (
            # A01
            "bound --input 1x1x2x2 --weight 2x1x3x3 --capacity 1KiB",
            ["input (1, 1, 2, 2)", "axis h has padded size 2", "effective kernel 3"],
        ),
        (
            # A02
            "bound --input 32x16x2 --weight 32x16x7 --pads 1,1 --capacity 1KiB",
            ["axis w has padded size 4", "effective kernel 7"],
        ),
        (
            # A17
            "bound --input 1x6x20x10 --weight 1x6x3x3 --padding-mode circular --capacity 1KiB",
            ["padding-mode 'circular'", "only zero padding"],
        ),
        (
            # A33
            "bound --input 1x1x2x3 --weight 1x1x2x2 --pads 5,-5,16,1 --capacity 1KiB",
            ["pads (5, -5, 16, 1)", "at least 0"],
        ),
        ("bound --input 1x4x8x8 --weight 4x4x3x3 --group 3 --capacity 1KiB", ["4 * group 3"]),
        ("bound --input 1x4x8 --weight 4x4x3 --strides 0 --capacity 1KiB", ["strides (0,)"]),
        ("bound --input 1x4x8x8 --weight 4x4x3x3 --dtype float31 --capacity 1KiB", ["float31"]),
        ("bound --input 1x4x8x8 --weight 4x4x3x3 --auto-pad SOME --capacity 1KiB", ["auto-pad"]),
        ("bound --nope 3", ["--nope"]),
        ("bound --group q", ["--group"]),
        ("nonsense", ["nonsense"]),
        ("report", ["Missing argument 'network'"]),
        ("report resnet51", ["network 'resnet51': is none of", "resnet50"]),
        ("report /", ["network '/': is none of"]),
        ("report resnet18 --capacity 64", ["has no unit"]),
        ("report resnet18 --bind N=1", ["bind 'N=1': is for ONNX files"]),
        ("report resnet18 --batch -1", ["batch -1"]),
        ("report missing.onnx", ["missing.onnx"]),
        ("report resnet18 -o x.pdf", ["output 'x.pdf'", ".html"]),
        ("report resnet18 -o /no/such/x.html", ["directory /no/such does not exist"]),
        (f"verify {SHAPE} --capacity 48KiB --backend gpu", ["backend 'gpu': is none of auto"]),
        (f"verify resnet18 {SHAPE} --capacity 48KiB", ["cannot be given with a network's name"]),
        (f"verify {SHAPE} --capacity 48KiB --backend simulator", ["at most"]),
    ],
)  # fmt: skip
def test_bad_input_is_one_line_and_exit_2(run, line, parts):
    text = bad(run, line)
    for part in parts:
        assert part in text


def test_no_arguments_show_help(run):
    code, out, err = run("")
    assert (code, err) == (0, "") and out.startswith("Usage: redblue") and "report" in out


# --- verify, report, networks ------------------------------------------------------------------


def test_verify_counts(run):
    code, out, _ = run(f"verify {SHAPE} --capacity 48KiB --backend count --json")
    found = json.loads(out)
    assert code == 0 and found["ok"] and found["backend"] == "count"
    words = {c["name"]: c["words"] for c in found["layers"][0]["checks"]}
    assert words["best tiling, model"] == words["best tiling, walk"]


def test_verify_in_the_simulator(run):
    line = "verify --input 2x4x6x5 --weight 6x2x3x2 --group 2 --strides 2,1 --pads 1,0,1,1"
    code, out, _ = run(f"{line} --capacity 120words --backend simulator --json")
    found = json.loads(out)
    assert code == 0 and found["ok"]
    words = {c["name"]: c["words"] for c in found["layers"][0]["checks"]}
    model = words["kernel's tiling, model"]
    assert words["kernel on simulator, its own counters"] == model
    assert words["kernel on simulator, its memory's counters"] == model
    assert words["kernel's tiling, walk"] == model


def test_verify_table_and_network(run):
    code, out, _ = run("verify alexnet --capacity 64KiB --backend count")
    assert code == 0 and "5 of 5 distinct layers verified" in out and "FAILED" not in out


def test_layers_too_large_for_the_simulator_are_listed(run):
    code, out, _ = run("verify alexnet --capacity 64KiB --backend simulator --json")
    found = json.loads(out)
    assert code == 4 and found["layers"] == []
    assert len(found["failed"]) == 5 and "at most" in found["failed"][0]["reason"]


def test_a_missing_device_is_exit_3(run):
    from backends.cuda.launch import available

    if available():
        pytest.skip("there is a device here")
    code, out, err = run(f"verify {SHAPE} --capacity 48KiB --backend cuda")
    assert (code, out) == (3, "")
    assert err.startswith("error: no CUDA device") and "pip install 'redblue[cuda]'" in err


def test_a_failed_check_is_exit_1(run, monkeypatch):
    import redblue.verification

    right = redblue.verification.walk

    def one_more(tiling):
        from dataclasses import replace

        count = right(tiling)
        more = replace(count.traffic, input_loads=count.traffic.input_loads + 1)
        return replace(count, traffic=more)

    monkeypatch.setattr(redblue.verification, "walk", one_more)
    code, out, _ = run(f"verify {SHAPE} --capacity 48KiB --backend count")
    assert code == 1 and "FAILED" in out
    monkeypatch.setattr("redblue.analysis.walk", one_more)
    code, out, err = run("report alexnet")
    assert code == 1 and "error: layer " in err and "the model says" in err


def test_report_json(run):
    code, out, _ = run("report resnet50 --capacity 64KiB --json")
    found = json.loads(out)
    assert code == 0
    assert (found["network"], found["capacity_words"]) == ("resnet50", 16384)
    assert sum(layer["count"] for layer in found["layers"]) == 53
    for layer in found["layers"]:
        assert layer["lower_bound_words"] <= layer["traffic_words"] == layer["counted_words"]
    # 4,087,136,256 dense multiply-accumulates: the usual 4.09 GMACs of ResNet-50.
    assert found["totals"]["macs_dense"] == 4087136256
    assert found["totals"]["traffic_words"] == sum(
        layer["traffic_words"] * layer["count"] for layer in found["layers"]
    )


def test_report_table_says_what_it_shows(run):
    code, out, _ = run("report resnet18 --capacity 64KiB")
    assert code == 0
    for part in ("bound, words", "traffic, words", "all layers", "65,536 bytes", "same"):
        assert part in out


def test_eighty_columns_hold_every_number(run, monkeypatch):
    words = {
        f"{layer[key]:,}"
        for layer in json.loads(run("report resnet18 --json")[1])["layers"]
        for key in ("lower_bound_words", "traffic_words")
    }
    monkeypatch.setenv("COLUMNS", "80")
    code, out, _ = run("report resnet18")
    assert code == 0
    assert all(number in out for number in words)
    assert max(map(len, out.splitlines())) <= 80


def test_a_narrow_table_folds_no_number(run, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    _, out, _ = run("report resnet18 --capacity 64KiB")
    lines = out.splitlines()
    table = lines[: next(i for i, line in enumerate(lines) if line.startswith("all layers")) + 1]
    assert max(map(len, lines)) <= 80
    found = json.loads(run("report resnet18 --capacity 64KiB --json")[1])
    for layer in found["layers"]:
        (row,) = [line for line in table if line.split()[:1] == [layer["name"]]]
        assert f"{layer['traffic_words']:,}" in row and f"{layer['gap']:.3f}" in row


def test_layers_that_are_too_long_to_walk_say_why(run):
    code, out, _ = run("report alexnet --batch 1000000")
    assert code == 0 and "not walked: the schedule has" in out
    found = json.loads(run("report alexnet --batch 1000000 --json")[1])
    assert found["totals"]["counted_words"] is None


def test_layers_that_do_not_fit_are_listed(run):
    code, out, _ = run("report resnet18 --capacity 40words --json")
    found = json.loads(out)
    assert code == 4
    (failed,) = found["failed"]
    assert failed["name"] == "conv1" and "give at least 51 words" in failed["reason"]
    assert sum(layer["count"] for layer in found["layers"]) == 19


def test_batch(run):
    found = json.loads(run("report alexnet --batch 4 --json")[1])
    assert {layer["shape"]["input"][0] for layer in found["layers"]} == {4}


def test_files(run, tmp_path):
    import csv

    path = tmp_path / "r.json"
    assert run(f"report alexnet -o {path}")[0] == 0
    stored = json.loads(path.read_text())
    assert stored == json.loads(run("report alexnet --json")[1])
    path = tmp_path / "r.csv"
    assert run(f"report alexnet -o {path}")[0] == 0
    rows = list(csv.DictReader(path.read_text().splitlines()))
    assert [int(r["traffic_words"]) for r in rows] == [
        layer["traffic_words"] for layer in stored["layers"]
    ]
    assert rows[0]["input"] == "x".join(map(str, stored["layers"][0]["shape"]["input"]))


def test_networks(run):
    code, out, _ = run("networks")
    assert code == 0 and "resnet50" in out and "4.087" in out
    names = {row["name"] for row in json.loads(run("networks --json")[1])}
    assert {"resnet18", "resnet34", "resnet50", "vgg16", "vgg19", "alexnet", "squeezenet",
            "inception_v3", "mobilenet_v1", "mobilenet_v2"} <= names  # fmt: skip


def test_onnx_file(run, tmp_path):
    from onnx import TensorProto, helper, save

    def value(name, shape):
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)

    graph = helper.make_graph(
        [
            helper.make_node("Conv", ["x", "w"], ["y"], name="first", pads=[1, 1, 1, 1]),
            helper.make_node("Relu", ["y"], ["z"], name="relu"),
        ],
        "g",
        [value("x", ["N", 3, 8, 8]), value("w", [4, 3, 3, 3])],
        [value("z", ["N", 4, 8, 8])],
    )
    path = tmp_path / "net.onnx"
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), path)
    code, out, _ = run(f"report {path} --json")
    assert code == 4 and "--bind" in json.loads(out)["failed"][0]["reason"]
    code, out, _ = run(f"report {path} --bind N=2 --json")
    found = json.loads(out)
    assert code == 0
    assert found["layers"][0]["shape"]["input"] == [2, 3, 8, 8]
    assert [row["op"] for row in found["skipped"]] == ["Relu"]
    assert run(f"verify {path} --bind N=2 --capacity 1KiB --backend count")[0] == 0
    assert "is not NAME=SIZE" in bad(run, f"report {path} --bind N")
    assert "M" in bad(run, f"report {path} --bind M=2")


def save_named(path, name):
    """A model with a right convolution, a wrong one and a ReLU, all of one name."""
    from onnx import TensorProto, helper, save

    values = [
        helper.make_tensor_value_info(n, TensorProto.FLOAT, s)
        for n, s in (("x", [1, 3, 8, 8]), ("w", [4, 3, 3, 3]), ("v", [4, 5, 1, 1]), ("y", None))
    ]
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["m"], name=name),
        helper.make_node("Conv", ["m", "v"], ["n"], name=name),
        helper.make_node("Relu", ["n"], ["y"], name=name),
    ]
    save(helper.make_model(helper.make_graph(nodes, "g", values[:3], values[3:])), path)


def test_names_from_files_steer_no_terminal(run, tmp_path):
    name = "a\x1b[31mb\x07 [bold]c[/d]\n:smile:"
    path = tmp_path / "net.onnx"
    save_named(path, name)
    for line in (f"report {path}", f"verify {path} --capacity 1KiB --backend count"):
        code, out, _ = run(line)
        assert code == 4
        assert r"a\x1b[31mb\x07 [bold]c[/d] :smile:" in out
        assert "\x1b" not in out and "\x07" not in out
    assert json.loads(run(f"report {path} --json")[1])["layers"][0]["name"] == name


# --- as a process --------------------------------------------------------------------------------


def process(*arguments, **more):
    return subprocess.run(
        [sys.executable, "-m", "redblue", *arguments],
        capture_output=True, text=True, check=False, **more,
    )  # fmt: skip


def examples():
    """Commands of the epilogs, as each help prints them."""
    for command in ((), ("bound",), ("tile",), ("verify",), ("report",), ("networks",)):
        text = " ".join(process(*command, "--help").stdout.split())
        found = re.findall(r"redblue [^;]*?(?=;|$)", text[text.index("Example") :])
        assert found, command
        yield from found


def test_help_examples_run(tmp_path):
    for example in examples():
        done = process(*shlex.split(example)[1:], cwd=tmp_path, env=environment())
        assert done.returncode == 0, (example, done.stderr)


def environment():
    from pathlib import Path

    return {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}


def test_bound_is_quick_and_loads_no_heavy_library():
    code = (
        "import sys; from redblue.__main__ import main;"
        f"main({['bound', *shlex.split(SHAPE), '--capacity', '48KiB', '--json']!r});"
        "print([h for h in ('numpy','scipy','sympy','numba','onnx','plotly') if h in sys.modules],"
        " file=sys.stderr)"
    )
    start = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment()
    )
    assert done.stderr.strip() == "[]"
    assert time.perf_counter() - start < 5  # about 0.5 s alone; the tests share the machine


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full")  # noqa: PTH110
@pytest.mark.parametrize("line", ["networks", "networks --json"])
def test_a_full_disk_is_one_error_line(line):
    done = subprocess.run(
        f"{sys.executable} -m redblue {line} > /dev/full",
        shell=True, capture_output=True, text=True, check=False, env=environment(),
    )  # fmt: skip
    assert done.returncode == 2
    assert done.stderr == ("error: standard output: cannot be used: No space left on device\n")


def test_a_closed_output_is_no_traceback():
    done = subprocess.run(
        f"{sys.executable} -m redblue networks >&-",
        shell=True, capture_output=True, text=True, check=False, env=environment(),
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")


def test_a_terminal_without_unicode_is_served(tmp_path):
    path = tmp_path / "net.onnx"
    save_named(path, "é漢")
    done = process("report", str(path), env={**environment(), "PYTHONIOENCODING": "ascii"})
    assert (done.returncode, done.stderr) == (4, "")
    assert done.stdout.isascii() and r"\xe9\u6f22" in done.stdout


def test_a_closed_pipe_is_no_error():
    done = subprocess.run(
        f"{sys.executable} -m redblue networks --json | head -c 1",
        shell=True, capture_output=True, text=True, check=True, env=environment(),
    )  # fmt: skip
    assert done.stdout == "[" and done.stderr == ""
