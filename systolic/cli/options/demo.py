"""Options of ``systolic demo``."""

from __future__ import annotations

from systolic.choices import STYLES
from systolic.cli.options.common import BOARD
from systolic.cli.options.form import Form
from systolic.option import Option, path

FORM = Form(
    "systolic demo --style streaming -o my-demo",
    first=(
        Option(
            "-o",
            "--output",
            type=path,
            default="systolic-demo",
            metavar="DIR",
            help="Write accelerator and picture to DIR (default: %(default)s)",
        ),
        Option(
            "--style",
            metavar="STYLE",
            default=next(iter(STYLES)),
            choices=STYLES,
            help="Show a systolic array or a streaming pipeline (default: %(default)s)",
        ),
        BOARD,
    ),
)
