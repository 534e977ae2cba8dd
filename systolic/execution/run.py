"""A picture through the executed design to boxes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from PIL import Image

from boards.errors import HostError
from cnn.integer_model import Integers
from host.contract.tensors import to_floats
from host.vision.detection import OVERLAP, THRESHOLD, Detection, detect
from host.vision.drawing import draw
from host.vision.picture import FITS, Pixels, load_picture
from host.vision.placement import Placement
from systolic.execution.build import Variant
from systolic.execution.simulation import Simulation
from systolic.styles.style import Opened, execute


@dataclass(frozen=True, eq=False)
class Run:
    """picture: uint8 [height, width, 3]. detections: in its pixels, clipped to its edges."""

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
    """Executes the design on one picture and decodes its heads. HostError where it has none."""
    if not folder.manifest.heads:
        raise HostError(
            f"{folder.manifest.network} has no detection head to decode; systolic simulate shows its layers"
        )
    picture = load_picture(path)
    pixels, placement = fit_picture(folder, picture)
    simulation = execute(folder, pixels, variant or Variant(), progress)
    found = decode(folder, simulation.outputs, placement, threshold, overlap)
    height, width = picture.shape[:2]
    return Run(picture, tuple(one.clipped(width, height) for one in found), simulation)


def decode(
    folder: Opened,
    outputs: tuple[Integers, ...],
    placement: Placement,
    threshold: float = THRESHOLD,
    overlap: float = OVERLAP,
) -> tuple[Detection, ...]:
    """Boxes from the integers of every layer, by the heads of the manifest."""
    manifest = folder.manifest
    heads = [one.head for one in manifest.heads]
    values = [to_floats(manifest.layers[one.layer].output, outputs[one.layer]) for one in manifest.heads]
    return detect(values, heads, placement, manifest.labels, threshold, overlap)


def save_annotated(result: Run, labels: Sequence[str], path: Path) -> None:
    """The picture with its boxes, as PNG or by the file's ending. HostError where it cannot be written."""
    try:
        Image.fromarray(draw(result.picture, result.detections, labels)).save(path)
    except (OSError, ValueError) as error:
        raise HostError(f"{path} cannot be written: {error}; choose another -o FILE.png") from error
