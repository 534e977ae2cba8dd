"""Test how a network's name or file is loaded, and the files that a model keeps."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from boards.errors import (
    ChoiceError,
    ConflictError,
    DamagedFileError,
    FileAccessError,
    MissingValueError,
    RangeError,
    UnsupportedError,
    cut,
)
from cnn import zoo
from cnn.float_model import run_float
from cnn.maps import Shape
from cnn.stored.quantized_file import to_npz
from host.vision.picture import FITS
from systolic.cli.main import main
from systolic.designs import calibration_of
from systolic.loading import load_model, reload
from systolic.model import Calibration, inputs_of, quantise_model, sample_pictures
from systolic.pictures import calibration_inputs
from tests.support.cases import cases
from tests.support.detectors import LABELS, tiny_files
from tests.support.errors import raises
from tests.support.onnx.annotated import sums


@pytest.fixture
def tiny(tmp_path: Path) -> tuple[Path, Path]:
    """Return the cfg file and the names file of a small detection network."""
    return tiny_files(tmp_path)


def weights_of(cfg: Path, to: Path) -> Path:
    """Write random weights of a cfg file to another file, and return this file."""
    to.write_bytes(load_model(str(cfg), seed=3).files["model/network.weights"])
    return to


def test_load_model_reads_cfg_names_and_seed(tiny: tuple[Path, Path]) -> None:
    model = load_model(str(tiny[0]), None, tiny[1], 1)
    assert (model.network.name, model.network.labels) == ("tiny", LABELS)
    assert model.network.input_shape == Shape(3, 28, 36)
    assert model.files["model/network.cfg"] == tiny[0].read_bytes()


@pytest.mark.parametrize(("letter_box", "fit"), [("0", "plain"), ("1", "letterbox")])
def test_load_model_reads_the_resize_method_of_a_cfg(letter_box: str, fit: str, tiny: tuple[Path, Path]) -> None:
    text = tiny[0].read_text()
    tiny[0].write_text(text.replace("[net]", f"[net]\nletter_box={letter_box}"))
    assert load_model(str(tiny[0]), None, tiny[1], 1).fit == fit


def test_reload_of_kept_files_gives_the_same_network(tiny: tuple[Path, Path], tmp_path: Path) -> None:
    model = load_model(str(tiny[0]), None, tiny[1], 1, (24, 16))
    for name, data in model.files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(data)
    again = reload(tmp_path)
    picture = np.random.default_rng(0).random((3, 16, 24), np.float32)
    for one, other in zip(run_float(model.network, picture), run_float(again, picture), strict=True):
        assert np.array_equal(one, other)


def test_load_model_reads_weights_from_a_file(tiny: tuple[Path, Path], tmp_path: Path) -> None:
    weights = weights_of(tiny[0], tmp_path / "tiny.weights")
    model = load_model(str(tiny[0]), weights)
    assert model.files["model/network.weights"] == weights.read_bytes()


def test_load_model_with_size_changes_the_kept_cfg(tiny: tuple[Path, Path]) -> None:
    model = load_model(str(tiny[0]), seed=1, size=(64, 48))
    assert model.network.input_shape == Shape(3, 48, 64)
    kept = model.files["model/network.cfg"].decode().splitlines()
    assert kept[1:3] == ["width=64", "height=48"]
    assert len(kept) == len(tiny[0].read_text().splitlines())


def test_load_model_with_bad_size_names_the_line_of_the_cfg(tiny: tuple[Path, Path]) -> None:
    with raises(RangeError, where="tiny.cfg:2", what="width of [net]", got=0, low=1):
        load_model(str(tiny[0]), seed=1, size=(0, 16))


def test_load_model_of_built_in_network_has_labels_and_weights() -> None:
    model = load_model("shapes")
    assert model.network.labels
    trained = (zoo.folder("shapes") / "shapes.weights").read_bytes()
    assert model.files["model/network.weights"][20:] == trained[20:]


def test_load_model_with_weights_and_seed_is_refused(tiny: tuple[Path, Path]) -> None:
    with raises(ConflictError, subjects=("--weights", "--seed")):
        load_model(str(tiny[0]), Path("a.weights"), None, 1)


NUMBERS = "give --weights FILE, or --seed NUMBER for random ones"


def test_load_model_without_weights_names_the_options(tiny: tuple[Path, Path]) -> None:
    with raises(MissingValueError, what="the weights file of tiny.cfg", remedy=NUMBERS):
        load_model(str(tiny[0]))
    with raises(MissingValueError, what="the weights file of tiny-yolov2-voc.cfg", remedy=NUMBERS):
        load_model("tiny-yolov2-voc")


@cases("name", ["net.keras", "old.h5"])
def test_load_model_of_keras_file_is_refused(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with raises(UnsupportedError, subject=f"the Keras file {cut(tmp_path / name)}"):
        load_model(str(tmp_path / name))
    assert main(["generate", name, "-o", str(tmp_path / "design")]) == 2
    assert f"the Keras file {name} is not supported" in capsys.readouterr().err


def test_load_model_of_unknown_name_is_refused() -> None:
    with raises(ChoiceError, what="a built-in network", got="shape") as caught:
        load_model("shape")
    assert caught.value.nearest() == "shapes"
    with raises(FileAccessError, path="absent.cfg", what="cfg file"):
        load_model("absent.cfg", seed=1)


def test_sample_pictures_are_sorted() -> None:
    assert len(sample_pictures()) >= 4
    assert list(sample_pictures()) == sorted(sample_pictures())


@cases("fit", FITS)
def test_calibration_inputs_are_floats_of_the_input_size(fit: str, tiny: tuple[Path, Path], tmp_path: Path) -> None:
    network = load_model(str(tiny[0]), seed=1).network
    Image.new("RGB", (10, 10), (255, 0, 51)).save(tmp_path / "flat.png")
    (pixels,) = calibration_inputs(network, [tmp_path / "flat.png"], fit)
    assert pixels.shape == (3, 28, 36)
    assert pixels.dtype == np.float32
    assert pixels[:, 14, 18] == pytest.approx([1, 0, 0.2])
    assert pixels[:, 14, 0] == pytest.approx([1, 0, 0.2] if fit != "letterbox" else 3 * [128 / 255])


def test_calibration_inputs_of_bad_picture_raise_damaged_file_error(tiny: tuple[Path, Path], tmp_path: Path) -> None:
    (tmp_path / "no.jpg").write_text("not a picture")
    with raises(DamagedFileError, path=str(tmp_path / "no.jpg")):
        next(calibration_inputs(load_model(str(tiny[0]), seed=1).network, [tmp_path / "no.jpg"], "plain"))


# ---------------------------------------------------------------- quantised in training


def test_load_model_of_quantised_built_in_network() -> None:
    model = load_model("ultranet", seed=1)
    assert model.quantized is not None
    assert model.fit == "smooth"
    assert [node.shape for node in model.network.nodes] == [node.shape for node in model.quantized.nodes]
    assert quantise_model(model, Calibration((), fit="smooth"), print) is model.quantized
    with raises(MissingValueError, what="the weights file of ultranet-skip.json"):
        load_model("ultranet-skip")


def test_load_model_of_json_reads_its_arrays(tmp_path: Path) -> None:
    source = load_model("ultranet-skip", seed=3, size=(64, 32))
    assert source.network.input_shape == Shape(3, 32, 64)
    for name, data in source.files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(data)
    beside = load_model(str(tmp_path / "model/network.json"))
    given = load_model(str(tmp_path / "model/network.json"), tmp_path / "model/network.npz")
    assert beside.quantized is not None
    assert given.quantized is not None
    assert source.quantized is not None
    # The .npz of the original differs, because the sources of its nodes differ.
    assert to_npz(beside.quantized) == to_npz(given.quantized) != to_npz(source.quantized)
    picture = np.random.default_rng(0).random((3, 32, 64), np.float32)
    for one, other in zip(run_float(source.network, picture), run_float(reload(tmp_path), picture), strict=True):
        assert np.array_equal(one, other)


def test_load_model_of_json_with_names_is_refused(tmp_path: Path) -> None:
    reason = "an exported .json holds its own labels and takes --weights, --seed, --size"
    with raises(ConflictError, subjects=("the network ultranet", "--names"), reason=reason, remedy="leave out --names"):
        load_model("ultranet", None, tmp_path / "a.names", 1)


def test_inputs_of_quantised_file_need_no_picture(tmp_path: Path) -> None:
    """Use a quantised file with four input channels. The frame of the test bench may have any values."""
    path = tmp_path / "net.onnx"
    path.write_bytes(sums().SerializeToString())
    inputs = inputs_of(load_model(str(path)), calibration_of(()))
    assert inputs.picture.shape == (4, 7, 8)
    assert len(np.unique(inputs.picture)) > 9
