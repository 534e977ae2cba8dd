"""A picture through the executed design to boxes, or to classes.

``detector_of`` is the one way of pictures through a design, one of them or many: the host's detector over the freshly
built library. If pynq is installed, the accelerator runs under it, on the board or a simulated one; otherwise the
simulation library is executed by itself.
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
from host.vision.detection import OVERLAP, THRESHOLD, Detection, Score
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
    tell: Progress = silent,
) -> Detector:
    """A detector on a generated folder, compiled first; to be closed.

    variant: another than the native library is executed on a simulated board, or by itself, and never on a board.
    """
    library = build(folder, variant, tell)
    return open_detector(
        folder, options if replace(variant, quick=False) == Variant() else replace(options, library=library)
    )


HEADLESS = "no head to decode: these are the values of the last layers; -o FILE.npz writes them, by these names"


@dataclass(frozen=True, eq=False)
class Run:
    """simulation: of the layers whose maps the host reads. result: as the host decoded it, whatever head there is."""

    result: Result
    simulation: Simulation

    @property
    def picture(self) -> Pixels:
        """uint8 [height, width, 3]."""
        return self.result.picture

    @property
    def detections(self) -> tuple[Detection, ...]:
        """In pixels of the picture, clipped to its edges."""
        return self.result.detections

    @property
    def scores(self) -> tuple[Score, ...]:
        """Of a classifier, the most probable classes."""
        return self.result.scores

    @property
    def mismatches(self) -> int:
        """Integers of all layers that differ from the golden model."""
        return self.simulation.mismatches

    def draw(self) -> Image.Image:
        """The picture with its answer drawn in; a notebook shows it."""
        return self.result.draw()

    def save(self, path: Path | str) -> None:
        """Write the answer in the format of the file's ending, .npz for the values of the network's outputs. Raises the
        errors of ``Result.save``."""
        self.result.save(path)

    def values(self) -> dict[str, Any]:
        """{width, height, detections: [{label, probability, box: [x0, y0, x1, y1]}], tensors, mismatches}; instead of
        detections what ``seen_values`` says of another network, and tensors as ``tensor_values`` has them."""
        height, width = self.picture.shape[:2]
        seen = {**seen_values(self.result), "tensors": tensor_values(self.result)}
        return {"width": width, "height": height, **seen, "mismatches": self.mismatches}

    def text(self) -> str:
        """A table for a terminal."""
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
    """{detections}; of a classifier {classes: [{label, probability}]}, of labels that the accelerator chose {classes:
    [{label}]}, each with its value where that leaves, of a segmentation {segments: [{label, share}]},
    of a network without a head {tensors}, as ``tensor_values`` has them."""
    if result.headless:
        return {"tensors": tensor_values(result)}
    if result.scores:
        return {"classes": [_score_values(score) for score in result.scores]}
    if result.segmentation is not None:
        parts = result.segmentation.segments
        return {"segments": [{"label": part.label, "share": round(part.share, 4)} for part in parts]}
    return {"detections": detection_values(result.detections)}


def _classes(scores: Sequence[Score]) -> str:
    """A table for a terminal, with what is known of each."""
    columns: list[tuple[str, list[Cell]]] = [("class", [score.label for score in scores])]
    columns += [("probability", [score.probability for score in scores])] * (scores[0].probability is not None)
    columns += [("value", [score.value for score in scores])] * (scores[0].value is not None)
    names, cells = zip(*columns, strict=True)
    return table(names, list(zip(*cells, strict=True)))


def _score_values(score: Score) -> dict[str, Any]:
    numbers = {"probability": score.probability, "value": score.value}
    return {"label": score.label, **{name: round(value, 4) for name, value in numbers.items() if value is not None}}


MOST_VALUES = 256
"""Of a tensor that JSON lists them of; a larger one is written as .npz."""


def tensor_values(result: Result) -> list[dict[str, Any]]:
    """An object an output of the network, {name, sides, least, greatest}; of at most MOST_VALUES also values: a list of
    all, those along the last side one after the other."""
    return [_tensor_values(name, array) for name, array in result.tensors.items()]


def _tensor_values(name: str, array: npt.NDArray[Any]) -> dict[str, Any]:
    few = array.size <= MOST_VALUES
    return {
        "name": name,
        "sides": "×".join(map(str, array.shape)),
        "least": round(float(array.min()), 4),
        "greatest": round(float(array.max()), 4),
        **({"values": [_short(value) for value in array.ravel().tolist()]} if few else {}),
    }


def _short(value: float) -> float:
    """With the digits that a float32 has."""
    return value if isinstance(value, int) else float(f"{value:.8g}")


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
    progress: Progress = silent,
) -> Run:
    """One picture, a file or uint8 [height, width, 3], through the host's own code, and what the host reads compared
    with the golden model.

    Raises the errors of ``load_frame`` for a file that is not a picture.
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
