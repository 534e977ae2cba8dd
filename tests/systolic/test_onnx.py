"""Test ONNX files from the command to the accelerator."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from PIL import Image

import systolic
from boards.errors import SeveralFaultsError, StateError
from cnn import zoo
from cnn.darknet.files import read_darknet
from cnn.float_model import run_float
from cnn.integer_model import run_integer
from cnn.stored.quantized_file import from_npz
from systolic.cli.main import main
from systolic.loading import reload
from tests.support.cases import cases
from tests.support.command_line import call
from tests.support.errors import raises
from tests.support.host.manifests import manifest_fields
from tests.support.onnx.networks import GRAPHS, JOINS, convolved
from tests.support.onnx.trained import DOMAIN, Trained
from tests.support.onnx.writer import Writer, written

CFG = """[net]\nwidth=24\nheight=16\nchannels=3
[convolutional]\nfilters=8\nsize=3\npad=1\nstride=1\nactivation=leaky\nbatch_normalize=1
[maxpool]\nsize=2\nstride=2
[convolutional]\nfilters=6\nsize=1\nactivation=linear
"""


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """Write a network as net.cfg, net.weights and net.onnx, and joins.onnx, names and a picture. Return their
    folder."""
    (tmp_path / "net.cfg").write_text(CFG)
    (tmp_path / "joins.cfg").write_text(
        JOINS.replace("groups=2\n[shortcut]", "\n[shortcut]").replace("activation=logistic", "activation=linear")
    )
    for name in ("net", "joins"):
        network = read_darknet(tmp_path / f"{name}.cfg", None, weight_source=zoo.seeded(1))
        onnx.save(written(network), tmp_path / f"{name}.onnx")
    (tmp_path / "a.names").write_text("a\nb\nc\nd\ne\n")
    pixels = np.random.default_rng(0).integers(0, 256, (40, 60, 3), np.uint8)
    Image.fromarray(pixels).save(tmp_path / "a.png")
    return tmp_path


def scheduled(files: Path, *more: str) -> tuple[str, ...]:
    """Schedule net.cfg on a fixed array, without a search, and return the options that use this schedule."""
    options, saved = ("--board", "pynq-z2"), str(files / "schedule.json")
    assert main(["schedule", str(files / "net.cfg"), *options, *more, "--array", "4x8x8", "--save", saved]) == 0
    return *options, *more, "--schedule", saved


def generated(files: Path, network: str, *more: str) -> Path:
    """Generate a design of one of the network files and return its folder."""
    folder = files / f"design-{Path(network).suffix[1:]}"
    picture = str(files / "a.png")
    assert main(["generate", str(files / network), "-o", str(folder), "--calibrate", picture, *more]) == 0
    return folder


@pytest.mark.engine
def test_onnx_design_equals_the_cfg_design(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    board = scheduled(files)
    of_cfg, of_onnx = generated(files, "net.cfg", "--seed", "1", *board), generated(files, "net.onnx", *board)
    for name in ("data/program.bin", "data/weights_0.bin", "data/requantisers.bin", "data/expected.bin"):
        assert (of_cfg / name).read_bytes() == (of_onnx / name).read_bytes()
    capsys.readouterr()
    assert main(["simulate", str(of_onnx), "--picture", str(files / "a.png"), "--json", "-"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["mismatches"] == 0
    assert min(layer["sqnr_db"] for layer in told["layers"]) > 20


@pytest.mark.engine
def test_onnx_classifier_with_joins_runs_as_a_pipeline(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = generated(
        files, "joins.onnx", "--style", "streaming", "--names", str(files / "a.names"), "--folding", "greedy"
    )
    assert manifest_fields(folder)["labels"] == list("abcde")
    capsys.readouterr()
    assert main(["simulate", str(folder), "--picture", str(files / "a.png"), "--json", "-"]) == 0
    assert json.loads(capsys.readouterr().out)["mismatches"] == 0
    assert main(["run", str(folder), str(files / "a.png"), "-o", str(files / "b.png"), "--json", "-"]) == 0
    told = json.loads(capsys.readouterr().out)
    quantised = from_npz((folder / "network.npz").read_bytes(), "network.npz")
    end = run_integer(quantised, systolic.open(folder).pixels(files / "a.png"))[-1]
    assert end is not None
    assert "detections" not in told
    order = np.argsort(-end.ravel(), kind="stable")
    assert [entry["label"] for entry in told["classes"]] == ["abcde"[index] for index in order]
    assert sum(entry["probability"] for entry in told["classes"]) == pytest.approx(1, abs=1e-3)
    assert (np.asarray(Image.open(files / "b.png")) != np.asarray(Image.open(files / "a.png"))).any()
    assert main(["run", str(folder), str(files / "a.png")]) == 0
    assert told["classes"][0]["label"] in capsys.readouterr().out
    (files / "many").mkdir()
    (files / "a.png").rename(files / "many" / "a.png")
    assert main(["run", str(folder), str(files / "many"), "--json", "-"]) == 0
    assert json.loads(capsys.readouterr().out)["frames"][0]["classes"] == told["classes"]


def test_onnx_design_keeps_its_network(files: Path) -> None:
    folder = generated(files, "net.onnx", *scheduled(files, "--size", "32x16"))
    network = reload(folder)
    assert str(network.input_shape) == "3×16×32"
    assert from_npz((folder / "network.npz").read_bytes(), "network.npz").nodes[-1].shape == network.nodes[-1].shape
    (files / "net.cfg").write_text(CFG.replace("width=24", "width=32"))
    expected = read_darknet(files / "net.cfg", None, weight_source=zoo.seeded(1))
    picture = np.random.default_rng(1).random((3, 16, 32), np.float32)
    np.testing.assert_array_equal(run_float(network, picture)[-1], run_float(expected, picture)[-1])


def test_onnx_network_is_cut_at_a_head(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    writer = Writer()
    tensor = GRAPHS[1](writer)
    onnx.save(writer.model([writer.put("NonZero", [tensor])], (1, 3, 14, 18)), files / "head.onnx")
    command = ["schedule", str(files / "head.onnx"), "--board", "pynq-z2", "--array", "4x8x8"]
    assert main(command) == 2
    assert f"compute the rest on the host: --cut {tensor}\n" in capsys.readouterr().err
    assert main([*command, "--cut", tensor]) == 0


def test_onnx_pipeline_with_bipolar_output_is_refused(tmp_path: Path) -> None:
    writer = Trained()
    signs = [writer.put("BipolarQuant", [writer.constant(np.ones((4, 3, 1, 1))), writer.constant(1)], domain=DOMAIN)]
    sums = writer.put("Conv", [writer.quant("picture", 8, 1 / 255, signed=0), *signs])
    onnx.save(writer.file(writer.put("BipolarQuant", [sums, writer.constant(1)], domain=DOMAIN)), tmp_path / "a.onnx")
    pipeline = ["--board", "zcu104", "--fps", "100"]
    generate = ["generate", tmp_path / "a.onnx", "--style", "streaming", *pipeline, "-o", tmp_path / "design"]
    for command in (["fold", tmp_path / "a.onnx", *pipeline], generate):
        done = call(*command)
        assert isinstance(done.refusal, SeveralFaultsError)
        assert [getattr(error, "subject", "") for error in done.refusal.errors] == ["convolution 'conv1'"]


def _denoising(files: Path) -> None:
    """Write a network that subtracts a noise map from the picture, enlarges the difference and the picture, and adds
    them."""
    writer = Writer()
    noise = convolved(
        writer, writer.put("Relu", [convolved(writer, "picture", 3, 4, pads=[1] * 4)]), 4, 3, pads=[1] * 4
    )
    clean = writer.put("Sub", ["picture", noise])
    scales = writer.constant([1, 1, 2, 2])
    modes: dict[str, Any] = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    both = [writer.put("Resize", [name, "", scales], **modes) for name in (clean, "picture")]
    onnx.save(writer.model([writer.put("Add", both)], (1, 3, 16, 24)), files / "denoising.onnx")


@pytest.mark.engine
def test_onnx_pass_convolve_picture_makes_picture_operations_mappable(
    files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _denoising(files)
    arguments = ["generate", str(files / "denoising.onnx"), "--calibrate", str(files / "a.png"), "--board", "pynq-z2"]
    assert main([*arguments, "-o", str(files / "no")]) == 2
    assert "--pass convolve_picture" in capsys.readouterr().err
    folder, saved = files / "yes", files / "schedule.json"
    convolve = ["--pass", "convolve_picture"]
    searched = ["schedule", arguments[1], "--board", "pynq-z2", "--array", "4x8x4", "--save", str(saved)]
    assert main([*searched, *convolve]) == 0
    capsys.readouterr()
    assert main([*arguments, "-o", str(folder), *convolve, "--schedule", str(saved), "--json", "-"]) == 0
    (fidelity,) = json.loads(capsys.readouterr().out)["heads"]["sqnr_db"].values()
    assert fidelity > 30
    assert main(["simulate", str(folder), "--picture", str(files / "a.png"), "--json", "-"]) == 0
    assert json.loads(capsys.readouterr().out)["mismatches"] == 0


@cases(
    "more, sentence",
    [
        (["net.onnx", "--seed", "1"], "net.onnx and --seed exclude each other"),
        (["net.cfg", "--seed", "1", "--cut", "a"], "net.cfg and --cut exclude each other"),
    ],
)
def test_generate_with_options_of_another_format_is_refused(
    more: list[str], sentence: str, files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    network, *options = more
    assert main(["generate", str(files / network), "-o", str(files / "out"), *options]) == 2
    assert sentence in capsys.readouterr().err


@pytest.mark.engine
def test_onnx_design_normalises_pictures(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Give mean, standard deviation and channel order. The design's outputs must follow the float network on
    normalised pixels."""
    said = ("--mean", "0.485,0.456,0.406", "--std", "0.229,0.224,0.225", "--channel-order", "BGR")
    folder = generated(files, "net.onnx", "--board", "pynq-z2", *said)
    capsys.readouterr()
    assert main(["simulate", str(folder), "--picture", str(files / "a.png"), "--json", "-"]) == 0
    assert json.loads(capsys.readouterr().out)["mismatches"] == 0
    floats = reload(folder)
    assert floats is not None
    pixels = np.random.default_rng(0).integers(0, 256, (3, 16, 24), np.uint8)
    ours = run_float(floats, (pixels / 255).astype(np.float32))[-1]
    read = read_darknet(files / "net.cfg", None, weight_source=zoo.seeded(1))
    mean, std = (np.reshape(values, (3, 1, 1)) for values in ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)))
    wanted = run_float(read, ((pixels[::-1] / 255 - mean) / std).astype(np.float32))[-1]
    np.testing.assert_allclose(ours, wanted, rtol=0, atol=1e-4 * np.abs(wanted).max())
    quantised = from_npz((folder / "network.npz").read_bytes(), "network.npz")
    integers = run_integer(quantised, pixels)[-1]
    assert integers is not None
    assert np.corrcoef(integers.ravel(), wanted.ravel())[0, 1] > 0.99


@cases(
    "network, more, sentence",
    [
        ("net.cfg", ("--seed", "1", "--mean", "0.5"), "a mean, std or order of channels for 'net'"),
        ("net.onnx", ("--mean", "123,117,104"), "the mean of pixels from 0 to 1 must be between 0 and 1; got 123.0"),
        ("net.onnx", ("--std", "0.2,0.2"), "std must have one number, or one for each of 3 channels; got 2 numbers"),
    ],
)
def test_generate_with_wrong_mean_or_std_is_refused(
    files: Path, network: str, more: tuple[str, ...], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["generate", str(files / network), "-o", str(files / "no"), *more]) != 0
    assert sentence in capsys.readouterr().err
    assert not (files / "no").exists()


def test_preprocess_after_transform_is_refused(files: Path) -> None:
    """Passes that were applied to a model would be lost, because preprocess reads the file again."""
    model = systolic.transform(systolic.load(files / "net.onnx"), "fold_batch_norms")
    with raises(StateError, remedy="preprocess it, and then transform it"):
        systolic.preprocess(model, mean=(0.5,))
    assert systolic.preprocess(model) is model
