"""Wrong arguments of a caller raise one of the project's own errors at once."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from boards.errors import (
    AcceleratorError,
    ChoiceError,
    DamagedFileError,
    FileAccessError,
    InvalidValueError,
    MismatchError,
    RangeError,
    ShapeError,
    SystolicError,
)
from host.contract.manifest import read_manifest
from host.contract.parts import read_data_file
from host.designs import find_design
from host.opened import open_executed
from host.options import Options
from host.simulated.faults import KINDS, InjectedFault
from host.vision.detection import detect
from host.vision.drawing import draw
from host.vision.heads.head import Head
from host.vision.picture import FITS, load_picture
from host.vision.placement import Placement
from tests.support.errors import raises
from tests.support.host.hardware import Open, faulty
from tests.support.host.manifests import changed, golden_values

NESTED: Any = [[["word" * 100] * 100] * 100] * 100
GREY = np.full((40, 50, 3), 120, np.uint8)

Kind = type[SystolicError]
OPTIONS: list[tuple[dict[str, Any], Kind, dict[str, Any]]] = [
    *(
        ({"timeout_s": value}, RangeError, {"what": "timeout_s", "low": 0, "high": 1e6, "exclusive": True})
        for value in (-1, 0, float("inf"), "5")
    ),
    *(
        ({"sets": value}, RangeError, {"what": "sets (batches in flight)", "low": 1, "high": 16, "integer": True})
        for value in (1.5, True, 0, 17, 10**5000)
    ),
    *(
        ({name: value}, RangeError, {"what": name, "low": 0, "high": 1, "exclusive": False})
        for name in ("threshold", "overlap")
        for value in (24, None, -0.1, True)
    ),
    ({"threshold": float("nan")}, RangeError, {"what": "threshold"}),
    ({"overlap": np.zeros(3)}, RangeError, {"what": "overlap"}),
    ({"time_scale": 0}, RangeError, {"what": "time_scale, unless it is 'fit',", "low": 0, "high": 1e9}),
    ({"time_scale": "fast"}, RangeError, {"what": "time_scale, unless it is 'fit',", "exclusive": True}),
    ({"library": 5}, InvalidValueError, {"what": "library", "got": 5}),
    ({"wait": ["poll"]}, ChoiceError, {"what": "wait", "choices": ("poll", "interrupt")}),
]


def test_options_out_of_range_are_refused() -> None:
    for options, kind, fields in OPTIONS:
        with raises(kind, **fields) as caught:
            Options(**options)
        assert len(str(caught.value)) < 200


def test_options_of_numpy_types_are_accepted() -> None:
    assert Options(sets=np.int64(3), threshold=np.float32(0.5)).sets == 3


INPUT = {"what": "the input", "required": "type uint8 and shape (3, 14, 18)"}
CALLS: list[tuple[Callable[[Any], Any], Kind, dict[str, Any]]] = [
    (lambda it: it.run(None), ShapeError, {**INPUT, "got": "None"}),
    (lambda it: it.run(NESTED), ShapeError, INPUT),
    (lambda it: it.run(np.zeros((3, 14, 18))), ShapeError, {**INPUT, "got": "type float64 and shape (3, 14, 18)"}),
    (lambda it: it.detect(None), InvalidValueError, {"what": "the picture", "got": None}),
    (lambda it: it.detect(b"a" * 9999), InvalidValueError, {"what": "the picture"}),
    (lambda it: it.detect(GREY / 255), ShapeError, {"what": "the picture", "got": "float64 [40, 50, 3]"}),
    (lambda it: list(it.stream(None)), InvalidValueError, {"what": "frames", "got": None}),
    (lambda it: list(it.stream("a.png")), InvalidValueError, {"what": "frames", "got": "a.png"}),
    (lambda it: list(it.stream([], workers=1.5)), RangeError, {"what": "workers", "got": 1.5, "low": 1, "high": 64}),
    (lambda it: list(it.stream([], verify_every=0)), RangeError, {"what": "verify_every", "got": 0, "low": 1}),
    (lambda it: setattr(it, "wait", "for ever"), ChoiceError, {"what": "wait", "got": "for ever"}),
    (lambda it: it.detect(GREY).save(5), InvalidValueError, {"what": "the file", "got": 5}),
]


def refuses_calls(detector: Any) -> None:
    """Check that each wrong call is refused, and that the detector can be used after it as before."""
    for call, kind, fields in CALLS:
        with raises(kind, **fields) as caught:
            call(detector)
        assert len(str(caught.value)) < 300
        detector.detect(GREY)


def test_wrong_calls_of_a_design_that_is_executed_are_refused(tiny: Path) -> None:
    with open_executed(tiny, Options(threshold=0.9)) as detector:
        refuses_calls(detector)


def test_wrong_calls_of_an_accelerator_are_refused(tiny: Path, accelerator: Open) -> None:
    yolo = accelerator(tiny, threshold=0.9)
    refuses_calls(yolo)
    with raises(ShapeError, **INPUT):
        list(yolo.layers(None))
    yolo.detect(GREY)


def test_open_of_another_type_or_name_is_refused(tiny_files: Path) -> None:
    for opener in openers():
        for folder in (None, 5, b"design", ["design"]):
            with raises(InvalidValueError, what="a design's folder, one of its files or its name", got=folder):
                opener(folder)
        with raises(InvalidValueError, what="options", got="poll"):
            opener(tiny_files, "poll")
        with raises(FileAccessError, what="generated design") as caught:
            opener("x" * 100_000)
        assert len(str(caught.value)) < 600
    with raises(InvalidValueError, what="network", got=5):
        find_design(5)  # type: ignore[arg-type]


def openers() -> list[Callable[..., Any]]:
    try:
        import pynq  # noqa: F401
    except ImportError:
        return [open_executed]
    from host import Accelerator

    return [open_executed, Accelerator]


@pytest.mark.pynq
def test_accelerator_with_an_invalid_device_is_refused(tiny: Path) -> None:
    from host import Accelerator

    for device in (5, "board", False):
        with raises(InvalidValueError, what="device", got=device):
            Accelerator(tiny, device=device)


def test_open_with_another_shared_library_is_refused(tiny_files: Path, tmp_path: Path) -> None:
    damaged, other = tmp_path / "damaged.so", tmp_path / "other.so"
    damaged.write_bytes(b"no library")
    (tmp_path / "other.cpp").write_text("int other;")
    subprocess.run(["g++", "-shared", "-fPIC", "-o", other, tmp_path / "other.cpp"], check=True)
    for opener in openers():
        for library, reason in ((damaged, "cannot be loaded: "), (other, "has no function systolic_simulate")):
            with raises(DamagedFileError, path=str(library)) as caught:
                opener(tiny_files, Options(library=library))
            assert caught.value.reason.startswith(reason)


def test_detect_after_an_error_of_the_simulated_board_raises_at_once(
    tiny: Path, centre: Path, accelerator: Open
) -> None:
    """Check that the driver does not poll until the time limit of the simulated board."""
    for design in (tiny, centre):
        yolo = accelerator(design)
        yolo.device.inject(faulty("corrupt word", buffer="nothing_of_that_name"))
        with raises(AcceleratorError) as caught:
            yolo.detect(GREY)
        assert caught.value.reason.endswith("the simulated board says: KeyError: 'nothing_of_that_name_1'")


def test_injected_fault_out_of_range_is_refused() -> None:
    with raises(ChoiceError, what="the kind of a fault", got="flood", choices=KINDS):
        InjectedFault("flood")
    with raises(RangeError, what="at of a fault", got=-1, low=0, high=1 << 40):
        InjectedFault("hang", at=-1)
    for seconds in (float("nan"), -1, 3601):
        with raises(RangeError, what="seconds of a fault", low=0, high=3600, exclusive=False):
            InjectedFault("late interrupt", seconds=seconds)


def test_picture_or_head_of_another_type_is_refused() -> None:
    for fit in FITS.values():
        for picture in (None, NESTED, GREY.tolist(), GREY.astype(float)):
            with raises(ShapeError, what="the picture"):
                fit(picture, 10, 10)  # type: ignore[arg-type]
    with raises(ShapeError, what="the picture", got="None"):
        draw(None, [])  # type: ignore[arg-type]
    with raises(InvalidValueError, what="a picture's file", got=None):
        load_picture(None)  # type: ignore[arg-type]
    head, square = Head("region", ((1.0, 1.0),), 1), Placement(9, 9, 9, 9, 0, 0, 9, 9)
    with raises(RangeError, what="threshold", low=0, high=1):
        detect([np.zeros((6, 1, 1), np.float32)], [head], square, ["a"], threshold=float("nan"))
    with raises(InvalidValueError, what="bias of a head") as caught:
        Head("region", ((1.0, 1.0),) * 9, 1, bias=(1e9,) * 100_000)
    assert len(str(caught.value)) < 200


def test_sentences_about_a_manifest_stay_short(tmp_path: Path) -> None:
    path = tmp_path / "manifest.json"
    for place, value in (
        ("network", NESTED[0][0]),
        ("labels", {"x" * 100_000: 1}),
        ("layers.0.name", ["x"] * 100_000),
        ("layers.0.output.datatype", "INT" * 100_000),
        ("layers.0.output.bytes", 10**400),
        ("fit", "x" * 100_000),
        ("style", "x" * 100_000),
        ("images.program.path", "../" * 100_000),
    ):
        path.write_text(json.dumps(changed(golden_values(), place, value)))
        with pytest.raises(SystolicError) as caught:
            read_manifest(tmp_path)
        assert len(str(caught.value)) < 600 + len(str(tmp_path)), place


def test_manifest_error_with_a_very_long_name_is_short(tmp_path: Path) -> None:
    values = changed(golden_values(), "layers.0.name", "layer" * 100_000)
    values = changed(values, "images.program.path", "a" * 100_000)
    path = tmp_path / "manifest.json"
    path.write_text(json.dumps(changed(values, "layers.0.output.bytes", 1025)))
    with raises(MismatchError, what="bytes", got=1025, expected=1024) as mismatch:
        read_manifest(tmp_path)
    assert len(str(mismatch.value)) < 600 + len(str(tmp_path))
    path.write_text(json.dumps(values))
    manifest: Any = read_manifest(tmp_path)
    with raises(FileAccessError) as missing:
        read_data_file(tmp_path, manifest.images.program)
    assert len(str(missing.value)) < 600


@pytest.mark.pynq
def test_accelerator_of_a_folder_with_many_descriptions_names_a_few(tiny: Path, tmp_path: Path) -> None:
    from host import Accelerator

    folder = shutil.copytree(tiny, tmp_path / "design")
    for index in range(500):
        (folder / f"{index:03}.hwh").write_text("")
    with raises(FileAccessError, path=str(folder), what="folder") as caught:
        Accelerator(folder)
    assert "it holds 000.hwh, 001.hwh, " in caught.value.reason
    assert len(str(caught.value)) < 400 + len(str(folder))
