"""The checks of a written design. Each is a function that raises DefectError, or another error, if it fails."""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import onnxruntime

from boards.errors import SystolicError
from cnn.float_model import run_float
from cnn.integer_model import run_integer
from cnn.onnx.network import read_onnx
from cnn.quantized import QNode
from cnn.requantise import Requantiser
from hls_templates.lint import lint
from host.contract.streaming import StreamingManifest
from host.detector import Detector
from host.opened import open_executed
from host.options import Options
from host.vision.frame import Result
from systolic.execution.build import Variant, build
from systolic.front_ends.onnx import ONNX_FILE
from systolic.golden import checksums, first_difference, run_golden
from systolic.package import package
from systolic.styles.registry import execute
from tests.fuzz.networks.builds import fresh, shipped_builds
from tests.fuzz.networks.prepare import Prepared
from tests.support.onnx.outputs import outputs_of
from tests.support.onnx.quantising import differences

SURE = 0.999
"""The confidence threshold. Few boxes of a network with random weights exceed it."""


class DefectError(Exception):
    """A check that failed, with a sentence that says how."""


def _runtime(prepared: Prepared) -> None:
    """Compare an ONNX file with onnxruntime.

    Outputs of a float network may differ by 1e-4 of the greatest value of the output. Every tensor of a quantised
    file may differ by one step and the error of its float bias.
    """
    if prepared.model.quantized is not None:
        with TemporaryDirectory() as folder:
            path = Path(folder) / "network.onnx"
            path.write_bytes(prepared.model.files[ONNX_FILE])
            steps = differences(path, read_onnx(path), prepared.pictures[0])
        allowed = {node.name: 1 + _gain(node) / 2 for node in prepared.model.quantized.nodes}
        if far := {name: step for name, step in steps.items() if step > allowed[name]}:
            raise DefectError(f"too many steps from onnxruntime's values: {far}")
        return
    network, pixels = prepared.model.network, prepared.pictures[0].astype(np.float32) / np.float32(255)
    session = onnxruntime.InferenceSession(prepared.model.files[ONNX_FILE])
    picture = np.moveaxis(pixels, 0, -1) if prepared.case.network.get("last") else pixels
    expected = session.run(None, {session.get_inputs()[0].name: picture[None]})
    named = outputs_of(network, run_float(network, pixels))
    for output, right in zip(session.get_outputs(), expected, strict=True):
        wrong = float(np.abs(named[output.name].ravel() - right.ravel()).max())
        if not wrong <= 1e-4 * float(np.abs(right).max()) + 1e-5:
            raise DefectError(f"{output.name} differs from onnxruntime's by {wrong:g}")


def _gain(node: QNode) -> float:
    """Return a layer's output steps per step of its sums.

    A float bias of the file is off by up to half a step of the sums.
    """
    by = node.requantiser
    return float((by.multiplier * 2.0**-by.shift).max()) if isinstance(by, Requantiser) else 0.0


def _executed(prepared: Prepared, variant: Variant) -> None:
    """Check that every integer of every layer and frame equals the golden model's."""
    frames = execute(prepared.design, prepared.pictures, variant)
    if len(frames) != len(prepared.pictures):
        raise DefectError(f"{len(prepared.pictures)} pictures gave {len(frames)} frames")
    for number, frame in enumerate(frames):
        wrong = [f"{layer.name}: {layer.mismatches} of {layer.values}" for layer in frame.layers if layer.mismatches]
        if wrong:
            raise DefectError(f"wrong integers in frame {number} of {len(frames)}: {', '.join(wrong)}")


def _native(prepared: Prepared) -> None:
    _executed(prepared, Variant())


def _ap_int(prepared: Prepared) -> None:
    """Execute the design with the vendor's ap_int types, and with multiplications packed as in a DSP."""
    _executed(prepared, Variant(ap_int=True))


def _as_shipped(prepared: Prepared) -> None:
    """Execute the design, compiled with the flags that users get."""
    folder = prepared.design.path
    fresh(folder / "build")
    with shipped_builds():
        _executed(prepared, Variant())


def _golden(prepared: Prepared) -> None:
    """Compare the generated C++ golden program with the numpy model."""
    picture = prepared.pictures[0]
    expected = checksums(prepared.network, run_integer(prepared.network, picture))
    differing = first_difference(expected, run_golden(prepared.design.path / "golden", picture))
    if differing is not None:
        raise DefectError(f"the golden program differs, first in {differing}")


def _trace(prepared: Prepared) -> None:
    """Check that the trace ends without a deadlock, and that no layer is faster than its multipliers allow."""
    report = prepared.style.trace(prepared.design, prepared.pictures[0], lambda _: None).report()
    if report.cycles_per_frame < 1:
        raise DefectError(f"a frame takes {report.cycles_per_frame} cycles")
    for layer in report.layers:
        if layer.efficiency > 1 + 1e-9:
            raise DefectError(f"{layer.name} multiplies {layer.efficiency:.3f} times as fast as its multipliers allow")
    manifest = prepared.design.manifest
    if isinstance(manifest, StreamingManifest):
        slowest = max(layer.cycles for layer in report.layers)
        _check_pace(manifest, report.cycles_per_frame, slowest, prepared)
    json.dumps(report.values(), allow_nan=False)
    report.text()


def _check_pace(manifest: StreamingManifest, cycles: int, slowest: int, prepared: Prepared) -> None:
    """Check the traced interval of the frames.

    It must be at least the time of the slowest block and of the DMA transfers. With sized FIFOs it must not exceed the
    interval that the FIFOs were sized for.

    Args:
        cycles: The traced cycles between two frames.
        slowest: The greatest number of cycles that a layer is busy per frame.
    """
    least = max(-(-packet.bytes // packet.beat) for packet in (manifest.packet_in, manifest.packet_out))
    least = max([least, slowest, *(-(-b.macs // b.macs_per_cycle) for b in manifest.blocks if b.macs_per_cycle)])
    if cycles < least:
        raise DefectError(f"the trace has a frame every {cycles} cycles; at least {least} are needed")
    fifos = getattr(prepared.plan, "fifos", None)
    if fifos is None:
        return
    # Estimated depths may make the interval longer. The plan states by how much.
    promised = fifos.interval if prepared.options.estimated_fifos else fifos.best_interval
    if cycles > promised:
        raise DefectError(f"the trace has a frame every {cycles} cycles; the FIFOs are sized for {promised}")


def _lint(prepared: Prepared) -> None:
    sources = {path.name: path.read_text("utf-8") for path in (prepared.design.path / "src").iterdir()}
    findings = lint(sources, prepared.design.manifest.top)
    if findings:
        raise DefectError(f"the linter finds {findings[0]}")


def _host(prepared: Prepared) -> None:
    """Run the host code: on the simulated board if pynq is installed, otherwise with the compiled library only."""
    library = build(prepared.design.path)
    with _opened(prepared.design.path, Options(library=library, threshold=SURE)) as detector:
        for picture in prepared.pictures[:2]:
            _compare(prepared, detector.run(picture), picture)
        if prepared.pictures[0].shape[0] == 3:
            images = [np.ascontiguousarray(picture.transpose(1, 2, 0)) for picture in prepared.pictures]
            results: list[Result] = list(detector.stream(images + images[:1]))
            for picture, result in zip([*prepared.pictures, prepared.pictures[0]], results, strict=True):
                _compare(prepared, result.outputs, picture)


def _opened(folder: Path, options: Options) -> Detector:
    if find_spec("pynq") is None:
        return open_executed(folder, options)
    from host.accelerator import Accelerator

    return Accelerator(folder, options)


def _compare(prepared: Prepared, outputs: Any, picture: Any) -> None:
    manifest, places = prepared.design.manifest, prepared.design.network.nodes  # copies of maps change the node indices
    golden = {
        node.name: values
        for node, values in zip(prepared.network.nodes, run_integer(prepared.network, picture), strict=True)
    }
    for index, values in zip(manifest.output_layers, outputs, strict=True):
        layer = manifest.layers[index]
        expected = golden[places[layer.node].name]
        if expected is None or not np.array_equal(expected, values):
            raise DefectError(f"the host's integers of {layer.name} differ from the golden model's")


def _again(prepared: Prepared) -> None:
    """Check that the same inputs generate the same bytes."""
    digest = prepared.planned(prepared.mapped(prepared.options), prepared.options).files.digest
    if digest != prepared.plan.files.digest:
        raise DefectError("the same inputs gave different bytes")


def _saved(prepared: Prepared) -> None:
    """Check that a saved schedule or folding can be loaded, and gives the same design."""
    text = prepared.mapping.to_json()
    kind = "schedule" if prepared.case.style == "systolic" else "folding"
    settings = {kind: text}
    if kind == "folding":
        settings["estimated_fifos"] = prepared.options.estimated_fifos
    options = prepared.style.options(**settings)
    mapping = prepared.mapped(options)
    if mapping.to_json() != text:
        raise DefectError(f"a saved {kind} differs after it is loaded")
    if mapping.clock == prepared.mapping.clock:
        files = prepared.planned(mapping, options).files.files
        for name, data in prepared.plan.files.files.items():
            if files[name] != data:
                raise DefectError(f"the design of the saved {kind} has a different {name}")


def _told(prepared: Prepared) -> None:
    """Check that every report of the design can be written, as JSON, text and HTML."""
    json.dumps(prepared.plan.values(), allow_nan=False)
    json.dumps(prepared.mapping.values(), allow_nan=False)
    for text in (prepared.plan.text(), prepared.mapping.text(), prepared.mapping.page(), prepared.plan._repr_html_()):
        text.encode()


def _packaged(prepared: Prepared) -> None:
    path = prepared.design.path
    package(path, path.parent / "wheel", simulation=build(path))


CHECKS: dict[str, Callable[[Prepared], None]] = {
    "runtime": _runtime,
    "native": _native,
    "ap_int": _ap_int,
    "golden": _golden,
    "trace": _trace,
    "lint": _lint,
    "host": _host,
    "again": _again,
    "saved": _saved,
    "told": _told,
    "packaged": _packaged,
    "as_shipped": _as_shipped,
}
"""The checks by name, in the order in which they run.

The design was made by the project itself. If the project refuses it in a check, this is a defect.
"""


def run_check(name: str, prepared: Prepared) -> None:
    """Run one check. A SystolicError counts as a defect and is raised as DefectError; other errors are passed on."""
    try:
        CHECKS[name](prepared)
    except SystolicError as error:
        raise DefectError(f"{type(error).__name__}: {error}") from error
