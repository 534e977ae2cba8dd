"""Options that several commands share."""

from __future__ import annotations

from systolic.choices import BITS as FORMATS
from systolic.choices import (
    CALIBRATION_METHODS,
    CHANNEL_ORDERS,
    CONFIDENCE,
    FITS,
    FLOAT_PASSES,
    IOU,
    LOOP_ORDERS,
    OBJECTIVES,
)
from systolic.option import Option, objective, path, real, reals, size, whole

SEVERAL = "repeatable"

NETWORK = Option(
    "network",
    metavar="NET",
    complete="network",
    help="Network: a .cfg, .onnx, .json or param.h, or the name of a built-in one",
)
NETWORK_OR_DESIGN = NETWORK.but(metavar="NET|DIR", help="Network as in generate, or the folder of a generated design")
DESIGN = Option("folder", type=path, metavar="DIR", complete="design", help="Folder of a generated design")

WEIGHTS = Option("--weights", type=path, metavar="FILE", help="Read weights: .weights for a .cfg, .npz for a .json")
NAMES = Option("--names", type=path, metavar="FILE", help="Read class labels, one per line")
SEED = Option("--seed", type=whole, metavar="N", help="Use random weights from this seed instead of trained ones")
INPUT_SIZE = Option("--size", type=size, metavar="WxH", help="Set the input size in pixels (default: the network's)")
CUT = Option(
    "--cut",
    nargs="+",
    default=[],
    metavar="TENSOR",
    help="End an ONNX graph at these tensors, or at the tensors of a heads file",
)
PREPROCESSING = (
    Option(
        "--mean",
        type=reals,
        default=(),
        metavar="R,G,B",
        help="Subtract this mean from pixels scaled to 0…1 (default: 0)",
    ),
    Option(
        "--std",
        type=reals,
        default=(),
        metavar="R,G,B",
        help="Then divide by this; 0.00392157 restores 0…255 (default: 1)",
    ),
    Option(
        "--channel-order",
        default="RGB",
        choices=CHANNEL_ORDERS,
        metavar="ORDER",
        help="Pass the channels to the network as RGB or BGR (default: %(default)s)",
    ),
)

PASS = Option(
    "--pass",
    dest="passes",
    nargs="+",
    default=[],
    metavar="NAME",
    complete=FLOAT_PASSES,
    help="First transform the network by passes, such as convolve_picture",
)

SHAPES = (
    WEIGHTS.but(help="Read weights (optional: only the shapes of layers matter)"),
    SEED.but(help="Use random weights from this seed (default: 1 without --weights)"),
    CUT,
    *PREPROCESSING,
    PASS,
)
"""Options of the network in commands for which only the shapes of layers matter."""

BITS = Option(
    "--bits", type=whole, choices=FORMATS, help="Set the bits of weights and activations (default: NET's, or 8)"
)
CALIBRATE = Option(
    "--calibrate",
    type=path,
    nargs="+",
    default=[],
    metavar="PICTURE",
    help="Measure ranges on these pictures or folders (default: samples)",
)
FIT = Option(
    "--fit", metavar="METHOD", choices=FITS, help="Resize pictures: plain, letterbox, smooth (default: as in training)"
)
METHOD = Option(
    "--method",
    metavar="METHOD",
    default="mse",
    choices=CALIBRATION_METHODS,
    help="Choose ranges by max, percentile, mse or entropy (default: %(default)s)",
)
MIXED = Option(
    "--mixed",
    type=real,
    metavar="SHARE",
    help="Use 4 or 8 bits per layer at SHARE of the 4-bit rate (streaming)",
)
RECONSTRUCT = Option(
    "--reconstruct", action="store_true", help="Fit weights to the calibration pictures, layer by layer (for 4 bits)"
)
ZERO_POINTS = Option("--zero-points", action="store_true", help="Quantise activations with a zero point (for 4 bits)")
QUANTISING = (METHOD, FIT, MIXED, RECONSTRUCT, ZERO_POINTS)

BOARD = Option(
    "--board",
    default="zcu104",
    metavar="BOARD",
    complete="board",
    help="Map onto this board: a name or a .toml file (default: %(default)s)",
)
HIGHEST_CLOCK = Option("--clock", type=real, metavar="MHZ", help="Set a clock of the board (default: its highest)")
BEST_CLOCK = HIGHEST_CLOCK.but(help="Set a clock of the board (default: the best; with --fps the highest)")

CONF = Option(
    "--conf",
    type=real,
    metavar="SHARE",
    default=CONFIDENCE,
    help="Keep boxes of at least this confidence (default: 0.24)",
)
IOU_THRESHOLD = Option(
    "--iou", type=real, metavar="SHARE", default=IOU, help="Suppress boxes of a class above this IoU (default: 0.45)"
)

SAVE = Option("--save", type=path, metavar="FILE", help="Write the result as JSON, which other commands can read")
REPORT = Option("--report", type=path, metavar="FILE", help="Write a self-contained HTML report with pictures")

OBJECTIVE = Option(
    "--objective",
    type=objective,
    default="fps",
    metavar="GOAL",
    complete=OBJECTIVES,
    help="Maximise fps, or minimise ddr or resources (default: fps)",
)
HELD_RATE = Option(
    "--fps", type=real, default=0.0, metavar="RATE", help="Reach RATE frames/s (objectives ddr and resources)"
)
WORKERS = Option("--workers", type=whole, default=1, metavar="N", help="Search with N processes (default: 1)")
DASK = Option("--dask", metavar="ADDRESS", help="Search on the Dask cluster at ADDRESS")
ARRAY = Option("--array", metavar="MxNxL", help="Set rows × columns × lanes of the array")
ORDER = Option("--order", metavar="ORDER", complete=LOOP_ORDERS, help=f"Set the loop order: {', '.join(LOOP_ORDERS)}")
