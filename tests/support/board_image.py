"""A program for an environment like a board's image: the installed wheel, numpy and Pillow, without pynq."""

from __future__ import annotations

import json
import sys
import tempfile
import zlib
from pathlib import Path

import numpy as np
import PIL

import host.accelerator
import host.pipeline
import host.vision.drawing
import host.vision.frame
from boards.errors import SystolicError
from host.check import check_picture, golden_maps
from host.contract.manifest import of_style, read_manifest
from host.contract.parts import read_data_file
from host.contract.systolic import SystolicManifest
from host.contract.tensors import to_floats
from host.designs import find_design, installed
from host.opened import open_executed
from host.options import Options
from host.vision.detection import detect
from host.vision.picture import FITS, load_picture, resize


def decoded(folder: Path) -> list[list[object]]:
    """Return label, probability and box of each object in the golden model's output for the design's test frame."""
    manifest = of_style(SystolicManifest, read_manifest(folder))
    picture = check_picture(manifest, folder).transpose(1, 2, 0)
    pixels, placement = resize(picture, manifest.input.height, manifest.input.width)
    assert (pixels.transpose(1, 2, 0) == picture).all()
    maps = list(golden_maps(manifest, folder))
    values = [to_floats(manifest.layers[one.layers[0]].output, maps[one.layers[0]]) for one in manifest.heads]
    heads = [one.head for one in manifest.heads]
    found = detect(values, heads, placement, manifest.labels, 0.01, 0.5)
    return [[one.label, round(one.probability, 9), *(round(float(side), 6) for side in one.box)] for one in found]


def seen(folder: Path) -> dict[str, object]:
    """Return checksums of the simulation library's outputs, of every fit and of the drawing for one image."""
    noise = np.random.default_rng(1).integers(0, 256, (90, 120, 3), np.uint8)
    with open_executed(folder, Options(threshold=0.2)) as detector:
        result = detector.detect(noise)
    boxes = [
        [one.label, round(one.probability, 9), *(round(float(side), 6) for side in one.box)]
        for one in result.detections
    ]
    with tempfile.TemporaryDirectory() as work:
        result.save(Path(work) / "drawn.png")
        drawn = load_picture(Path(work) / "drawn.png")
    return {
        "boxes": boxes,
        "outputs": [zlib.crc32(integers.tobytes()) for integers in result.outputs],
        "fits": {name: zlib.crc32(fit(noise, 47, 60)[0].tobytes()) for name, fit in FITS.items()},
        # The font of the labels differs between systems, so that the image has no checksum.
        "drawn": len(boxes) > 0 and drawn.shape == noise.shape and bool((drawn != noise).any()),
    }


def main() -> None:
    folder = installed()["tiny"]
    manifest = read_manifest(folder)
    for image in manifest.files:
        read_data_file(find_design(), image)
    try:
        host.Accelerator("tiny")
    except SystolicError as error:
        said = str(error)
    else:
        raise SystemExit("pynq is installed; run this program without it")
    rooms = sorted({name.split(".")[0] for name in sys.modules} & {"cnn", "scheduler", "systolic", "hls_templates"})
    versions = [list(sys.version_info[:2]), np.__version__, PIL.__version__]
    answers = {"said": said, "decoded": decoded(folder), "rooms": rooms, "seen": seen(Path(sys.argv[1]))}
    print(json.dumps(answers | {"versions": versions}))


if __name__ == "__main__":
    main()
