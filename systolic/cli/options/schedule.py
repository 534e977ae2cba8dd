"""Options of ``systolic schedule``."""

from __future__ import annotations

from systolic.cli.options.common import (
    ARRAY,
    BEST_CLOCK,
    BITS,
    BOARD,
    DASK,
    HELD_RATE,
    INPUT_SIZE,
    NETWORK,
    OBJECTIVE,
    ORDER,
    REPORT,
    SAVE,
    SHAPES,
    WORKERS,
)
from systolic.cli.options.form import Form
from systolic.option import Option, path, whole
from systolic.styles.arguments import MEMORY_OR_SAVED, SHARE_ARGUMENTS
from systolic.styles.systolic.arguments import BATCH, PINS, SEARCHED_ENGINE

FORM = Form(
    "systolic schedule tiny-yolov2-voc --board zcu104 --clock 300 --array 13x16x16",
    (NETWORK,),
    (
        BOARD,
        BEST_CLOCK,
        BITS,
        ARRAY,
        INPUT_SIZE,
        OBJECTIVE,
        HELD_RATE,
        Option("--schedule", type=path, metavar="FILE", help="Price this saved schedule instead of searching"),
        SAVE,
        REPORT,
    ),
    (
        BATCH,
        SEARCHED_ENGINE,
        *SHAPES,
        *MEMORY_OR_SAVED,
        *SHARE_ARGUMENTS,
        WORKERS,
        DASK,
    ),
    {
        "pinned numbers of the array": (
            ORDER,
            *(
                Option(f"--{name.replace('_', '-')}", type=whole, metavar="N", help=f"Pin {meaning}")
                for name, meaning in PINS.items()
            ),
        )
    },
)
