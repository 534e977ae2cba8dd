"""Write the sample pictures of cnn/models/shapes and their truth; none of their seeds is trained on."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

from PIL import Image

from cnn.training.darknet_files import replace_file
from cnn.training.objects import LABELS
from cnn.training.scenes import Scene, draw_scene

QUALITY = 92  # of the JPEG files: larger than this shows only the grain


@dataclass(frozen=True)
class Sample:
    """A picture NAME.jpg of width × height pixels; background: a key of backgrounds.KINDS."""

    name: str
    seed: int
    width: int
    height: int
    background: str

    def draw(self) -> Scene:
        """Its scene, the same every time."""
        return draw_scene(self.seed, self.width, self.height, self.background)


SAMPLES = (
    Sample("hills", 9029, 640, 480, "landscape"),
    Sample("forest", 9018, 640, 480, "landscape"),
    Sample("autumn", 9007, 640, 480, "landscape"),
    Sample("marble", 9210, 640, 480, "noise"),
    Sample("stripes", 9301, 640, 480, "stripes"),
    Sample("tall", 9417, 480, 640, "landscape"),
)


def truth(sample: Sample, scene: Scene) -> dict[str, object]:
    """The truth of one picture; boxes as x0, y0, x1, y1 in its pixels."""
    objects = [{"label": LABELS[int(label)], "box": [round(float(v), 1) for v in box]} for label, *box in scene.truths]
    return {"file": f"{sample.name}.jpg", "width": sample.width, "height": sample.height, "objects": objects}


def write_samples(folder: Path) -> None:
    """One .jpg a sample, and truth.json, a list with an entry a picture, into ``folder``."""
    folder.mkdir(parents=True, exist_ok=True)
    drawn = [(sample, sample.draw()) for sample in SAMPLES]
    for sample, scene in drawn:
        picture = BytesIO()
        Image.fromarray(scene.picture).save(picture, "JPEG", quality=QUALITY)
        replace_file(folder / f"{sample.name}.jpg", picture.getvalue())
    text = ",\n".join(json.dumps(truth(sample, scene)) for sample, scene in drawn)
    replace_file(folder / "truth.json", f"[\n{text}\n]\n".encode())


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python -m cnn.training.samples FOLDER   (example: cnn/models/shapes/samples)")
    write_samples(Path(sys.argv[1]))
