"""Options of ``systolic simulate``."""

from __future__ import annotations

from systolic.cli.options.common import DESIGN
from systolic.cli.options.form import Form
from systolic.option import Option, path, real
from systolic.styles.arguments import memory_arguments

AP_INT = Option("--ap-int", action="store_true", help="Execute with the vendor's ap_int types and packed products")
WAVES = Option("--waves", metavar="LAYER", help="Record the signals of LAYER, a name or number (SystemVerilog)")
GOLDEN = Option("--golden", action="store_true", help="Also run the standalone C++ golden program")
NATIVE = (AP_INT, WAVES, GOLDEN)
"""Options of an execution without --cycles."""

TIMELINE = Option("--timeline", type=path, metavar="FILE", help="With --cycles: draw a timeline, one lane per process")
BANDWIDTH = Option("--bandwidth", type=path, metavar="FILE", help="With --cycles: draw the DDR's bandwidth over time")
FIFOS = Option("--fifos", action="store_true", help="With --cycles: find the least FIFO depths that lose nothing")
CLOCK = Option("--clock", type=real, metavar="MHZ", help="With --cycles: take this clock (default: the design's)")
DERIVED = Option("--derived", action="store_true", help="With --cycles: take loops as derived by systolic check")
MEMORY = tuple(
    option.but(help=f"With --cycles: {option.help[0].lower()}{option.help[1:]}")
    for option in memory_arguments("the design's", "the design's")
)
TRACED = (TIMELINE, BANDWIDTH, FIFOS, CLOCK, DERIVED, *MEMORY)
"""Options of a traced execution, which C++ alone has."""

FORM = Form(
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
            help="Execute this picture; several for a design with --batch",
        ),
        Option("--cycles", action="store_true", help="Trace cycles and frames/s, compared with the model"),
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
        Option("--hls", action="store_true", help="With --cycles of an RTL design: also trace the same engine in C++"),
    ),
)
