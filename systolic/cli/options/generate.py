"""Options of ``systolic generate``."""

from __future__ import annotations

from systolic.choices import STYLES
from systolic.cli.options.common import (
    BITS,
    BOARD,
    CALIBRATE,
    CUT,
    HIGHEST_CLOCK,
    INPUT_SIZE,
    NAMES,
    NETWORK,
    PASS,
    PREPROCESSING,
    QUANTISING,
    SEED,
    WEIGHTS,
)
from systolic.cli.options.form import Form
from systolic.option import Option, path
from systolic.styles.arguments import MEMORY_OR_SAVED, SHARE_ARGUMENTS
from systolic.styles.streaming import arguments as streaming
from systolic.styles.systolic import arguments as systolic

FORM = Form(
    "systolic generate yolo.cfg --weights yolo.weights --names voc.names --calibrate a.jpg b.jpg -o DIR",
    (NETWORK,),
    (
        Option("-o", "--output", type=path, metavar="DIR", help="Write the design to DIR, a new folder"),
        WEIGHTS,
        NAMES,
        BOARD,
        CALIBRATE,
        BITS,
        Option(
            "--style",
            metavar="STYLE",
            default=next(iter(STYLES)),
            choices=STYLES,
            help="Build a systolic array or a streaming pipeline (default: %(default)s)",
        ),
        HIGHEST_CLOCK.but(help="Set the target clock (default: the best for the array or pipeline)"),
        INPUT_SIZE,
        Option("--force", action="store_true", help="Replace a design that is in DIR already"),
    ),
    (
        SEED,
        CUT,
        *PREPROCESSING,
        *QUANTISING,
        PASS,
        *MEMORY_OR_SAVED,
        *SHARE_ARGUMENTS,
    ),
    {"systolic style": systolic.ARGUMENTS, "streaming style": streaming.ARGUMENTS},
)
