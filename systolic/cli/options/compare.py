"""Options of ``systolic compare``."""

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
    REPORT,
    SEVERAL,
    SHAPES,
    WORKERS,
)
from systolic.cli.options.form import Form
from systolic.option import Option
from systolic.styles.arguments import SHARE_ARGUMENTS, memory_arguments
from systolic.styles.systolic.arguments import BATCH, DSP_ARGUMENTS, SEARCHED_ENGINE


def several(option: Option, help: str = "") -> Option:
    """Return the option as one that may be given several times."""
    return option.but(f"{help or option.help}; {SEVERAL}", action="append")


GBPS, EFFICIENCY = memory_arguments()

FORM = Form(
    "systolic compare tiny-yolov2-voc --board zcu104 --board zcu102 --array 13x16x16 --report compare.html",
    (NETWORK,),
    (
        several(BOARD.but(default=None), "Compare this board or board file (default: zcu104)"),
        several(ARRAY, "Compare this array, rows × columns × lanes"),
        several(BITS, "Compare these bits of weights and activations"),
        several(BEST_CLOCK, "Compare this clock (default: the best, or the highest)"),
        several(BATCH),
        INPUT_SIZE,
        OBJECTIVE,
        HELD_RATE,
        REPORT,
        WORKERS,
    ),
    (
        SEARCHED_ENGINE,
        *map(several, DSP_ARGUMENTS),
        several(GBPS),
        EFFICIENCY,
        *SHAPES,
        *SHARE_ARGUMENTS,
        DASK,
    ),
)
