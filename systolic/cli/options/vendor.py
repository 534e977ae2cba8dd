"""Options of ``systolic vendor``."""

from __future__ import annotations

from systolic.cli.options.common import DESIGN, REPORT
from systolic.cli.options.form import Form
from systolic.option import Option, path

FORM = Form(
    "systolic vendor DIR --report vendor.html",
    (DESIGN,),
    (
        Option("--reports", type=path, metavar="DIR", help="Read the tools' reports in DIR (default: the design)"),
        Option("--csynth", action="store_true", help="Run C synthesis first; needs Vitis HLS on the PATH"),
        Option("--only", metavar="FUNCTION", help="Synthesise FUNCTION alone, as a top of its own"),
        Option("--derived", action="store_true", help="Also show what systolic check derives for each loop"),
        REPORT.but(help="Write one self-contained HTML file"),
    ),
)
