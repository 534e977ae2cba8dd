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
from systolic.option import Option, objective, path, real, reals, size, whole_number

SEVERAL = "repeatable"

NETWORK = Option(
    "network",
    metavar="NET",
    complete="network",
    help="Network: a .cfg, .onnx, .json or param.h, or the name of a built-in one",
)
NETWORK_OR_DESIGN = NETWORK.with_settings(
    metavar="NET|DIR", help="Network as in generate, or the folder of a generated design"
)
DESIGN = Option("folder", type=path, metavar="DIR", complete="design", help="Folder of a generated design")

WEIGHTS = Option("--weights", type=path, metavar="FILE", help="Read weights: .weights for a .cfg, .npz for a .json")
NAMES = Option("--names", type=path, metavar="FILE", help="Read class labels from a text file, one per line")
SEED = Option(
    "--seed", type=whole_number, metavar="N", help="Use random weights from this seed instead of trained ones"
)
INPUT_SIZE = Option("--size", type=size, metavar="WxH", help="Set the input size in pixels (default: the network's)")
CUT = Option(
    "--cut",
    nargs="+",
    default=[],
    metavar="TENSOR",
    help="End an ONNX graph at these tensors, or at the ones in a heads file (.json); the host computes the rest",
)
PREPROCESSING = (
    Option(
        "--mean",
        type=reals,
        default=(),
        metavar="R,G,B",
        help="Subtract this mean from pixels scaled to 0…1, for ONNX (default: 0)",
    ),
    Option(
        "--std",
        type=reals,
        default=(),
        metavar="R,G,B",
        help="Divide by this after --mean; 0.00392157 (1/255) gives pixels of 0…255 (default: 1)",
    ),
    Option(
        "--channel-order",
        default="RGB",
        choices=CHANNEL_ORDERS,
        metavar="ORDER",
        help="Pass a picture's channels to the network as RGB or BGR (default: %(default)s)",
    ),
)

PASS = Option(
    "--pass",
    dest="passes",
    nargs="+",
    default=[],
    metavar="NAME",
    complete=FLOAT_PASSES,
    help="Transform the network before quantisation: fold_batch_norms or fold_pointwise merges factors per channel "
    "into convolutions, convolve_picture inserts a 1×1 convolution after the picture",
)

SHAPES = (
    WEIGHTS.with_settings(help="Read weights (optional: only the shapes of layers matter)"),
    SEED.with_settings(help="Use random weights from this seed (default: 1 without --weights)"),
    CUT,
    *PREPROCESSING,
    PASS,
)
"""Options of the network in commands for which only the shapes of layers matter."""

BITS = Option(
    "--bits", type=whole_number, choices=FORMATS, help="Set the bits of weights and activations (default: NET's, or 8)"
)
CALIBRATE = Option(
    "--calibrate",
    type=path,
    nargs="+",
    default=[],
    metavar="PICTURE",
    help="Measure activation ranges on these pictures or folders of pictures (default: built-in samples)",
)
FIT = Option(
    "--fit",
    metavar="METHOD",
    choices=FITS,
    help="Resize pictures by plain (stretch), letterbox (keep the aspect) or smooth (average) "
    "(default: as in training)",
)
METHOD = Option(
    "--method",
    metavar="METHOD",
    default="mse",
    choices=CALIBRATION_METHODS,
    help="Set activation ranges by max, percentile, mse or entropy (default: %(default)s)",
)
MIXED = Option(
    "--mixed",
    type=real,
    metavar="SHARE",
    help="Choose 4 or 8 bits per layer that keep SHARE (0 to 1) of the all-4-bit frame rate (streaming)",
)
RECONSTRUCT = Option(
    "--reconstruct",
    action="store_true",
    help="Fit each layer's integer weights to its outputs on calibration pictures (for 4 bits)",
)
ZERO_POINTS = Option(
    "--zero-points", action="store_true", help="Quantise activations asymmetrically, with a zero point (for 4 bits)"
)
QUANTISING = (METHOD, FIT, MIXED, RECONSTRUCT, ZERO_POINTS)

BOARD = Option(
    "--board",
    default="zcu104",
    metavar="BOARD",
    complete="board",
    help="Use this board: a name or a .toml file (default: %(default)s)",
)
TARGET_CLOCK = Option(
    "--clock", type=real, metavar="MHZ", help="Set the target clock, one that the board makes (default: its target)"
)
BEST_CLOCK = TARGET_CLOCK.with_settings(
    help="Set the target clock, one that the board makes "
    "(default: the clock of the fastest schedule; with --fps the highest; both up to the board's target)"
)

CONF = Option(
    "--conf",
    type=real,
    metavar="SHARE",
    default=CONFIDENCE,
    help="Keep boxes above this confidence, 0 to 1 (default: 0.24)",
)
IOU_THRESHOLD = Option(
    "--iou",
    type=real,
    metavar="SHARE",
    default=IOU,
    help="Suppress a box whose IoU with a better one of its class is above this (default: 0.45)",
)

SAVE = Option(
    "--save", type=path, metavar="FILE", help="Save the result as JSON, for the option --schedule or --folding"
)
REPORT = Option("--report", type=path, metavar="FILE", help="Write a self-contained HTML report with pictures")

OBJECTIVE = Option(
    "--objective",
    type=objective,
    default="fps",
    metavar="GOAL",
    complete=OBJECTIVES,
    help="Maximise fps, or minimise ddr (DDR traffic) or resources (default: fps)",
)
HELD_RATE = Option(
    "--fps", type=real, default=0.0, metavar="RATE", help="Reach RATE frames/s with --objective ddr or resources"
)
WORKERS = Option("--workers", type=whole_number, default=1, metavar="N", help="Search with N processes (default: 1)")
DASK = Option("--dask", metavar="ADDRESS", help="Search on the Dask cluster at ADDRESS")
ARRAY = Option("--array", metavar="MxNxL", help="Set rows × columns × lanes of the array (default: searched)")
ORDER = Option(
    "--order",
    metavar="ORDER",
    complete=LOOP_ORDERS,
    help=f"Set the loop order of every layer: {', '.join(LOOP_ORDERS)}",
)
