"""Options that several commands have, and what is wrong with them: each is refused with what to do."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeAlias

from boards.errors import GenerateError, ScheduleError
from cnn import zoo
from cnn.onnx.ends.preprocessing import ORDERS
from cnn.quantisation.calibration import METHODS
from cnn.quantisation.quantise import FORMATS
from host.vision.picture import FITS
from systolic.extending.added import is_added
from systolic.extending.objects import refuse_keras_file
from systolic.model import Calibration, Model, load_model, sample_pictures
from systolic.pictures import picture_files
from systolic.preprocessing import preprocess
from systolic.styles.options import SHARE_ARGUMENTS, Argument

Parsers: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"  # argparse has no public name for it

BITS_HELP = "bits of weights and activations: 4, 8 or 16, with four, two or one MAC a DSP"
BOARD_HELP = "a board of systolic boards, or a file of your own that ends in .toml"
NETWORK_HELP = "a darknet .cfg, an .onnx file, an exported .json or param.h, or a built-in network"
NETWORK_ENDINGS = (".cfg", ".json", ".h", ".onnx")


def command(
    parsers: Parsers, name: str, run: Callable[[argparse.Namespace], int], text: str, example: str
) -> argparse.ArgumentParser:
    """A new command. text: what it does. example: a call that works."""
    parser = parsers.add_parser(
        name,
        help=text,
        description=text,
        epilog=f"example:\n  {example}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.set_defaults(command=run, parser=parser)
    return parser


def add_json(parser: argparse.ArgumentParser) -> None:
    """``--json FILE``"""
    parser.add_argument("--json", metavar="FILE", help="write one JSON object to FILE, - for standard output")


def add_shapes(parser: argparse.ArgumentParser) -> None:
    """A network of which shapes alone decide: its numbers may be random."""
    parser.add_argument("network", metavar="NET", help=NETWORK_HELP)
    parser.add_argument("--weights", type=Path, help="trained numbers; shapes alone decide, so none are needed")
    parser.add_argument("--seed", type=int, help="random weights from this seed (default without --weights: 1)")
    parser.add_argument("--size", type=size, metavar="WxH", help="input size instead of the network's own")
    add_cut(parser)
    add_preprocessing(parser)


def add_numbers(parser: argparse.ArgumentParser) -> None:
    """What a network has beside its layers: numbers, names, an input size and an end."""
    parser.add_argument("--weights", type=Path, help="darknet weights of a .cfg, the .npz of a .json")
    parser.add_argument("--names", type=Path, help="labels, one a line")
    parser.add_argument("--seed", type=int, help="random weights from this seed instead of trained ones")
    parser.add_argument("--size", type=size, metavar="WxH", help="input size instead of the network's own")
    add_cut(parser)
    add_preprocessing(parser)


def add_quantising(parser: argparse.ArgumentParser) -> None:
    """How integers are made of a float network."""
    add_calibration(parser)
    parser.add_argument(
        "--reconstruct",
        action="store_true",
        help="fit the weights to the calibration pictures, layer by layer, instead of rounding each: for 4 bits",
    )
    parser.add_argument(
        "--zero-points",
        action="store_true",
        help="give maps behind ReLU, leaky ReLU and functions a zero point, so that they use all integers: for 4 bits",
    )
    add_bits(parser)


def add_calibration(parser: argparse.ArgumentParser) -> None:
    """What ranges are measured on, and bits by layer."""
    parser.add_argument(
        "--calibrate",
        type=Path,
        nargs="+",
        default=[],
        metavar="PICTURE",
        help="pictures, or folders of them, to measure activation ranges on (default: the embedded samples)",
    )
    parser.add_argument("--method", default="mse", choices=METHODS, help="how ranges are chosen")
    parser.add_argument(
        "--fit", choices=tuple(FITS), help="how pictures are brought to size (default: as the network was trained)"
    )
    parser.add_argument(
        "--mixed",
        type=float,
        metavar="SHARE",
        help="4 or 8 bits a layer, those that lose least of all that the folding search brings to this share of the "
        "rate of 4 bits (streaming style)",
    )


def calibration_from(options: argparse.Namespace) -> Calibration:
    """What ``add_quantising`` asked for. PictureError for a folder without pictures."""
    pictures = picture_files(options.calibrate) or sample_pictures()
    if options.mixed is not None and options.bits is not None:
        raise GenerateError("--mixed chooses the bits of each layer: leave out --bits")
    if options.mixed is not None and options.zero_points:
        raise GenerateError("--mixed gives no layer a zero point: leave out --zero-points, or name the --bits")
    return Calibration(
        pictures,
        options.method,
        options.fit,
        options.bits,
        options.reconstruct,
        options.mixed,
        zero_points=options.zero_points,
    )


def add_cut(parser: argparse.ArgumentParser) -> None:
    """``--cut``, once."""
    parser.add_argument(
        "--cut",
        nargs="+",
        default=[],
        metavar="TENSOR",
        help="end an .onnx file at these tensors, or at those of a file of heads, .json; the host does what is behind",
    )


def add_preprocessing(parser: argparse.ArgumentParser) -> None:
    """``--mean``, ``--std`` and ``--channel-order``: what was done to pictures before an .onnx file read them."""
    parser.add_argument(
        "--mean",
        type=numbers,
        default=(),
        metavar="R,G,B",
        help="what the training of an .onnx file took from pixels of 0 to 1, such as 0.485,0.456,0.406; the "
        "accelerator does it first (default: 0)",
    )
    parser.add_argument(
        "--std",
        type=numbers,
        default=(),
        metavar="R,G,B",
        help="what it divided them by then, such as 0.229,0.224,0.225; 0.00392157 where it had pixels of 0 to 255 "
        "(default: 1)",
    )
    parser.add_argument("--channel-order", default="RGB", choices=ORDERS, help="of those pixels (default: %(default)s)")


def numbers(text: str) -> tuple[float, ...]:
    """ "0.5,0.4,0.4" → (0.5, 0.4, 0.4)."""
    try:
        return tuple(float(number) for number in text.split(","))
    except ValueError as error:
        raise argparse.ArgumentTypeError(
            f"one number, or one a channel with commas between, such as 0.485,0.456,0.406, not {text!r}"
        ) from error


def model_of(options: argparse.Namespace, seed: int | None, names: Path | None = None) -> Model:
    """The network that ``add_shapes`` or ``add_numbers`` asked for."""
    model = load_model(options.network, options.weights, names, seed, options.size, options.cut)
    return preprocess(model, options.mean, options.std, options.channel_order)


CLOCK_HELP = "a clock that the board makes (default: the best; its highest where a rate is to be held)"
SEVERAL = "may be given several times"


def add_search(parser: argparse.ArgumentParser) -> None:
    """What ``schedule`` and ``compare`` ask of a search."""
    add_shapes(parser)
    parser.add_argument("--objective", default="fps", help="fps, latency, ddr or resources (default: %(default)s)")
    parser.add_argument(
        "--fps", type=float, default=0.0, metavar="RATE", help="frame rate that ddr and resources must hold"
    )
    parser.add_argument("--workers", type=int, default=1, metavar="N", help="search in N processes")
    parser.add_argument("--dask", metavar="ADDRESS", help="search on a Dask cluster")
    parser.add_argument("--report", type=Path, metavar="FILE", help="one self-contained HTML file with pictures")
    add_arguments(parser, SHARE_ARGUMENTS)
    add_json(parser)


def add_arguments(parser: argparse._ActionsContainer, arguments: Sequence[Argument]) -> None:
    """Options that are declared as data."""
    for argument in arguments:
        argument.add_to(parser)


def add_board(parser: argparse.ArgumentParser, default: str) -> None:
    """``--board``, once."""
    parser.add_argument("--board", default=default, metavar="BOARD", help=f"{BOARD_HELP} (default: %(default)s)")


def add_bits(parser: argparse.ArgumentParser) -> None:
    """``--bits``, once."""
    parser.add_argument("--bits", type=int, choices=FORMATS, help=f"{BITS_HELP} (default: 8)")


def size(text: str) -> tuple[int, int]:
    """ "416x416" → (width, height)."""
    width, _, height = text.lower().partition("x")
    if not (width.isdigit() and height.isdigit()):
        raise argparse.ArgumentTypeError(f"a size is WIDTHxHEIGHT in pixels, such as 416x416, not {text!r}")
    if not (int(width) and int(height)):
        raise argparse.ArgumentTypeError(f"a size is at least 1x1, not {text}")
    return int(width), int(height)


def seed_of(options: argparse.Namespace) -> int | None:
    """Shapes alone decide; a network without numbers gets random ones."""
    name = options.network
    built_in = name in zoo.names() and zoo.has_numbers(name)
    has_numbers = name.endswith(".onnx") or built_in or is_added(name)
    return 1 if options.weights is None and options.seed is None and not has_numbers else options.seed


# --- checks --------------------------------------------------------------------------------------------------------


def check_network(name: str) -> None:
    """GenerateError where NET is a path with another ending than a network file's."""
    if name in zoo.names() or name.endswith(NETWORK_ENDINGS) or is_added(name):
        return
    refuse_keras_file(name)
    if Path(name).suffix or Path(name).exists():
        raise GenerateError(
            f"{name} holds no network: NET is a darknet .cfg, an .onnx file, an exported .json, or a built-in name "
            f"({', '.join(zoo.names())})"
        )


def check_search(options: argparse.Namespace) -> None:
    """ScheduleError where the search cannot start."""
    check_network(options.network)
    if options.workers < 1:
        raise ScheduleError(f"--workers counts processes, 1 or more, not {options.workers}")


def named(flags: list[str]) -> str:
    """ "--a is", "--a, --b are"."""
    return f"{', '.join(flags)} {'is' if len(flags) == 1 else 'are'}"
