"""Test that a figure is the same on the command line, in JSON, saved files, manifest, host and report, in each
style."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from boards import board as boards
from boards.board import load
from boards.facts import DDR_PROFILES
from host.contract.manifest import read_manifest
from host.contract.systolic import BOUNDS, SystolicManifest
from host.simulated.pace import pace
from scheduler.systolic.model.cycles import PARTS
from systolic.cli.table import form_of
from systolic.model import sample_pictures
from systolic.styles.arguments import SHARE_ARGUMENTS, memory_arguments
from tests.support.command_line import call
from tests.support.golden_designs import DESIGNS

MEMORY = ("--ddr-gbps", 1.5, "--ddr-efficiency", 0.5)
ASKED: dict[str, Any] = {"gbps": 1.5, "efficiency": 0.5}
PICTURE = sample_pictures()[0]


def json_of(*arguments: object) -> dict[str, Any]:
    """Return the JSON that a command prints."""
    done = call(*arguments, "--json", "-")
    assert done.code == 0, done.error
    return done.json


def host_milliseconds(folder: Path) -> tuple[str, float]:
    """Return the source of the simulated board's frame time, and the frame time in milliseconds."""
    manifest = read_manifest(folder)
    own = pace(folder, manifest, 1)
    assert own is not None
    return own.source, 1000 * own.seconds(0, manifest.passes)


@pytest.mark.engine
def test_schedule_figures_match_the_design(tmp_path: Path) -> None:
    """Schedule for another memory rate than the board's. The saved schedule, the design and its trace must use this
    rate."""
    network, *asked = DESIGNS["systolic"](tmp_path)
    weights, target = asked[2:4], asked[4:]
    array = ("--array", "4x8x8")
    saved, page, folder = (tmp_path / name for name in ("saved.json", "page.html", "design"))
    scheduled = json_of("schedule", network, *weights, *target, *MEMORY, *array, "--save", saved, "--report", page)
    again = json_of("schedule", network, *weights, *target, "--schedule", saved)
    (row,) = json_of("compare", network, *weights, *target, *MEMORY, *array)["rows"]
    generated = json_of("generate", network, *asked, "--schedule", saved, "-o", folder)
    hosted = host_milliseconds(folder)
    traced = json_of("simulate", folder, "--picture", PICTURE, "--cycles")
    manifest = read_manifest(folder)
    assert isinstance(manifest, SystolicManifest)

    for values in (scheduled, again, row["schedule"], generated):
        assert values["ddr"] == ASKED
    assert vars(manifest.ddr) == ASKED
    assert {"gbps": traced["memory"]["peak_gbps"], "efficiency": traced["memory"]["efficiency"]} == ASKED
    assert scheduled["cycles"] == again["cycles"] == row["schedule"]["cycles"] == generated["modelled_cycles"]

    def layers(values: Any) -> list[tuple[Any, ...]]:
        keys = ("name", "bound_by", "overhead", "overhead_cycles")
        return [tuple(layer[key] for key in keys) for layer in values["layers"]]

    assert layers(scheduled) == layers(generated) == layers(traced)
    assert layers(scheduled) == [
        (layer.name, layer.bound_by, layer.overhead, layer.overhead_cycles) for layer in manifest.layers
    ]
    assert hosted[0] == "modelled"
    assert hosted[1] == pytest.approx(scheduled["cycles"] / scheduled["clock_mhz"] / 1e3, rel=1e-6)
    assert scheduled["latency_ms"] == pytest.approx(1000 / scheduled["frames_per_second"])
    # The simulation saved its traced cycles in the design's folder, where the host reads them.
    traced_ms = traced["cycles_per_frame"] / scheduled["clock_mhz"] / 1e3
    source, traced_host_ms = host_milliseconds(folder)
    assert source == "traced"
    assert traced_host_ms == pytest.approx(traced_ms, rel=1e-6)
    cycles = [layer["cycles"] for layer in scheduled["layers"]]
    assert sum(cycles) == scheduled["cycles"]
    assert [layer["modelled_cycles"] for layer in generated["layers"]] == cycles
    assert [layer["modelled_cycles"] for layer in traced["layers"]] == cycles
    assert sum(layer["cycles"] for layer in traced["layers"]) == traced["cycles_per_frame"]
    assert (
        f"{scheduled['cycles']:,} cycles per frame, {scheduled['frames_per_second']:.1f} frames/s" in page.read_text()
    )
    assert f"{scheduled['cycles']:,}" in (folder / "README.md").read_text()
    slow = ("simulate", folder, "--picture", PICTURE, "--cycles", "--ddr-gbps", 0.2)
    slower, profiled = json_of(*slow), json_of(*slow, "--ddr-profile", "measured")
    assert profiled["ddr_profile"] == "measured"
    rates = {rate["profile"]: rate["frames_per_second"] for rate in slower["ddr_profiles"]}
    assert profiled["frames_per_second"] == round(rates["measured"], 2) < round(rates["optimistic"], 2)
    assert slower["memory"]["peak_gbps"] == 0.2
    assert slower["cycles_per_frame"] > traced["cycles_per_frame"]


def test_folding_figures_match_the_design(tmp_path: Path) -> None:
    network, seed, number, *asked = DESIGNS["streaming"](tmp_path)
    target = [word for word in asked if word not in ("--style", "streaming")]
    board = ("--board", "ultra96-v2", "--clock", 300)
    saved, page, folder = (tmp_path / name for name in ("saved.json", "page.html", "design"))
    (folded,) = json_of("fold", network, *target, *MEMORY, "--save", saved, "--report", page)["foldings"]
    (again,) = json_of("fold", network, *board, "--folding", saved)["foldings"]
    style = ("--style", "streaming", *board, "--estimated-fifos", "--folding", saved)
    generated = json_of("generate", network, seed, number, *style, "-o", folder)
    hosted = host_milliseconds(folder)
    traced = json_of("simulate", folder, "--picture", PICTURE, "--cycles")
    manifest = read_manifest(folder)
    for values in (folded, again, generated):
        assert values["ddr"] == ASKED
    assert vars(manifest.ddr) == ASKED
    assert {"gbps": traced["memory"]["peak_gbps"], "efficiency": traced["memory"]["efficiency"]} == ASKED
    assert folded["cycles"] == again["cycles"] == generated["modelled_cycles"] == manifest.pass_cycles[0]
    frame_ms = folded["cycles"] / manifest.clock_mhz / 1e3
    assert hosted[0] == "modelled"
    assert hosted[1] == pytest.approx(frame_ms, rel=1e-6)
    assert 1000 / frame_ms == pytest.approx(folded["frames_per_second"], abs=0.01)
    blocks = {block["name"]: block["modelled_cycles"] for block in generated["blocks"]}
    assert {layer["name"]: layer["modelled_cycles"] for layer in traced["layers"]} == blocks
    assert f"{folded['cycles']:,}" in page.read_text()
    assert [rate["profile"] for rate in traced["ddr_profiles"]] == list(DDR_PROFILES)


@pytest.mark.engine
@pytest.mark.parametrize("style", DESIGNS)
def test_default_ddr_rate_is_the_board_preset(style: str, tmp_path: Path) -> None:
    folder = tmp_path / "design"
    json_of("generate", *DESIGNS[style](tmp_path), "-o", folder)
    manifest = read_manifest(folder)
    shown = json_of("boards", manifest.board)["boards"][0]["ddr"]
    ddr = load(manifest.board).ddr
    assert manifest.ddr.gbps == ddr.preset_gbps == shown["bits"] / 8 * shown["preset_mts"] / 1000
    assert f"{ddr.preset_gbps:.2f}" in call("boards").out


def test_manifest_bounds_are_the_parts_of_the_schedule() -> None:
    assert BOUNDS == PARTS


def test_memory_options_mean_the_same_in_every_command() -> None:
    shared = memory_arguments()
    for command in ("schedule", "compare", "pareto", "generate", "fold", "simulate"):
        options = {option.flag: option for option in form_of(command).options()}
        for usual in shared:
            option = options[usual.flag]
            meaning = option.help.removeprefix("With --cycles: ").split(" (")[0].lower()
            assert meaning == usual.help.split(" (")[0].lower(), command
            assert option.settings["metavar"] == usual.settings["metavar"], command
        if command != "simulate":
            assert options["--dsp-share"] in SHARE_ARGUMENTS, command


@pytest.mark.engine
def test_design_for_a_board_file_keeps_the_board(tmp_path: Path) -> None:
    """Remove the board's file before the design is simulated and checked, because the design must carry the board."""
    text = (Path(boards.__file__).parent / "pynq-z2.toml").read_text("utf-8")
    mine = tmp_path / "mine.toml"
    mine.write_text(text.replace("preset_mts = 1050", "preset_mts = 525", 1))
    network, *asked = DESIGNS["systolic"](tmp_path)
    asked[asked.index("pynq-z2")] = mine
    assert "mine" in call("boards", mine).out or "PYNQ-Z2" in call("boards", mine).out
    generated = json_of("generate", network, *asked, "-o", tmp_path / "design")
    mine.unlink()
    assert (generated["board"], generated["ddr"]["gbps"]) == ("mine", 1.05)
    traced = json_of("simulate", tmp_path / "design", "--picture", PICTURE, "--cycles")
    assert traced["memory"]["peak_gbps"] == 1.05
    checked = json_of("check", tmp_path / "design")
    assert checked["highest_clock_mhz"] > 0
