"""Runs an image through an executed design, and decodes its outputs to boxes or classes.

Every command that runs images through a design uses ``detector_of``: the host's detector with the compiled library. If
pynq is installed, the detector uses the accelerator through pynq, on the board or on a simulated board. Otherwise it
executes the simulation library directly.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from html import escape
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy.typing as npt
from PIL import Image

from boards.progress import Progress, silent
from cnn.integer_model import run_integer
from host import Options, open_detector
from host.detector import Detector
from host.vision.channels import load_frame, network_input
from host.vision.detection import IOU_THRESHOLD, THRESHOLD, Detection, Score
from host.vision.frame import Result
from host.vision.picture import Pixels
from host.vision.placement import Placement
from systolic.execution.build import Variant, build
from systolic.execution.simulation import Simulation, compared
from systolic.report.tables import Cell, table
from systolic.styles.style import OpenedDesign


def detector_of(
    folder: Path,
    options: Options = Options(),  # noqa: B008 (frozen)
    variant: Variant = Variant(),  # noqa: B008 (frozen)
    progress: Progress = silent,
) -> Detector:
    """Compile a design's simulation library, and return the host's detector that runs it. The caller closes it.

    Args:
        folder: The design's folder.
        options: The host's options.
        variant: The variant of the library. Variants other than the native one never run on a real board.
    """
    library = build(folder, variant, progress)
    return open_detector(
        folder, options if replace(variant, quick=False) == Variant() else replace(options, library=library)
    )


HEADLESS = "no head to decode: these are the outputs of the last layers; -o FILE.npz writes them under these names"


@dataclass(frozen=True, eq=False)
class Run:
    """The result of one image: boxes or classes, and the output mismatches with the golden model.

    Attributes:
        result: The result as the host decoded it.
        simulation: The layers whose feature maps the host reads, compared with the golden model.
    """

    result: Result
    simulation: Simulation

    @property
    def picture(self) -> Pixels:
        """The image, uint8 of shape (rows, columns, 3)."""
        return self.result.picture

    @property
    def detections(self) -> tuple[Detection, ...]:
        """The boxes in pixels of the image, clipped to its edges."""
        return self.result.detections

    @property
    def scores(self) -> tuple[Score, ...]:
        """The most probable classes of a classifier."""
        return self.result.scores

    @property
    def mismatches(self) -> int:
        """The number of output integers that differ from the golden model."""
        return self.simulation.mismatches

    def draw(self) -> Image.Image:
        """Return the image with its boxes or classes drawn on it."""
        return self.result.draw()

    def save(self, path: Path | str) -> None:
        """Write the result to a file: a drawn image, or for .npz the values of the network's outputs.

        Raises:
            SystolicError: An error of ``Result.save``.
        """
        self.result.save(path)

    def values(self) -> dict[str, Any]:
        """Return the boxes or classes of the image as a JSON object.

        {width, height, detections: [{label, probability, box: [x0, y0, x1, y1]}], tensors, mismatches}. Networks that
        are not detectors have the keys of ``seen_values`` instead of ``detections``. ``tensors`` is the list of
        ``tensor_values``.
        """
        height, width = self.picture.shape[:2]
        seen = {**seen_values(self.result), "tensors": tensor_values(self.result)}
        return {"width": width, "height": height, **seen, "mismatches": self.mismatches}

    def text(self) -> str:
        """Return the boxes, classes or output tensors of the image as a table for a terminal."""
        if self.scores:
            return _classes(self.scores)
        if self.result.segmentation is not None:
            parts = self.result.segmentation.segments
            return table(("class", "share of the picture"), [[part.label, part.share] for part in parts])
        if self.result.headless:
            columns = ("name", "sides", "least", "greatest")
            told = [[entry[column] for column in columns] for entry in tensor_values(self.result)]
            return f"{table(('tensor', *columns[1:]), told)}\n\n{HEADLESS}"
        rows: list[list[Cell]] = [
            [answer.label, answer.probability, *(round(edge) for edge in answer.box)] for answer in self.detections
        ]
        return table(("label", "probability", "x0", "y0", "x1", "y1"), rows) if rows else "no object found"

    __repr__ = text

    def _repr_png_(self) -> bytes:
        data = BytesIO()
        self.draw().save(data, "PNG")
        return data.getvalue()

    def _repr_html_(self) -> str:
        from base64 import b64encode

        picture = b64encode(self._repr_png_()).decode()
        return f'<img src="data:image/png;base64,{picture}"><p>{escape(self.result.summary() or "no object found")}</p>'


def seen_values(result: Result) -> dict[str, Any]:
    """Return the host's result as a JSON object. Its keys depend on the kind of network.

    - A detector: {detections}, the list of ``detection_values``.
    - A classifier: {classes: [{label, probability}]}. If the accelerator chose the labels, there is no probability, and
      ``value`` if the accelerator also outputs the greatest value.
    - A segmentation: {segments: [{label, share}]}.
    - A network without a head: {tensors}, the list of ``tensor_values``.
    """
    if result.headless:
        return {"tensors": tensor_values(result)}
    if result.scores:
        return {"classes": [_score_values(score) for score in result.scores]}
    if result.segmentation is not None:
        parts = result.segmentation.segments
        return {"segments": [{"label": part.label, "share": round(part.share, 4)} for part in parts]}
    return {"detections": detection_values(result.detections)}


def _classes(scores: Sequence[Score]) -> str:
    """Return the most probable classes as a table for a terminal."""
    columns: list[tuple[str, list[Cell]]] = [("class", [score.label for score in scores])]
    columns += [("probability", [score.probability for score in scores])] * (scores[0].probability is not None)
    columns += [("value", [score.value for score in scores])] * (scores[0].value is not None)
    names, cells = zip(*columns, strict=True)
    return table(names, list(zip(*cells, strict=True)))


def _score_values(score: Score) -> dict[str, Any]:
    numbers = {"probability": score.probability, "value": score.value}
    return {"label": score.label, **{name: round(value, 4) for name, value in numbers.items() if value is not None}}


MAX_VALUES = 256
"""The most values of a tensor that the JSON object lists. Larger tensors are available as .npz."""


def tensor_values(result: Result) -> list[dict[str, Any]]:
    """Return {name, sides, least, greatest} of each output tensor of the network.

    An output with at most ``MAX_VALUES`` values also has ``values``, the list of all values in row-major order.
    """
    return [_tensor_values(name, array) for name, array in result.tensors.items()]


def _tensor_values(name: str, array: npt.NDArray[Any]) -> dict[str, Any]:
    few = array.size <= MAX_VALUES
    return {
        "name": name,
        "sides": "×".join(map(str, array.shape)),
        "least": round(float(array.min()), 4),
        "greatest": round(float(array.max()), 4),
        **({"values": [_short(value) for value in array.ravel().tolist()]} if few else {}),
    }


def _short(value: float) -> float:
    """Return the value rounded to the eight significant digits of a float32."""
    return value if isinstance(value, int) else float(f"{value:.8g}")


def detection_values(detections: tuple[Detection, ...]) -> list[dict[str, Any]]:
    """Return {label, probability, box} of each detection, with the box in pixels of the image."""
    return [
        {
            "label": answer.label,
            "probability": round(answer.probability, 4),
            "box": [round(edge, 1) for edge in answer.box],
        }
        for answer in detections
    ]


def fit_picture(design: OpenedDesign, picture: Pixels) -> tuple[Pixels, Placement]:
    """Return an image resized to the design's input, uint8 of shape (channels, rows, columns), and its placement."""
    return network_input(picture, design.manifest.input.shape, design.manifest.fit)


def run(
    design: OpenedDesign,
    picture: Path | Pixels,
    threshold: float = THRESHOLD,
    overlap: float = IOU_THRESHOLD,
    variant: Variant | None = None,
    progress: Progress = silent,
) -> Run:
    """Run one image through a design with the host's code; return its boxes or classes and the output mismatches.

    Args:
        design: The design.
        picture: An image file, or an array, uint8 of shape (rows, columns, 3).
        threshold: The confidence threshold.
        overlap: The IoU threshold of non-maximum suppression.
        variant: The variant of the simulation library. None means the native one.
        progress: Receives the progress.

    Raises:
        SystolicError: An error of ``load_frame`` for a file that is not an image.
    """
    manifest, built = design.manifest, variant or Variant()
    frame = load_frame(picture) if isinstance(picture, Path) else picture
    with detector_of(design.path, Options(threshold=threshold, overlap=overlap), built, progress) as detector:
        progress("executing")
        result = detector.detect(frame)
    progress("golden model")
    golden = run_integer(design.network, fit_picture(design, frame)[0])
    layers = [manifest.layers[index] for index in manifest.output_layers]
    simulation = compared(golden, layers, result.outputs, built)
    return Run(result, simulation)
