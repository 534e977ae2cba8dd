"""Options of the commands that train and measure networks."""

from __future__ import annotations

from systolic.choices import DIALECTS, FITS, TRAINING_METHODS, USUAL_BOARD
from systolic.cli.options.common import (
    BITS,
    BOARD,
    CALIBRATE,
    CONF,
    CUT,
    INPUT_SIZE,
    IOU_THRESHOLD,
    NAMES,
    NETWORK,
    NETWORK_OR_DESIGN,
    PREPROCESSING,
    QUANTISING,
    SEED,
    WEIGHTS,
)
from systolic.cli.options.form import Form
from systolic.option import Option, path, real, whole_number

EVALUATE = Form(
    "systolic evaluate yolo.cfg --weights yolo.weights --names voc.names --data VOC2007 --split test",
    (NETWORK_OR_DESIGN,),
    (
        Option(
            "--data",
            type=path,
            required=True,
            metavar="FOLDER",
            help="Use these labelled pictures, as YOLO, VOC, COCO, DAC-SDC or one folder per class",
        ),
        Option("--split", metavar="NAME", help="Use this part of the data set, such as val"),
        Option("--pictures", type=whole_number, metavar="N", help="Use N evenly spaced pictures (default: all)"),
        WEIGHTS,
        NAMES,
        CALIBRATE,
        BITS,
        CONF,
        IOU_THRESHOLD,
        Option(
            "--worst",
            type=path,
            metavar="FILE",
            help="Draw the pictures on which float and quantised differ most to FILE",
        ),
    ),
    (
        Option(
            "--executed",
            type=whole_number,
            default=0,
            metavar="N",
            help="Also execute the generated code in DIR on the first N pictures",
        ),
        Option("--workers", type=whole_number, metavar="N", help="Use N processes (default: one per core)"),
        SEED,
        INPUT_SIZE,
        CUT,
        *PREPROCESSING,
        *QUANTISING,
        BOARD.with_settings(
            default=None, help=f"With --mixed: keep the frame rate on this board (default: {USUAL_BOARD})"
        ),
    ),
)


TRAIN = Form(
    "systolic train yolo.cfg --weights yolo.weights --data VOC2007 --split train --bits 4 -o DIR",
    (NETWORK,),
    (
        Option(
            "--data",
            type=path,
            required=True,
            metavar="FOLDER",
            help="Train on these labelled pictures, in the formats of evaluate",
        ),
        Option(
            "-o",
            "--output",
            type=path,
            required=True,
            metavar="DIR",
            help="Write NAME.json, NAME.npz and a checkpoint to DIR",
        ),
        Option("--split", metavar="NAME", help="Use this part of the data set, such as train"),
        WEIGHTS.with_settings(help="Start from these weights: .weights for a .cfg, .npz for a .json"),
        NAMES,
        Option(
            "--bits",
            type=whole_number,
            default=4,
            metavar="N",
            help="Set the bits of weights and activations, 2 to 8 (default: 4)",
        ),
        Option("--epochs", type=whole_number, default=10, metavar="N", help="Train for N epochs (default: 10)"),
        Option("--batch", type=whole_number, default=32, metavar="N", help="Use N pictures per step (default: 32)"),
        Option(
            "--lr",
            dest="rate",
            type=real,
            default=1e-3,
            metavar="RATE",
            help="Set the peak learning rate (default: 0.001)",
        ),
        Option(
            "--device",
            choices=("auto", "cpu", "cuda"),
            default="auto",
            help="Train on this device (default: auto, a GPU if there is one)",
        ),
    ),
    (
        Option("--name", metavar="NAME", help="Name the trained network and its files (default: NET's name)"),
        Option(
            "--method",
            metavar="METHOD",
            choices=TRAINING_METHODS,
            default="lsq",
            help="Quantise with learned steps (lsq) or tanh-scaled weights (dorefa) (default: lsq)",
        ),
        Option(
            "--prune",
            type=real,
            default=0.0,
            metavar="SHARE",
            help="Remove this share (0 to 1) of the filters, smallest norm first (default: 0)",
        ),
        Option(
            "--order",
            type=whole_number,
            default=1,
            metavar="SEED",
            help="Set the seed of all random choices (default: 1)",
        ),
        Option("--threads", type=whole_number, default=1, metavar="N", help="Run PyTorch with N threads (default: 1)"),
        Option(
            "--fit",
            metavar="METHOD",
            choices=FITS,
            help="Resize pictures by plain (stretch), letterbox (keep the aspect) or smooth (average) "
            "(default: the network's)",
        ),
        SEED.with_settings(help="Start from random weights of this seed"),
        INPUT_SIZE,
        CUT,
        *PREPROCESSING,
    ),
)


CONTEST = "contest"
"""The dialect of the exporters that teams of the DAC-SDC contest used."""

EXPORT = Form(
    "systolic export DIR -o net.onnx",
    (NETWORK_OR_DESIGN,),
    (
        Option(
            "-o",
            "--output",
            type=path,
            required=True,
            metavar="FILE",
            help="Write to this .onnx file, or for contest to this folder",
        ),
        Option(
            "--dialect",
            metavar="DIALECT",
            choices=(*DIALECTS, CONTEST),
            default=DIALECTS[0],
            help="Write ONNX in the dialect of qonnx or finn, or the weight arrays of UltraNet's authors "
            "(default: %(default)s)",
        ),
        WEIGHTS,
        NAMES,
        CALIBRATE,
        BITS,
    ),
    (SEED, INPUT_SIZE, CUT, *PREPROCESSING, *QUANTISING),
)

FORMS = {"evaluate": EVALUATE, "train": TRAIN, "export": EXPORT}
