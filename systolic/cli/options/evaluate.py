"""Options of ``systolic evaluate``."""

from __future__ import annotations

from systolic.choices import USUAL_BOARD
from systolic.cli.options.common import (
    BITS,
    BOARD,
    CALIBRATE,
    CONF,
    CUT,
    INPUT_SIZE,
    NAMES,
    NETWORK_OR_DESIGN,
    OVERLAP,
    PREPROCESSING,
    QUANTISING,
    SEED,
    WEIGHTS,
)
from systolic.cli.options.form import Form
from systolic.option import Option, path, whole

FORM = Form(
    "systolic evaluate yolo.cfg --weights yolo.weights --names voc.names --data VOC2007 --split test",
    (NETWORK_OR_DESIGN,),
    (
        Option(
            "--data",
            type=path,
            required=True,
            metavar="FOLDER",
            help="Measure on labelled pictures: YOLO, VOC, COCO, DAC-SDC, folders",
        ),
        Option("--split", metavar="NAME", help="Take this part of the set, such as val"),
        Option("--pictures", type=whole, metavar="N", help="Take N pictures, evenly spread (default: all)"),
        WEIGHTS,
        NAMES,
        CALIBRATE,
        BITS,
        CONF,
        OVERLAP,
        Option("--worst", type=path, metavar="FILE", help="Draw the cases that differ most"),
    ),
    (
        Option(
            "--executed",
            type=whole,
            default=0,
            metavar="N",
            help="Also execute the first N pictures on the design in DIR",
        ),
        Option("--workers", type=whole, metavar="N", help="Use N processes (default: one per core)"),
        SEED,
        INPUT_SIZE,
        CUT,
        *PREPROCESSING,
        *QUANTISING,
        BOARD.but(default=None, help=f"With --mixed: take the frame rate on this board (default: {USUAL_BOARD})"),
    ),
)
