"""Test designs with unusual labels and file names, which must simulate, and errors for networks without a design."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from boards.errors import UnsupportedError
from cnn.quantisation.quantise import FORMATS
from systolic.designs import GeneratedDesign, design
from systolic.loading import load_model
from systolic.model import Calibration, sample_pictures
from systolic.styles.registry import open_design
from tests.support.cases import cases
from tests.support.darknet import CONV
from tests.support.detectors import TINY_CFG
from tests.support.errors import raises, raises_among
from tests.support.small_network import HEAD, LAYERS

NET = "[net]\nwidth=16\nheight=12\nchannels=3\n"
ODD = ("a\tb", "c\u00a0d", "e\u200bf\u200d\u202e", "g" * 5000, "\x1b[31m h", " ", '"</script>&{{x}}*/', "é\u0301 漢 🎈")
NAMES = ("tab\there.cfg", "line\nbreak.cfg", "latin\udcff.cfg", "zero\u200bwidth\u00a0.cfg", f"{'n' * 240}.cfg")
OPTIONS: dict[str, tuple[str, float | None, dict[str, Any]]] = {
    "systolic": ("pynq-z2", 100.0, {"array": "4x8x8"}),
    "streaming": ("ultra96-v2", None, {"search": "greedy", "fps": 20000, "estimated_fifos": True}),
}


def made(network: Path, names: Path | None, style: str) -> GeneratedDesign:
    """Return a generated design in the given style, with random weights."""
    board, clock, options = OPTIONS[style]
    calibration = Calibration(sample_pictures()[:1], method="max")
    return design(load_model(network, None, names, 1), board, style, clock, calibration, **options)


@cases("style", OPTIONS)
def test_design_keeps_unusual_labels(style: str, tmp_path: Path) -> None:
    names = None
    if style == "systolic":
        network, names = tmp_path / "tiny.cfg", tmp_path / "tiny.names"
        classes = len(ODD)
        network.write_text(
            TINY_CFG.replace("classes=3", f"classes={classes}").replace("filters=16", f"filters={2 * (5 + classes)}")
        )
        names.write_text("".join(f"{label}\n" for label in ODD), "utf-8")
    else:
        network = tmp_path / "small.json"
        topology: dict[str, Any] = {"format": "systolic exported network 1", "name": "small", "layers": [*LAYERS, HEAD]}
        topology |= {"input": {"channels": 3, "height": 16, "width": 32}, "labels": ODD}
        network.write_text(json.dumps(topology))
    opened = open_design(made(network, names, style).write(tmp_path / "design").folder)
    assert opened.manifest.labels == ODD
    assert opened.network.labels == ODD


@cases("style, name", [("streaming", NAMES[0]), *(("systolic", name) for name in NAMES[1:])])
def test_design_of_unusual_file_name_opens(style: str, name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(NET + CONV)
    opened = open_design(made(tmp_path / name, None, style).write(tmp_path / "design").folder)
    assert all(node.source.isprintable() and len(node.source) < 100 for node in opened.network.nodes)


@cases("style", OPTIONS)
@cases("layers", ["[softmax]\n", "[dropout]\n", "[dropout]\n[route]\nlayers=-1\n"])
def test_design_without_a_hardware_layer_is_refused(style: str, layers: str, tmp_path: Path) -> None:
    (tmp_path / "net.cfg").write_text(NET + layers)
    with raises(UnsupportedError, subject="the network net", remedy="add a convolution"):
        made(tmp_path / "net.cfg", None, style)


@cases("following", ["", "[softmax]\n"])
def test_design_with_slice_as_output_is_refused(following: str, tmp_path: Path) -> None:
    (tmp_path / "net.cfg").write_text(NET + CONV + "[route]\nlayers=-1\ngroups=2\ngroup_id=1\n" + following)
    with raises_among(UnsupportedError, subject="slice 'slice1'", where="net.cfg:11"):
        made(tmp_path / "net.cfg", None, "streaming")


@cases("style", OPTIONS)
def test_design_with_a_tiny_frame_rate_is_accepted(style: str, tmp_path: Path) -> None:
    (tmp_path / "net.cfg").write_text(NET + CONV)
    board, clock, options = OPTIONS[style]
    goal = {"objective": "ddr", "fps": 1e-300} if style == "systolic" else {"fps": 1e-300}
    calibration = Calibration(sample_pictures()[:1], method="max", bits=FORMATS[0])
    design(load_model(tmp_path / "net.cfg", seed=1), board, style, clock, calibration, **{**options, **goal})
