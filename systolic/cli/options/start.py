"""Options of the commands to start with: ``demo``, ``networks`` and ``boards``."""

from __future__ import annotations

from systolic.choices import STYLES
from systolic.cli.options.common import BOARD
from systolic.cli.options.form import Form
from systolic.option import Option, path

DEMO = Form(
    "systolic demo --style streaming -o my-demo",
    first=(
        Option(
            "-o",
            "--output",
            type=path,
            default="systolic-demo",
            metavar="DIR",
            help="Write the accelerator and the picture with its boxes to DIR (default: %(default)s)",
        ),
        Option(
            "--style",
            metavar="STYLE",
            default=next(iter(STYLES)),
            choices=STYLES,
            help="Build an array (systolic) or a pipeline (streaming) (default: %(default)s)",
        ),
        BOARD,
    ),
)


NETWORKS = Form("systolic networks")


BOARDS = Form(
    "systolic boards zcu104",
    (
        Option(
            "board",
            nargs="?",
            metavar="BOARD",
            complete="board",
            help="Board name or board file (.toml) whose facts are shown",
        ),
    ),
)

FORMS = {"demo": DEMO, "networks": NETWORKS, "boards": BOARDS}
