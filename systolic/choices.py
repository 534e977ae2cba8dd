"""The values that options accept, copied here so that no other module needs to be imported.

Help and shell completion stay fast this way. tests/systolic/test_options.py compares each value with its definition.
"""

from __future__ import annotations

BITS = (4, 8, 16)
CALIBRATION_METHODS = ("max", "percentile", "mse", "entropy")
FITS = ("plain", "letterbox", "smooth")
CHANNEL_ORDERS = ("RGB", "BGR")
DIALECTS = ("qonnx", "finn")
ENGINES = ("hls", "rtl")
LOOP_ORDERS = ("weights-resident", "inputs-resident", "streamed")
OBJECTIVES = ("fps", "ddr", "resources")
SOFTMAX_METHODS = ("stable", "latency", "argmax")
TRAINING_METHODS = ("lsq", "dorefa")
FLOAT_PASSES = ("fold_batch_norms", "fold_pointwise", "convolve_picture")

CONFIDENCE, IOU = 0.24, 0.45
DDR_PROFILES = ("measured", "optimistic")
SHARES = {"dsp": 0.97, "lut": 0.8, "bram": 0.95, "uram": 0.95}
"""The greatest share of each resource of a board that a design may use."""

USUAL_BOARD = "zcu104"
STYLES = {
    "systolic": "one tiled array for all layers",
    "streaming": "a pipeline in which every layer has its own hardware",
}
"""The accelerator styles, each with its summary; the first one is the default."""
