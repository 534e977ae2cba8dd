"""Options of ``systolic export``."""

from __future__ import annotations

from systolic.choices import DIALECTS
from systolic.cli.options.common import (
    BITS,
    CALIBRATE,
    CUT,
    INPUT_SIZE,
    NAMES,
    NETWORK_OR_DESIGN,
    PREPROCESSING,
    QUANTISING,
    SEED,
    WEIGHTS,
)
from systolic.cli.options.form import Form
from systolic.option import Option, path

CONTEST = "contest"
"""The dialect of the exporters of DAC-SDC's teams."""

FORM = Form(
    "systolic export DIR -o net.onnx",
    (NETWORK_OR_DESIGN,),
    (
        Option(
            "-o",
            "--output",
            type=path,
            required=True,
            metavar="FILE",
            help="Write the .onnx file, or the folder of the contest dialect",
        ),
        Option(
            "--dialect",
            metavar="DIALECT",
            choices=(*DIALECTS, CONTEST),
            default=DIALECTS[0],
            help="Write qonnx, finn, or contest: UltraNet's files (default: %(default)s)",
        ),
        WEIGHTS,
        NAMES,
        CALIBRATE,
        BITS,
    ),
    (SEED, INPUT_SIZE, CUT, *PREPROCESSING, *QUANTISING),
)
