"""What a caller gives wrong is a sentence of the project's own errors, at once."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from boards.errors import HostError, PictureError, SimulationError, SystolicError
from host.contract.manifest import read_manifest
from host.contract.parts import read_image
from host.designs import find_design
from host.opened import open_executed
from host.options import Options
from host.simulated.faults import Fault
from host.vision.detection import detect
from host.vision.drawing import draw
from host.vision.heads.head import Head
from host.vision.picture import FITS, load_picture
from host.vision.placement import Placement
from tests.host.hardware import Open, faulty

NESTED: Any = [[["word" * 100] * 100] * 100] * 100
GREY = np.full((40, 50, 3), 120, np.uint8)

OPTIONS: list[tuple[dict[str, Any], str]] = [
    ({"timeout_s": -1}, "timeout_s is a number above 0 to 1e+06, not -1"),
    ({"timeout_s": 0}, "timeout_s is a number above 0 to 1e+06, not 0"),
    ({"timeout_s": float("inf")}, "timeout_s is a number above 0 to 1e+06, not inf"),
    ({"timeout_s": "5"}, "timeout_s is a number above 0 to 1e+06, not '5'"),
    ({"sets": 1.5}, "sets, batches in flight, is a whole number 1…16, not 1.5"),
    ({"sets": True}, "sets, batches in flight, is a whole number 1…16, not True"),
    ({"sets": 10**5000}, "sets, batches in flight, is a whole number 1…16, not an integer of 16,610 bits"),
    ({"threshold": float("nan")}, "threshold is a number from 0 to 1, not nan"),
    ({"threshold": 24}, "threshold is a number from 0 to 1, not 24"),
    ({"threshold": None}, "threshold is a number from 0 to 1, not None"),
    ({"overlap": -0.1}, "overlap is a number from 0 to 1, not -0.1"),
    ({"overlap": np.zeros(3)}, "overlap is a number from 0 to 1, not array([0., 0., 0.])"),
    ({"time_scale": 0}, "time_scale, where it is not 'fit', is a number above 0 to 1e+09, not 0"),
    ({"time_scale": "fast"}, "time_scale, where it is not 'fit', is a number above 0 to 1e+09, not 'fast'"),
    ({"library": 5}, "library is a text or a path, not 5"),
    ({"wait": ["poll"]}, "wait is 'poll' or 'interrupt', not ['poll']"),
]


@pytest.mark.parametrize(("options", "sentence"), OPTIONS, ids=[sentence[:30] for _, sentence in OPTIONS])
def test_options(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(HostError) as caught:
        Options(**options)
    assert str(caught.value) == sentence


def test_options_as_numpy_has_them() -> None:
    assert Options(sets=np.int64(3), threshold=np.float32(0.5)).sets == 3


CALLS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "run None": (lambda it: it.run(None), "the input is an array, uint8 of shape (3, 14, 18), not None"),
    "run a list": (lambda it: it.run(NESTED), "the input is an array, uint8 of shape (3, 14, 18), not [[["),
    "run floats": (lambda it: it.run(np.zeros((3, 14, 18))), "the input is uint8 of shape (3, 14, 18), not float64"),
    "detect None": (lambda it: it.detect(None), "a picture is a file's path or an array uint8 [height, width, 3], not"),
    "detect bytes": (lambda it: it.detect(b"a" * 9999), "a picture is a file's path or an array uint8 [height, width"),
    "detect floats": (lambda it: it.detect(GREY / 255), "a picture is uint8 [height, width, channels] or grey [height"),
    "stream None": (lambda it: list(it.stream(None)), "frames are pictures one after the other, not None; one alone"),
    "stream a path": (
        lambda it: list(it.stream("a.png")),
        "frames are pictures one after the other, not 'a.png'; one ",
    ),
    "workers": (lambda it: list(it.stream([], workers=1.5)), "workers is a whole number 1…64, not 1.5"),
    "verify": (lambda it: list(it.stream([], verify_every=0)), "verify_every is a whole number 1…"),
    "wait": (lambda it: setattr(it, "wait", "for ever"), "wait is 'poll' or 'interrupt', not 'for ever'"),
    "save": (lambda it: it.detect(GREY).save(5), "the file is a text or a path, not 5"),
}


@pytest.mark.parametrize("name", CALLS)
def test_calls_of_a_design_that_is_executed(tiny: Path, name: str) -> None:
    call, sentence = CALLS[name]
    with open_executed(tiny, Options(threshold=0.9)) as detector:
        with pytest.raises(SystolicError) as caught:
            call(detector)
        assert str(caught.value).startswith(sentence)
        assert len(str(caught.value)) < 300
        detector.detect(GREY)  # it can be used as before


@pytest.mark.parametrize("name", [*CALLS, "layers"])
def test_calls_of_an_accelerator(tiny: Path, accelerator: Open, name: str) -> None:
    call, sentence = CALLS.get(name, (lambda it: list(it.layers(None)), "the input is an array, uint8 of shape"))
    yolo = accelerator(tiny, threshold=0.9)
    with pytest.raises(SystolicError) as caught:
        call(yolo)
    assert str(caught.value).startswith(sentence)
    yolo.detect(GREY)


def test_what_is_opened(tiny: Path) -> None:
    for opener in openers():
        for folder in (None, 5, b"design", ["design"]):
            with pytest.raises(
                HostError, match=r"a design's folder, one of its files or its name is a text or a path, "
            ):
                opener(folder)
        with pytest.raises(HostError, match=r"options are an Options, such as Options\(threshold=0\.5\), not 'poll'"):
            opener(tiny, "poll")
        with pytest.raises(HostError) as caught:
            opener("x" * 100_000)
        assert len(str(caught.value)) < 400
    with pytest.raises(HostError, match="network is the name of one, or None for any, not 5"):
        find_design(5)  # type: ignore[arg-type]


def openers() -> list[Callable[..., Any]]:
    try:
        import pynq  # noqa: F401
    except ImportError:
        return [open_executed]
    from host import Accelerator

    return [open_executed, Accelerator]


@pytest.mark.pynq
def test_a_device_is_one_of_pynqs(tiny: Path) -> None:
    from host import Accelerator

    for device in (5, "board", False):
        with pytest.raises(HostError, match=r"device is a pynq\.Device, or None for the board that this runs on, not "):
            Accelerator(tiny, device=device)


@pytest.mark.parametrize(
    ("source", "sentence"),
    [
        ("int other;", "has no systolic_simulate: it is a library of another style; build it again"),
        (None, "a simulation library cannot be loaded ("),
    ],
)
def test_a_library_of_something_else_is_refused_when_it_is_loaded(
    tiny: Path, tmp_path: Path, source: str | None, sentence: str
) -> None:
    library = tmp_path / "other.so"
    library.write_bytes(b"no library")
    if source is not None:
        (tmp_path / "other.cpp").write_text(source)
        subprocess.run(["g++", "-shared", "-fPIC", "-o", library, tmp_path / "other.cpp"], check=True)
    for opener in openers():
        with pytest.raises(SimulationError) as caught:
            opener(tiny, Options(library=library))
        assert sentence in str(caught.value)


@pytest.mark.parametrize("name", ["tiny", "centre"])
def test_what_goes_wrong_in_the_boards_own_thread_is_said_at_once(
    name: str, request: pytest.FixtureRequest, accelerator: Open
) -> None:
    """No poll to the time limit, which is that of a simulated board."""
    yolo = accelerator(request.getfixturevalue(name))
    yolo.device.inject(faulty("corrupt word", buffer="nothing_of_that_name"))
    with pytest.raises(HostError, match=r"the simulated board says: KeyError: 'nothing_of_that_name_1'"):
        yolo.detect(GREY)


def test_faults() -> None:
    with pytest.raises(HostError, match=r"a fault is one of hang, late interrupt, .*, not 'flood'"):
        Fault("flood")
    with pytest.raises(HostError, match="at of a fault is a whole number 0…1099511627776, not -1"):
        Fault("hang", at=-1)
    with pytest.raises(HostError, match="seconds of a fault is a number from 0 to 3600, not nan"):
        Fault("late interrupt", seconds=float("nan"))


def test_pictures_and_boxes() -> None:
    for fit in FITS.values():
        for picture in (None, NESTED, GREY.tolist(), GREY.astype(float)):
            with pytest.raises(PictureError, match=r"a picture is uint8 \[height, width, 3\] and not empty, not "):
                fit(picture, 10, 10)  # type: ignore[arg-type]
    with pytest.raises(PictureError, match=r"a picture is uint8 \[height, width, 3\] and not empty, not None"):
        draw(None, [])  # type: ignore[arg-type]
    with pytest.raises(HostError, match=r"a picture's file is a text or a path, not None"):
        load_picture(None)  # type: ignore[arg-type]
    head, square = Head("region", ((1.0, 1.0),), 1), Placement(9, 9, 9, 9, 0, 0, 9, 9)
    with pytest.raises(HostError, match="threshold is a number from 0 to 1, not nan"):
        detect([np.zeros((6, 1, 1), np.float32)], [head], square, ["a"], threshold=float("nan"))
    with pytest.raises(HostError) as caught:
        Head("region", ((1.0, 1.0),) * 9, 1, bias=(1e9,) * 100_000)
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize(
    ("keys", "value"),
    [
        (("network",), NESTED),
        (("labels",), {"x" * 100_000: 1}),
        (("layers", 0, "name"), ["x"] * 100_000),
        (("layers", 0, "output", "datatype"), "INT" * 100_000),
        (("layers", 0, "output", "bytes"), 10**400),
        (("fit",), "x" * 100_000),
        (("style",), "x" * 100_000),
        (("images", "program", "path"), "../" * 100_000),
    ],
)
def test_sentences_about_a_manifest_stay_short(tiny: Path, tmp_path: Path, keys: tuple[Any, ...], value: Any) -> None:
    values = json.loads((tiny / "manifest.json").read_text("utf-8"))
    place = values
    for key in keys[:-1]:
        place = place[key]
    place[keys[-1]] = value
    (tmp_path / "manifest.json").write_text(json.dumps(values))
    with pytest.raises(HostError) as caught:
        read_manifest(tmp_path)
    assert len(str(caught.value)) < 600 + len(str(tmp_path))


def test_a_name_of_any_length_is_cut(tiny: Path, tmp_path: Path) -> None:
    values = json.loads((tiny / "manifest.json").read_text("utf-8"))
    values["layers"][0]["name"] = "layer" * 100_000
    values["layers"][0]["output"]["bytes"] += 1
    values["images"]["program"]["path"] = "a" * 100_000
    (tmp_path / "manifest.json").write_text(json.dumps(values))
    with pytest.raises(HostError, match="the size of its rows, not") as caught:
        read_manifest(tmp_path)
    assert len(str(caught.value)) < 600 + len(str(tmp_path))
    values["layers"][0]["output"]["bytes"] -= 1
    (tmp_path / "manifest.json").write_text(json.dumps(values))
    manifest: Any = read_manifest(tmp_path)
    with pytest.raises(HostError, match="cannot be read") as caught:
        read_image(tmp_path, manifest.images.program)
    assert len(str(caught.value)) < 600


@pytest.mark.pynq
def test_of_a_folder_with_many_descriptions_a_few_are_named(tiny: Path, tmp_path: Path) -> None:
    from host import Accelerator

    folder = shutil.copytree(tiny, tmp_path / "design")
    for index in range(500):
        (folder / f"{index:03}.hwh").write_text("")
    with pytest.raises(
        HostError, match=r"must hold one \*\.hwh .*, there is 000\.hwh, 001\.hwh, .* and 48\d more"
    ) as caught:
        Accelerator(folder)
    assert len(str(caught.value)) < 400 + len(str(folder))
