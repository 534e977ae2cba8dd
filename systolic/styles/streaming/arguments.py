"""The command-line options of the streaming style."""

from __future__ import annotations

from systolic.choices import SOFTMAX_METHODS
from systolic.option import Option, real, whole_number

SEARCHES = ("exact", "greedy", "annealing")
"""The names of the folding searches. The first one is the default."""

FPS = Option(
    "--fps", type=real, metavar="RATE", help="Reach RATE frames/s with the fewest resources (default: highest rate)"
)
FOLDING = Option(
    "--folding",
    metavar="SEARCH|FILE",
    default="exact",
    complete="folding",
    help="Search exact, greedy, annealing, or read a saved FILE (default: %(default)s)",
)
EXTERNAL = Option(
    "--external", nargs="+", metavar="LAYER", default=[], help="Keep the weights of these layers in DDR (default: none)"
)
DEADLINE = Option(
    "--deadline", type=real, metavar="SECONDS", default=60.0, help="Stop the exact search after SECONDS (default: 60)"
)
SOFTMAX = Option(
    "--softmax",
    metavar="METHOD",
    default="none",
    complete=("none", *SOFTMAX_METHODS),
    help="Compute the final softmax on the FPGA by stable, latency or argmax (default: none, the host does it)",
    elsewhere="the host computes the softmax after an array, which has neither a divider nor a pass over channels",
)
ESTIMATED_FIFOS = Option(
    "--estimated-fifos",
    action="store_true",
    help="Keep estimated FIFO depths; the trace only checks deadlock and rate",
)
MAX_PIXELS = Option(
    "--max-pixels", type=whole_number, metavar="N", default=2, help="Send at most N pixels per stream word (default: 2)"
)
MAX_PADDING = Option(
    "--max-padding",
    type=whole_number,
    metavar="N",
    default=0,
    help="Pad a feature map by at most N channels, for more foldings (default: 0)",
)
PAD_ENDS = Option(
    "--pad-ends", action="store_true", help="Let --max-padding also pad the network's input and output maps"
)
EFFORT = Option(
    "--effort",
    type=whole_number,
    metavar="N",
    default=200,
    help="Evaluate N foldings per block while annealing (default: 200)",
)
ATTEMPTS = Option(
    "--attempts",
    type=whole_number,
    metavar="N",
    default=2,
    help="Let simulated annealing change the folding of each block N times (default: 2)",
)

ARGUMENTS = (
    FPS,
    FOLDING,
    DEADLINE,
    EFFORT,
    ATTEMPTS,
    MAX_PADDING,
    MAX_PIXELS,
    PAD_ENDS,
    EXTERNAL,
    SOFTMAX,
    ESTIMATED_FIFOS,
)
"""The options of ``systolic fold``, which ``systolic generate`` also has for this style only."""
