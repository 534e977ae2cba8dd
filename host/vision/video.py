"""Reading frames from a camera or a video file, and writing frames with boxes into a video file, with OpenCV.

OpenCV stores blue first. All frames passed to or from this module have red first, as everywhere in ``host``.
"""

from __future__ import annotations

import importlib
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

import numpy as np

from boards.errors import ChoiceError, FileAccessError, MismatchError, MissingToolError, RangeError, ShapeError
from host.vision.frame import Result
from host.vision.picture import MAX_PICTURE_PIXELS, Pixels
from host.whole_file import check_whole, place_of, staging_folder

Self = TypeVar("Self", bound="_Capture")

CODECS = {".mp4": "mp4v", ".avi": "MJPG"}
"""Codec of a written video by the file's suffix. Both are in every build of OpenCV on PYNQ images."""

VIDEOS = (".mp4", ".avi", ".mkv", ".mov", ".webm")
"""Suffixes of the files that are read as video."""

RATE = 25.0
"""Frames per second of a video file that does not state its rate."""


def rgb(frame: Pixels) -> Pixels:
    """Return a copy of an OpenCV frame with red first, uint8 ``(height, width, 3)``.

    The frame is uint8 ``(height, width, 3)``, blue first, or grey ``(height, width)``.
    """
    if frame.dtype != np.uint8 or not (frame.ndim == 2 or (frame.ndim == 3 and frame.shape[2] == 3)):
        raise ShapeError(
            "a frame of OpenCV",
            f"{frame.dtype} {list(frame.shape)}",
            "type uint8 and shape [height, width, 3] or [height, width]",
            remedy="convert it with cv2.cvtColor",
        )
    channels = frame[..., ::-1] if frame.ndim == 3 else np.repeat(frame[..., None], 3, axis=2)
    return np.ascontiguousarray(channels)


class _Capture:
    """A source of frames that OpenCV reads: a video file or a camera.

    Attributes:
        live: Whether frames arrive in real time, so that late frames are worthless.
    """

    live = False
    _role, _advice = "source", ""

    def __init__(self, source: int | str | Path) -> None:
        cv2 = _opencv()
        self._capture = cv2.VideoCapture(source if isinstance(source, int) else str(source))
        if not self._capture.isOpened():
            raise FileAccessError(str(source), "cannot be opened by OpenCV", self._role, remedy=self._advice)
        self.width = int(self._capture.get(cv2.CAP_PROP_FRAME_WIDTH))
        self.height = int(self._capture.get(cv2.CAP_PROP_FRAME_HEIGHT))
        rate = float(self._capture.get(cv2.CAP_PROP_FPS))
        self.frames_per_second = rate if 0 < rate < 10_000 else RATE
        # Taken from the header. Streams give no number or too large a one, so use it for progress output only.
        self.frames = max(int(self._capture.get(cv2.CAP_PROP_FRAME_COUNT)), 0)
        if self.width * self.height > MAX_PICTURE_PIXELS:
            self._capture.release()
            raise RangeError(
                "the number of pixels of a frame",
                self.width * self.height,
                high=MAX_PICTURE_PIXELS,
                where=f"{self._role} {source}",
                remedy="make the frames smaller first",
            )

    def _read(self) -> Pixels | None:
        """Return the next frame, uint8 ``(height, width, 3)`` with red first, or None after the last."""
        success, frame = self._capture.read()
        return rgb(frame) if success else None

    def close(self) -> None:
        """Release the camera or the file."""
        self._capture.release()

    def __enter__(self: Self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class Video(_Capture):
    """An iterable of every frame of a video file in order, uint8 ``(height, width, 3)``, red first.

    Attributes:
        width: Width of a frame in pixels.
        height: Height of a frame in pixels.
        frames_per_second: Rate according to the file.

    Raises:
        MissingToolError: OpenCV is not installed.
        FileAccessError: OpenCV cannot read the file.
        RangeError: A frame has more than ``MAX_PICTURE_PIXELS`` pixels.
    """

    _role, _advice = "video file", "check that it is a video file, and complete"

    def __init__(self, path: Path | str) -> None:
        if not Path(path).is_file():
            raise FileAccessError(str(path), "does not exist", self._role, remedy="name a video file")
        super().__init__(path)

    def __iter__(self) -> Iterator[Pixels]:
        while (frame := self._read()) is not None:
            yield frame


class Camera(_Capture):
    """An iterable of the newest frames of a camera, uint8 ``(height, width, 3)``, red first.

    A thread reads the camera and keeps only the newest frame. Each frame is yielded once, and frames that were not
    taken in time are dropped. The iteration ends after the camera's last frame, or by ``close``.

    Args:
        source: The camera's number (0 is /dev/video0), its device file, or the address of a stream.

    Raises:
        MissingToolError: OpenCV is not installed.
        FileAccessError: OpenCV cannot open the camera.
    """

    live = True
    _role = "camera"
    _advice = "check that it is connected, that no other program uses it, and that you may read /dev/video*"

    def __init__(self, source: int | str | Path = 0) -> None:
        super().__init__(source)
        self._changed = threading.Condition()
        self._newest: Pixels | None = None
        self._ended = False
        self._reader = threading.Thread(target=self._follow, name="camera", daemon=True)
        self._reader.start()

    def __iter__(self) -> Iterator[Pixels]:
        while (frame := self._take()) is not None:
            yield frame

    def close(self) -> None:
        """End the iteration, wait for the frame that is being read, and release the camera."""
        with self._changed:
            self._ended, self._newest = True, None
            self._changed.notify_all()
        self._reader.join()
        super().close()

    def _follow(self) -> None:
        try:
            while not self._ended and (frame := self._read()) is not None:
                with self._changed:
                    self._newest = None if self._ended else frame
                    self._changed.notify_all()
        finally:
            with self._changed:
                self._ended = True
                self._changed.notify_all()

    def _take(self) -> Pixels | None:
        with self._changed:
            self._changed.wait_for(lambda: self._newest is not None or self._ended)
            frame, self._newest = self._newest, None
            return frame


def record(results: Iterable[Result], path: Path | str, frames_per_second: float = RATE) -> Iterator[Result]:
    """Yield a stream's results unchanged, and write each drawn frame into a video file.

    The file is written next to ``path``, and replaces it when the iteration ends, even early.

    Args:
        results: The results. All pictures must have the size of the first, else MismatchError is raised.
        path: An .mp4 or .avi file.
        frames_per_second: Playback rate.

    Raises:
        FileAccessError, ChoiceError: The file cannot be written.
    """
    file = Path(path)
    check_video(file)
    return _recorded(results, file, frames_per_second)


def check_video(file: Path) -> None:
    """Raise ChoiceError or FileAccessError if ``record`` would refuse the file. Call it before long work."""
    if file.suffix.lower() not in CODECS:
        raise ChoiceError("the suffix of a video file to write", file.suffix, tuple(CODECS), where=str(file))
    try:
        check_whole(file)
    except OSError as error:
        reason = f"cannot be written: {error.strerror}"
        raise FileAccessError(str(file), reason, "video file", remedy="choose another file") from error


def _recorded(results: Iterable[Result], file: Path, frames_per_second: float) -> Iterator[Result]:
    with staging_folder(place_of(file)) as folder:
        recording = _Recording(file, folder / file.name, frames_per_second)
        try:
            for result in results:
                recording.add(np.asarray(result.draw()), result.index)
                yield result
        finally:
            recording.close()


class _Recording:
    """A video file that is being recorded. It is written as ``partial`` and then renamed. The first frame sets its
    size."""

    def __init__(self, file: Path, partial: Path, frames_per_second: float) -> None:
        self._file, self._partial, self._rate = file, partial, frames_per_second
        self._writer: Any = None
        self._size, self._frames = (0, 0), 0

    def add(self, picture: Pixels, index: int) -> None:
        size = (picture.shape[1], picture.shape[0])
        if self._writer is None:
            self._size, self._writer = size, self._opened(size)
        if size != self._size:
            raise MismatchError(
                f"width and height of frame {index}",
                size,
                self._size,
                where=str(self._file),
                remedy="resize the frames before stream()",
            )
        self._writer.write(picture[..., ::-1].copy())
        self._frames += 1

    def close(self) -> None:
        if self._writer is None:
            return
        self._writer.release()
        if not self._is_whole():
            remedy = "check that the disk is not full"
            raise FileAccessError(str(self._file), "cannot be written completely", "video file", remedy=remedy)
        self._partial.replace(place_of(self._file))

    def _is_whole(self) -> bool:
        """Return whether the written video holds every frame, because OpenCV does not report a frame that it could not
        write."""
        cv2 = _opencv()
        capture = cv2.VideoCapture(str(self._partial))
        try:
            return int(capture.get(cv2.CAP_PROP_FRAME_COUNT)) == self._frames
        finally:
            capture.release()

    def _opened(self, size: tuple[int, int]) -> Any:
        cv2 = _opencv()
        code = cv2.VideoWriter_fourcc(*CODECS[self._file.suffix.lower()])
        writer = cv2.VideoWriter(str(self._partial), code, self._rate, size)
        if not writer.isOpened():
            remedy = "check that its folder exists, and that you may write there"
            raise FileAccessError(str(self._file), "cannot be written by OpenCV", "video file", remedy=remedy)
        return writer


def _opencv() -> Any:
    try:
        return importlib.import_module("cv2")
    except ImportError as error:
        raise MissingToolError(
            "OpenCV",
            "read and write videos",
            remedy="PYNQ images have it (apt install python3-opencv); elsewhere run pip install 'systolic-cnn[video]'",
        ) from error
