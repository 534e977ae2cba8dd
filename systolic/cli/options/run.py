"""Options of ``systolic run``."""

from __future__ import annotations

from systolic.cli.options.common import CONF, DESIGN, OVERLAP
from systolic.cli.options.form import Form
from systolic.option import Option, path

FORM = Form(
    "systolic run DIR dog.jpg -o boxes.png",
    (
        DESIGN.but(help="Folder of a generated design; pynq drives it if it is installed"),
        Option("picture", type=path, metavar="PICTURE", help="Picture, folder of pictures, video or array (.npy)"),
    ),
    (
        Option(
            "-o",
            "--output",
            type=path,
            metavar="FILE",
            help="Draw boxes into FILE: a picture, a folder, or a video (.mp4, .avi)",
        ),
        CONF,
        OVERLAP,
    ),
)
