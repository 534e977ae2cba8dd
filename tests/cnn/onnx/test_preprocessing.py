"""What was done to pictures before a file read them: the accelerator's first layer does it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest

from boards.errors import NetworkError
from cnn.float_model import run_float
from cnn.integer_model import run_integer
from cnn.network import Convolution
from cnn.onnx.ends.preprocessing import Preprocessing
from cnn.onnx.network import OnnxNetwork, preprocessed, read_onnx
from tests.cnn.onnx import quantising
from tests.cnn.onnx.test_network import convolved
from tests.cnn.onnx.writer import FIRST, Writer

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
    """By the definition: (p / 255 − mean) / std, channels in the order of training."""
    pixels = PICTURE[:: -1 if form.order == "BGR" else 1] / 255
    mean, std = (np.reshape(values, (-1, 1, 1)) for values in (form.mean or (0,), form.std or (1,)))
    return np.asarray((pixels - mean) / std, np.float32)


def read(path: Path, form: Preprocessing) -> OnnxNetwork:
    return preprocessed(read_onnx(path).data, "net", form)


def model(last: bool = False) -> Any:
    """Two convolutions, of which the first has padding."""
    writer = Writer()
    source = writer.put("Transpose", ["picture"], perm=FIRST) if last else "picture"
    source = writer.put("Relu", [convolved(writer, source, 3, 4, pads=[1] * 4)])
    made = writer.model([convolved(writer, source, 4, 5)], (1, 8, 10, 3) if last else SIDES)
    made.graph.output[0].type.tensor_type.ClearField("shape")
    return made


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("form", FORMS)
def test_it_is_what_onnxruntime_gives_for_pictures_so_prepared(form: Preprocessing, last: bool, tmp_path: Path) -> None:
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
def test_a_quantised_file_reads_the_integers_that_it_quantises_such_pictures_to(
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
    assert len(np.unique(wanted)) > 50, "the pictures reach most of the integers"


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"mean": (123.675,)}, "a mean is one of pixels from 0 to 1, not 123.675; divide one of pixels from 0 to 255"),
        ({"mean": (float("nan"),)}, "a mean is one of pixels from 0 to 1, not nan"),
        ({"std": (0.0,)}, "a std is what pixels from 0 to 1 are divided by, greater than 0, not 0"),
        ({"std": (float("inf"),)}, "greater than 0, not inf"),
        ({"order": "GRB"}, "the order of channels is RGB or BGR, not 'GRB'"),
    ],
)
def test_what_no_picture_can_have_is_refused(values: dict[str, Any], sentence: str) -> None:
    with pytest.raises(NetworkError) as caught:
        Preprocessing(**values)
    assert sentence in str(caught.value)


def _of(sides: tuple[int, ...], kind: str = "Relu", **attributes: Any) -> Any:
    writer = Writer()
    return writer.model([writer.put(kind, ["picture"], **attributes)], sides)


def _of_integers() -> Any:
    writer = Writer()
    made = writer.model([writer.put("Cast", ["picture"], to=onnx.TensorProto.FLOAT)], SIDES)
    made.graph.input[0].type.tensor_type.elem_type = onnx.TensorProto.UINT8
    return made


@pytest.mark.parametrize(
    ("made", "form", "sentence"),
    [
        (
            _of((1, 3, 8, 8)),
            Preprocessing((0.5, 0.5)),
            "mean is one number, or one for each of 3 channels, not 0.5, 0.5",
        ),
        (
            _of((1, 4, 8, 8)),
            Preprocessing(order="BGR"),
            "has 4 channels, and an order of BGR is one of 3; leave it out",
        ),
        (_of((1, 16)), Preprocessing((0.5,)), "must be pictures to have a mean, a std or an order"),
        (
            _of_integers(),
            Preprocessing((0.5,)),
            "the input 'picture' holds integers: leave out its mean, std and order",
        ),
    ],
)
def test_an_input_that_cannot_have_it_is_refused(made: Any, form: Preprocessing, sentence: str, tmp_path: Path) -> None:
    onnx.save(made, path := tmp_path / "net.onnx")
    with pytest.raises(NetworkError) as caught:
        read(path, form)
    assert sentence in str(caught.value)


def test_it_is_not_done_twice(tmp_path: Path) -> None:
    onnx.save(model(), path := tmp_path / "net.onnx")
    path.write_bytes(read(path, IMAGENET).data)
    with pytest.raises(NetworkError) as caught:
        read(path, IMAGENET)
    assert "net.onnx does what its mean, std and order say already, in its first layer" in str(caught.value)
