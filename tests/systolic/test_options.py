"""Options without effect or out of range, and files that are something else: each has its sentence."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from systolic.model import sample_pictures
from tests.support.detectors import tiny_files
from tests.systolic.command_line import call, refused

PICTURE = str(sample_pictures()[0])
TINY = ("--seed", 1, "--board", "pynq-z2")
ONE_CLOCK = (*TINY, "--clock", 250)
"""For a search: over all clocks it would choose this one, and take several times as long."""


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    return tiny_files(tmp_path)[0]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--fps", 0), "--fps is of the streaming style: add --style streaming"),
        (("--folding", "greedy"), "--folding is of the streaming style"),
        (("--external", "a", "--pad-ends"), "--pad-ends, --external are of the streaming style"),
        (("--estimated-fifos",), "--estimated-fifos is of the streaming style"),
        (("--deadline", 5, "--max-pixels", 4), "--deadline, --max-pixels are of the streaming style"),
    ],
)
def test_options_of_the_other_style(options: tuple[object, ...], sentence: str, tmp_path: Path) -> None:
    refused(call("generate", "shapes", "-o", tmp_path / "out", *options), sentence)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--timeline", "t.png"), "--timeline is of the cycle trace: add --cycles"),
        (("--fifos", "--clock", 100), "--fifos, --clock are of the cycle trace: add --cycles"),
        (("--ddr-efficiency", 0.5), "--ddr-efficiency is of the cycle trace"),
        (("--cycles", "--layer", "conv2"), "--layer chooses what --timeline draws: add --timeline FILE.png"),
        (("--cycles", "--ap-int"), "--cycles traces the native code alone, --ap-int is not of it"),
        (("--cycles", "--golden"), "--golden is not of it"),
        (("--cycles", "--timeline", "."), r"--timeline \. is a folder; name a FILE.png in it"),
        (("--cycles", "--ddr-efficiency", 7), "--ddr-efficiency is a share of the DDR's peak, above 0 .*, not 7"),
        (("--cycles", "--clock", 0), "--clock is a frequency above 0 MHz, not 0"),
        (("--cycles", "--clock", "nan"), "--clock is a frequency above 0 MHz, not nan"),
    ],
)
def test_options_of_the_trace(options: tuple[object, ...], sentence: str, tmp_path: Path) -> None:
    refused(call("simulate", tmp_path, "--picture", PICTURE, *options), sentence)


def test_an_unknown_option_is_answered_by_its_command(tmp_path: Path) -> None:
    done = call("generate", "shapes", "--array", "8x8x8", "-o", tmp_path / "out")
    assert done.code == 2
    assert "usage: systolic generate" in done.error
    assert "systolic generate: error: unrecognized arguments: --array 8x8x8" in done.error


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--threshold", 2), "--threshold is 0…1, not 2"),
        (("--overlap", -1), "--overlap is 0…1, not -1"),
        (("--threshold", "nan"), "--threshold is 0…1, not nan"),
    ],
)
def test_shares_of_run(options: tuple[object, ...], sentence: str, tmp_path: Path) -> None:
    refused(call("run", tmp_path, PICTURE, *options), sentence)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--workers", 0), "--workers counts processes, 1 or more, not 0"),
        (("--workers", -2), "--workers counts processes, 1 or more, not -2"),
        (("--ddr-efficiency", 7), "--ddr-efficiency is a share of the DDR's peak, above 0 and at most 1, not 7"),
        (("--objective", "ddr", "--fps", 0), "a frame rate above 0 to hold, give --fps RATE"),
        (("--map-depth", -1), "every number of the array is at least 1, map_depth and table_depth at least 0"),
        (("--map-depth", 1 << 20), r"needs [\d,]+ \w+ of [\d,]+ \(\d+ too many\)"),
        (("--array", "16x16x16"), r"does not fit .*: the least .*; leave out --array, which pins it, or pin a smaller"),
    ],
)
def test_a_search_that_cannot_start(options: tuple[object, ...], sentence: str, tiny: Path) -> None:
    refused(call("schedule", tiny, *TINY, *options), sentence)


def test_only_a_pinned_array_is_left_out(tiny: Path) -> None:
    done = call("compare", tiny, *TINY, "--array", "16x16x16", "--array", "4x4x4")
    assert (done.code, done.out.count("leave out --array"), done.out.count("a larger board")) == (0, 1, 0)


def test_compare_counts_its_workers_too(tiny: Path) -> None:
    refused(call("compare", tiny, "--workers", 0), "--workers counts processes")


def test_activations_of_the_other_style_are_said_once() -> None:
    done = call("schedule", "cnv-w1a1")
    refused(done, "systolic fold NET, systolic generate NET --style streaming$")
    assert done.error.count("--style streaming") == 1


@pytest.mark.parametrize("name", ["boxes.png", "weights.npz"])
def test_a_network_that_is_none(name: str, tmp_path: Path) -> None:
    kinds = r"a darknet \.cfg, an \.onnx file, an exported \.json, or a built-in name"
    sentence = rf"{name} holds no network: NET is {kinds} \(.*shapes"
    refused(call("generate", name, "-o", tmp_path / "out"), sentence)
    refused(call("schedule", name), sentence)
    refused(call("fold", name), sentence)


def test_a_size_of_nothing() -> None:
    done = call("generate", "shapes", "-o", "x", "--size", "0x0")
    assert done.code == 2
    assert "argument --size: a size is at least 1x1, not 0x0" in done.error


def test_files_that_are_something_else(tiny: Path, tmp_path: Path) -> None:
    out = ("-o", tmp_path / "out")
    refused(
        call("generate", tiny, *TINY, "--calibrate", tmp_path, *out), "holds no picture .*; name a folder of pictures"
    )
    refused(call("generate", tiny, *TINY, "--schedule", PICTURE, *out), "the schedule .* is no text; write one with")
    refused(call("fold", tiny, "--folding", PICTURE), "the folding .* is no text; write one with systolic fold --save")


def test_a_schedule_of_another_network(tiny: Path, tmp_path: Path) -> None:
    saved = tmp_path / "s.json"
    assert call("schedule", tiny, *ONE_CLOCK, "--save", saved).code == 0
    done = call("generate", "shapes", "--schedule", saved, "-o", tmp_path / "out")
    refused(done, r"as shapes does \(the file is the schedule of 'tiny'\); save the schedule again")


def test_generate_and_schedule_say_one_order(tiny: Path, tmp_path: Path) -> None:
    saved = tmp_path / "s.json"
    one = call("schedule", tiny, *ONE_CLOCK, "--order", "streamed", "--save", saved, "--json", "-").json["layers"]
    other = call("generate", tiny, *TINY, "--schedule", saved, "-o", tmp_path / "out", "--json", "-").json["layers"]
    assert [layer["order"] for layer in one] == [layer["order"] for layer in other]
    assert {layer["order"] for layer in one} == {"streamed"}
    assert re.search(r"^layer .* PEs busy ", call("schedule", tiny, *TINY, "--schedule", saved).out, re.M)


def test_maps_stay_off_chip_where_the_depth_is_pinned_to_none(tiny: Path) -> None:
    free = call("schedule", tiny, *ONE_CLOCK, "--json", "-").json
    bare = call("schedule", tiny, *ONE_CLOCK, "--map-depth", 0, "--json", "-").json
    assert (free["array"]["map_depth"] > 0, bare["array"]["map_depth"]) == (True, 0)
    assert any(layer["on_chip"] for layer in free["layers"])
    assert not any(layer["on_chip"] for layer in bare["layers"])
    assert bare["ddr_bytes_per_frame"] > free["ddr_bytes_per_frame"]


def test_how_a_wheel_is_installed(tiny_design: Path, tmp_path: Path) -> None:
    """Without dependencies: the board's image has them (docs/explanation/host.md)."""
    done = call("package", tiny_design, "--without-bitstream", "-o", tmp_path)
    assert re.search(r"; for the simulated board, not a real one: pip install --no-deps \S+\.whl$", done.out)
    design = shutil.copytree(tiny_design, tmp_path / "design", ignore=shutil.ignore_patterns("build"))
    (design / "systolic.bit").write_bytes(b"a bitstream")
    assert re.search(r"; on the board: pip install --no-deps \S+\.whl$", call("package", design, "-o", tmp_path).out)
