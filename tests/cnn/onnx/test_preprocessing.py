"""Tests of normalisation with a mean and standard deviation, which the first layer of the accelerator computes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest

from boards.errors import (
    ChoiceError,
    ConflictError,
    RangeError,
    ShapeError,
    SystolicError,
    UnsupportedError,
)
from cnn.float_model import run_float
from cnn.integer_model import run_integer
from cnn.onnx.inputs import Preprocessing
from cnn.onnx.network import OnnxNetwork, preprocessed, read_onnx
from cnn.ops import Convolution
from tests.support.cases import cases
from tests.support.errors import raises, refused
from tests.support.onnx import quantising
from tests.support.onnx.networks import convolved
from tests.support.onnx.writer import FIRST, Writer

IMAGENET = Preprocessing((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
SIDES = (1, 3, 8, 10)
PICTURE = np.random.default_rng(1).integers(0, 256, SIDES[1:], np.uint8)
FORMS = [
    IMAGENET,
    Preprocessing(IMAGENET.mean, IMAGENET.std, "BGR"),
    Preprocessing((0.5,), (0.5,)),
    Preprocessing(std=(1 / 255,)),
    Preprocessing(order="BGR"),
]


def prepared(form: Preprocessing) -> np.ndarray[Any, Any]:
    """Return (p / 255 − mean) / std for the pixels p, with the channels in the order of training."""
    pixels = PICTURE[:: -1 if form.order == "BGR" else 1] / 255
    mean, std = (np.reshape(values, (-1, 1, 1)) for values in (form.mean or (0,), form.std or (1,)))
    return np.asarray((pixels - mean) / std, np.float32)


def read(path: Path, form: Preprocessing) -> OnnxNetwork:
    return preprocessed(read_onnx(path).data, "net", form)


def model(last: bool = False) -> Any:
    """Write two convolutions, of which the first has padding."""
    writer = Writer()
    source = writer.put("Transpose", ["picture"], perm=FIRST) if last else "picture"
    source = writer.put("Relu", [convolved(writer, source, 3, 4, pads=[1] * 4)])
    made = writer.model([convolved(writer, source, 4, 5)], (1, 8, 10, 3) if last else SIDES)
    made.graph.output[0].type.tensor_type.ClearField("shape")
    return made


@cases("last", [False, True])
@cases("form", FORMS)
def test_preprocessed_network_equals_onnxruntime_on_normalised_images(
    form: Preprocessing, last: bool, tmp_path: Path
) -> None:
    onnx.save(model(last), path := tmp_path / "net.onnx")
    given = np.moveaxis(prepared(form), 0, -1) if last else prepared(form)
    (expected,) = onnxruntime.InferenceSession(path).run(None, {"picture": given[None]})
    made = read(path, form)
    ours = run_float(made.network, (PICTURE / 255).astype(np.float32))[-1]
    np.testing.assert_allclose(ours, expected[0], rtol=0, atol=1e-4 * np.abs(expected).max())
    (tmp_path / "again.onnx").write_bytes(made.data)
    again = read_onnx(tmp_path / "again.onnx")
    np.testing.assert_array_equal(run_float(again.network, (PICTURE / 255).astype(np.float32))[-1], ours)


@pytest.mark.parametrize("quantisation", [quantising.Form(), quantising.Form("QOperator", activations="QUInt8")])
def test_preprocessed_quantised_file_reads_the_quantised_normalised_image(
    quantisation: quantising.Form, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = quantising.Pictures.get_next

    def get_next(pictures: quantising.Pictures) -> dict[str, Any] | None:
        picture = plain(pictures)
        mean, std = (np.reshape(values, (1, -1, 1, 1)) for values in (IMAGENET.mean, IMAGENET.std))
        return picture and {"picture": ((picture["picture"] - mean) / std).astype(np.float32)}

    monkeypatch.setattr(quantising.Pictures, "get_next", get_next)
    path = quantising.quantised(model(), tmp_path, quantisation, SIDES)
    made = read(path, IMAGENET)
    assert made.quantized is not None
    first = made.quantized.nodes[1]
    assert isinstance(made.network.nodes[1].op, Convolution)
    integers = np.rint(prepared(IMAGENET) / first.type.scale) + first.type.zero_point
    wanted = np.clip(integers, first.type.datatype.low, first.type.datatype.high)
    assert np.abs(run_integer(made.quantized, PICTURE)[1] - wanted).max() <= 1
    assert len(np.unique(wanted)) > 50, "the images must reach most of the integers"


@cases(
    "values, fault",
    [
        (
            {"mean": (123.675,)},
            RangeError(
                "the mean of pixels from 0 to 1", 123.675, 0, 1, remedy="divide the mean of pixels from 0 to 255 by 255"
            ),
        ),
        (
            {"mean": (float("nan"),)},
            RangeError(
                "the mean of pixels from 0 to 1", np.nan, 0, 1, remedy="divide the mean of pixels from 0 to 255 by 255"
            ),
        ),
        ({"std": (0.0,)}, RangeError("the std of pixels from 0 to 1", 0.0, 0, exclusive=True)),
        ({"std": (float("inf"),)}, RangeError("the std of pixels from 0 to 1", np.inf, 0, exclusive=True)),
        ({"order": "GRB"}, ChoiceError("the order of channels", "GRB", ("RGB", "BGR"))),
    ],
)
def test_mean_or_std_out_of_range_is_refused(values: dict[str, Any], fault: SystolicError) -> None:
    with refused(fault):
        Preprocessing(**values)


def _of(sides: tuple[int, ...], kind: str = "Relu", **attributes: Any) -> Any:
    writer = Writer()
    return writer.model([writer.put(kind, ["picture"], **attributes)], sides)


def _of_integers() -> Any:
    writer = Writer()
    made = writer.model([writer.put("Cast", ["picture"], to=onnx.TensorProto.FLOAT)], SIDES)
    made.graph.input[0].type.tensor_type.elem_type = onnx.TensorProto.UINT8
    return made


@cases(
    "made, form, fault",
    [
        (
            _of((1, 3, 8, 8)),
            Preprocessing((0.5, 0.5)),
            ShapeError(
                "mean", "2 numbers", "one number, or one for each of 3 channels", where="net.onnx: the input 'picture'"
            ),
        ),
        (
            _of((1, 4, 8, 8)),
            Preprocessing(order="BGR"),
            ShapeError(
                "net.onnx: the input 'picture'",
                "4 channels",
                "3 channels for the order BGR",
                remedy="omit the order",
            ),
        ),
        (
            _of((1, 16)),
            Preprocessing((0.5,)),
            UnsupportedError(
                "a mean, std or order",
                "the input is a row of values, not images",
                where="net.onnx: the input 'picture'",
            ),
        ),
        (
            _of_integers(),
            Preprocessing((0.5,)),
            ConflictError(
                ("a mean, std or order", "an input of integers"),
                "they need an input of floats",
                where="net.onnx: the input 'picture'",
                remedy="omit mean, std and order",
            ),
        ),
    ],
)
def test_preprocessing_that_does_not_fit_the_input_is_refused(
    made: Any, form: Preprocessing, fault: SystolicError, tmp_path: Path
) -> None:
    onnx.save(made, path := tmp_path / "net.onnx")
    with refused(fault):
        read(path, form)


def test_preprocessing_twice_is_refused(tmp_path: Path) -> None:
    onnx.save(model(), path := tmp_path / "net.onnx")
    path.write_bytes(read(path, IMAGENET).data)
    with raises(ConflictError, subjects=("a mean, std or order", "a prepared file"), where="net.onnx"):
        read(path, IMAGENET)
