"""A picture through the executed design to boxes, or to classes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from html import escape
from io import BytesIO
from pathlib import Path
from typing import Any

from PIL import Image

from cnn.integer_model import run_integer
from host import Options
from host.vision.channels import load_frame, network_input
from host.vision.detection import OVERLAP, THRESHOLD, Detection, Score
from host.vision.drawing import draw, save_picture
from host.vision.picture import Pixels
from host.vision.placement import Placement
from systolic.execution.build import Variant
from systolic.execution.detection import detector_of
from systolic.execution.simulation import Simulation, compared
from systolic.report.tables import Cell, table
from systolic.styles.style import OpenedDesign


@dataclass(frozen=True, eq=False)
class Run:
    """picture: uint8 [height, width, 3]. detections: in its pixels, clipped to its edges. labels: of the classes.
    simulation: of the layers whose maps the host reads. scores: of a classifier, the most probable classes."""

    picture: Pixels
    detections: tuple[Detection, ...]
    simulation: Simulation
    labels: tuple[str, ...] = ()
    scores: tuple[Score, ...] = ()

    @property
    def mismatches(self) -> int:
        """Integers of all layers that differ from the golden model."""
        return self.simulation.mismatches

    def draw(self) -> Image.Image:
        """The picture with its boxes, or its classes; a notebook shows it."""
        return Image.fromarray(draw(self.picture, self.detections, self.labels, self.scores))

    def save(self, path: Path | str) -> None:
        """By the file's ending. HostError where it cannot be written."""
        save_picture(self.draw(), Path(path))

    def values(self) -> dict[str, Any]:
        """{width, height, detections: [{label, probability, box: [x0, y0, x1, y1]}], mismatches}, of a classifier
        classes: [{label, probability}] instead of detections."""
        height, width = self.picture.shape[:2]
        answer = seen_values(self.detections, self.scores)
        return {"width": width, "height": height, **answer, "mismatches": self.mismatches}

    def text(self) -> str:
        """A table for a terminal."""
        if self.scores:
            return table(("class", "probability"), [[score.label, score.probability] for score in self.scores])
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
        answers: tuple[Detection | Score, ...] = (*self.detections, *self.scores)
        names = ", ".join(f"{escape(answer.label)} {answer.probability:.1%}" for answer in answers)
        return f'<img src="data:image/png;base64,{picture}"><p>{names or "no object found"}</p>'


def seen_values(detections: tuple[Detection, ...], scores: tuple[Score, ...]) -> dict[str, Any]:
    """{detections} or, of a classifier, {classes}: a JSON object each."""
    if not scores:
        return {"detections": detection_values(detections)}
    return {"classes": [{"label": score.label, "probability": round(score.probability, 4)} for score in scores]}


def detection_values(detections: tuple[Detection, ...]) -> list[dict[str, Any]]:
    """A JSON object a detection; boxes in pixels of the picture."""
    return [
        {
            "label": answer.label,
            "probability": round(answer.probability, 4),
            "box": [round(edge, 1) for edge in answer.box],
        }
        for answer in detections
    ]


def fit_picture(design: OpenedDesign, picture: Pixels) -> tuple[Pixels, Placement]:
    """uint8 [channels, height, width] at the size and with the fit that the design was generated for."""
    return network_input(picture, design.manifest.input.shape, design.manifest.fit)


def run(
    design: OpenedDesign,
    picture: Path | Pixels,
    threshold: float = THRESHOLD,
    overlap: float = OVERLAP,
    variant: Variant | None = None,
    progress: Callable[[str], None] = lambda _: None,
) -> Run:
    """One picture, a file or uint8 [height, width, 3], through the host's own code, and what the host reads compared
    with the golden model.

    HostError where the network has no head and is no classifier, PictureError for a file that is no picture.
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
    return Run(result.picture, result.detections, simulation, tuple(manifest.labels), result.scores)
