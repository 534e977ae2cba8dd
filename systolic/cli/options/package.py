"""Options of ``systolic package``."""

from __future__ import annotations

from systolic.cli.options.common import DESIGN
from systolic.cli.options.form import Form
from systolic.option import Option, path

FORM = Form(
    "systolic package DIR -o dist",
    (DESIGN.but(help="Folder of a generated design with its bitstream"),),
    (
        Option(
            "-o",
            "--output",
            type=path,
            default=".",
            metavar="DIR",
            help="Write the wheel to DIR (default: this folder)",
        ),
        Option(
            "--without-bitstream",
            action="store_true",
            help="Package the simulation library, for this kind of machine",
        ),
    ),
)
