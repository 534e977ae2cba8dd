"""Options of ``schedule``, ``compare``, ``pareto`` and ``fold``, which search mappings of a network onto a board."""

from __future__ import annotations

from systolic.cli.options.common import (
    ARRAY,
    BEST_CLOCK,
    BITS,
    BOARD,
    CALIBRATE,
    DASK,
    FIT,
    HELD_RATE,
    INPUT_SIZE,
    METHOD,
    MIXED,
    NETWORK,
    OBJECTIVE,
    ORDER,
    REPORT,
    SAVE,
    SEVERAL,
    SHAPES,
    TARGET_CLOCK,
    WORKERS,
)
from systolic.cli.options.form import Form
from systolic.option import HIDDEN, Option, path, whole_number
from systolic.styles.arguments import MEMORY_OR_SAVED, SHARE_ARGUMENTS, memory_arguments
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
from systolic.styles.systolic.arguments import BATCH, DSP_ARGUMENTS, PINS, SEARCHED_ENGINE

SCHEDULE = Form(
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
        Option("--schedule", type=path, metavar="FILE", help="Evaluate this saved schedule instead of searching"),
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
        "parameters of the array (default: searched)": (
            ORDER,
            *(
                Option(f"--{name.replace('_', '-')}", type=whole_number, metavar="N", help=f"Set {meaning}")
                for name, meaning in PINS.items()
            ),
        )
    },
)


def repeatable(option: Option, help: str = "") -> Option:
    """Return a copy of an option that can be given several times; its values become a list."""
    return option.with_settings(f"{help or option.help}; {SEVERAL}", action="append")


GBPS, EFFICIENCY, PROFILE = memory_arguments()

COMPARE = Form(
    "systolic compare tiny-yolov2-voc --board zcu104 --board zcu102 --array 13x16x16 --report compare.html",
    (NETWORK,),
    (
        repeatable(BOARD.with_settings(default=None), "Compare this board or board file (default: zcu104)"),
        repeatable(ARRAY, "Compare this array, rows × columns × lanes"),
        repeatable(BITS, "Compare these bits of weights and activations"),
        repeatable(
            BEST_CLOCK,
            "Compare this target clock (default: the clock of the fastest schedule; with --fps the highest; both up to "
            "the board's target)",
        ),
        repeatable(BATCH),
        INPUT_SIZE,
        OBJECTIVE,
        HELD_RATE,
        REPORT,
        WORKERS,
    ),
    (
        SEARCHED_ENGINE,
        *map(repeatable, DSP_ARGUMENTS),
        repeatable(GBPS),
        EFFICIENCY,
        PROFILE,
        *SHAPES,
        *SHARE_ARGUMENTS,
        DASK,
    ),
)


PARETO = Form(
    "systolic pareto tiny-yolov2-voc --board zcu104 --clock 300 --picture front.png",
    (NETWORK,),
    (
        BOARD,
        TARGET_CLOCK,
        BITS,
        ARRAY,
        INPUT_SIZE,
        Option("--picture", type=path, metavar="FILE", help="Draw the Pareto front to a .png, .svg or .pdf file"),
        REPORT,
    ),
    (BATCH, SEARCHED_ENGINE, *DSP_ARGUMENTS, *memory_arguments(), *SHAPES, *SHARE_ARGUMENTS),
)


FOLD = Form(
    "systolic fold ultranet --board ultra96-v2 --fps 2000 --compare",
    (NETWORK,),
    (
        BOARD.with_settings(default="ultra96-v2"),
        FPS,
        TARGET_CLOCK,
        BITS,
        INPUT_SIZE,
        FOLDING,
        Option(
            "--compare", action="store_true", help="Search by exact, greedy and annealing, and compare the foldings"
        ),
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
        ESTIMATED_FIFOS.with_settings(HIDDEN),  # fold does not trace, so the option has no effect
        MIXED,
        CALIBRATE.with_settings(
            help="With --mixed: measure activation ranges on these pictures (default: built-in samples)"
        ),
        METHOD,
        FIT,
        *SHAPES,
        *MEMORY_OR_SAVED,
        *SHARE_ARGUMENTS,
    ),
)

FORMS = {"schedule": SCHEDULE, "compare": COMPARE, "pareto": PARETO, "fold": FOLD}
