"""Frames of real video files and of a camera's thread, in RGB; boxes in a written video file."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from boards.errors import ChoiceError, FileAccessError, MismatchError, MissingToolError, RangeError, ShapeError
from host.vision.picture import Pixels
from host.vision.video import CODECS, Camera, Video, record, rgb
from tests.support.errors import raises
from tests.support.host.results import result

cv2 = pytest.importorskip("cv2", reason="OpenCV is not installed: pip install 'systolic-cnn[video]'")

HEIGHT, WIDTH, FRAMES = 48, 64, 12


def scene(number: int) -> Pixels:
    """Return a picture, red on the left and blue on the right, whose white square encodes ``number``."""
    picture = np.zeros((HEIGHT, WIDTH, 3), np.uint8)
    picture[:, : WIDTH // 2, 0] = 200
    picture[:, WIDTH // 2 :, 2] = 200
    picture[16:32, 4 * number : 4 * number + 8] = 255
    return picture


def number_of(picture: Pixels) -> int:
    """Return the number that the white square encodes."""
    columns = np.flatnonzero(picture[20:28, :, 1].mean(axis=0) > 128)
    return round(float(columns.mean() - 3.5) / 4)


@pytest.fixture(params=sorted(CODECS))
def video(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Return a video file of twelve scenes, which OpenCV wrote like a camera's recording."""
    path = tmp_path / f"scenes{request.param}"
    code = cv2.VideoWriter_fourcc(*CODECS[request.param])
    writer = cv2.VideoWriter(str(path), code, 10.0, (WIDTH, HEIGHT))
    for number in range(FRAMES):
        writer.write(scene(number)[..., ::-1].copy())
    writer.release()
    return path


def test_video_gives_all_frames_in_order_as_rgb(video: Path) -> None:
    with Video(video) as opened:
        assert (opened.width, opened.height, opened.frames_per_second) == (WIDTH, HEIGHT, 10.0)
        frames = list(opened)
    assert [number_of(frame) for frame in frames] == list(range(FRAMES))
    red, _, blue = frames[0][40:, : WIDTH // 2 - 4].reshape(-1, 3).mean(axis=0)
    assert red > 150 > 60 > blue, "red must be the first channel"


def test_camera_frames_ascend_and_end(video: Path) -> None:
    with Camera(str(video)) as camera:
        numbers = [number_of(frame) for frame in camera]
    assert numbers == sorted(set(numbers))
    assert camera.live


def test_camera_closed_ends_the_iteration(video: Path) -> None:
    camera = Camera(str(video))
    frames = iter(camera)
    next(frames)
    camera.close()
    assert list(frames) == []


def test_record_boxes_give_a_readable_video(video: Path, tmp_path: Path) -> None:
    boxes = tmp_path / "boxes.avi"
    with Video(video) as opened:
        results = [result(frame, index) for index, frame in enumerate(opened)]
    assert list(record(results, boxes, 10.0)) == results
    with Video(boxes) as opened:
        frames = list(opened)
        assert opened.frames_per_second == 10.0
    assert len(frames) == FRAMES
    drawn = np.asarray(results[3].draw()).astype(int)
    plain = results[3].picture.astype(int)
    edge = np.abs(drawn - plain).sum(axis=2) > 200
    assert edge.any()
    assert (
        np.abs(frames[3][edge].astype(int) - drawn[edge]).mean()
        < np.abs(frames[3][edge].astype(int) - plain[edge]).mean()
    )


def test_record_stopped_early_gives_a_complete_video(tmp_path: Path) -> None:
    boxes = tmp_path / "boxes.avi"
    taken = record((result(scene(index), index) for index in range(FRAMES)), boxes, 10.0)
    next(taken)
    next(taken)
    taken.close()  # type: ignore[attr-defined]
    with Video(boxes) as opened:
        assert len(list(opened)) == 2


FULL_DISK = """
import resource, signal, sys
from pathlib import Path
import numpy as np
from boards.errors import FileAccessError
from host.vision.video import record
from tests.support.host.results import result
noise = np.random.default_rng(1).integers(0, 255, (96, 128, 3), np.uint8)
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
try:
    list(record([result(noise, index) for index in range(100)], Path(sys.argv[1])))
except FileAccessError as error:
    print(error.path)
    print(error.reason)
"""


def test_record_on_full_disk_keeps_the_old_file(tmp_path: Path) -> None:
    for ending in sorted(CODECS):
        path = tmp_path / ending / f"boxes{ending}"
        path.parent.mkdir()
        path.write_bytes(b"old")
        done = subprocess.run([sys.executable, "-c", FULL_DISK, path], capture_output=True, text=True, check=True)
        assert done.stdout == f"{path}\ncannot be written completely\n"
        assert [left.read_bytes() for left in path.parent.iterdir()] == [b"old"]


def test_frames_of_opencv_become_rgb() -> None:
    assert rgb(np.full((2, 2, 3), (1, 2, 3), np.uint8))[0, 0].tolist() == [3, 2, 1]
    assert rgb(np.full((2, 2), 7, np.uint8))[1, 1].tolist() == [7, 7, 7]


def test_video_of_another_file_is_refused(tmp_path: Path) -> None:
    text, missing = tmp_path / "notes.mp4", tmp_path / "none.mp4"
    text.write_text("no video")
    with raises(FileAccessError, path=str(text), reason="cannot be opened by OpenCV", what="video file"):
        Video(text)
    with raises(FileAccessError, path=str(missing), reason="does not exist", what="video file"):
        Video(missing)
    with raises(FileAccessError, path="999", reason="cannot be opened by OpenCV", what="camera") as caught:
        Camera(999)
    assert "/dev/video*" in caught.value.remedy
    for shape in ((2, 2, 4), (2,)):
        with raises(ShapeError, what="a frame of OpenCV", got=f"uint8 {list(shape)}"):
            rgb(np.zeros(shape, np.uint8))


def test_video_with_too_large_frames_is_refused(video: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("host.vision.video.MAX_PICTURE_PIXELS", 1_000)
    with raises(RangeError, where=f"video file {video}", got=WIDTH * HEIGHT, high=1_000):
        Video(video)


def test_record_of_impossible_file_is_refused(tmp_path: Path) -> None:
    def recorded(path: Path, pictures: list[Pixels]) -> None:
        list(record([result(picture, index) for index, picture in enumerate(pictures)], path))

    for name, ending in (("boxes.gif", ".gif"), ("boxes", "")):
        with raises(ChoiceError, where=str(tmp_path / name), got=ending, choices=(".mp4", ".avi")):
            recorded(tmp_path / name, [])
    missing = tmp_path / "none" / "boxes.avi"
    with raises(FileAccessError, path=str(missing), reason="cannot be written: No such file or directory"):
        recorded(missing, [scene(0)])
    boxes = tmp_path / "boxes.avi"
    with raises(MismatchError, what="width and height of frame 1", got=(32, 48), expected=(64, 48), where=str(boxes)):
        recorded(boxes, [scene(0), scene(1)[:, :32]])


def test_video_without_opencv_names_the_package(video: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cv2", None)
    with raises(MissingToolError, tool="OpenCV"):
        Video(video)
