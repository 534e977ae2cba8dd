"""Training a low-bit network on labelled pictures: it is stopped and resumed, and other commands read the result."""

from __future__ import annotations

import importlib.util
import os
import re
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from boards.errors import (
    DamagedFileError,
    InvalidValueError,
    MismatchError,
    MissingValueError,
    RangeError,
    SystolicError,
    UnsupportedError,
)
from systolic.loading import load_model
from tests.support.cases import cases
from tests.support.command_line import Done, call, refused
from tests.support.detectors import LABELS, tiny_files
from tests.support.errors import raises

needs_torch = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="PyTorch trains: extra [train]")

ROOT = Path(__file__).parents[3]
COLOURS = ((220, 40, 40), (40, 200, 60), (50, 60, 230))


def write_pictures(folder: Path, count: int = 12) -> Path:
    """Write pictures with a filled box in the colour of its class, and their labels in darknet's layout."""
    folder.mkdir()
    random = np.random.default_rng(4)
    for number in range(count):
        label = number % len(LABELS)
        width, height = random.uniform(0.3, 0.6, 2)
        x, y = random.uniform(width / 2, 1 - width / 2), random.uniform(height / 2, 1 - height / 2)
        pixels = random.integers(90, 130, (56, 72, 3)).astype(np.uint8)
        rows = slice(int((y - height / 2) * 56), int((y + height / 2) * 56))
        pixels[rows, int((x - width / 2) * 72) : int((x + width / 2) * 72)] = COLOURS[label]
        Image.fromarray(pixels).save(folder / f"{number}.png")
        (folder / f"{number}.txt").write_text(f"{label} {x} {y} {width} {height}\n")
    return folder


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return write_pictures(tmp_path / "pictures")


def train_line(tmp_path: Path, data: Path, *options: object) -> tuple[object, ...]:
    cfg, names = tiny_files(tmp_path)
    return ("train", cfg, "--names", names, "--seed", 1, "--data", data, "--batch", 4, *options)


def train(tmp_path: Path, data: Path, *options: object) -> Done:
    return call(*train_line(tmp_path, data, *options))


@needs_torch
@pytest.mark.parametrize("method", ["lsq", "dorefa"])
def test_train_lowers_the_loss_and_writes_a_network(tmp_path: Path, data: Path, method: str) -> None:
    out = tmp_path / "out"
    done = train(tmp_path, data, "--method", method, "--epochs", 12, "--lr", 0.02, "-o", out, "--json", "-")
    assert done.code == 0, done.error
    losses = done.json["losses"]
    assert np.mean(losses[-3:]) < 0.8 * losses[0]
    assert "epoch 12 of 12: loss " in done.error
    model = load_model(done.json["network"])
    assert model.quantized is not None
    assert model.network.labels == LABELS
    assert [node.type.datatype.name for node in model.quantized.nodes] == ["UINT8", "UINT4", "UINT4", "INT16", "INT16"]
    evaluated = call("evaluate", out / "tiny.json", "--data", data, "--workers", 1, "--json", "-")
    assert (evaluated.code, evaluated.json["pictures"]) == (0, 12)


@needs_torch
def test_train_after_a_kill_resumes_with_the_same_result(tmp_path: Path, data: Path) -> None:
    epochs = 40
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    assert train(tmp_path, data, "--epochs", epochs, "-o", whole).code == 0
    killed_after_an_epoch(train_line(tmp_path, data, "--epochs", epochs, "-o", parts))
    assert (parts / "tiny.npz").read_bytes() != (whole / "tiny.npz").read_bytes()
    done = train(tmp_path, data, "--epochs", epochs, "-o", parts)
    assert re.search(rf"resuming after epoch \d+ of {epochs}", done.error)
    for name in ("tiny.json", "tiny.npz", "checkpoint.npz"):
        assert (parts / name).read_bytes() == (whole / name).read_bytes(), name
    refused(train(tmp_path, data, "--epochs", 4, "-o", parts), MismatchError)
    (parts / "checkpoint.npz").write_bytes(b"PK nothing")
    damaged = train(tmp_path, data, "--epochs", epochs, "-o", parts)
    refused(damaged, DamagedFileError, path=str(parts / "checkpoint.npz"), remedy="delete it to start again")


def killed_after_an_epoch(words: Sequence[object]) -> None:
    """Start the command and send it SIGKILL after it reports the first epoch, so that it ends in a later epoch."""
    line = [sys.executable, "-m", "systolic", *map(str, words)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(line, env=environment, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True) as run:
        assert run.stderr is not None
        assert any("epoch 1 of " in told and "loss" in told for told in run.stderr)
        run.kill()
    assert run.returncode == -signal.SIGKILL


@needs_torch
def test_train_with_prune_removes_filters(tmp_path: Path, data: Path) -> None:
    out = tmp_path / "out"
    assert train(tmp_path, data, "--prune", 0.5, "--epochs", 1, "--name", "slim", "-o", out).code == 0
    model = load_model(out / "slim.json")
    assert [node.shape.channels for node in model.network.nodes] == [3, 4, 4, 16, 16]
    again = load_model(out / "slim-float.cfg", out / "slim-float.weights", tmp_path / "tiny.names")
    assert [node.shape for node in again.network.nodes] == [node.shape for node in model.network.nodes]
    refused(train(tmp_path, data, "--prune", 2, "-o", tmp_path / "m"), InvalidValueError, what="--prune", got=2.0)
    refused(train(tmp_path, data, "--name", "a/b", "-o", tmp_path / "m"), InvalidValueError, what="--name", got="a/b")


CLASSIFIER = """\
[net]
width=24
height=24
channels=3

[convolutional]
batch_normalize=1
filters=8
size=3
stride=2
pad=1
activation=leaky

[avgpool]

[connected]
output=3
activation=linear

[softmax]
"""


def colour_files(folder: Path, cfg: str) -> tuple[object, ...]:
    """Write ``cfg`` and the names of three colours, and return the arguments that pass them to the command."""
    topology, names = folder / "colours.cfg", folder / "colours.names"
    topology.write_text(cfg)
    names.write_text("red\ngreen\nblue\n")
    return (topology, "--names", names, "--seed", 1)


def colour_folders(root: Path) -> Path:
    """Write four pictures of each colour into one folder per class, and return ``root``."""
    for label, colour in zip(("red", "green", "blue"), COLOURS, strict=True):
        folder = root / label
        folder.mkdir(parents=True)
        for number in range(4):
            pixels = np.full((24, 24, 3), colour) + np.random.default_rng(number).integers(-30, 30, (24, 24, 3))
            Image.fromarray(np.clip(pixels, 0, 255).astype(np.uint8)).save(folder / f"{number}.png")
    return root


ADDITION = """\
[net]
width=32
height=32
channels=3

[convolutional]
batch_normalize=1
filters=8
size=3
stride=4
pad=1
activation=relu

[convolutional]
batch_normalize=1
filters=8
size=3
stride=1
pad=1
activation=linear

[shortcut]
from=-2
activation=relu

[avgpool]

[connected]
output=3
activation=linear

[softmax]
"""


@needs_torch
@pytest.mark.parametrize("method", ["lsq", "dorefa"])
def test_train_of_a_network_with_additions_learns(tmp_path: Path, method: str) -> None:
    folder, network = colour_folders(tmp_path / "pictures"), tmp_path / "out" / "colours.json"
    options = ("--data", folder, "--batch", 4, "--epochs", 20, "--lr", 0.05, "-o", tmp_path / "out")
    done = call("train", *colour_files(tmp_path, ADDITION), *options, "--method", method)
    assert done.code == 0, done.error
    measured = call("evaluate", network, "--data", folder, "--workers", 1, "--json", "-")
    assert measured.json["integer"]["top1"] >= 0.75
    assert not list((tmp_path / "out").glob("*-float.*"))


@needs_torch
def test_train_of_a_classifier_reads_one_folder_per_class(tmp_path: Path) -> None:
    colour_folders(tmp_path / "pictures")
    options = ("--data", tmp_path / "pictures", "--batch", 4, "--epochs", 15, "--lr", 0.05, "-o", tmp_path / "out")
    done = call("train", *colour_files(tmp_path, CLASSIFIER), *options)
    assert done.code == 0, done.error
    network = tmp_path / "out" / "colours.json"
    measured = call("evaluate", network, "--data", tmp_path / "pictures", "--workers", 1, "--json", "-")
    assert measured.json["integer"]["top1"] >= 0.9


@needs_torch
def test_train_with_unusable_pictures_is_refused(tmp_path: Path, data: Path) -> None:
    few = train(tmp_path, data, "--batch", 13, "-o", tmp_path / "out")
    refused(few, RangeError, what="the number of pictures for one batch", got=12, low=13)
    for text in data.glob("*.txt"):
        text.unlink()
    refused(train(tmp_path, data, "-o", tmp_path / "out"), MissingValueError, reason="training needs labelled pictures")


@cases(
    "options, expected, fields",
    [
        (("--bits", 9), RangeError, {"what": "--bits", "got": 9, "low": 2, "high": 8}),
        (("--epochs", 0), RangeError, {"what": "--epochs", "got": 0, "low": 1, "high": 100_000}),
        (("--lr", 0), InvalidValueError, {"what": "--lr", "got": 0.0}),
        (("--lr", 1), InvalidValueError, {"what": "--lr", "got": 1.0}),
    ],
)
def test_train_with_numbers_out_of_range_is_refused(
    tmp_path: Path, data: Path, options: tuple[object, ...], expected: type[SystolicError], fields: dict[str, object]
) -> None:
    refused(train(tmp_path, data, "-o", tmp_path / "out", *options), expected, **fields)


def test_train_without_pytorch_names_the_extra(tmp_path: Path, data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cnn.training.find_spec", lambda name: None)
    refused(train(tmp_path, data, "-o", tmp_path / "out"), r"PyTorch is not installed; .*pip install -e '\.\[train\]'")


@needs_torch
def test_training_data_resizes_and_flips_boxes_with_the_picture(tmp_path: Path) -> None:
    from systolic.evaluation.layouts.labelled import LabelledPicture, Truth
    from systolic.training.data import TrainingData, varied

    path = tmp_path / "wide.png"
    Image.fromarray(np.full((40, 80, 3), 200, np.uint8)).save(path)
    truths = (Truth("cat", (8, 4, 24, 36)), Truth("cat", (0, 0, 0.4, 9)), Truth("dog", (0, 0, 80, 40), crowd=True))
    model = load_model("shapes")
    data = TrainingData((LabelledPicture(path, truths),), ("dog", "cat"), model.network.input_shape, "letterbox")
    example = data.example(0)
    assert example.pixels.shape == (3, 160, 160)
    assert example.truths.tolist() == [[1, 16, 48, 48, 112]]  # scaled by 2, below a bar of 40 rows
    batches = [varied([example], np.random.default_rng(seed)) for seed in range(8)]
    boxes = {tuple(batch.truths[0][0].tolist()) for batch in batches}
    assert boxes == {(1, 16, 48, 48, 112), (1, 112, 48, 144, 112)}
    assert all(np.array_equal(np.rint(batch.pictures * 255), batch.pictures * 255) for batch in batches)


@needs_torch
def test_loss_of_an_unsupported_head_is_refused() -> None:
    from cnn.training.conversion import topology_of
    from systolic.training.losses import loss_of

    network = load_model("unet-small", seed=1).network
    with raises(UnsupportedError, subject="training of a segmentation head"):
        loss_of(topology_of(network, 4, "plain"))
