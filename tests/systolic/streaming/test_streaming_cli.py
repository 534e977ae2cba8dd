"""The streaming style from the command line: one small network generated, executed, traced, folded."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest
from PIL import Image

from systolic.model import sample_pictures
from tests.support.cases import cases
from tests.support.small_network import BLOCKS, HEAD, LAYERS, write_small
from tests.systolic.command_line import Done, call, refused

pytest.importorskip("ortools", reason="exact folding needs OR-tools: pip install -e '.[solver]'")

PICTURE = sample_pictures()[0]
TARGET = ("--board", "ultra96-v2", "--fps", 50_000)
GENERATE = ("--seed", 1, "--style", "streaming", *TARGET)


@dataclass(frozen=True)
class Generated:
    """cycles: what simulate --cycles said, and the timeline that it drew."""

    network: Path
    design: Path
    done: Done
    cycles: Done
    timeline: Path


@pytest.fixture(scope="module")
def generated(tmp_path_factory: pytest.TempPathFactory) -> Generated:
    """FIFOs sized by the trace. To be read only."""
    folder = tmp_path_factory.mktemp("streaming-cli")
    network, design, timeline = write_small(folder), folder / "design", folder / "timeline.png"
    done = call("generate", network, *GENERATE, "-o", design, "--json", "-")
    options = ("--picture", PICTURE, "--cycles", "--json", "-", "--timeline", timeline)
    return Generated(network, design, done, call("simulate", design, *options), timeline)


@pytest.fixture
def network(tmp_path: Path) -> Path:
    return write_small(tmp_path)


# --------------------------------------------------------------------------------------------- generate


def test_generate_prints_one_object(generated: Generated) -> None:
    assert (generated.done.code, generated.done.error) == (0, "")
    values = generated.done.json
    assert (values["network"], values["board"], values["style"]) == ("small", "ultra96-v2", "streaming")
    assert values["fits"]
    assert (values["folding"]["state"], values["folding"]["gap"]) == ("optimal", 0)
    assert [block["name"] for block in values["blocks"]] == BLOCKS
    assert values["modelled_cycles"] == max(block["modelled_cycles"] for block in values["blocks"]) <= 300e6 / 50_000
    assert values["fifos"]["interval"] == values["fifos"]["best_interval"]
    assert 0 < values["fifos"]["bits"] < values["fifos"]["fixed_bits"]


def test_generate_says_what_it_did(network: Path, tmp_path: Path) -> None:
    done = call("generate", network, *GENERATE, "--estimated-fifos", "-o", tmp_path / "out")
    assert re.search(r"^first +MatrixVector +simd 27, ", done.out, re.M)
    assert re.search(r"frames/s at 300 MHz \(target\)\n[\d,]+ of 70,560 LUT, \d+ of 360 DSP, .* \(estimate\)", done.out)
    assert "folding optimal, proven cheapest with FIFOs as estimated, " in done.out
    assert re.search(r"^FIFOs: [\d,]+ bits, as estimated .* the search had counted [\d,]+\); a frame", done.out, re.M)
    assert "systolic simulate --cycles traces the generated code" in done.out
    again = call("generate", network, *GENERATE, "-o", tmp_path / "out")
    refused(again, "out holds a generated design already; add --force to replace it")


# --------------------------------------------------------------------------------- simulate, cycles, run


def test_simulate_prints_one_object(generated: Generated) -> None:
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


def test_cycles_print_one_object(generated: Generated) -> None:
    assert (generated.cycles.code, generated.cycles.error) == (0, "")
    values, promised = generated.cycles.json, generated.done.json
    assert values["cycles_per_frame"] == promised["fifos"]["interval"]
    start_and_stop = values["latency_cycles"] - promised["fifos"]["latency"]
    assert 0 <= start_and_stop <= 4, "what a region takes beside its processes"
    assert promised["fifos"]["latency"] > values["cycles_per_frame"]
    assert values["cycles_per_frame"] == promised["modelled_cycles"]
    assert values["frames_per_second"] == pytest.approx(300e6 / values["cycles_per_frame"], rel=1e-4)
    assert [one["name"] for one in values["layers"]] == BLOCKS
    assert all(one["modelled_cycles"] <= one["cycles"] <= one["modelled_cycles"] + 1 for one in values["layers"])
    assert {"sums", "dma_read"} <= {one["name"] for one in values["processes"]}


def test_the_timeline_has_a_lane_a_process(generated: Generated) -> None:
    with Image.open(generated.timeline) as drawn:
        assert drawn.width > 600
        pixels = {pixel for _, pixel in drawn.convert("RGB").getcolors(1 << 24) or []}
    assert {(0x56, 0xB4, 0xE9), (0xF0, 0xE4, 0x42), (0xE6, 0x9F, 0x00)} <= pixels


def test_cycles_in_words_and_with_depths(generated: Generated) -> None:
    done = call("simulate", generated.design, "--picture", PICTURE, "--cycles", "--fifos", "--clock", 150)
    cycles = generated.cycles.json["cycles_per_frame"]
    assert f"small: a frame every {cycles:,} cycles, {150e6 / cycles:.1f} frames/s at 150 MHz (target)" in done.out
    assert "cycles traced on the generated code over 3 frames" in done.out
    assert re.search(r"^from_first +(\d+) +\1$", done.out, re.M), "declared as deep as is needed, and no deeper"


def test_a_pipeline_has_no_layer_of_its_own_to_draw(generated: Generated, tmp_path: Path) -> None:
    cycles = ("simulate", generated.design, "--picture", PICTURE, "--cycles", "--timeline")
    refused(
        call(*cycles, tmp_path / "t.png", "--layer", "sums"),
        "--layer sums: a pipeline works on all layers at once, in one region of the trace; leave --layer out",
    )
    refused(call(*cycles, tmp_path / "no" / "t.png"), r"t\.png cannot be written: .*; choose another FILE\.png")


def test_run_finds_the_one_object_of_the_head(generated: Generated, tmp_path: Path) -> None:
    done = call("run", generated.design, PICTURE, "-o", tmp_path / "boxes.png", "--json", "-")
    assert (done.code, done.error) == (0, "")
    assert done.json["mismatches"] == 0
    assert [one["label"] for one in done.json["detections"]] == ["object"]
    with Image.open(PICTURE) as picture, Image.open(tmp_path / "boxes.png") as drawn:
        assert (done.json["width"], done.json["height"]) == picture.size == drawn.size


def test_a_planted_error_is_told_with_its_layer_and_exit_code_1(generated: Generated, tmp_path: Path) -> None:
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


def test_fold_compares_the_searches(network: Path, tmp_path: Path) -> None:
    done = call("fold", network, *TARGET, "--compare", "--report", tmp_path / "report.html", "--json", "-")
    assert (done.code, done.error) == (0, "")
    foldings = {folding["search"]: folding for folding in done.json["foldings"]}
    assert list(foldings) == ["exact", "greedy", "annealing"]
    assert [one["state"] for one in foldings.values()] == ["optimal", "heuristic", "heuristic"]
    assert [one["gap"] for one in foldings.values()] == [0, None, None]
    assert foldings["exact"]["area"] == min(folding["area"] for folding in foldings.values())
    assert all(folding["frames_per_second"] >= 50_000 for folding in foldings.values())
    assert "<svg" in (tmp_path / "report.html").read_text()


def test_fold_in_words(network: Path) -> None:
    done = call("fold", network, *TARGET, "--folding", "greedy")
    assert re.search(r"^greedy +[\d,]+ +[\d.]+ .* heuristic$", done.out, re.M)
    assert "asked: 50000 frames/s with least resources. Ultra96-V2 has 70,560 LUT, 360 DSP, 432 BRAM18" in done.out


def test_a_saved_folding_is_generated_and_an_edited_one_checked(generated: Generated, tmp_path: Path) -> None:
    saved, network = tmp_path / "folding.json", generated.network
    assert call("fold", network, *TARGET, "--save", saved).code == 0
    options = ("--seed", 1, "--style", "streaming", "--estimated-fifos", "--folding", saved, "-o", tmp_path / "again")
    again = call("generate", network, *options, "--board", "ultra96-v2", "--json", "-")
    assert (again.code, again.error) == (0, "")
    assert again.json["folding"] == {"state": "given", "gap": None, "proof": "not searched for", "seconds": 0}
    assert again.json["blocks"] == generated.done.json["blocks"]
    beside = call("fold", network, *TARGET, "--folding", saved, "--compare", "--json", "-").json["foldings"]
    assert [folding["search"] for folding in beside] == ["exact", "greedy", "annealing", str(saved)]
    assert beside[3]["cycles"] == beside[0]["cycles"]

    edited = json.loads(saved.read_text())
    next(block for block in edited["blocks"] if block["name"] == "first")["pe"] = 3
    saved.write_text(json.dumps(edited))
    refused(
        call("fold", network, "--folding", saved),
        r"folding\.json: the folding of small is not legal:\s+first: pe has to divide its filters, MH \(8\), and 3",
    )


# ------------------------------------------------------------------------------------------- bad input


@cases(
    "options, sentence",
    [
        (("--fps", 0), "a frame rate is above 0, not 0; give --fps RATE, or leave it out"),
        (("--fps", "nan"), "a frame rate is above 0, not nan"),
        (("--fps", "1e12"), "1e.12 frames/s leave no cycle for a frame at 300 MHz; ask for less"),
        (("--fps", "3e6"), "small has no folding of 99 cycles a frame or less: .*; ask for fewer frames"),
        (("--deadline", 0), "a search needs more than 0 seconds, not 0; give --deadline S"),
        (("--max-padding", -1), "--max-padding counts channels that are added, 0 or more, not -1"),
        (("--max-pixels", 0), "--max-pixels counts pixels of a word, 1 or more, not 0"),
        (("--attempts", 0), "annealing needs an effort and attempts of at least 1, not 200 and 0"),
        (("--external", "second"), "--external second: small has no such layer .*; there are first, sums$"),
        (("--folding", "anealing"), "folding anealing cannot be read: .*, or take exact, greedy, annealing"),
        (("--board", "zcu105"), "the board must be one of"),
        (("--bits", 4), "small was quantised when it was trained, .*; leave out --bits"),
    ],
)
def test_fold_refuses(network: Path, options: tuple[object, ...], sentence: str) -> None:
    refused(call("fold", network, *options), sentence)


def test_files_that_are_none(network: Path, tmp_path: Path) -> None:
    refused(call("fold", network, "--folding", network), 'small.json is not a folding: .* "format": "systolic-folding"')
    absent = tmp_path / "no" / "file"
    refused(call("fold", network, *TARGET, "--save", absent), "file cannot be written: No such file or directory")
    refused(call("fold", network, *TARGET, "--report", absent), "file cannot be written: No such file or directory")
    refused(call("fold", absent.with_suffix(".json")), r"file\.json")


def test_generate_refuses(network: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    schedule = call("generate", network, *GENERATE, "--schedule", network, "-o", out)
    refused(schedule, "--schedule is of the systolic style: add --style systolic, or leave it out")
    style = call("generate", network, "--style", "dataflow", "-o", out)
    assert style.code == 2
    assert "argument --style: invalid choice: 'dataflow'" in style.error
    refused(call("generate", network, "--style", "streaming", "-o", out), "give --weights FILE.npz, or --seed NUMBER")
    assert not out.exists()


def test_a_layer_that_cannot_be_mapped_is_named(tmp_path: Path) -> None:
    first, half, sums = LAYERS
    many = {"type": "add", "name": "many", "from": ["half"] * 17, "output_bits": 4}
    network = write_small(tmp_path, (first, half, many, sums, HEAD))
    sentence = r"cannot map 1 layer\(s\) of small yet:\s+small\.json.*: many: adds 17 maps, at most \d+ can be added"
    refused(call("fold", network), sentence)
    refused(call("generate", network, *GENERATE, "-o", tmp_path / "out"), sentence)
