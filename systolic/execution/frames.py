"""A folder of images or a video through the host code: on the board, a simulated board, or the simulation library.

``save_cycles`` stores the traced or counted cycles with which a simulated board can reproduce the hardware's time.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from boards.errors import ConflictError, FileAccessError
from boards.progress import Progress, ProgressStep, silent
from host import Options
from host.detector import Detector
from host.simulated.pace import CYCLES
from host.vision.detection import Detection, Score
from host.vision.frame import Measured, Result
from host.vision.video import VIDEOS, Video, check_video, record
from host.whole_file import check_whole, write_whole
from systolic.execution.run import detector_of, seen_values
from systolic.pictures import pictures_in
from systolic.styles.style import Counts
from systolic.trace.report import CycleReport


@dataclass(frozen=True)
class FrameBoxes:
    """The boxes or classes of one image or one video frame. The image itself is not stored.

    Attributes:
        source: The file of the image or video.
        number: The number of the frame in the video, from 0. None for an image.
        width: The width in pixels.
        height: The height in pixels.
        detections: The boxes, in pixels.
        scores: The most probable classes of a classifier.
        seen: The result as the JSON object of ``seen_values``.
    """

    source: Path
    number: int | None
    width: int
    height: int
    detections: tuple[Detection, ...]
    scores: tuple[Score, ...]
    seen: Mapping[str, Any]

    @property
    def name(self) -> str:
        """The name for reports: the image's file name, or the video's file name and the frame's number."""
        return self.source.name if self.number is None else f"{self.source.name} {self.number}"


@dataclass(frozen=True)
class Frames:
    """The boxes of all frames and the measured times. The images are not stored, because there may be many."""

    boxes: tuple[FrameBoxes, ...]
    measured: Measured


def run_frames(
    design: Path,
    source: Path,
    options: Options,
    output: Path | None = None,
    progress: Progress = silent,
) -> Frames:
    """Run each image of a folder, or each frame of a video, through a design, and return the boxes.

    Args:
        design: The design's folder.
        source: The folder of images or the video file.
        options: The host's options.
        output: The folder or video file to which the images are written with their boxes. None writes nothing.
        progress: Receives the progress.

    Raises:
        SystolicError: An error of ``detector_of``, ``Video``, ``record`` or ``pictures_in``.
    """
    stream = _stream_pictures if source.is_dir() else _stream_video
    if output is not None and source.is_dir():
        _check_folder(output, source)
    elif output is not None:
        check_video(output)
    with detector_of(design, options, progress=progress) as detector:
        boxes = tuple(stream(detector, source, output, progress))
        return Frames(boxes, detector.measured)


def is_stream(source: Path) -> bool:
    """Return whether ``source`` is a folder or a video file, and not a single image."""
    return source.is_dir() or source.suffix.lower() in VIDEOS


def _stream_pictures(detector: Detector, folder: Path, output: Path | None, progress: Progress) -> Iterator[FrameBoxes]:
    paths = pictures_in(folder)
    stems = Counter(path.stem for path in paths)
    for result in detector.stream(paths):
        path = paths[result.index]
        done = result.index + 1
        progress(ProgressStep(f"picture {done} of {len(paths)}", done, len(paths)))
        if output is not None:
            result.save(output / f"{path.stem if stems[path.stem] == 1 else path.name}.png")
        yield _boxes(result, path, None)


def _stream_video(detector: Detector, path: Path, output: Path | None, progress: Progress) -> Iterator[FrameBoxes]:
    with Video(path) as video:
        results = detector.stream(video)
        for result in results if output is None else record(results, output, video.frames_per_second):
            number = result.index + 1
            count = video.frames
            progress(ProgressStep(f"frame {number} of {count}", number, count) if count else f"frame {number}")
            yield _boxes(result, path, result.index)


def _boxes(result: Result, source: Path, number: int | None) -> FrameBoxes:
    height, width = result.picture.shape[:2]
    return FrameBoxes(source, number, width, height, result.detections, result.scores, seen_values(result))


def _check_folder(output: Path, source: Path) -> None:
    """Make the output folder. Raise an error if it cannot be written or is the input folder.

    Raises:
        FileAccessError: Images cannot be written to the folder.
        ConflictError: The folder is the folder of the input images.
    """
    remedy = "choose another -o FOLDER"
    try:
        output.mkdir(parents=True, exist_ok=True)
        check_whole(output / "picture.png")
        if output.samefile(source):
            raise ConflictError(
                (f"the folder of pictures {source}", f"the output folder {output}"),
                "the pictures would be replaced",
                remedy=remedy,
            )
    except OSError as error:
        raise FileAccessError(
            str(output), f"cannot be written: {error.strerror}", "output folder", remedy=remedy
        ) from error


def save_cycles(design: Path, report: CycleReport | Counts) -> Path | None:
    """Store the cycles of each pass of the program, so that a simulated board can take as long as the hardware.

    Returns:
        The file, or None if the folder cannot be written, which is not an error.
    """
    path = design / CYCLES
    text = json.dumps({"pass_cycles": report.pass_cycles}) + "\n"
    try:
        write_whole(path, text.encode())
    except OSError:
        return None
    return path
