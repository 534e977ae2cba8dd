"""The limits in SECURITY.md are the limits of the code."""

from __future__ import annotations

from pathlib import Path

from boards import reader
from cnn import limits
from cnn.darknet import cfg, files
from cnn.exported import topology_file
from cnn.onnx import file as onnx_file
from cnn.quantized_check import MAP_LIMIT
from cnn.stored import quantized_file
from host.contract.manifest import LARGEST_MANIFEST
from host.contract.parts import LARGEST_BUFFER
from host.contract.simulation_library import LARGEST_SOURCE
from host.simulated.pace import LARGEST_TRACE
from host.vision.picture import LARGEST_PICTURE
from scheduler import hand_edited
from systolic.evaluation.layouts import coco, labelled
from systolic.vendor.reading.text import MAX_REPORT_BYTES
from tests.fuzz.files.judge import LONGEST_SENTENCE, MOST_BYTES, MOST_SECONDS

TEXT = (Path(__file__).resolve().parents[1] / "SECURITY.md").read_text("utf-8")


def test_security_page_limits_equal_the_limits_of_the_code() -> None:
    rows = dict(line.strip("| \n").split(" | ") for line in TEXT.splitlines() if line.startswith("| "))
    small = {cfg.MAX_CFG_BYTES, files.MAX_NAMES_BYTES, topology_file.TEXT_LIMIT, reader.MAX_BYTES}
    (texts,) = small | {hand_edited.MAX_BYTES}
    assert rows == {
        "what": "at most",
        "---": "---",
        "a cfg, names, exported JSON, board, schedule or folding file": f"{texts:,} bytes",
        "a manifest": f"{LARGEST_MANIFEST:,} bytes",
        "`cycles.json`": f"{LARGEST_TRACE:,} bytes",
        "`network.npz`": f"{quantized_file.FILE_LIMIT:,} bytes",
        "an image of a design": f"{LARGEST_BUFFER:,} bytes",
        "a source of a design": f"{LARGEST_SOURCE:,} bytes",
        "labels of one picture": f"{labelled.LARGEST_LABELS:,} bytes",
        "COCO's annotations, or a list of pictures": f"{labelled.LARGEST_SET:,} bytes",
        "a report of Vitis HLS or Vivado": f"{MAX_REPORT_BYTES:,} bytes",
        "a picture": f"{LARGEST_PICTURE:,} pixels",
        "an `.onnx` file": f"{onnx_file.LARGEST_FILE:,} bytes",
        "weights of a network": f"{limits.MAX_WEIGHTS:,} numbers",
        "values of one map": f"{MAP_LIMIT:,}",
        "an error": f"{LONGEST_SENTENCE:,} characters",
    }
    assert topology_file.MAP_LIMIT == MAP_LIMIT
    assert f"{coco.MOST_NUMBERS:,} numbers and {coco.MOST_OBJECTS:,} lists" in TEXT
    assert f"at most {MOST_BYTES >> 20} MB more" in TEXT
    assert f"and {MOST_SECONDS:.0f} seconds" in TEXT
