"""The ``systolic`` command: thin argparse over one callable a command (systolic/cli/commands.py)."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeAlias

from boards.errors import SystolicError
from cnn.quantisation.quantise import FORMATS
from host.vision.detection import OVERLAP, THRESHOLD
from host.vision.picture import FITS
from systolic.cli import commands, commands_schedule, commands_streaming
from systolic.cli.options import FOLDING
from systolic.styles.streaming.flow import FOLDERS

BITS_HELP = "bits of weights and activations: 4, 8 or 16, with four, two or one MAC a DSP"

Parsers: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"  # argparse has no public name for it


def main(arguments: Sequence[str] | None = None) -> int:
    """0 done, 1 mismatches found, 2 unusable input (the sentence goes to stderr)."""
    options = parser().parse_args(arguments)
    try:
        result: int = options.command(options)
        return result
    except SystolicError as error:
        print(f"systolic: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:  # the reader of a pipe has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        print("systolic: stopped", file=sys.stderr)
        return 130


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(
        prog="systolic",
        description="From a trained CNN to an FPGA accelerator that is proven before a vendor tool is opened.",
        epilog="example: systolic demo",
    )
    subparsers = top.add_subparsers(metavar="COMMAND", required=True)
    _demo(subparsers)
    _boards(subparsers)
    _generate(subparsers)
    _simulate(subparsers)
    _run(subparsers)
    _schedule(subparsers)
    _compare(subparsers)
    _fold(subparsers)
    _package(subparsers)
    return top


def _command(
    subparsers: Parsers, name: str, command: Callable[[argparse.Namespace], int], text: str, example: str
) -> argparse.ArgumentParser:
    one = subparsers.add_parser(
        name,
        help=text,
        description=text,
        epilog=f"example:\n  {example}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    one.set_defaults(command=command)
    return one


def _size(text: str) -> tuple[int, int]:
    width, _, height = text.lower().partition("x")
    if not (width.isdigit() and height.isdigit()):
        raise argparse.ArgumentTypeError(f"a size is WIDTHxHEIGHT in pixels, such as 416x416, not {text!r}")
    if not (int(width) and int(height)):
        raise argparse.ArgumentTypeError(f"a size is at least 1x1, not {text}")
    return int(width), int(height)


def _json_option(one: argparse.ArgumentParser) -> None:
    one.add_argument("--json", metavar="FILE", help="write one JSON object to FILE, - for standard output")


def _batch_option(one: argparse.ArgumentParser) -> None:
    one.add_argument(
        "--batch",
        type=int,
        metavar="B",
        help="frames that share the weights' passage where that is exact (systolic style; default: 1)",
    )


def _demo(subparsers: Parsers) -> None:
    one = _command(
        subparsers,
        "demo",
        commands.demo,
        "walk the whole path with the embedded trained network and picture",
        "systolic demo -o my-demo",
    )
    one.add_argument(
        "-o",
        "--output",
        type=Path,
        default=Path("systolic-demo"),
        metavar="DIR",
        help="where the accelerator and the annotated picture go (default: %(default)s)",
    )
    one.add_argument("--board", default="zcu104", help="board (default: %(default)s)")
    _json_option(one)


def _boards(subparsers: Parsers) -> None:
    one = _command(subparsers, "boards", commands.boards, "list the boards and their facts", "systolic boards zcu104")
    one.add_argument("board", nargs="?", help="all facts of one board")
    _json_option(one)


def _generate(subparsers: Parsers) -> None:
    one = _command(
        subparsers,
        "generate",
        commands.generate_design,
        "generate the accelerator of a trained network",
        "systolic generate yolo.cfg --weights yolo.weights --names voc.names --calibrate a.jpg b.jpg -o DIR",
    )
    one.add_argument(
        "network",
        metavar="NET",
        help="a darknet .cfg, an exported .json, or a built-in network: see systolic generate list",
    )
    one.add_argument("-o", "--output", type=Path, metavar="DIR", help="new folder for the design")
    one.add_argument("--weights", type=Path, help="darknet weights of a .cfg, the .npz of a .json")
    one.add_argument("--names", type=Path, help="labels, one a line")
    one.add_argument("--seed", type=int, help="random weights from this seed instead of trained ones")
    one.add_argument("--size", type=_size, metavar="WxH", help="input size instead of the network's own")
    one.add_argument("--board", default="zcu104", help="board (default: %(default)s)")
    one.add_argument(
        "--clock",
        type=float,
        metavar="MHZ",
        help="target clock; default: the best for the array that is searched, else the highest that the board makes",
    )
    one.add_argument(
        "--calibrate",
        type=Path,
        nargs="+",
        default=[],
        metavar="PICTURE",
        help="pictures to measure activation ranges on (default: the embedded samples)",
    )
    one.add_argument("--method", default="mse", choices=("max", "percentile", "mse"), help="how ranges are chosen")
    one.add_argument(
        "--fit",
        choices=tuple(FITS),
        help="how pictures are brought to size (default: as the network was trained)",
    )
    one.add_argument("--bits", type=int, choices=FORMATS, help=f"{BITS_HELP} (default: 8)")
    one.add_argument("--schedule", type=Path, metavar="FILE", help="a schedule saved by systolic schedule --save")
    _batch_option(one)
    one.add_argument(
        "--style",
        default="systolic",
        choices=("systolic", "streaming"),
        help="one tiled array for all layers, or a pipeline in which every layer has its own hardware "
        "(default: %(default)s)",
    )
    _folding_options(one)
    one.add_argument("--force", action="store_true", help="replace a design that is in DIR already")
    _json_option(one)


def _simulate(subparsers: Parsers) -> None:
    one = _command(
        subparsers,
        "simulate",
        commands.simulate_design,
        "execute the generated code and compare every layer with the golden model",
        "systolic simulate DIR --picture dog.jpg --ap-int",
    )
    one.add_argument("folder", type=Path, metavar="DIR", help="a generated design")
    one.add_argument(
        "--picture",
        type=Path,
        required=True,
        nargs="+",
        metavar="P",
        help="the picture to run; of a design of batches up to as many, the last one fills the batch",
    )
    one.add_argument("--ap-int", action="store_true", help="with the vendor's ap_int types and packed products")
    one.add_argument("--golden", action="store_true", help="also compile and run the standalone C++ golden program")
    one.add_argument("--cycles", action="store_true", help="trace the execution: cycles, stalls, frames a second")
    one.add_argument("--clock", type=float, metavar="MHZ", help="with --cycles: another clock than the design's target")
    one.add_argument(
        "--ddr-efficiency",
        type=float,
        metavar="SHARE",
        help="with --cycles: the share of the DDR's peak that carries data (default: 0.85)",
    )
    one.add_argument("--timeline", type=Path, metavar="FILE", help="with --cycles: a picture, a lane a process")
    one.add_argument("--layer", metavar="NAME", help="with --timeline: draw this layer instead of the frame")
    one.add_argument("--fifos", action="store_true", help="with --cycles: the least FIFO depths that lose nothing")
    _json_option(one)


def _run(subparsers: Parsers) -> None:
    one = _command(
        subparsers,
        "run",
        commands.run_picture,
        "find the objects on a picture with the executed design",
        "systolic run DIR dog.jpg -o boxes.png",
    )
    one.add_argument("folder", type=Path, metavar="DIR", help="a generated design")
    one.add_argument("picture", type=Path, metavar="P", help="the picture, or a folder of them or of video frames")
    one.add_argument("-o", "--output", type=Path, metavar="FILE", help="the picture with its boxes, or their folder")
    one.add_argument("--threshold", type=float, default=THRESHOLD, help="least probability (default: %(default)s)")
    one.add_argument(
        "--overlap", type=float, default=OVERLAP, help="greatest overlap of two boxes of a class (default: %(default)s)"
    )
    _json_option(one)


def _search_options(one: argparse.ArgumentParser) -> None:
    one.add_argument("network", metavar="NET", help="a darknet .cfg, an exported .json, or a built-in network")
    one.add_argument("--weights", type=Path, help="trained numbers; shapes alone decide, so none are needed")
    one.add_argument("--seed", type=int, help="random weights from this seed (default without --weights: 1)")
    one.add_argument("--size", type=_size, metavar="WxH", help="input size instead of the network's own")
    one.add_argument(
        "--clock",
        type=float,
        metavar="MHZ",
        help="a clock that the board makes (default: the best; its highest where a rate is to be held)",
    )
    one.add_argument("--objective", default="fps", help="fps, latency, ddr or resources (default: %(default)s)")
    one.add_argument(
        "--fps", type=float, default=0.0, metavar="RATE", help="frame rate that ddr and resources must hold"
    )
    one.add_argument("--workers", type=int, default=1, metavar="N", help="search in N processes")
    one.add_argument("--dask", metavar="ADDRESS", help="search on a Dask cluster")
    one.add_argument("--report", type=Path, metavar="FILE", help="one self-contained HTML file with pictures")
    _json_option(one)


def _schedule(subparsers: Parsers) -> None:
    one = _command(
        subparsers,
        "schedule",
        commands_schedule.schedule,
        "find the best array and tiling for a network, and say why",
        "systolic schedule tiny-yolov2-voc --board zcu104 --clock 300 --array 13x16x16",
    )
    _search_options(one)
    one.add_argument("--board", default="zcu104", help="board (default: %(default)s)")
    one.add_argument("--array", metavar="MxNxL", help="pin rows × columns × lanes")
    one.add_argument("--order", help="pin the loop order: weights-resident, inputs-resident or streamed")
    for pin, what in commands_schedule.PINS.items():
        one.add_argument(f"--{pin.replace('_', '-')}", dest=pin, type=int, metavar="N", help=f"pin the {what}")
    one.add_argument("--bits", type=int, choices=FORMATS, help=f"{BITS_HELP} (default: 8)")
    one.add_argument("--ddr-efficiency", type=float, metavar="SHARE", help="share of the DDR's peak that carries data")
    one.add_argument("--schedule", type=Path, metavar="FILE", help="price this schedule instead of searching")
    _batch_option(one)
    one.add_argument("--save", type=Path, metavar="FILE", help="write the schedule as JSON, to be edited by hand")


def _compare(subparsers: Parsers) -> None:
    one = _command(
        subparsers,
        "compare",
        commands_schedule.compare,
        "compare boards and arrays for a network",
        "systolic compare tiny-yolov2-voc --board zcu104 --board zcu102 --array 13x16x16 --report compare.html",
    )
    _search_options(one)
    one.add_argument("--board", action="append", help="a board; may be given several times (default: zcu104)")
    one.add_argument("--array", action="append", metavar="MxNxL", help="an array; may be given several times")
    one.add_argument(
        "--bits",
        type=int,
        action="append",
        choices=FORMATS,
        help=f"{BITS_HELP}; may be given several times (default: 8)",
    )
    one.add_argument(
        "--batch",
        type=int,
        action="append",
        metavar="B",
        help="frames that share the weights' passage; may be given several times (default: 1)",
    )


def _folding_options(one: argparse.ArgumentParser) -> None:
    of = one.add_argument_group("folding (streaming style)")
    of.add_argument("--fps", type=float, metavar="RATE", help="frames/s to reach; default: as many as fit the board")
    of.add_argument(
        "--folding",
        metavar="FOLDER|FILE",
        help=f"{', '.join(FOLDERS)}, or a file of systolic fold --save (default: %(default)s)",
    )
    of.add_argument("--deadline", type=float, metavar="S", help="seconds to search (%(default)s)")
    of.add_argument("--effort", type=int, metavar="N", help="of annealing: evaluations a block (%(default)s)")
    of.add_argument("--attempts", type=int, metavar="N", help="of annealing: times through all blocks (%(default)s)")
    of.add_argument("--max-padding", type=int, metavar="N", help="channels that may be added to a map")
    of.add_argument(
        "--max-pixels", type=int, metavar="M", help="pixels that may travel in a word (default: %(default)s)"
    )
    of.add_argument("--pad-ends", action="store_true", help="pad also what the network reads and gives")
    of.add_argument("--external", nargs="+", metavar="LAYER", help="layers whose weights stay in DDR")
    of.add_argument("--estimated-fifos", action="store_true", help="take FIFO depths as estimated, trace nothing")
    one.set_defaults(**FOLDING)


def _fold(subparsers: Parsers) -> None:
    one = _command(
        subparsers,
        "fold",
        commands_streaming.fold,
        "fold a network as a streaming pipeline, and compare how it is done",
        "systolic fold ultranet --board ultra96-v2 --fps 2000 --compare",
    )
    one.add_argument("network", metavar="NET", help="a darknet .cfg, an exported .json, or a built-in network")
    one.add_argument("--weights", type=Path, help="trained numbers; shapes alone decide, so none are needed")
    one.add_argument("--seed", type=int, help="random weights from this seed (default without --weights: 1)")
    one.add_argument("--size", type=_size, metavar="WxH", help="input size instead of the network's own")
    one.add_argument("--board", default="ultra96-v2", help="board (default: %(default)s)")
    one.add_argument("--clock", type=float, metavar="MHZ", help="a clock that the board makes (default: its highest)")
    one.add_argument("--bits", type=int, choices=FORMATS, help=f"{BITS_HELP} (default: 8)")
    one.add_argument("--compare", action="store_true", help="all folders side by side")
    one.add_argument("--save", type=Path, metavar="FILE", help="write the folding as JSON, to be edited by hand")
    one.add_argument("--report", type=Path, metavar="FILE", help="one self-contained HTML file with pictures")
    _folding_options(one)
    _json_option(one)


def _package(subparsers: Parsers) -> None:
    one = _command(
        subparsers,
        "package",
        commands_schedule.make_package,
        "one wheel for the board: driver, bitstream, manifest, images and notebooks",
        "systolic package DIR -o dist",
    )
    one.add_argument("folder", type=Path, metavar="DIR", help="a generated design with its bitstream")
    one.add_argument("-o", "--output", type=Path, default=Path(), metavar="DIR", help="folder for the wheel")
    one.add_argument("--without-bitstream", action="store_true", help="before Vivado has run: for the simulated board")
    _json_option(one)


if __name__ == "__main__":
    sys.exit(main())
