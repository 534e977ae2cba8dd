"""Test the reported quality of quantisation: the SQNR of each head against the float network, and the warning if it
is low."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import systolic
from cnn.quantisation.fidelity import fidelity, heads, heads_sqnr_db
from systolic.evaluation.fidelity import MIN_SQNR_DB, PICTURES
from systolic.loading import load_model
from systolic.model import Calibration, quantise_model, sample_pictures
from systolic.pictures import network_inputs
from tests.support.command_line import call
from tests.support.detectors import TINY_CFG, tiny_files, tiny_schedule
from tests.support.small_network import write_small

SAMPLES = sample_pictures()
BOARD = ("--board", "pynq-z2", "--clock", 250)
LINE = r"^SQNR at the heads: conv\d ([\d.]+) dB \(measured on the golden model, against the float network, on "
FAR = f"SQNR at the heads is below {MIN_SQNR_DB:g} dB"

YOLO = "[yolo]\nanchors=1,1, 2,3\nmask=0,1\nclasses=3\nnum=2\n"
HEAD = "\n[convolutional]\nfilters=16\nsize=1\nstride=1\nactivation=linear\n\n"
TWO_HEADS = f"{TINY_CFG.partition('[region]')[0]}{YOLO}\n[route]\nlayers=-3\n{HEAD}{YOLO}"


@pytest.fixture
def tiny(tmp_path: Path) -> tuple[Any, ...]:
    """Return the arguments of ``systolic generate`` for a small detection network."""
    cfg, names = tiny_files(tmp_path)
    return ("generate", cfg, "--seed", 1, "--names", names, *BOARD, "-o", tmp_path / "out")


@pytest.mark.engine
def test_generate_reports_sqnr_at_the_heads(tiny: tuple[Any, ...]) -> None:
    done = call(*tiny, "--calibrate", *SAMPLES)
    assert (done.code, done.error) == (0, "")
    line = re.search(rf"{LINE}{PICTURES} of {len(SAMPLES)} calibration pictures\)$", done.out, re.M)
    assert line, done.out
    assert float(line[1]) > MIN_SQNR_DB


@pytest.mark.engine
def test_generate_and_simulate_warn_of_low_sqnr(tiny: tuple[Any, ...]) -> None:
    done = call(*tiny, "--bits", 4, "--calibrate", SAMPLES[0], "--json", "-")
    assert done.code == 0
    assert done.json["heads"]["pictures"] == 1
    (ratio,) = done.json["heads"]["sqnr_db"].values()
    assert ratio < MIN_SQNR_DB
    assert f"systolic: the integers are far from the float network: {FAR} (conv2 {ratio:.1f} dB)" in done.error
    executed = call("simulate", tiny[-1], "--picture", SAMPLES[0])
    assert executed.code == 0
    assert "every bit equal" in executed.out
    assert FAR in executed.out
    assert FAR in call("simulate", tiny[-1], "--picture", SAMPLES[0], "--json", "-").json["warning"]


@pytest.mark.engine
def test_simulate_with_eight_bits_has_no_warning(tiny: tuple[Any, ...]) -> None:
    call(*tiny, "--calibrate", SAMPLES[0])
    assert "warning" not in call("simulate", tiny[-1], "--picture", SAMPLES[0], "--json", "-").json


@pytest.mark.engine
def test_generate_with_more_bits_raises_sqnr_of_silu(tmp_path: Path) -> None:
    """SiLU is a table of 256 values at 8 bits and a piecewise-linear table at 16 bits. Both designs are executed,
    and the error of the piecewise-linear table is reported."""
    cfg, names = tiny_files(tmp_path)
    cfg.write_text(TINY_CFG.replace("activation=leaky", "activation=swish"))
    told = {}
    for bits in (8, 16):
        folder = tmp_path / str(bits)
        network = ("--seed", 1, "--names", names, "--bits", bits, "--calibrate", SAMPLES[0], *BOARD)
        done = call("generate", cfg, *network, "-o", folder, "--json", "-")
        assert (done.code, done.error) == (0, "")
        told[bits] = done.json["heads"]
        assert "every bit equal" in call("simulate", folder, "--picture", SAMPLES[0]).out
    assert told[8]["steps_off"] == {}
    assert set(told[16]["steps_off"].values()) <= {1, 2, 3, 4}
    ratios = [next(iter(told[bits]["sqnr_db"].values())) for bits in (8, 16)]
    assert ratios[1] > ratios[0] + 12
    again = call("generate", cfg, *network, "-o", folder, "--force")
    worst = max(told[16]["steps_off"].values())
    count = len(told[16]["steps_off"])
    assert re.search(
        rf"^piecewise-linear tables: {count}, with an error of at most {worst} step\(s\) of ", again.out, re.M
    )


@pytest.mark.engine
def test_demo_reports_sqnr_at_the_heads(tmp_path: Path) -> None:
    assert re.search(LINE, call("demo", "-o", tmp_path / "demo").out, re.M)


@pytest.mark.engine
def test_generate_of_quantised_network_reports_no_sqnr(tmp_path: Path) -> None:
    options = ("--style", "streaming", "--folding", "greedy", "--fps", 20000, "--estimated-fifos")
    done = call("generate", write_small(tmp_path), "--seed", 1, "--board", "ultra96-v2", *options, "-o", tmp_path / "x")
    assert (done.code, done.error) == (0, "")
    assert "SQNR" not in done.out


def test_heads_sqnr_combines_all_pictures_per_head(tmp_path: Path) -> None:
    (tmp_path / "two.cfg").write_text(TWO_HEADS)
    model = load_model(tmp_path / "two.cfg", seed=1)
    network = quantise_model(model, Calibration(SAMPLES[:2]))
    assert [network.nodes[i].name for i in heads(network)] == ["conv2", "conv3"]
    pictures = list(network_inputs(model.network, SAMPLES[:2], "plain"))
    together = heads_sqnr_db(model.network, network, pictures)
    assert list(together) == ["conv2", "conv3"]
    for name, ratio in together.items():
        alone = [
            next(layer.sqnr_db for layer in fidelity(model.network, network, picture) if layer.name == name)
            for picture in pictures
        ]
        assert min(alone) <= ratio <= max(alone)
        assert not np.isclose(alone[0], alone[1])


# --------------------------------------------------------------------------------- calibration and names


@pytest.mark.engine
def test_generate_calibrates_on_a_folder(tiny: tuple[Any, ...], tmp_path: Path) -> None:
    folder = tmp_path / "pictures"
    folder.mkdir()
    for picture in SAMPLES[:3]:
        shutil.copy(picture, folder)
    (folder / "notes.txt").write_text("no picture")
    by_folder = call(*tiny, "--calibrate", folder, "--json", "-").json
    by_name = call(*tiny, "--calibrate", *sorted(folder.glob("*.jpg")), "--force", "--json", "-").json
    assert by_folder == by_name
    network = systolic.load(tmp_path / "tiny.cfg", names=tmp_path / "tiny.names", seed=1)
    design = systolic.design(network, "pynq-z2", clock_mhz=250, calibrate=folder)
    assert design.files.digest == by_name["digest"]


def test_generate_with_folder_without_pictures_is_refused(tiny: tuple[Any, ...], tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    done = call(*tiny, "--calibrate", tmp_path / "empty")
    assert done.code == 2
    assert "empty holds no picture (.jpg, " in done.error


def test_generate_without_class_names_warns(tiny: tuple[Any, ...], tmp_path: Path) -> None:
    (tmp_path / "schedule.json").write_text(tiny_schedule())
    without = [argument for argument in tiny if argument != "--names" and not str(argument).endswith(".names")]
    done = call(*without, "--calibrate", SAMPLES[0], "--schedule", tmp_path / "schedule.json")
    assert done.code == 0
    assert done.error == (
        "systolic: no names for 3 classes: boxes will say class 0, class 1 and so on; give --names FILE, one per line\n"
    )
