"""The ``systolic`` command as a user has it: exit codes, one object on stdout, sentences on stderr."""

from __future__ import annotations

import json
import os
import pty
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest
from PIL import Image

from systolic.model import load_model, sample_pictures
from tests.support.detectors import LABELS, TINY_CFG, tiny_files
from tests.systolic.command_line import call, refused, shown_on

ROOT = Path(__file__).resolve().parents[2]
COMMANDS = (
    "demo",
    "boards",
    "generate",
    "check",
    "simulate",
    "run",
    "schedule",
    "compare",
    "pareto",
    "fold",
    "package",
    "vendor",
)
PICTURE = str(sample_pictures()[0])


@pytest.fixture
def systolic() -> Any:
    """The command in this process."""
    return call


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    """tiny.cfg, with tiny.names and tiny.weights beside it."""
    cfg, _ = tiny_files(tmp_path)
    cfg.with_suffix(".weights").write_bytes(load_model(str(cfg), seed=2).files["model/network.weights"])
    return cfg


def generate_arguments(tiny: Path, *more: object) -> tuple[object, ...]:
    options = ("--weights", tiny.with_suffix(".weights"), "--names", tiny.with_suffix(".names"))
    board = (
        "--board",
        "pynq-z2",
        "--clock",
        250,
    )  # a search over all clocks would choose it, and take three times as long
    return ("generate", tiny, *options, *board, "--calibrate", PICTURE, "-o", tiny.parent / "out", *more)


# ---------------------------------------------------------------------------------------------- help


@pytest.mark.parametrize("command", COMMANDS)
def test_help_has_an_example_that_parses(command: str, systolic: Any) -> None:
    done = systolic(command, "--help")
    assert done.code == 0
    example = re.search(rf"example:\s+systolic ({command}.*)", done.out)
    assert example, done.out
    from systolic.cli.main import parser

    assert parser().parse_args(example[1].split()).command


def test_the_example_of_schedule_gives_a_schedule(systolic: Any) -> None:
    example = re.search(r"example:\s+systolic (schedule.*)", systolic("schedule", "--help").out)
    assert example
    done = systolic(*example[1].split(), "--json", "-")
    assert (done.code, done.error) == (0, "")
    assert done.json["array"]["rows"] == 13


def test_help_without_a_command(systolic: Any) -> None:
    done = systolic("--help")
    assert "example: systolic demo" in done.out
    assert all(command in done.out for command in COMMANDS)
    bare = systolic()
    assert (bare.code, bare.error) == (0, "")
    assert bare.out == done.out, "help, for whoever does not know what to ask"


def test_an_option_that_is_wrong(systolic: Any) -> None:
    done = systolic("generate", "shapes", "-o", "x", "--size", "416")
    assert done.code == 2
    assert "a size is WIDTHxHEIGHT in pixels, such as 416x416, not '416'" in done.error


# --------------------------------------------------------------------------------------------- boards


@pytest.mark.parametrize(
    "call",
    [
        ("run", "a" * 5000, "a.png"),
        ("compare", f"{'9' * 5000}.cfg"),
        ("simulate", "a/" * 4000),
        ("generate", "shapes", "--seed", "9" * 5000, "-o", "x"),
        ("schedule", "shapes", "--clock", "x" * 5000),
        ("x" * 5000,),
    ],
)
def test_an_argument_of_thousands_of_characters_gives_a_sentence(call: tuple[str, ...], systolic: Any) -> None:
    done = systolic(*call)
    assert (done.code, done.out) == (2, "")
    assert 20 < max(map(len, done.error.splitlines())) < 3000


def test_an_option_that_is_given_two_dashes(systolic: Any) -> None:
    done = systolic("generate", "shapes", "--weights=--", "-o", "x")
    assert done.code == 2
    assert done.error.endswith("error: argument --weights: -- is no value\n")


def test_boards(systolic: Any) -> None:
    done = systolic("boards")
    assert done.code == 0
    for name in ("zcu104", "zcu102", "ultra96-v2", "kv260", "pynq-z2", "aup-zu3", "kr260"):
        assert re.search(rf"^{name} ", done.out, re.M)
    assert "resources.dsp" in systolic("boards", "kv260").out
    found = systolic("boards", "zcu104", "--json", "-").json["boards"]
    assert [(one["name"], one["resources"]["dsp"]) for one in found] == [("zcu104", 1728)]
    assert found[0]["clocks_mhz"] == sorted(found[0]["clocks_mhz"])
    refused(systolic("boards", "zcu105"), "zcu105")


# ------------------------------------------------------------------------------------------- generate


def test_generate_writes_a_design_and_describes_it(tiny: Path, systolic: Any) -> None:
    done = systolic(*generate_arguments(tiny, "--json", "-"))
    assert (done.code, done.error) == (0, "")
    values = done.json
    assert {"folder", "digest", "network", "board", "clock_mhz", "array", "layers"} <= set(values)
    assert (values["network"], values["board"]) == ("tiny", "pynq-z2")
    assert [layer["name"] for layer in values["layers"]] == ["conv1", "conv2"]
    manifest = json.loads((tiny.parent / "out" / "manifest.json").read_text())
    assert manifest["labels"] == list(LABELS)


def test_generating_twice_gives_the_same_bytes(tiny: Path, systolic: Any) -> None:
    first = systolic(*generate_arguments(tiny, "--json", "-")).json["digest"]
    before = {path: path.read_bytes() for path in (tiny.parent / "out").rglob("*") if path.is_file()}
    refused(systolic(*generate_arguments(tiny)), r"out holds a generated design already; add --force to replace it")
    again = systolic(*generate_arguments(tiny, "--force", "--json", "-")).json["digest"]
    after = {path: path.read_bytes() for path in (tiny.parent / "out").rglob("*") if path.is_file()}
    assert (first, before) == (again, after)


@pytest.mark.parametrize("bits", [4, 16])
def test_other_formats_from_one_flag(bits: int, tiny: Path, systolic: Any) -> None:
    assert systolic(*generate_arguments(tiny, "--bits", bits)).code == 0
    values = json.loads((tiny.parent / "out" / "manifest.json").read_text())
    assert values["array"]["bits"] == bits
    assert values["word_bytes"] == values["array"]["lanes"] * bits // 8
    done = systolic("simulate", tiny.parent / "out", "--picture", PICTURE, "--json", "-")
    assert done.json["mismatches"] == 0
    assert systolic(*generate_arguments(tiny, "--bits", "5")).code == 2


def test_formats_are_compared(tiny: Path, systolic: Any) -> None:
    """A row each; int4 has four MACs where int8 has two and int16 one, and the DDR carries words of half the width."""
    formats = ("--bits", 4, "--bits", 8, "--bits", 16)
    rows = systolic("compare", tiny, "--board", "zcu104", "--array", "4x8x8", *formats, "--json", "-").json["rows"]
    assert [row["asked"] for row in rows] == [f"zcu104, 4x8x8, int{bits}" for bits in (4, 8, 16)]
    four, eight, wide = (row["schedule"] for row in rows)
    last = [one["layers"][-1]["parts"]["compute"] for one in (four, eight, wide)]
    assert 2 * last[0] == last[1] == last[2]
    assert four["ddr_bytes"]["weights"] < eight["ddr_bytes"]["weights"] < wide["ddr_bytes"]["weights"]
    macs = [one["usage"]["dsp"] - 2 * one["array"]["save_rows"] * 8 for one in (four, eight, wide)]
    assert macs == [4 * 8 * 8 // 2, 4 * 8 * 8 // 2, 4 * 8 * 8]


def test_a_schedule_of_another_format_is_refused(tiny: Path, systolic: Any) -> None:
    saved = tiny.parent / "schedule.json"
    assert systolic("schedule", tiny, "--board", "pynq-z2", "--bits", 4, "--save", saved).code == 0
    refused(
        systolic(*generate_arguments(tiny, "--schedule", saved)),
        r"lanes of 4 bits, but tiny has .*weights of 8 bits.*; quantise it to 4 bits, or take an array of 8",
    )


def test_generate_lists_the_built_in_networks(systolic: Any) -> None:
    assert {"shapes", "tiny-yolov2-voc", "tiny-yolov2-coco"} <= set(systolic("generate", "list").out.split())


def test_generate_needs_a_folder_and_leaves_foreign_ones_alone(tiny: Path, systolic: Any) -> None:
    refused(systolic("generate", "shapes"), "generate needs -o DIR, the new folder for the design")
    (tiny.parent / "out").mkdir()
    (tiny.parent / "out" / "thesis.tex").write_text("kept")
    sentence = "out exists and is not a generated design, so it is left alone; choose another folder"
    refused(systolic(*generate_arguments(tiny, "--force")), sentence)
    assert [path.name for path in (tiny.parent / "out").iterdir()] == ["thesis.tex"]


def test_truncated_and_oversized_weights(tiny: Path, systolic: Any) -> None:
    weights = tiny.with_suffix(".weights")
    whole = weights.read_bytes()
    wanted = (len(whole) - 20) // 4
    weights.write_bytes(whole[:-8])
    done = systolic(*generate_arguments(tiny))
    refused(done, "tiny.weights")
    assert f"{wanted}" in done.error
    assert f"{wanted - 2}" in done.error
    assert "conv2" in done.error, "the layer at which the numbers run out"
    weights.write_bytes(whole + bytes(12))
    done = systolic(*generate_arguments(tiny))
    refused(done, "tiny.weights")
    assert f"{wanted + 3}" in done.error
    weights.write_bytes(whole[:7])
    refused(systolic(*generate_arguments(tiny)), "tiny.weights")
    weights.unlink()
    refused(systolic(*generate_arguments(tiny)), r"the weights file .* cannot be read: No such file or directory")
    assert not (tiny.parent / "out").exists()


@pytest.mark.parametrize(
    ("change", "to", "sentence"),
    [
        ("[maxpool]", "[maxpol]", r"tiny.cfg:14: .*maxpol"),
        ("pad=1", "paddin=1", r"tiny.cfg:11: .*paddin"),
        ("size=3", "size=300", r"tiny.cfg:\d+: "),
        ("classes=3", "classes=7", r"tiny.cfg:\d+: .*24 channels"),
        ("width=36", "width=-4", r"tiny.cfg:2: "),
        ("[net]", "[note]", r"tiny.cfg:1: a cfg starts with \[net\]"),
    ],
)
def test_a_cfg_that_is_wrong_names_its_line(change: str, to: str, sentence: str, tiny: Path, systolic: Any) -> None:
    tiny.write_text(TINY_CFG.replace(change, to, 1))
    refused(systolic(*generate_arguments(tiny)), sentence)


def test_layers_that_the_array_cannot_map_are_all_listed(tiny: Path, systolic: Any) -> None:
    odd = "[upsample]\nstride=2\nscale=3\n\n"
    relu = "[convolutional]\nfilters=16\nsize=1\nactivation=relu\n\n"
    tiny.write_text(TINY_CFG.replace("[maxpool]\nsize=2", f"{odd}{relu}{odd}{relu}[maxpool]\nsize=2"))
    """Before a picture is looked at: calibrating takes its time."""
    done = systolic("generate", tiny, "--seed", 1, "--calibrate", tiny.parent / "none.jpg", "-o", tiny.parent / "out")
    refused(done, r"the systolic back-end cannot map 2 layer\(s\) of tiny yet:")
    assert "the streaming style has upsample: systolic fold NET, " in done.error
    for command in ("schedule", "compare"):
        refused(systolic(command, tiny), r"the systolic back-end cannot map 2 layer\(s\) of tiny yet:")
    lines = re.findall(r"^  tiny.cfg:(\d+): (\w+): ", done.error, re.M)
    assert [int(line) for line, _ in lines] == [14, 23]


def test_a_layer_beyond_every_buffer_says_by_how_much(tiny: Path, systolic: Any) -> None:
    tiny.write_text(
        "[net]\nwidth=64\nheight=64\nchannels=3\n[convolutional]\nfilters=128\nsize=3\npad=1\nactivation=leaky\n"
        "[connected]\noutput=10\nactivation=linear\n"
    )
    done = systolic("generate", tiny, "--seed", 1, "--board", "pynq-z2", "-o", tiny.parent / "out")
    refused(done, r"(?s)tiny does not fit PYNQ-Z2: .*\(\d+ too many\)")
    assert not (tiny.parent / "out").exists()


def test_calibration_pictures_that_are_none(tiny: Path, tmp_path: Path, systolic: Any) -> None:
    (tmp_path / "no.jpg").write_text("not a picture")
    options = ("--seed", 1, "--board", "pynq-z2", "-o", tmp_path / "out", "--calibrate")
    refused(systolic("generate", tiny, *options, tmp_path / "no.jpg"), "no.jpg: the file is none of the pictures")
    refused(systolic("generate", tiny, *options, tmp_path / "absent.jpg"), "absent.jpg: there is no such file")


def test_a_hostile_file_name_is_only_a_name(tiny: Path, systolic: Any) -> None:
    hostile = tiny.with_name('a"; ${x} [exec y]\n#error.cfg')
    tiny.rename(hostile)
    board = ("--board", "pynq-z2", "--clock", 250)
    done = systolic("generate", hostile, "--seed", 1, *board, "-o", tiny.parent / "out", "--json", "-")
    assert done.code == 0
    assert re.fullmatch(r"\w+", done.json["network"])
    for path in (tiny.parent / "out" / "src").iterdir():
        assert "exec y" not in path.read_text()


# ------------------------------------------------------------------------------------ simulate and run


def test_simulate_prints_one_object(tiny_design: Path, systolic: Any) -> None:
    done = systolic("simulate", tiny_design, "--picture", PICTURE, "--json", "-")
    assert (done.code, done.error) == (0, "")
    values = done.json
    assert values["mismatches"] == 0
    assert [(one["name"], one["values"], one["mismatches"]) for one in values["layers"]] == [
        ("conv1", 8 * 14 * 18, 0),
        ("conv2", 16 * 14 * 18, 0),
    ]
    assert all(one["sqnr_db"] > 15 for one in values["layers"])


def test_simulate_with_ap_int_and_a_table(tiny_design: Path, systolic: Any) -> None:
    done = systolic("simulate", tiny_design, "--picture", PICTURE, "--ap-int")
    assert done.code == 0
    assert "0 mismatches in 6,048 values: every bit equal (executed ap_int code against the golden model" in done.out


def test_json_goes_to_a_file_beside_the_table(tiny_design: Path, tmp_path: Path, systolic: Any) -> None:
    done = systolic("simulate", tiny_design, "--picture", PICTURE, "--json", tmp_path / "out.json")
    assert "every bit equal" in done.out
    assert json.loads((tmp_path / "out.json").read_text())["mismatches"] == 0
    done = systolic("simulate", tiny_design, "--picture", PICTURE, "--json", tmp_path / "absent" / "out.json")
    refused(done, "out.json cannot be written: No such file or directory")


def test_a_planted_error_is_told_with_its_layer_and_exit_code_1(
    tiny_design: Path, tmp_path: Path, systolic: Any
) -> None:
    shutil.copytree(tiny_design, tmp_path / "design")
    path = tmp_path / "design" / "data" / "weights_0.bin"
    data = bytearray(path.read_bytes())
    whole = str(crc32(data))
    data[-8] ^= 0x70  # in the last step of the last layer
    path.write_bytes(data)
    manifest = tmp_path / "design" / "manifest.json"
    assert whole in manifest.read_text()
    manifest.write_text(manifest.read_text().replace(whole, str(crc32(data))))  # else the folder is refused
    done = systolic("simulate", tmp_path / "design", "--picture", PICTURE)
    assert done.code == 1
    assert "THE DESIGN IS NOT RIGHT" in done.out
    assert re.search(r"^conv1 +2,016 +0 ", done.out, re.M)
    assert re.search(r"^conv2 .* first at channel \d+, row \d+, column \d+$", done.out, re.M)
    values = systolic("run", tmp_path / "design", PICTURE, "--json", "-")
    assert values.code == 1
    assert values.json["mismatches"] > 0


def test_run_prints_boxes_and_draws_them(tiny_design: Path, tmp_path: Path, systolic: Any) -> None:
    done = systolic("run", tiny_design, PICTURE, "-o", tmp_path / "boxes.png", "--json", "-")
    assert (done.code, done.error) == (0, "")
    values = done.json
    with Image.open(PICTURE) as picture, Image.open(tmp_path / "boxes.png") as drawn:
        assert (values["width"], values["height"]) == picture.size == drawn.size
    for one in values["detections"]:
        assert set(one) == {"label", "probability", "box"}
        assert one["label"] in LABELS
        x0, y0, x1, y1 = one["box"]
        assert 0 <= x0 <= x1 <= values["width"]
        assert 0 <= y0 <= y1 <= values["height"]
    none = systolic("run", tiny_design, PICTURE, "--threshold", 1)
    assert none.out == "no object found\n"


def test_simulate_and_run_refuse_what_is_no_design_or_picture(tiny_design: Path, tmp_path: Path, systolic: Any) -> None:
    sentence = r"is not a generated design, manifest.json cannot be read .*; run systolic generate first"
    refused(systolic("simulate", tmp_path, "--picture", PICTURE), sentence)
    refused(systolic("run", tmp_path, PICTURE), sentence)
    (tmp_path / "no.png").write_text("text")
    refused(systolic("run", tiny_design, tmp_path / "no.png"), "no.png: the file is none of the pictures")
    refused(
        systolic("simulate", tiny_design, "--picture", tmp_path / "absent.png"), "absent.png: there is no such file"
    )
    refused(systolic("run", tiny_design, PICTURE, "-o", tmp_path / "no" / "b.png"), "b.png cannot be written")


def test_no_compiler(tiny_design: Path, tmp_path: Path, systolic: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(tiny_design, tmp_path / "design", ignore=shutil.ignore_patterns("build"))
    (tmp_path / "empty").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    done = systolic("simulate", tmp_path / "design", "--picture", PICTURE)
    refused(done, r"needs a C\+\+17 compiler, and 'g\+\+' is not on this machine: install it")


def test_cycles_print_one_object(tiny_design: Path, tmp_path: Path, systolic: Any) -> None:
    picture = ("simulate", tiny_design, "--picture", PICTURE, "--cycles")
    done = systolic(*picture, "--json", "-", "--timeline", tmp_path / "t.png", "--fifos")
    assert done.code == 0
    values = done.json
    wanted = {"cycles_per_frame", "frames_per_second", "dsp", "dsp_efficiency", "layers", "processes", "fifos"}
    assert wanted <= set(values)
    assert {one["name"] for one in values["layers"]} == {"conv1", "conv2"}
    with Image.open(tmp_path / "t.png") as drawn:
        assert drawn.width > 300
    assert "cycles traced on the generated code" in systolic(*picture).out
    refused(systolic(*picture, "--timeline", tmp_path / "no" / "t.png"), "t.png cannot be written")


# ----------------------------------------------------------------------------------- demo, and a terminal


def test_the_demo_twice(tmp_path: Path, systolic: Any) -> None:
    folder = tmp_path / "demo"
    done = systolic("demo", "-o", folder, "--json", "-")
    assert done.code == 0
    values = done.json
    assert set(values) == {"generate", "simulate", "run", "truth"}
    assert values["simulate"]["mismatches"] == 0
    assert values["run"]["detections"], "the trained network finds something on its own sample"
    assert (values["truth"]["missed"], values["truth"]["added"]) == (0, 0)
    with Image.open(folder / "boxes.png") as drawn:
        assert drawn.size == (values["run"]["width"], values["run"]["height"])
    again = systolic("demo", "-o", folder, "--json", "-")
    assert again.json == values
    (tmp_path / "foreign").mkdir()
    (tmp_path / "foreign" / "thesis.tex").write_text("kept")
    refused(systolic("demo", "-o", tmp_path / "foreign"), "foreign exists and is not the demo's, so it is left alone")
    assert (tmp_path / "foreign" / "thesis.tex").is_file()


def test_the_demo_of_a_pipeline_finds_what_was_drawn(tmp_path: Path, systolic: Any) -> None:
    done = systolic("demo", "--style", "streaming", "-o", tmp_path / "demo", "--json", "-")
    assert done.code == 0
    assert done.json["simulate"]["mismatches"] == 0
    assert done.json["generate"]["style"] == "streaming"
    truth = done.json["truth"]
    assert {name: truth[name] for name in ("matched", "missed", "added")} == {"matched": 1, "missed": 0, "added": 0}
    assert truth["mean_iou"] >= 0.5


def command_line(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "systolic.cli.main", *map(str, arguments)]


def test_no_progress_where_there_is_no_terminal_and_some_where_there_is(tiny_design: Path, tmp_path: Path) -> None:
    """Compiling anew takes more than the half second after which the line shows."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    shutil.copytree(tiny_design, tmp_path / "a", ignore=shutil.ignore_patterns("build"))
    shutil.copytree(tiny_design, tmp_path / "b", ignore=shutil.ignore_patterns("build"))
    piped = command_line("simulate", tmp_path / "a", "--picture", PICTURE, "--json", "-")
    done = subprocess.run(piped, env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["mismatches"] == 0

    ours, theirs = pty.openpty()
    on_terminal = command_line("simulate", tmp_path / "b", "--picture", PICTURE, "--json", "-")
    done = subprocess.run(on_terminal, env=environment, stdout=subprocess.PIPE, stderr=theirs, text=True)
    os.close(theirs)
    shown = shown_on(ours)
    os.close(ours)
    assert "golden model …" in shown or "executing pass" in shown
    assert shown.endswith("\r\x1b[2K"), "the line is cleared at the end"
    assert json.loads(done.stdout)["mismatches"] == 0


def test_the_demo_does_not_write_into_a_file(tmp_path: Path, systolic: Any) -> None:
    (tmp_path / "boxes.png").write_bytes(b"")
    refused(
        systolic("demo", "-o", tmp_path / "boxes.png"),
        r"boxes.png is a file, and the demo writes a folder; choose another",
    )
