"""Options of ``systolic boards``."""

from __future__ import annotations

from systolic.cli.options.form import Form
from systolic.option import Option

FORM = Form(
    "systolic boards zcu104",
    (
        Option(
            "board", nargs="?", metavar="BOARD", complete="board", help="Board or board file (.toml) to show in full"
        ),
    ),
)
