"""What must hold of every design that was written: a function a check, which ends with DefectError or another error."""

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
"""Probability above which few boxes of random numbers are."""


class DefectError(Exception):
    """What does not hold."""


def _runtime(prepared: Prepared) -> None:
    """The float network of an ONNX file is what another runtime makes of it, to 1e-4 of an output's greatest; of a file
    with integers every tensor, to a step."""
    if prepared.model.quantized is not None:
        with TemporaryDirectory() as folder:
            path = Path(folder) / "network.onnx"
            path.write_bytes(prepared.model.files[ONNX_FILE])
            steps = differences(path, read_onnx(path), prepared.pictures[0])
        allowed = {node.name: 1 + _gain(node) / 2 for node in prepared.model.quantized.nodes}
        if far := {name: step for name, step in steps.items() if step > allowed[name]}:
            raise DefectError(f"steps from onnxruntime's: {far}")
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
    """Steps of a layer's results a step of its sums. Half of one is what a float bias of the file is off."""
    by = node.requantiser
    return float((by.multiplier * 2.0**-by.shift).max()) if isinstance(by, Requantiser) else 0.0


def _executed(prepared: Prepared, variant: Variant) -> None:
    """Every integer of every layer and frame is the golden model's."""
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
    """The vendor's types, and multiplications packed as a DSP has them."""
    _executed(prepared, Variant(ap_int=True))


def _as_shipped(prepared: Prepared) -> None:
    """Compiled with the flags that users have."""
    folder = prepared.design.path
    fresh(folder / "build")
    with shipped_builds():
        _executed(prepared, Variant())


def _golden(prepared: Prepared) -> None:
    """The generated C++ golden program against the numpy model."""
    picture = prepared.pictures[0]
    expected = checksums(prepared.network, run_integer(prepared.network, picture))
    differing = first_difference(expected, run_golden(prepared.design.path / "golden", picture))
    if differing is not None:
        raise DefectError(f"the golden program differs, first in {differing}")


def _trace(prepared: Prepared) -> None:
    """Ends without a deadlock, and no layer is faster than its multipliers."""
    report = prepared.style.trace(prepared.design, prepared.pictures[0], lambda _: None).report()
    if report.cycles_per_frame < 1:
        raise DefectError(f"a frame takes {report.cycles_per_frame} cycles")
    for layer in report.layers:
        if layer.efficiency > 1 + 1e-9:
            raise DefectError(f"{layer.name} multiplies {layer.efficiency:.3f} times what its multipliers can")
    manifest = prepared.design.manifest
    if isinstance(manifest, StreamingManifest):
        slowest = max(layer.cycles for layer in report.layers)
        _check_pace(manifest, report.cycles_per_frame, slowest, prepared)
    json.dumps(report.values(), allow_nan=False)
    report.text()


def _check_pace(manifest: StreamingManifest, cycles: int, slowest: int, prepared: Prepared) -> None:
    """No frame leaves before its slowest block, or the DMA, can be done; sized FIFOs keep what they were sized for.
    slowest: the cycles that it is busy with a frame."""
    least = max(-(-packet.bytes // packet.beat) for packet in (manifest.packet_in, manifest.packet_out))
    least = max([least, slowest, *(-(-b.macs // b.macs_per_cycle) for b in manifest.blocks if b.macs_per_cycle)])
    if cycles < least:
        raise DefectError(f"a frame every {cycles} cycles traced, and at least {least} are needed")
    fifos = getattr(prepared.plan, "fifos", None)
    if fifos is None:
        return
    # Depths that are estimated may cost some of the pace, which the plan says.
    promised = fifos.interval if prepared.options.estimated_fifos else fifos.best_interval
    if cycles > promised:
        raise DefectError(f"a frame every {cycles} cycles traced, with FIFOs sized for {promised}")


def _lint(prepared: Prepared) -> None:
    sources = {path.name: path.read_text("utf-8") for path in (prepared.design.path / "src").iterdir()}
    findings = lint(sources, prepared.design.manifest.top)
    if findings:
        raise DefectError(f"the linter finds {findings[0]}")


def _host(prepared: Prepared) -> None:
    """What runs beside the accelerator: the simulated board where pynq is installed, else the library by itself."""
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
    manifest, places = prepared.design.manifest, prepared.design.network.nodes  # with copies, which move the places
    golden = {
        node.name: values
        for node, values in zip(prepared.network.nodes, run_integer(prepared.network, picture), strict=True)
    }
    for index, values in zip(manifest.output_layers, outputs, strict=True):
        layer = manifest.layers[index]
        expected = golden[places[layer.node].name]
        if expected is None or not np.array_equal(expected, values):
            raise DefectError(f"the host reads other integers of {layer.name} than the golden model's")


def _again(prepared: Prepared) -> None:
    """The same inputs give the same bytes."""
    digest = prepared.planned(prepared.mapped(prepared.options), prepared.options).files.digest
    if digest != prepared.plan.files.digest:
        raise DefectError("the same inputs gave other bytes")


def _saved(prepared: Prepared) -> None:
    """What a user saves is taken back, and is the same design."""
    text = prepared.mapping.to_json()
    kind = "schedule" if prepared.case.style == "systolic" else "folding"
    settings = {kind: text}
    if kind == "folding":
        settings["estimated_fifos"] = prepared.options.estimated_fifos
    options = prepared.style.options(**settings)
    mapping = prepared.mapped(options)
    if mapping.to_json() != text:
        raise DefectError(f"a saved {kind} is another one when it is loaded")
    if mapping.clock == prepared.mapping.clock:
        files = prepared.planned(mapping, options).files.files
        for name, data in prepared.plan.files.files.items():
            if files[name] != data:
                raise DefectError(f"with its saved {kind} the design has another {name}")


def _told(prepared: Prepared) -> None:
    """Everything that is said of a design can be said of this one."""
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
"""In the order in which they are made; what the project refuses here it has made itself."""


def run_check(name: str, prepared: Prepared) -> None:
    """DefectError where the check fails or the project refuses its own design; other errors as they come."""
    try:
        CHECKS[name](prepared)
    except SystolicError as error:
        raise DefectError(f"{type(error).__name__}: {error}") from error
