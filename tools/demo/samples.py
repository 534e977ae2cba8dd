"""Writes the sample pictures of a built-in network and their truth. Their seeds are not used for training."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

from PIL import Image

from host.whole_file import write_whole
from tools.demo.objects import LABELS
from tools.demo.scenes import LONE, Scene, draw_scene, lone

QUALITY = 92  # of the JPEG files: a higher quality would only store more of the grain


@dataclass(frozen=True)
class Sample:
    """A sample picture.

    Attributes:
        name: Name of the file, without .jpg.
        seed: Seed of the scene.
        width: Width in pixels.
        height: Height in pixels.
        background: A key of backgrounds.KINDS. None: the picture shows one object.
    """

    name: str
    seed: int
    width: int
    height: int
    background: str | None

    def draw(self) -> Scene:
        """Return the sample's scene, which is the same every time."""
        if self.background is None:
            return lone(self.seed, self.width, self.height)
        return draw_scene(self.seed, self.width, self.height, self.background)

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of the classes."""
        return LABELS if self.background is not None else (LONE,)


SAMPLES = {
    "shapes": (
        Sample("hills", 9029, 640, 480, "landscape"),
        Sample("forest", 9018, 640, 480, "landscape"),
        Sample("autumn", 9007, 640, 480, "landscape"),
        Sample("marble", 9210, 640, 480, "noise"),
        Sample("stripes", 9301, 640, 480, "stripes"),
        Sample("tall", 9417, 480, 640, "landscape"),
    ),
    "ultranet-small": (
        Sample("hillside", 9514, 640, 320, None),
        Sample("lake", 9503, 640, 320, None),
        Sample("moss", 9505, 640, 320, None),
    ),
}
"""The samples of each network."""


def truth(sample: Sample, scene: Scene) -> dict[str, object]:
    """Return the truth of one picture. Boxes are x0, y0, x1, y1 in pixels."""
    objects = [
        {"label": sample.labels[int(label)], "box": [round(float(v), 1) for v in box]} for label, *box in scene.truths
    ]
    return {"file": f"{sample.name}.jpg", "width": sample.width, "height": sample.height, "objects": objects}


def write_samples(network: str, folder: Path) -> None:
    """Write a .jpg per sample of the network, and truth.json, a list with an entry per picture."""
    folder.mkdir(parents=True, exist_ok=True)
    drawn = [(sample, sample.draw()) for sample in SAMPLES[network]]
    for sample, scene in drawn:
        picture = BytesIO()
        Image.fromarray(scene.picture).save(picture, "JPEG", quality=QUALITY)
        write_whole(folder / f"{sample.name}.jpg", picture.getvalue())
    text = ",\n".join(json.dumps(truth(sample, scene)) for sample, scene in drawn)
    write_whole(folder / "truth.json", f"[\n{text}\n]\n".encode())


if __name__ == "__main__":
    if len(sys.argv) != 3 or sys.argv[1] not in SAMPLES:
        sys.exit("usage: python -m tools.demo.samples NETWORK FOLDER   (example: shapes cnn/models/shapes/samples)")
    write_samples(sys.argv[1], Path(sys.argv[2]))
