"""Writes scenes as a folder of pictures and labels in darknet's layout, for training and evaluation."""

from __future__ import annotations

import sys
from collections.abc import Callable
from io import BytesIO
from pathlib import Path

from PIL import Image

from host.whole_file import write_whole
from tools.demo.scenes import Scene, letterboxed, lone
from tools.parser import Parser

EXAMPLE = "example: python -m tools.demo.folders /tmp/scenes --count 2000 --first 30000000"
SIZE = 160
"""Height and width of a picture, the input of ``shapes``. For one object the width, the input of ``ultranet-small``."""
QUALITY = 95  # of the JPEG files


KINDS: dict[str, Callable[[int, int], Scene]] = {
    "shapes": letterboxed,
    "one-object": lambda seed, size: lone(seed, size, size // 2),
}
"""Draws a scene from its seed and size: several objects in a square, or a small one in a picture of half the height."""


def write_scenes(folder: Path, first_seed: int, count: int, size: int = SIZE, kind: str = "shapes") -> None:
    """Write SEED.jpg and SEED.txt for ``count`` scenes of a kind, ``size`` pixels wide. Existing files are kept."""
    folder.mkdir(parents=True, exist_ok=True)
    for seed in range(first_seed, first_seed + count):
        if not (folder / f"{seed}.txt").is_file():
            scene, picture = KINDS[kind](seed, size), BytesIO()
            Image.fromarray(scene.picture).save(picture, "JPEG", quality=QUALITY)
            write_whole(folder / f"{seed}.jpg", picture.getvalue())
            write_whole(folder / f"{seed}.txt", label_lines(scene).encode())


def label_lines(scene: Scene) -> str:
    """Return a line per object: class, then centre x, y, width and height as fractions of the picture's sides."""
    height, width = scene.picture.shape[:2]
    lines = []
    for label, x0, y0, x1, y1 in scene.truths.tolist():
        box = ((x0 + x1) / 2 / width, (y0 + y1) / 2 / height, (x1 - x0) / width, (y1 - y0) / height)
        lines.append(" ".join([str(int(label)), *(f"{value:.6f}" for value in box)]))
    return "".join(f"{line}\n" for line in lines)


def main(arguments: list[str] | None = None) -> int:
    """Run the command line."""
    parser = Parser("python -m tools.demo.folders", description=__doc__, epilog=EXAMPLE)
    parser.add_argument("folder", type=Path, help="output folder")
    parser.add_argument("--count", type=int, default=2000, help="number of scenes (%(default)s)")
    parser.add_argument("--first", type=int, default=30_000_000, help="seed of the first scene (%(default)s)")
    parser.add_argument("--size", type=int, default=SIZE, help="width of a scene in pixels (%(default)s)")
    parser.add_argument(
        "--kind", choices=tuple(KINDS), default="shapes", help="kind of objects in the scenes (%(default)s)"
    )
    options = parser.parse_args(sys.argv[1:] if arguments is None else arguments)
    write_scenes(options.folder, options.first, options.count, options.size, options.kind)
    return 0


if __name__ == "__main__":
    sys.exit(main())
