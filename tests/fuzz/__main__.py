"""`python -m tests.fuzz TARGET`: run one campaign. The exit status is 1 if a defect is found."""

import importlib
import sys
from pathlib import Path

from tests.fuzz.campaign import Campaign
from tools.parser import Parser

# Name → module, or module:function. The function, by default `run(campaign: Campaign) -> int`, prints a summary and
# returns the number of defects.
TARGETS: dict[str, str] = {
    "arguments": "tests.fuzz.arguments",
    "board": "tests.fuzz.files.mappings:board",
    "cfg": "tests.fuzz.files.networks:cfg",
    "cycles": "tests.fuzz.sources:cycles",
    "design-streaming": "tests.fuzz.files.designs:streaming",
    "design-systolic": "tests.fuzz.files.designs:systolic",
    "exported": "tests.fuzz.files.networks:exported",
    "folding": "tests.fuzz.files.mappings:folding",
    "graphs": "tests.fuzz.graphs.run",
    "heads": "tests.fuzz.heads:heads",
    "host": "tests.fuzz.host",
    "hwh": "tests.fuzz.files.mappings:hwh",
    "integers": "tests.fuzz.graphs.quantised",
    "kills": "tests.fuzz.kills.run",
    "labels": "tests.fuzz.labels:labels",
    "lint": "tests.fuzz.sources:lint",
    "manifest": "tests.fuzz.files.designs:manifest",
    "names": "tests.fuzz.files.networks:names",
    "networks": "tests.fuzz.networks.run",
    "npz": "tests.fuzz.files.networks:npz",
    "planted": "tests.fuzz.networks.planted:run",
    "onnx": "tests.fuzz.files.onnx_models:onnx_file",
    "onnx-quantised": "tests.fuzz.files.onnx_models:onnx_quantised",
    "picture": "tests.fuzz.files.pictures:picture",
    "program": "tests.fuzz.files.designs:program",
    "powers": "tests.fuzz.graphs.powers",
    "quantized": "tests.fuzz.files.networks:quantized",
    "schedule": "tests.fuzz.files.mappings:schedule",
    "sums": "tests.fuzz.graphs.sums",
    "stored": "tests.fuzz.files.onnx_models:stored",
    "weights": "tests.fuzz.files.networks:weights",
}


def main() -> int:
    """Run the campaign that the command line names."""
    parser = Parser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("target", choices=sorted(TARGETS))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cases", type=int, help="limit for the number of cases")
    parser.add_argument("--first", type=int, default=0, metavar="N", help="first case, to continue a campaign")
    parser.add_argument("--seconds", type=float, help="time after which no further case begins")
    parser.add_argument(
        "--layers", type=int, default=0, metavar="N", help="for networks: continue until N layers are executed"
    )
    parser.add_argument("--failures", type=Path, default=Path("fuzz-failures"), metavar="DIR")
    parser.add_argument("--workers", type=int, default=1, metavar="N", help="for networks: cases tried at once")
    parser.add_argument(
        "--replay", type=Path, nargs="+", default=[], metavar="FILE", help="try these files of failures only"
    )
    options = parser.parse_args()
    campaign = Campaign(
        seed=options.seed,
        cases=options.cases,
        seconds=options.seconds,
        failures=options.failures,
        first=options.first,
        layers=options.layers,
        workers=options.workers,
        replay=tuple(options.replay),
    )
    module, _, function = TARGETS[options.target].partition(":")
    defects: int = getattr(importlib.import_module(module), function or "run")(campaign)
    return min(1, defects)


if __name__ == "__main__":
    sys.exit(main())
