"""Options of ``systolic pareto``."""

from __future__ import annotations

from systolic.cli.options.common import ARRAY, BITS, BOARD, HIGHEST_CLOCK, INPUT_SIZE, NETWORK, REPORT, SHAPES
from systolic.cli.options.form import Form
from systolic.option import Option, path
from systolic.styles.arguments import SHARE_ARGUMENTS, memory_arguments
from systolic.styles.systolic.arguments import BATCH, DSP_ARGUMENTS, SEARCHED_ENGINE

FORM = Form(
    "systolic pareto tiny-yolov2-voc --board zcu104 --clock 300 --picture front.png",
    (NETWORK,),
    (
        BOARD,
        HIGHEST_CLOCK,
        BITS,
        ARRAY,
        INPUT_SIZE,
        Option("--picture", type=path, metavar="FILE", help="Draw the front as .png, .svg or .pdf"),
        REPORT,
    ),
    (BATCH, SEARCHED_ENGINE, *DSP_ARGUMENTS, *memory_arguments(), *SHAPES, *SHARE_ARGUMENTS),
)
