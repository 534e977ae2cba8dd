"""``systolic export``: a quantised network as an ONNX file, or in the files of DAC-SDC's exporters, for other tools."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

from boards.errors import GenerateError
from cnn.onnx.quantised.export import DIALECTS, to_onnx
from cnn.quantized import MultiplyShift, QuantizedNetwork
from host.contract.manifest import is_design
from systolic.cli.arguments import (
    NETWORK_HELP,
    Parsers,
    add_json,
    add_numbers,
    add_quantising,
    calibration_from,
    check_network,
    command,
    model_of,
)
from systolic.cli.output import give, write_bytes
from systolic.cli.progress import StatusLine
from systolic.exporting.contest import contest_files
from systolic.model import quantise_model, trained_integers
from systolic.styles.registry import open_design

CONTEST = "contest"


@dataclass(frozen=True, eq=False)
class Source:
    """What is exported: integers, how pictures are brought to size, and the files that the network came in."""

    network: QuantizedNetwork
    fit: str
    files: dict[str, bytes]


def add(parsers: Parsers) -> None:
    """The command's arguments."""
    parser = command(
        parsers,
        "export",
        run,
        "the quantised network in files that other tools read: ONNX, or those of DAC-SDC's exporters",
        "systolic export DIR -o net.onnx",
    )
    parser.add_argument("network", metavar="NET|DIR", help=f"{NETWORK_HELP}, or a generated design")
    parser.add_argument(
        "-o", "--output", type=Path, required=True, metavar="FILE", help=f"the file, .onnx; the folder of {CONTEST}"
    )
    parser.add_argument(
        "--dialect",
        choices=(*DIALECTS, CONTEST),
        default=DIALECTS[0],
        help="qonnx: Quant behind each layer; finn: MultiThreshold, every integer equal; contest: config.json, param.h "
        "and config.h as UltraNet's own accelerator reads them (default: %(default)s)",
    )
    add_numbers(parser)
    add_quantising(parser)
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    """JSON: {file, dialect, layers}."""
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
        text += ", which other tools execute in floats: --dialect finn keeps every integer there too"
    give(options, values, text)
    return 0


def _source(options: argparse.Namespace, status: StatusLine) -> Source:
    folder = Path(options.network)
    if is_design(folder):
        design = open_design(folder)
        names = ("model/network.json", "model/network.npz") if trained_integers(folder) else ()
        return Source(design.network, design.manifest.fit, {name: (folder / name).read_bytes() for name in names})
    check_network(options.network)
    status.tell("reading the network")
    model = model_of(options, options.seed, options.names)
    calibration = calibration_from(options)
    network = quantise_model(model, calibration, status.tell)
    return Source(network, calibration.fit or model.fit, dict(model.files))


def write_folder(folder: Path, files: dict[str, bytes]) -> None:
    """GenerateError where it cannot be written, or holds files already: of two networks they would not fit together."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        is_used = any(folder.iterdir())
    except OSError as error:
        raise GenerateError(f"{folder} cannot be a folder: {error.strerror}; choose another output folder") from error
    if is_used:
        raise GenerateError(f"{folder} must be empty, so that files of one network lie in it; choose another folder")
    for name, data in files.items():
        write_bytes(folder / name, data)
