"""Options of the commands that build and run an accelerator."""

from __future__ import annotations

from systolic.choices import STYLES
from systolic.cli.options.common import (
    BITS,
    BOARD,
    CALIBRATE,
    CONF,
    CUT,
    DESIGN,
    INPUT_SIZE,
    IOU_THRESHOLD,
    NAMES,
    NETWORK,
    PASS,
    PREPROCESSING,
    QUANTISING,
    REPORT,
    SEED,
    TARGET_CLOCK,
    WEIGHTS,
)
from systolic.cli.options.form import Form
from systolic.option import Option, path, real
from systolic.styles.arguments import MEMORY_OR_SAVED, SHARE_ARGUMENTS, memory_arguments
from systolic.styles.streaming import arguments as streaming
from systolic.styles.systolic import arguments as systolic

GENERATE = Form(
    "systolic generate yolo.cfg --weights yolo.weights --names voc.names --calibrate a.jpg b.jpg -o DIR",
    (NETWORK,),
    (
        Option("-o", "--output", type=path, metavar="DIR", help="Write the design to the new folder DIR"),
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
            help="Build an array (systolic) or a pipeline (streaming) (default: %(default)s)",
        ),
        TARGET_CLOCK.with_settings(
            help="Set the target clock, one that the board makes "
            "(default: the clock of the fastest array, the highest for a pipeline)"
        ),
        INPUT_SIZE,
        Option("--force", action="store_true", help="Replace a design that DIR already contains"),
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


AP_INT = Option("--ap-int", action="store_true", help="Compile with the vendor's ap_int types and packed DSP products")
WAVES = Option(
    "--waves", metavar="LAYER", help="Record the signals of LAYER, a name or a number, as .fst (SystemVerilog)"
)
GOLDEN = Option(
    "--golden", action="store_true", help="Also compare with the standalone C++ golden program of the network"
)
NATIVE = (AP_INT, WAVES, GOLDEN)
"""Options of an execution; they exclude --cycles."""

TIMELINE = Option("--timeline", type=path, metavar="FILE", help="With --cycles: draw a timeline, one lane per process")
BANDWIDTH = Option("--bandwidth", type=path, metavar="FILE", help="With --cycles: draw the DDR's bandwidth over time")
FIFOS = Option("--fifos", action="store_true", help="With --cycles: find the least FIFO depths that lose no cycle")
CLOCK = Option("--clock", type=real, metavar="MHZ", help="With --cycles: use this clock (default: the design's)")
DERIVED = Option("--derived", action="store_true", help="With --cycles: use II and depth that systolic check derives")
MEMORY = tuple(
    option.with_settings(help=f"With --cycles: {option.help[0].lower()}{option.help[1:]}")
    for option in memory_arguments("the design's", "the design's")
)
TRACED = (TIMELINE, BANDWIDTH, FIFOS, CLOCK, DERIVED, *MEMORY)
"""Options of a cycle trace, which only engines in C++ have."""

SIMULATE = Form(
    "systolic simulate DIR --picture dog.jpg --ap-int\n"
    "  systolic simulate DIR --picture dog.jpg --waves conv1 -o conv1.fst",
    (DESIGN,),
    (
        Option(
            "--picture",
            type=path,
            required=True,
            nargs="+",
            metavar="PICTURE",
            help="Run the code on this picture; several for a design with --batch",
        ),
        Option(
            "--cycles",
            action="store_true",
            help="Trace (C++) or count (SystemVerilog) clock cycles, and compare them with the model",
        ),
        TIMELINE,
        FIFOS,
        CLOCK,
        AP_INT,
        GOLDEN,
        WAVES,
        Option("-o", "--output", type=path, metavar="FILE", help="With --waves: write to FILE (default: LAYER.fst)"),
    ),
    (
        BANDWIDTH,
        Option("--layer", metavar="NAME", help="With --timeline: draw this layer instead of the frame"),
        DERIVED,
        *MEMORY,
        Option(
            "--hls",
            action="store_true",
            help="With --cycles of a SystemVerilog design: also trace the same engine in C++",
        ),
    ),
)


RUN = Form(
    "systolic run DIR dog.jpg -o boxes.png",
    (
        DESIGN.with_settings(help="Folder of a generated design; it runs on the board if pynq is installed"),
        Option("picture", type=path, metavar="PICTURE", help="Picture, folder of pictures, video or array (.npy)"),
    ),
    (
        Option(
            "-o",
            "--output",
            type=path,
            metavar="FILE",
            help="Draw the boxes to FILE: a picture, a folder or a video (.mp4, .avi)",
        ),
        CONF,
        IOU_THRESHOLD,
    ),
)


CHECK = Form(
    "systolic check build/shapes --clock 300",
    (Option("design", type=path, metavar="DIR", complete=DESIGN.complete, help=DESIGN.help),),
    (Option("--clock", type=real, metavar="MHZ", help="Check at this clock (default: the design's)"),),
)


PACKAGE = Form(
    "systolic package DIR -o dist",
    (DESIGN.with_settings(help="Folder of a generated design with its bitstream"),),
    (
        Option(
            "-o",
            "--output",
            type=path,
            default=".",
            metavar="DIR",
            help="Write the wheel to DIR (default: this folder)",
        ),
        Option(
            "--without-bitstream",
            action="store_true",
            help="Package the simulation library instead, for this operating system and processor",
        ),
    ),
)


VENDOR = Form(
    "systolic vendor DIR --report vendor.html",
    (DESIGN,),
    (
        Option("--reports", type=path, metavar="DIR", help="Read the tools' reports in DIR (default: the design)"),
        Option("--csynth", action="store_true", help="Run the C synthesis of Vitis HLS first; it must be on the PATH"),
        Option(
            "--only",
            metavar="FUNCTION",
            help="Compare only the C++ function FUNCTION; with --csynth, synthesise it alone",
        ),
        Option(
            "--derived", action="store_true", help="Also show the II and depth of each loop that systolic check derives"
        ),
        REPORT.with_settings(help="Write a self-contained HTML report"),
    ),
)

FORMS = {"generate": GENERATE, "simulate": SIMULATE, "run": RUN, "check": CHECK, "package": PACKAGE, "vendor": VENDOR}
