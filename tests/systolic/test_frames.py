"""Test ``systolic run`` on a folder of pictures or a video, with the host code."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from boards.errors import ConflictError, FileAccessError, MismatchError
from host import Options
from host.contract.manifest import read_manifest
from host.simulated.pace import pace
from host.vision.video import Video
from systolic.cli.main import main
from systolic.execution.frames import run_frames, save_cycles
from systolic.execution.run import run
from systolic.pictures import picture_files, pictures_in
from systolic.styles.systolic.measure import cycle_report, trace_design
from systolic.styles.systolic.simulate import open_design
from systolic.trace.report import board_memory
from tests.support.detectors import write_tiny_design
from tests.support.errors import raises


@pytest.fixture(scope="module")
def design(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a design for a Zynq UltraScale+, because pynq 4.0.0 cannot set the clocks of a Zynq-7000."""
    work = tmp_path_factory.mktemp("frames")
    write_tiny_design(work / "design", "zcu104", array="4x8x8")
    return work / "design"


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with four random pictures and one text file."""
    folder = tmp_path_factory.mktemp("pictures")
    random = np.random.default_rng(3)
    for number in range(4):
        Image.fromarray(random.integers(0, 256, (30, 40, 3), np.uint8)).save(folder / f"frame{number:03}.png")
    (folder / "notes.txt").write_text("no picture")
    return folder


@pytest.mark.engine
def test_run_of_folder_gives_the_boxes_of_single_pictures(design: Path, pictures: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    assert main(["run", str(design), str(pictures), "-o", str(tmp_path / "boxes"), "--json", str(out)]) == 0
    given = json.loads(out.read_text())
    assert [Path(frame["picture"]).name for frame in given["frames"]] == [f"frame{i:03}.png" for i in range(4)]
    for frame in given["frames"]:
        alone = run(open_design(design), Path(frame["picture"]))
        assert [one["label"] for one in frame["detections"]] == [one.label for one in alone.detections]
        assert [one["box"] for one in frame["detections"]] == [
            [round(v, 1) for v in one.box] for one in alone.detections
        ]
    assert given["label"] == "executed by the simulation library: not the design's speed"
    assert len(list((tmp_path / "boxes").glob("*.png"))) == 4


@pytest.mark.engine
def test_run_of_video_gives_boxes_and_a_video(design: Path, tmp_path: Path) -> None:
    """Expect the boxes of a run on a folder with the frames that OpenCV decodes."""
    cv2 = pytest.importorskip("cv2", reason="OpenCV is not installed: pip install 'systolic-cnn[video]'")
    video, boxes = tmp_path / "street.avi", tmp_path / "boxes.mp4"
    writer = cv2.VideoWriter(str(video), cv2.VideoWriter_fourcc(*"MJPG"), 5.0, (40, 30))
    random = np.random.default_rng(4)
    for _ in range(5):
        writer.write(random.integers(0, 256, (30, 40, 3), np.uint8))
    writer.release()
    folder = tmp_path / "frames"
    folder.mkdir()
    with Video(video) as opened:
        for number, frame in enumerate(opened):
            Image.fromarray(frame).save(folder / f"{number}.png")

    out = tmp_path / "out.json"
    options = ["--threshold", "0.05", "--json", str(out)]
    assert main(["run", str(design), str(video), "-o", str(boxes), *options]) == 0
    seen = json.loads(out.read_text())["frames"]
    assert main(["run", str(design), str(folder), *options]) == 0
    alone = json.loads(out.read_text())["frames"]
    assert [frame["frame"] for frame in seen] == list(range(5))
    assert {frame["picture"] for frame in seen} == {str(video)}
    assert [frame["detections"] for frame in seen] == [frame["detections"] for frame in alone]
    assert any(frame["detections"] for frame in seen)
    with Video(boxes) as opened:
        assert (len(list(opened)), opened.width, opened.height, opened.frames_per_second) == (5, 40, 30, 5.0)


@pytest.mark.engine
def test_run_of_folder_in_batches_counts_pictures(pictures: Path, tmp_path: Path) -> None:
    """Run four pictures as a batch of three, and a batch of one that is filled up. The measured figures count
    pictures."""
    write_tiny_design(tmp_path / "design", "zcu104", batch=3, array="4x8x8")
    out = tmp_path / "out.json"
    assert main(["run", str(tmp_path / "design"), str(pictures), "--json", str(out)]) == 0
    given = json.loads(out.read_text())
    assert [Path(frame["picture"]).name for frame in given["frames"]] == [f"frame{i:03}.png" for i in range(4)]
    folder = open_design(tmp_path / "design")
    for frame in given["frames"]:
        alone = run(folder, Path(frame["picture"]))
        assert alone.simulation.mismatches == 0
        assert [one["label"] for one in frame["detections"]] == [one.label for one in alone.detections]
    done = run_frames(tmp_path / "design", pictures, Options(threshold=0.2, overlap=0.5)).measured
    assert (done.frames, done.first) == (4, 3)
    assert done.throughput == pytest.approx(1 / done.seconds)


@pytest.mark.engine
def test_run_frames_applies_threshold_and_overlap(design: Path, pictures: Path) -> None:
    counts = {
        (threshold, overlap): sum(
            len(frame.detections)
            for frame in run_frames(design, pictures, Options(threshold=threshold, overlap=overlap)).boxes
        )
        for threshold, overlap in ((0.01, 0.5), (0.3, 0.5), (0.01, 0.95))
    }
    assert counts[0.3, 0.5] < counts[0.01, 0.5] < counts[0.01, 0.95]


def test_run_frames_with_bad_boxes_folder_is_refused(design: Path, pictures: Path) -> None:
    with raises(FileAccessError, path=str(pictures / "notes.txt"), remedy="choose another -o FOLDER"):
        run_frames(design, pictures, Options(), pictures / "notes.txt")


@pytest.mark.engine
def test_run_frames_keeps_pictures_of_equal_names(design: Path, pictures: Path, tmp_path: Path) -> None:
    source, boxes = tmp_path / "source", tmp_path / "boxes"
    source.mkdir()
    (picture, *_) = (path for path in sorted(pictures.iterdir()) if path.suffix in (".png", ".jpg"))
    for name in ("a.png", "a.jpg", "b.png"):
        (source / name).write_bytes(picture.read_bytes())
    run_frames(design, source, Options(), boxes)
    assert sorted(path.name for path in boxes.iterdir()) == ["a.jpg.png", "a.png.png", "b.png"]
    with raises(ConflictError, reason="the pictures would be replaced"):
        run_frames(design, source, Options(), source)


def test_pictures_in_ignores_the_case_of_endings(tmp_path: Path) -> None:
    for name in ("b.PNG", "a.Jpeg", "c.txt"):
        (tmp_path / name).write_bytes(b"")
    assert [path.name for path in pictures_in(tmp_path)] == ["a.Jpeg", "b.PNG"]


def test_pictures_in_empty_folder_raises_file_access_error(tmp_path: Path) -> None:
    with raises(FileAccessError, path=str(tmp_path), remedy="name a folder of pictures or of video frames"):
        pictures_in(tmp_path)


def test_picture_files_keep_the_given_order(pictures: Path) -> None:
    last = pictures / "frame003.png"
    assert [path.stem[-1] for path in picture_files([last, pictures, str(last)])] == ["3", "0", "1", "2", "3", "3"]


def test_pictures_in_sorts_by_name(pictures: Path) -> None:
    assert [path.stem for path in pictures_in(pictures)] == ["frame000", "frame001", "frame002", "frame003"]


@pytest.mark.engine
def test_save_cycles_keeps_traced_cycles_for_the_simulated_board(design: Path, tmp_path: Path) -> None:
    folder = open_design(design)
    shape = folder.network.input_shape
    trace = trace_design(folder, np.zeros((shape.channels, shape.height, shape.width), np.uint8))
    report = cycle_report(folder, trace, board_memory(folder))
    save_cycles(tmp_path, report)
    found = pace(tmp_path, read_manifest(design), 1.0)
    assert found is not None
    assert found.source == "traced"
    traced = report.timing.cycles
    assert traced > sum(region.total for region in report.timing.regions if not region.top), (
        "the total must include the fetch of the program"
    )
    assert found.seconds(0, len(found.pass_cycles)) == pytest.approx(traced / (found.clock_mhz * 1e6))
    (tmp_path / "file").write_text("")
    assert save_cycles(tmp_path / "file", report) is None
    regions = report.timing.regions
    gone = replace(report.timing, regions=tuple(region for region in regions if region.label != 0))
    with raises(MismatchError, what="the list of traced passes", got=[1], expected=[0]):
        save_cycles(tmp_path, replace(report, timing=gone))
    kept = json.loads((tmp_path / "cycles.json").read_text())
    save_cycles(tmp_path, replace(report, timing=replace(report.timing, regions=regions[::-1])))
    assert json.loads((tmp_path / "cycles.json").read_text()) == kept
