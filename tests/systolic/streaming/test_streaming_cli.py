"""The streaming style from the command line: one small network generated, executed, traced, folded."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest
from PIL import Image

from boards.errors import (
    ChoiceError,
    ConflictError,
    DamagedFileError,
    FileAccessError,
    InvalidValueError,
    MissingValueError,
    RangeError,
    SystolicError,
    UnsupportedError,
)
from systolic.model import sample_pictures
from tests.support.command_line import Done, call, refused
from tests.support.errors import faults_of
from tests.support.small_network import BLOCKS, HEAD, LAYERS, write_small

pytest.importorskip("ortools", reason="exact folding needs OR-tools: pip install -e '.[solver]'")

PICTURE = sample_pictures()[0]
TARGET = ("--board", "ultra96-v2", "--clock", 300, "--fps", 50_000)
GENERATE = ("--seed", 1, "--style", "streaming", *TARGET)


@dataclass(frozen=True)
class Generated:
    """A generated design and the outcome of the commands that made and traced it.

    Attributes:
        network: The network's file.
        design: The design's folder.
        done: The outcome of ``generate --json``.
        cycles: The outcome of ``simulate --cycles --json``.
        timeline: The picture of the timeline that ``simulate`` wrote.
    """

    network: Path
    design: Path
    done: Done
    cycles: Done
    timeline: Path


@pytest.fixture(scope="module")
def generated(tmp_path_factory: pytest.TempPathFactory) -> Generated:
    """Generate a design whose FIFOs the trace sizes, and trace it. Tests only read its folder."""
    folder = tmp_path_factory.mktemp("streaming-cli")
    network, design, timeline = write_small(folder), folder / "design", folder / "timeline.png"
    done = call("generate", network, *GENERATE, "-o", design, "--json", "-")
    options = ("--picture", PICTURE, "--cycles", "--json", "-", "--timeline", timeline)
    return Generated(network, design, done, call("simulate", design, *options), timeline)


@pytest.fixture
def network(tmp_path: Path) -> Path:
    return write_small(tmp_path)


# --------------------------------------------------------------------------------------------- generate


def test_generate_json_prints_one_object(generated: Generated) -> None:
    assert (generated.done.code, generated.done.error) == (0, "")
    values = generated.done.json
    assert (values["network"], values["board"], values["style"]) == ("small", "ultra96-v2", "streaming")
    assert values["fits"]
    assert (values["folding"]["state"], values["folding"]["gap"]) == ("optimal", 0)
    assert [block["name"] for block in values["blocks"]] == BLOCKS
    assert values["modelled_cycles"] == max(block["modelled_cycles"] for block in values["blocks"]) <= 300e6 / 50_000
    assert values["fifos"]["interval"] == values["fifos"]["best_interval"]
    assert 0 < values["fifos"]["bits"] < values["fifos"]["fixed_bits"]


def test_generate_text_reports_blocks_resources_and_fifos(network: Path, tmp_path: Path) -> None:
    done = call("generate", network, *GENERATE, "--estimated-fifos", "-o", tmp_path / "out")
    assert re.search(r"^first +MatrixVector +simd 27, ", done.out, re.M)
    assert re.search(r"frames/s at 300 MHz \(target\)\n[\d,]+ of 70,560 LUT, \d+ of 360 DSP, .* \(estimate\)", done.out)
    assert "folding optimal, proven cheapest with FIFOs as estimated, " in done.out
    assert re.search(r"^FIFOs: [\d,]+ bits, as estimated .* the search had estimated [\d,]+\); a frame", done.out, re.M)
    assert "systolic simulate --cycles traces the generated code" in done.out
    again = call("generate", network, *GENERATE, "-o", tmp_path / "out")
    refused(again, FileAccessError, path=str(tmp_path / "out"), reason="holds a generated design already")


# --------------------------------------------------------------------------------- simulate, cycles, run


def test_simulate_json_prints_one_object(generated: Generated) -> None:
    done = call("simulate", generated.design, "--picture", PICTURE, "--json", "-")
    assert (done.code, done.error) == (0, "")
    assert done.json["mismatches"] == 0
    assert [(one["name"], one["values"], one["mismatches"]) for one in done.json["layers"]] == [
        ("first", 8 * 16 * 32, 0),
        ("half", 8 * 8 * 16, 0),
        ("sums", 36 * 8 * 16, 0),
    ]
    assert all(one["sqnr_db"] > 15 for one in done.json["layers"])
    text = call("simulate", generated.design, "--picture", PICTURE).out
    assert "0 mismatches in 9,728 values: every bit equal (executed native code against the golden model" in text


def test_simulate_cycles_json_prints_one_object(generated: Generated) -> None:
    assert (generated.cycles.code, generated.cycles.error) == (0, "")
    values, promised = generated.cycles.json, generated.done.json
    assert values["cycles_per_frame"] == promised["fifos"]["interval"]
    start_and_stop = values["latency_cycles"] - promised["fifos"]["latency"]
    assert 0 <= start_and_stop <= 4, "a dataflow region takes a few cycles in addition to its processes"
    assert promised["fifos"]["latency"] > values["cycles_per_frame"]
    assert values["cycles_per_frame"] == promised["modelled_cycles"]
    assert values["frames_per_second"] == pytest.approx(300e6 / values["cycles_per_frame"], rel=1e-4)
    assert [one["name"] for one in values["layers"]] == BLOCKS
    assert all(one["modelled_cycles"] <= one["cycles"] <= one["modelled_cycles"] + 1 for one in values["layers"])
    assert {"sums", "dma_read"} <= {one["name"] for one in values["processes"]}


@pytest.mark.engine
def test_timeline_picture_has_the_colours_of_its_lanes(generated: Generated) -> None:
    with Image.open(generated.timeline) as drawn:
        assert drawn.width > 600
        pixels = {pixel for _, pixel in drawn.convert("RGB").getcolors(1 << 24) or []}
    assert {(0x56, 0xB4, 0xE9), (0xF0, 0xE4, 0x42), (0xE6, 0x9F, 0x00)} <= pixels


def test_simulate_cycles_text_reports_rate_and_fifos(generated: Generated) -> None:
    done = call("simulate", generated.design, "--picture", PICTURE, "--cycles", "--fifos", "--clock", 150)
    cycles = generated.cycles.json["cycles_per_frame"]
    assert f"small: a frame every {cycles:,} cycles, {150e6 / cycles:.1f} frames/s at 150 MHz (target)" in done.out
    assert "cycles traced on the generated code over 3 frames" in done.out
    assert re.search(r"^from_first +(\d+) +\1$", done.out, re.M), "the declared depth must be the needed depth"


def test_timeline_of_one_layer_is_refused(generated: Generated, tmp_path: Path) -> None:
    cycles = ("simulate", generated.design, "--picture", PICTURE, "--cycles", "--timeline")
    refused(
        call(*cycles, tmp_path / "t.png", "--layer", "sums"),
        UnsupportedError,
        subject="a timeline of --layer sums alone",
    )
    absent = tmp_path / "no" / "t.png"
    refused(call(*cycles, absent), FileAccessError, path=str(absent), remedy="choose another FILE.png")


def test_run_of_a_one_object_head_gives_one_box(generated: Generated, tmp_path: Path) -> None:
    done = call("run", generated.design, PICTURE, "-o", tmp_path / "boxes.png", "--json", "-")
    assert (done.code, done.error) == (0, "")
    assert done.json["mismatches"] == 0
    assert [one["label"] for one in done.json["detections"]] == ["object"]
    with Image.open(PICTURE) as picture, Image.open(tmp_path / "boxes.png") as drawn:
        assert (done.json["width"], done.json["height"]) == picture.size == drawn.size


def test_simulate_of_a_planted_error_names_its_layer(generated: Generated, tmp_path: Path) -> None:
    shutil.copytree(generated.design, tmp_path / "design", ignore=shutil.ignore_patterns("build"))
    path = tmp_path / "design" / "src" / "constants.h"
    text, planted = re.subn(r"(sums_weights(?:\[\d+\])+ = \{\n\s*)(-?\d+)", r"\g<1>1 ^ (\2)", path.read_text())
    assert planted == 1
    path.write_text(text)
    done = call("simulate", tmp_path / "design", "--picture", PICTURE)
    assert done.code == 1
    assert "THE DESIGN IS NOT RIGHT" in done.out
    assert re.search(r"^half +1,024 +0 ", done.out, re.M)
    assert re.search(r"^sums .* first at channel 0, row \d+, column \d+$", done.out, re.M)


# ------------------------------------------------------------------------------------------------- fold


@pytest.mark.engine
def test_fold_compare_reports_every_search(network: Path, tmp_path: Path) -> None:
    done = call("fold", network, *TARGET, "--compare", "--report", tmp_path / "report.html", "--json", "-")
    assert (done.code, done.error) == (0, "")
    foldings = {folding["search"]: folding for folding in done.json["foldings"]}
    assert list(foldings) == ["exact", "greedy", "annealing"]
    assert [one["state"] for one in foldings.values()] == ["optimal", "heuristic", "heuristic"]
    assert [one["gap"] for one in foldings.values()] == [0, None, None]
    assert foldings["exact"]["area"] == min(folding["area"] for folding in foldings.values())
    assert all(folding["frames_per_second"] >= 50_000 for folding in foldings.values())
    assert "<svg" in (tmp_path / "report.html").read_text()


def test_fold_text_reports_the_request(network: Path) -> None:
    done = call("fold", network, *TARGET, "--folding", "greedy")
    assert re.search(r"^greedy +[\d,]+ +[\d.]+ .* heuristic$", done.out, re.M)
    assert "Requested: 50000 frames/s with the fewest resources. Ultra96-V2 has 70,560 LUT" in done.out


def test_fold_of_a_saved_and_edited_folding_checks_it(generated: Generated, tmp_path: Path) -> None:
    saved, network = tmp_path / "folding.json", generated.network
    assert call("fold", network, *TARGET, "--save", saved).code == 0
    options = ("--seed", 1, "--style", "streaming", "--estimated-fifos", "--folding", saved, "-o", tmp_path / "again")
    again = call("generate", network, *options, "--board", "ultra96-v2", "--json", "-")
    assert (again.code, again.error) == (0, "")
    assert again.json["folding"] == {
        "state": "given",
        "gap": None,
        "proof": "not searched for",
        "seconds": 0,
        "ddr_bits": 0,
    }
    assert again.json["blocks"] == generated.done.json["blocks"]
    beside = call("fold", network, *TARGET, "--folding", saved, "--compare", "--json", "-").json["foldings"]
    assert [folding["search"] for folding in beside] == ["exact", "greedy", "annealing", str(saved)]
    assert beside[3]["cycles"] == beside[0]["cycles"]

    edited = json.loads(saved.read_text())
    next(block for block in edited["blocks"] if block["name"] == "first")["pe"] = 3
    saved.write_text(json.dumps(edited))
    done = call("fold", network, "--folding", saved)
    assert faults_of(done.refusal, InvalidValueError, got=3, nearest=(2, 4))


# ------------------------------------------------------------------------------------------- bad input


def test_fold_with_a_wrong_option_is_refused(network: Path) -> None:
    cases: list[tuple[tuple[object, object], type[SystolicError], dict[str, object]]] = [
        (("--fps", 0), RangeError, {"got": 0.0, "low": 0, "exclusive": True}),
        (("--fps", "nan"), RangeError, {"low": 0}),
        (("--fps", "1e12"), RangeError, {"what": "--fps in frames/s at 300 MHz", "got": 1e12}),
        (("--fps", "3e6"), RangeError, {"where": "small", "got": 99, "low": 288}),
        (("--deadline", 0), RangeError, {"got": 0.0, "low": 0, "exclusive": True}),
        (("--max-padding", -1), RangeError, {"what": "--max-padding", "got": -1, "low": 0}),
        (("--max-pixels", 0), RangeError, {"what": "--max-pixels", "got": 0, "low": 1}),
        (("--attempts", 0), RangeError, {"what": "--attempts", "got": 0, "low": 1}),
        (("--external", "second"), ChoiceError, {"got": "second", "choices": ["first", "sums"]}),
        (("--folding", "anealing"), FileAccessError, {"path": "anealing", "what": "folding"}),
        (("--board", "zcu105"), ChoiceError, {"got": "zcu105"}),
        (("--bits", 4), ConflictError, {"subjects": ("the network small", "--bits 4"), "remedy": "leave out --bits"}),
    ]
    for options, expected, fields in cases:
        refused(call("fold", network, "--clock", 300, *options), expected, **fields)


def test_fold_with_unusable_files_is_refused(network: Path, tmp_path: Path) -> None:
    refused(call("fold", network, "--folding", network), DamagedFileError, path="small.json")
    absent = tmp_path / "no" / "file"
    for flag in ("--save", "--report"):
        refused(call("fold", network, *TARGET, flag, absent), FileAccessError, path=str(absent))
    refused(call("fold", absent.with_suffix(".json")), FileAccessError, what="network file")


def test_generate_with_options_of_another_style_is_refused(network: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    schedule = call("generate", network, *GENERATE, "--schedule", network, "-o", out)
    refused(schedule, ConflictError, subjects=("--style streaming", "--schedule"))
    assert call("generate", network, "--style", "dataflow", "-o", out).code == 2
    unknown = call("generate", network, "--style", "streaming", "-o", out)
    refused(unknown, MissingValueError, what="the weights file of small.json")
    assert not out.exists()


def test_fold_and_generate_name_an_unsupported_layer(tmp_path: Path) -> None:
    first, half, sums = LAYERS
    many = {"type": "add", "name": "many", "from": ["half"] * 17, "output_bits": 4}
    network = write_small(tmp_path, (first, half, many, sums, HEAD))
    for done in (call("fold", network), call("generate", network, *GENERATE, "-o", tmp_path / "out")):
        assert done.code == 2
        assert faults_of(done.refusal, UnsupportedError, where="small.json: layer 3", subject="add 'many'")
