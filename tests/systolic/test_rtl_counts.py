"""Test ``systolic simulate --cycles`` of SystemVerilog engines: cycles are counted and compared with the model.

With --hls they are also compared with the trace of the C++ engine of the same schedule.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from boards.errors import UnsupportedError
from contract.geometry import HLS, RTL
from systolic.cli.main import main
from systolic.files import write
from systolic.styles.registry import style_of
from systolic.styles.systolic.counts import count, schedule_of_design
from systolic.styles.systolic.simulate import open_design
from tests.support import accelerators
from tests.support.accelerators import networks, picture_for
from tests.support.cases import cases
from tests.support.errors import raises
from tests.support.rtl.engines import FIRST, SMALL, design_of
from tests.support.schedules import first_fit
from tests.support.tolerance import within


@pytest.fixture(scope="module")
def folder(verilated: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a design with a SystemVerilog engine."""
    path = tmp_path_factory.mktemp("counts") / "design"
    write(design_of(FIRST, SMALL), path)
    return path


@pytest.fixture(scope="module")
def picture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a random picture and return its file."""
    path = tmp_path_factory.mktemp("picture") / "noise.png"
    Image.fromarray(np.random.default_rng(1).integers(0, 256, (8, 8, 3), np.uint8)).save(path)
    return path


@pytest.mark.engine
def test_count_compares_layers_with_model_and_cpp_engine(folder: Path) -> None:
    counts = count(open_design(folder), picture_for(FIRST, 5), True, lambda _: None)
    (layer,) = counts.values()["layers"]
    assert within(layer["modelled_cycles"], layer["cycles"])
    assert layer["cycles"] == counts.cycles == sum(counts.pass_cycles)
    assert layer["hls_cycles"] != layer["modelled_cycles"]
    assert layer["hls_cycles"] > layer["cycles"] - 131  # the RTL reads all passes but the first ahead
    assert (counts.mismatches, counts.values()["source"]) == (0, "counted")
    assert counts.values()["dsp"] == SMALL.mac_dsps
    assert counts.values()["dsp_efficiency"] == round(layer["efficiency"], 4) > 0
    ((head, rows),) = counts.tables()
    assert head[1:6] == ("counted", "modelled", "error %", "HLS, traced", "difference %")
    name, *cells = rows[-1]
    assert (name, cells[0], cells[3]) == ("all", layer["cycles"], layer["hls_cycles"])


@pytest.mark.engine
def test_simulate_cycles_of_rtl_prints_and_saves_counts(
    folder: Path, picture: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["simulate", str(folder), "--picture", str(picture), "--cycles"]
    assert main([*command, "--json", "-"]) == 0
    values = json.loads(capsys.readouterr().out)
    kept = json.loads((folder / "cycles.json").read_text())
    assert values["cycles_per_frame"] == sum(kept["pass_cycles"])
    assert "hls_cycles" in values["layers"][0]
    assert main(command) == 0
    told = capsys.readouterr().out
    assert f"{values['cycles_per_frame']:,} cycles counted" in told
    assert "HLS" not in told
    assert main([*command, "--clock", "100"]) == 2
    assert "leave out --clock; use --waves LAYER to record signals" in capsys.readouterr().err
    assert main([*command[:-1], "--hls"]) == 2
    assert "--cycles is missing (--hls compares traced cycles with counted ones)" in capsys.readouterr().err


def test_count_of_cpp_design_is_refused(tmp_path: Path) -> None:
    write(accelerators.design_of(FIRST, replace(SMALL, engine=HLS)), tmp_path / "cpp")
    design = open_design(tmp_path / "cpp")
    with raises(UnsupportedError, subject=f"counting cycles of {tmp_path / 'cpp'}"):
        style_of(design).count(design, picture_for(FIRST, 5), False, lambda _: None)


@cases("name", ["pools", "kernels", "streamed", "both streamed", "wide", "deep"])
def test_schedule_of_design_equals_its_schedule(name: str, tmp_path: Path) -> None:
    network = networks()[name]
    write(design_of(network, SMALL, stay=True), tmp_path / "design")
    schedule = schedule_of_design(open_design(tmp_path / "design"))
    array = replace(SMALL, engine=RTL)
    assert schedule.array == array != replace(array, engine=HLS)
    expected = first_fit(network, array).tilings
    assert [replace(tiling, on_chip=False) for tiling in schedule.tilings] == list(expected)
    assert any(tiling.on_chip for tiling in schedule.tilings)
