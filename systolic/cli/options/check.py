"""Options of ``systolic check``."""

from __future__ import annotations

from systolic.cli.options.common import DESIGN
from systolic.cli.options.form import Form
from systolic.option import Option, path, real

FORM = Form(
    "systolic check build/shapes --clock 300",
    (Option("design", type=path, metavar="DIR", complete=DESIGN.complete, help=DESIGN.help),),
    (Option("--clock", type=real, metavar="MHZ", help="Check at this clock (default: the design's)"),),
)
