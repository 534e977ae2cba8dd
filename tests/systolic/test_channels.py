"""Test networks that read grey pictures, or arrays with other numbers of channels, from calibration to boxes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import systolic
from boards.errors import DamagedFileError, ShapeError
from host.vision.channels import checked_frame, load_frame, network_input, to_draw_on
from tests.support.command_line import call, refused
from tests.support.errors import raises

CFG = """[net]
width=16
height=12
channels={channels}

[convolutional]
filters=8
size=3
pad=1
activation=leaky

[maxpool]
size=2
stride=2

[convolutional]
filters=7
size=1
activation=linear

[region]
anchors=1,1
num=1
classes=2
softmax=1
"""
RANDOM = np.random.default_rng(3)


def write_cfg(folder: Path, channels: int) -> Path:
    """Write a network whose input has the given number of channels, and return its file."""
    path = folder / "net.cfg"
    path.write_text(CFG.format(channels=channels))
    return path


def frame_file(folder: Path, channels: int) -> Path:
    """Write a random frame of 20 rows and 30 columns, and return its file. A frame of one channel is a grey PNG, and
    others are arrays."""
    values = RANDOM.integers(0, 256, (20, 30, channels), np.uint8)
    if channels == 1:
        path = folder / "grey.png"
        Image.fromarray(values[..., 0]).save(path)
    else:
        path = folder / "frame.npy"
        np.save(path, values)
    return path


STYLES: dict[str, dict[str, Any]] = {"systolic": {"array": "4x4x4"}, "streaming": {"fps": 20_000, "search": "greedy"}}


@pytest.mark.engine
@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("channels", [1, 2, 4, 5])
def test_design_with_other_channels_simulates_and_finds_boxes(channels: int, style: str, tmp_path: Path) -> None:
    model = systolic.load(write_cfg(tmp_path, channels), seed=1)
    frame = frame_file(tmp_path, channels)
    design = systolic.design(model, "zcu104", style, calibrate=[frame], **STYLES[style])
    result = design.simulate(frame, golden=channels == 1)
    assert result.right
    values = load_frame(frame)[..., :channels]
    assert design.simulate(values).outputs[0].tolist() == result.outputs[0].tolist()
    seen = design.run(frame, threshold=0.0)
    assert (seen.mismatches, seen.picture.shape) == (0, (20, 30, 3))
    assert seen.draw().size == (30, 20)


def test_schedule_and_fold_need_no_pictures(tmp_path: Path) -> None:
    cfg = write_cfg(tmp_path, 2)
    assert call("schedule", cfg, "--array", "4x4x4").code == 0
    assert call("fold", cfg, "--folding", "greedy", "--fps", 20_000).code == 0


def test_generate_with_wrong_channels_is_refused(tmp_path: Path) -> None:
    done = call("generate", write_cfg(tmp_path, 2), "--seed", 1, "-o", tmp_path / "out")
    refused(
        done, r"autumn.jpg: the number of channels of a picture must equal 2; got 3; give uint8 \[height, width, 2\]"
    )


def test_network_input_converts_between_colour_and_grey() -> None:
    colours = RANDOM.integers(0, 256, (20, 30, 3), np.uint8)
    for fit in ("plain", "letterbox", "smooth"):
        grey = np.asarray(Image.fromarray(colours).convert("L"))
        expected = network_input(grey, (1, 12, 16), fit)
        pixels, placement = network_input(colours, (1, 12, 16), fit)
        assert placement == expected[1]
        np.testing.assert_array_equal(pixels, expected[0])
        tripled, _ = network_input(grey, (3, 12, 16), fit)
        assert tripled.shape == (3, 12, 16)
        np.testing.assert_array_equal(tripled, np.repeat(pixels, 3, axis=0))
    assert to_draw_on(colours) is colours
    np.testing.assert_array_equal(to_draw_on(grey[..., None])[..., 2], grey)


def test_network_input_resizes_each_channel_alone() -> None:
    frame = RANDOM.integers(0, 256, (20, 30, 5), np.uint8)
    for fit in ("plain", "letterbox", "smooth"):
        together, _ = network_input(frame, (5, 12, 16), fit)
        alone = [network_input(frame[..., c], (1, 12, 16), fit)[0] for c in range(5)]
        np.testing.assert_array_equal(together, np.concatenate(alone))


def test_load_frame_of_bad_file_raises(tmp_path: Path) -> None:
    for name, kind in (("floats", np.float64), ("flat", np.int64)):
        np.save(tmp_path / f"{name}.npy", np.zeros((4, 5, 2), kind))
        with raises(ShapeError, what="the picture", where=str(tmp_path / f"{name}.npy")):
            load_frame(tmp_path / f"{name}.npy")
    (tmp_path / "cut.npy").write_bytes((tmp_path / "flat.npy").read_bytes()[:-1])
    with raises(DamagedFileError, path=str(tmp_path / "cut.npy"), remedy="write it with numpy.save"):
        load_frame(tmp_path / "cut.npy")
    np.save(tmp_path / "objects.npy", np.array([{}]), allow_pickle=True)
    with raises(DamagedFileError, path=str(tmp_path / "objects.npy")):
        load_frame(tmp_path / "objects.npy")
    with raises(ShapeError, what="the picture", got="uint8 [0, 3]"):
        checked_frame(np.zeros((0, 3), np.uint8))
