"""Designs executed by their simulation library alone: no pynq, and the same results as everywhere."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from boards.errors import HostError
from cnn.integer_model import run_integer
from host.check import check_picture, golden_maps
from host.contract.manifest import read_manifest
from host.detector import Detector
from host.opened import open_executed
from host.options import Options
from host.pipeline import FrameError
from systolic.styles.systolic.simulate import open_design
from tests.host.pipelines import golden, make_by_hand


@pytest.fixture(scope="module")
def frames() -> list[np.ndarray]:
    random = np.random.default_rng(8)
    return [random.integers(0, 256, (14, 18, 3), np.uint8) for _ in range(7)]


@pytest.fixture(scope="module")
def pipeline(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_by_hand(tmp_path_factory.mktemp("executed") / "design")


def expected(folder: Path, detector: Detector, frame: np.ndarray) -> np.ndarray:
    """What the golden model says of the last layer."""
    design = open_design(folder)
    integers = run_integer(design.network, detector.prepare(frame)[1])[design.manifest.layers[-1].node]
    assert integers is not None
    return integers


@pytest.mark.parametrize("name", ["tiny", "batches"])
def test_pictures_through_a_systolic_design(
    name: str, request: pytest.FixtureRequest, frames: list[np.ndarray]
) -> None:
    folder = request.getfixturevalue(name)
    with open_executed(folder, Options(threshold=0.2)) as detector:
        results = list(detector.stream(frames))
        assert [result.index for result in results] == list(range(len(frames)))
        for frame, result in zip(frames, results, strict=True):
            assert np.array_equal(result.outputs[0], expected(folder, detector, frame))
            alone = detector.detect(frame)
            assert alone.detections == result.detections
            assert np.array_equal(detector.run(detector.prepare(frame)[1])[0], result.outputs[0])
        assert any(result.detections for result in results)
        assert detector.measured.label == "executed by the simulation library: not the design's speed"


def test_pictures_through_a_pipeline(pipeline: Path, frames: list[np.ndarray]) -> None:
    with open_executed(pipeline, Options(threshold=0.9995)) as detector:
        for frame, result in zip(frames, detector.stream(frames), strict=True):
            assert np.array_equal(result.outputs[0], golden(frame.transpose(2, 0, 1)))


def test_the_test_frame_gives_the_golden_models_maps(tiny: Path, pipeline: Path) -> None:
    for folder in (tiny, pipeline):
        manifest = read_manifest(folder)
        detector = open_executed(folder)
        *_, last = golden_maps(manifest, folder)
        assert np.array_equal(detector.run(check_picture(manifest, folder))[-1], last)


def test_a_picture_that_fails_ends_the_stream_after_those_before_it(tiny: Path, frames: list[np.ndarray]) -> None:
    with open_executed(tiny) as detector:
        stream = detector.stream([*frames[:2], "nowhere.png"])
        assert [next(stream).index, next(stream).index] == [0, 1]
        with pytest.raises(FrameError, match=r"frame 2 .*nowhere\.png.* there is no such"):
            next(stream)


def test_without_a_library_it_says_how_to_get_one(pipeline: Path, tmp_path: Path) -> None:
    with pytest.raises(HostError, match=r"there is no such simulation library"):
        open_executed(pipeline, Options(library=tmp_path / "none.so"))


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"wait": "hope"}, "wait is 'poll' or 'interrupt', not 'hope'"),
        ({"sets": 0}, "sets, batches in flight, is a whole number 1…16, not 0"),
    ],
)
def test_options_are_checked_before_anything_is_opened(options: dict[str, object], sentence: str) -> None:
    with pytest.raises(HostError, match=sentence):
        Options(**options)  # type: ignore[arg-type]


def test_importing_the_host_asks_for_no_pynq() -> None:
    code = (
        "import sys; sys.modules['pynq'] = None; import host, host.accelerator; host.Options; host.open_detector; "
        "rooms = {'cnn', 'systolic', 'scheduler', 'hls_templates'}; "
        "print(sorted({name.split('.')[0] for name in sys.modules} & rooms))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "[]\n", "")
