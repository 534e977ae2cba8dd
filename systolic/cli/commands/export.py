"""``systolic export``: a quantised network as an ONNX file that other tools read."""

from __future__ import annotations

import argparse
from pathlib import Path

from cnn.onnx.quantised.export import DIALECTS, to_onnx
from cnn.quantized import MultiplyShift
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
)
from systolic.cli.output import give, write_bytes
from systolic.cli.progress import StatusLine
from systolic.model import load_model, quantise_model
from systolic.styles.registry import open_design


def add(parsers: Parsers) -> None:
    """The command's arguments."""
    parser = command(
        parsers,
        "export",
        run,
        "the quantised network as an ONNX file that other tools read",
        "systolic export DIR -o net.onnx",
    )
    parser.add_argument("network", metavar="NET|DIR", help=f"{NETWORK_HELP}, or a generated design")
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="FILE", help="the file, .onnx")
    parser.add_argument(
        "--dialect",
        choices=DIALECTS,
        default=DIALECTS[0],
        help="qonnx: Quant behind each layer; finn: MultiThreshold, every integer equal (default: %(default)s)",
    )
    add_numbers(parser)
    add_quantising(parser)
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    """JSON: {file, dialect, layers}."""
    with StatusLine() as status:
        if is_design(Path(options.network)):
            network = open_design(Path(options.network)).network
        else:
            check_network(options.network)
            status.tell("reading the network")
            model = load_model(options.network, options.weights, options.names, options.seed, options.size, options.cut)
            network = quantise_model(model, calibration_from(options), status.tell)
        write_bytes(options.output, to_onnx(network, options.dialect))
    values = {"file": str(options.output), "dialect": options.dialect, "layers": len(network.nodes)}
    text = f"{network.name}: {len(network.nodes)} layers written to {options.output} as {options.dialect}"
    late = any(isinstance(getattr(node.op, "requantiser", None), MultiplyShift) for node in network.nodes)
    if late and options.dialect == "qonnx":
        text += ", whose Quant rounds batch norms in another place: --dialect finn keeps every integer"
    give(options, values, text)
    return 0
