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
from host.contract.manifest import MAX_MANIFEST_BYTES
from host.contract.parts import MAX_BUFFER_BYTES
from host.contract.simulation_library import MAX_SOURCE_BYTES
from host.simulated.pace import MAX_TRACE_BYTES
from host.vision.picture import MAX_PICTURE_PIXELS
from scheduler import hand_edited
from systolic.evaluation.layouts import coco, labelled
from systolic.vendor.reading.text import MAX_REPORT_BYTES
from tests.fuzz.files.judge import LONGEST_SENTENCE, MAX_BYTES, MAX_SECONDS

TEXT = (Path(__file__).resolve().parents[1] / "SECURITY.md").read_text("utf-8")


def test_security_page_limits_equal_the_limits_of_the_code() -> None:
    rows = dict(line.strip("| \n").split(" | ") for line in TEXT.splitlines() if line.startswith("| "))
    small = {cfg.MAX_CFG_BYTES, files.MAX_NAMES_BYTES, topology_file.TEXT_LIMIT, reader.MAX_BYTES}
    (texts,) = small | {hand_edited.MAX_BYTES}
    assert rows == {
        "what": "at most",
        "---": "---",
        "a cfg, names, exported JSON, board, schedule or folding file": f"{texts:,} bytes",
        "a manifest": f"{MAX_MANIFEST_BYTES:,} bytes",
        "`cycles.json`": f"{MAX_TRACE_BYTES:,} bytes",
        "`network.npz`": f"{quantized_file.FILE_LIMIT:,} bytes",
        "an image of a design": f"{MAX_BUFFER_BYTES:,} bytes",
        "a source of a design": f"{MAX_SOURCE_BYTES:,} bytes",
        "labels of one picture": f"{labelled.MAX_LABEL_FILE_BYTES:,} bytes",
        "COCO's annotations, or a list of pictures": f"{labelled.MAX_SET_FILE_BYTES:,} bytes",
        "a report of Vitis HLS or Vivado": f"{MAX_REPORT_BYTES:,} bytes",
        "a picture": f"{MAX_PICTURE_PIXELS:,} pixels",
        "an `.onnx` file": f"{onnx_file.MAX_FILE_BYTES:,} bytes",
        "weights of a network": f"{limits.MAX_WEIGHTS:,} numbers",
        "values of one map": f"{MAP_LIMIT:,}",
        "an error": f"{LONGEST_SENTENCE:,} characters",
    }
    assert topology_file.MAP_LIMIT == MAP_LIMIT
    assert f"{coco.MAX_NUMBERS:,} numbers and {coco.MAX_OBJECTS:,} lists" in TEXT
    assert f"at most {MAX_BYTES >> 20} MB more" in TEXT
    assert f"and {MAX_SECONDS:.0f} seconds" in TEXT
