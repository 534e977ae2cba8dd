"""Options of ``systolic train``."""

from __future__ import annotations

from systolic.choices import FITS, TRAINING_METHODS
from systolic.cli.options.common import CUT, INPUT_SIZE, NAMES, NETWORK, PREPROCESSING, SEED, WEIGHTS
from systolic.cli.options.form import Form
from systolic.option import Option, path, real, whole

FORM = Form(
    "systolic train yolo.cfg --weights yolo.weights --data VOC2007 --split train --bits 4 -o DIR",
    (NETWORK,),
    (
        Option(
            "--data",
            type=path,
            required=True,
            metavar="FOLDER",
            help="Train on these labelled pictures, as evaluate does",
        ),
        Option(
            "-o",
            "--output",
            type=path,
            required=True,
            metavar="DIR",
            help="Write NAME.json, NAME.npz and a checkpoint to DIR",
        ),
        Option("--split", metavar="NAME", help="Take this part of the set, such as train"),
        WEIGHTS.but(help="Begin with these weights: .weights for a .cfg, .npz for a .json"),
        NAMES,
        Option(
            "--bits", type=whole, default=4, metavar="N", help="Set the bits of weights and values, 2 to 8 (default: 4)"
        ),
        Option("--epochs", type=whole, default=10, metavar="N", help="Train for N epochs (default: 10)"),
        Option("--batch", type=whole, default=32, metavar="N", help="Take N pictures per step (default: 32)"),
        Option(
            "--lr",
            dest="rate",
            type=real,
            default=1e-3,
            metavar="RATE",
            help="Set the highest learning rate (default: 0.001)",
        ),
        Option(
            "--device",
            choices=("auto", "cpu", "cuda"),
            default="auto",
            help="Train on this device (default: a GPU if any)",
        ),
    ),
    (
        Option("--name", metavar="NAME", help="Name the trained network and its files (default: NET's name)"),
        Option(
            "--method",
            metavar="METHOD",
            choices=TRAINING_METHODS,
            default="lsq",
            help="Learn step sizes (lsq), or scale by tanh (dorefa) (default: lsq)",
        ),
        Option(
            "--prune",
            type=real,
            default=0.0,
            metavar="SHARE",
            help="Remove this share of the filters, smallest norm first",
        ),
        Option(
            "--order", type=whole, default=1, metavar="SEED", help="Set the seed of all random choices (default: 1)"
        ),
        Option("--threads", type=whole, default=1, metavar="N", help="Give PyTorch N threads (default: 1)"),
        Option(
            "--fit",
            metavar="METHOD",
            choices=FITS,
            help="Resize pictures: plain, letterbox, smooth (default: the network's)",
        ),
        SEED.but(help="Begin with random weights of this seed"),
        INPUT_SIZE,
        CUT,
        *PREPROCESSING,
    ),
)
