"""``systolic export``: a quantised network for other tools, as an ONNX file or in the files of the DAC-SDC contest."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

from boards.errors import FileAccessError
from cnn.onnx.quantised.export import to_onnx
from cnn.quantized import QuantizedNetwork
from cnn.requantise import MultiplyShift
from host.contract.manifest import is_design
from systolic.cli.inputs import calibration_from, check_network, model_of
from systolic.cli.options.training import CONTEST
from systolic.cli.output import write_bytes, write_result
from systolic.cli.progress import StatusLine
from systolic.contest import contest_files
from systolic.loading import trained_integers
from systolic.model import quantise_model
from systolic.styles.registry import open_design


@dataclass(frozen=True, eq=False)
class ExportSource:
    """The quantised network to export, its resize method and the files that it was read from.

    Attributes:
        network: The quantised network.
        fit: How pictures are resized to the network's input.
        files: Name → content of the files from which the network was read.
    """

    network: QuantizedNetwork
    fit: str
    files: dict[str, bytes]


def run(options: argparse.Namespace) -> int:
    """Quantise a network, or read a design's, and write it as --dialect says. JSON: {file, dialect, layers}."""
    with StatusLine() as status:
        source = _source(options, status)
        network = source.network
        if options.dialect == CONTEST:
            write_folder(options.output, contest_files(network, source.fit, source.files))
        else:
            write_bytes(options.output, to_onnx(network, options.dialect))
    values = {"file": str(options.output), "dialect": options.dialect, "layers": len(network.nodes)}
    text = f"{network.name}: {len(network.nodes)} layers written to {options.output} as {options.dialect}"
    late = any(isinstance(node.requantiser, MultiplyShift) for node in network.nodes)
    if late and options.dialect == "qonnx":
        text += "; other tools execute this dialect in floating point, so use --dialect finn to keep every integer"
    write_result(options, values, text)
    return 0


def _source(options: argparse.Namespace, status: StatusLine) -> ExportSource:
    folder = Path(options.network)
    if is_design(folder):
        design = open_design(folder)
        names = ("model/network.json", "model/network.npz") if trained_integers(folder) else ()
        return ExportSource(design.network, design.manifest.fit, {name: (folder / name).read_bytes() for name in names})
    check_network(options.network)
    status.report("reading the network")
    model = model_of(options, options.seed, options.names)
    calibration = calibration_from(options)
    network = quantise_model(model, calibration, status.report)
    return ExportSource(network, calibration.fit or model.fit, dict(model.files))


def write_folder(folder: Path, files: dict[str, bytes]) -> None:
    """Write the files into an empty folder, so that files of two networks are never mixed.

    Raises:
        FileAccessError: The folder cannot be written, or it already has files.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        is_used = any(folder.iterdir())
    except OSError as error:
        raise FileAccessError(
            str(folder), f"cannot be written: {error.strerror}", "output folder", remedy="choose another folder"
        ) from error
    if is_used:
        raise FileAccessError(str(folder), "is not empty", "output folder", remedy="choose another folder")
    for name, data in files.items():
        write_bytes(folder / name, data)
