"""A picture through the executed design to boxes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from PIL import Image

from boards.errors import HostError
from cnn.integer_model import run_integer
from host import Options
from host.vision.detection import OVERLAP, THRESHOLD, Detection
from host.vision.drawing import draw
from host.vision.picture import FITS, Pixels
from host.vision.placement import Placement
from systolic.execution.build import Variant
from systolic.execution.detection import detector_of
from systolic.execution.simulation import Simulation, compared
from systolic.styles.style import Opened


@dataclass(frozen=True, eq=False)
class Run:
    """picture: uint8 [height, width, 3]. detections: in its pixels, clipped to its edges. simulation: of the layers
    whose maps the host reads."""

    picture: Pixels
    detections: tuple[Detection, ...]
    simulation: Simulation


def fit_picture(folder: Opened, picture: Pixels) -> tuple[Pixels, Placement]:
    """uint8 [channels, height, width] at the size and with the fit that the design was generated for."""
    to = folder.manifest.input
    return FITS[folder.manifest.fit](picture, to.height, to.width)


def run(
    folder: Opened,
    path: Path,
    threshold: float = THRESHOLD,
    overlap: float = OVERLAP,
    variant: Variant | None = None,
    progress: Callable[[str], None] | None = None,
) -> Run:
    """One picture through the host's own code, and what the host reads compared with the golden model.

    HostError where the network has no head, PictureError for a file that is no picture.
    """
    tell, built = progress or (lambda _: None), variant or Variant()
    with detector_of(folder.path, Options(threshold=threshold, overlap=overlap), built, tell) as detector:
        tell("executing")
        result = detector.detect(path)
    tell("golden model")
    golden = run_integer(folder.network, fit_picture(folder, result.picture)[0])
    layers = [folder.manifest.layers[index] for index in folder.manifest.output_layers]
    return Run(result.picture, result.detections, compared(golden, layers, result.outputs, built))


def save_annotated(result: Run, labels: Sequence[str], path: Path) -> None:
    """The picture with its boxes, as PNG or by the file's ending. HostError where it cannot be written."""
    try:
        Image.fromarray(draw(result.picture, result.detections, labels)).save(path)
    except (OSError, ValueError) as error:
        raise HostError(f"{path} cannot be written: {error}; choose another -o FILE.png") from error
