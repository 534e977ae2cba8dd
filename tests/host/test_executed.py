"""Designs executed by their simulation library alone, without pynq: the results are the same."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from boards.errors import ChoiceError, FileAccessError, RangeError
from cnn.integer_model import run_integer
from host.check import check_picture, golden_maps
from host.contract.manifest import read_manifest
from host.detector import Detector
from host.opened import open_executed
from host.options import Options
from host.pipeline import FrameError
from systolic.styles.systolic.simulate import open_design
from tests.support.cases import by_default
from tests.support.errors import raises
from tests.support.host.pipelines import golden


@pytest.fixture(scope="module")
def frames() -> list[np.ndarray]:
    random = np.random.default_rng(8)
    return [random.integers(0, 256, (14, 18, 3), np.uint8) for _ in range(7)]


def expected(folder: Path, detector: Detector, frame: np.ndarray) -> np.ndarray:
    """Return the golden model's output of the last layer."""
    design = open_design(folder)
    integers = run_integer(design.network, detector.prepare(frame)[1])[design.manifest.layers[-1].node]
    assert integers is not None
    return integers


@pytest.mark.parametrize("name", by_default(1, ["tiny", "batches"]))
def test_stream_of_an_executed_systolic_design_equals_the_golden_model(
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


def test_stream_of_an_executed_pipeline_equals_the_golden_model(centre: Path, frames: list[np.ndarray]) -> None:
    with open_executed(centre, Options(threshold=0.9995)) as detector:
        for frame, result in zip(frames, detector.stream(frames), strict=True):
            assert np.array_equal(result.outputs[0], golden(frame.transpose(2, 0, 1)))


def test_run_of_the_test_frame_equals_the_golden_map(tiny: Path, centre: Path) -> None:
    for folder in (tiny, centre):
        manifest = read_manifest(folder)
        detector = open_executed(folder)
        *_, last = golden_maps(manifest, folder)
        assert np.array_equal(detector.run(check_picture(manifest, folder))[-1], last)


def test_stream_with_a_failing_picture_ends_after_the_frames_before_it(tiny: Path, frames: list[np.ndarray]) -> None:
    with open_executed(tiny) as detector:
        stream = detector.stream([*frames[:2], "nowhere.png"])
        assert [next(stream).index, next(stream).index] == [0, 1]
        with raises(FrameError, index=2, frame="nowhere.png", stage="resize", count=1) as caught:
            next(stream)
        assert isinstance(caught.value.cause, FileAccessError)


def test_library_that_is_named_and_missing_is_refused(centre: Path, tmp_path: Path) -> None:
    with raises(FileAccessError, path=str(tmp_path / "none.so"), what="simulation library"):
        open_executed(centre, Options(library=tmp_path / "none.so"))


def test_options_are_checked_before_anything_is_opened() -> None:
    with raises(ChoiceError, what="wait", got="hope", choices=("poll", "interrupt")):
        Options(wait="hope")
    with raises(RangeError, what="sets (batches in flight)", got=0, low=1, high=16, integer=True):
        Options(sets=0)


def test_import_of_the_host_needs_no_pynq() -> None:
    code = (
        "import sys; sys.modules['pynq'] = None; import host, host.accelerator; host.Options; host.open_detector; "
        "rooms = {'cnn', 'systolic', 'scheduler', 'hls_templates'}; "
        "print(sorted({name.split('.')[0] for name in sys.modules} & rooms))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "[]\n", "")
