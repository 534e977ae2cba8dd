"""Options of ``systolic fold``."""

from __future__ import annotations

from systolic.cli.options.common import (
    BITS,
    BOARD,
    CALIBRATE,
    FIT,
    HIGHEST_CLOCK,
    INPUT_SIZE,
    METHOD,
    MIXED,
    NETWORK,
    REPORT,
    SAVE,
    SHAPES,
)
from systolic.cli.options.form import Form
from systolic.option import HIDDEN, Option
from systolic.styles.arguments import MEMORY_OR_SAVED, SHARE_ARGUMENTS
from systolic.styles.streaming.arguments import (
    ATTEMPTS,
    DEADLINE,
    EFFORT,
    ESTIMATED_FIFOS,
    EXTERNAL,
    FOLDING,
    FPS,
    MAX_PADDING,
    MAX_PIXELS,
    PAD_ENDS,
    SOFTMAX,
)

FORM = Form(
    "systolic fold ultranet --board ultra96-v2 --fps 2000 --compare",
    (NETWORK,),
    (
        BOARD.but(default="ultra96-v2"),
        FPS,
        HIGHEST_CLOCK,
        BITS,
        INPUT_SIZE,
        FOLDING,
        Option("--compare", action="store_true", help="Run all searches and compare them"),
        EXTERNAL,
        SAVE,
        REPORT,
    ),
    (
        DEADLINE,
        EFFORT,
        ATTEMPTS,
        MAX_PADDING,
        MAX_PIXELS,
        PAD_ENDS,
        SOFTMAX,
        ESTIMATED_FIFOS.but(HIDDEN),  # nothing is traced here
        MIXED,
        CALIBRATE.but(help="With --mixed: measure ranges on these pictures (default: the samples)"),
        METHOD,
        FIT,
        *SHAPES,
        *MEMORY_OR_SAVED,
        *SHARE_ARGUMENTS,
    ),
)
