"""What runs in an environment like a board's image: the installed wheel, numpy, Pillow, and no pynq."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import host.accelerator
import host.pipeline
import host.vision.drawing
import host.vision.frame
from boards.errors import HostError
from host.check import check_picture, golden_maps
from host.contract.manifest import of_style, read_manifest
from host.contract.parts import read_image
from host.contract.systolic import SystolicManifest
from host.contract.tensors import to_floats
from host.designs import find_design, installed
from host.vision.detection import detect
from host.vision.picture import resize


def decoded(folder: Path) -> list[list[object]]:
    """Label, probability and box of everything in the golden model's output for the design's test frame."""
    manifest = of_style(SystolicManifest, read_manifest(folder))
    picture = check_picture(manifest, folder).transpose(1, 2, 0)
    pixels, placement = resize(picture, manifest.input.height, manifest.input.width)
    assert (pixels.transpose(1, 2, 0) == picture).all()
    maps = list(golden_maps(manifest, folder))
    values = [to_floats(manifest.layers[one.layer].output, maps[one.layer]) for one in manifest.heads]
    heads = [one.head for one in manifest.heads]
    found = detect(values, heads, placement, manifest.labels, 0.01, 0.5)
    return [[one.label, round(one.probability, 9), *(round(float(side), 6) for side in one.box)] for one in found]


def main() -> None:
    folder = installed()["tiny"]
    manifest = read_manifest(folder)
    for image in manifest.files:
        read_image(find_design(), image)
    try:
        host.Accelerator("tiny")
    except HostError as error:
        said = str(error)
    else:
        raise SystemExit("there is a pynq here")
    rooms = sorted({name.split(".")[0] for name in sys.modules} & {"cnn", "scheduler", "systolic", "hls_templates"})
    print(json.dumps({"said": said, "decoded": decoded(folder), "rooms": rooms, "python": sys.version_info[:2]}))


if __name__ == "__main__":
    main()
