"""Many pictures through the host code, on the board, a simulated one or by the simulation library alone; and the
traced time that a simulated board can take."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from boards.errors import HostError
from host import Options
from host.pipeline import Measured
from host.simulated.pace import CYCLES
from host.vision.frame import Result
from host.whole_file import write_whole
from systolic.execution.detection import detector_of
from systolic.styles.style import CycleReport

ENDINGS = (".jpg", ".jpeg", ".png", ".bmp", ".gif", ".ppm", ".tif", ".tiff", ".webp")


@dataclass(frozen=True, eq=False)
class Frames:
    """The results of the pictures in ``paths``, and what they took."""

    paths: tuple[Path, ...]
    results: tuple[Result, ...]
    measured: Measured


def pictures_in(folder: Path) -> tuple[Path, ...]:
    """The pictures of a folder in the order of their names; HostError where there are none."""
    found = tuple(sorted(path for path in folder.iterdir() if path.suffix.lower() in ENDINGS))
    if not found:
        raise HostError(
            f"{folder} holds no picture ({', '.join(ENDINGS)}); name a folder of pictures or of video frames"
        )
    return found


def run_frames(
    design: Path,
    pictures: Path,
    threshold: float,
    overlap: float,
    output: Path | None = None,
    progress: Callable[[str], None] = lambda _: None,
) -> Frames:
    """Streams a folder of pictures; writes each with its boxes into ``output``. HostError as of ``detector_of``."""
    paths = pictures_in(pictures)
    results: list[Result] = []
    if output is not None:
        _make(output)
    with detector_of(design, Options(threshold=threshold, overlap=overlap), tell=progress) as detector:
        for result in detector.stream(paths):
            progress(f"picture {result.index + 1} of {len(paths)}")
            results.append(result)
            if output is not None:
                result.save(output / f"{paths[result.index].stem}.png")
        return Frames(paths, tuple(results), detector.measured)


def _make(output: Path) -> None:
    try:
        output.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise HostError(f"{output} cannot be made: {error.strerror}; choose another -o FOLDER") from error


def save_cycles(design: Path, report: CycleReport) -> Path | None:
    """Keeps the traced cycles of each pass beside the manifest, for the simulated board's ``time_scale``.

    None where the folder cannot be written, which hinders nothing else.
    """
    path = design / CYCLES
    text = json.dumps({"pass_cycles": report.pass_cycles}) + "\n"
    try:
        write_whole(path, text.encode())
    except OSError:
        return None
    return path
