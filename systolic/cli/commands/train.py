"""``systolic train``: a network of few bits, trained on labelled pictures."""

from __future__ import annotations

import argparse
import sys
from dataclasses import asdict, fields
from pathlib import Path
from typing import TYPE_CHECKING

from boards.errors import GenerateError, LabelError
from cnn.network import Detection
from cnn.training import check_pytorch
from host.vision.detection import label_of
from host.vision.picture import FITS
from systolic.cli.arguments import NETWORK_HELP, Parsers, add_json, add_numbers, check_network, command, model_of
from systolic.cli.output import give
from systolic.cli.progress import StatusLine
from systolic.evaluation.layouts.darknet import Classes
from systolic.evaluation.layouts.read import read_labelled
from systolic.model import Model

if TYPE_CHECKING:
    from systolic.training.data import TrainingData
    from systolic.training.loop import Settings, Trained

EXAMPLE = "systolic train yolo.cfg --weights yolo.weights --data VOC2007 --split train --bits 4 -o DIR"
METHODS = {"lsq": "steps are learned", "dorefa": "weights by tanh and maximum, values clipped to 0…1"}


def add(parsers: Parsers) -> None:
    """The command's arguments."""
    parser = command(parsers, "train", run, "a network of few bits, trained on your labelled pictures", EXAMPLE)
    parser.add_argument("network", metavar="NET", help=f"{NETWORK_HELP}; its numbers are what training begins with")
    parser.add_argument(
        "--data", type=Path, required=True, metavar="FOLDER", help="labelled pictures, as evaluate takes them"
    )
    parser.add_argument("--split", help="the part of a set that has several, such as train")
    parser.add_argument(
        "-o", "--output", type=Path, required=True, metavar="DIR", help="for NAME.json, NAME.npz and a checkpoint"
    )
    parser.add_argument("--name", help="of the network that comes out, and its files (default: that of NET)")
    parser.add_argument("--bits", type=int, default=4, metavar="N", help="of weights and values, 2…8 (default: 4)")
    methods = "; ".join(f"{name}: {text}" for name, text in METHODS.items())
    parser.add_argument("--method", choices=tuple(METHODS), default="lsq", help=f"{methods} (default: %(default)s)")
    parser.add_argument(
        "--prune", type=float, default=0.0, metavar="SHARE", help="leave out this share of the filters, the lightest"
    )
    parser.add_argument("--epochs", type=int, default=10, metavar="N", help="times over all pictures (default: 10)")
    parser.add_argument("--batch", type=int, default=32, metavar="N", help="pictures a step (default: %(default)s)")
    parser.add_argument("--rate", type=float, default=1e-3, help="the highest learning rate (default: %(default)s)")
    parser.add_argument(
        "--order",
        type=int,
        default=1,
        metavar="SEED",
        help="seed of the order of pictures, and of all else that is random (1)",
    )
    parser.add_argument("--device", choices=("auto", "cpu", "cuda"), default="auto", help="(default: a GPU if any)")
    parser.add_argument("--threads", type=int, default=1, metavar="N", help="of PyTorch (default: %(default)s)")
    parser.add_argument("--fit", choices=tuple(FITS), help="how pictures are brought to size (default: the network's)")
    add_numbers(parser)
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    """JSON: ``_values``."""
    _check(options)
    check_pytorch()
    from systolic.training.loop import Settings, train

    settings = Settings(**{each.name: getattr(options, each.name) for each in fields(Settings)})
    with StatusLine() as status:
        status.tell("reading the network")
        model = model_of(options, options.seed, options.names)
        status.tell("reading labels")
        data = _data(model, options)
        trained = train(
            model, data, settings, options.output, status.tell, lambda line: print(line, file=sys.stderr, flush=True)
        )
    give(options, _values(settings, data, trained), _text(trained))
    return 0


def _check(options: argparse.Namespace) -> None:
    check_network(options.network)
    for name, lowest, highest in (
        ("bits", 2, 8),
        ("epochs", 1, 100_000),
        ("batch", 1, 4096),
        ("threads", 1, 1024),
        ("order", 0, 1 << 32),
    ):
        value = getattr(options, name)
        if not lowest <= value <= highest:
            raise GenerateError(f"--{name} is a whole number, {lowest}…{highest}, not {value}")
    if not 0 < options.rate < 1:
        raise GenerateError(f"--rate is between 0 and 1, such as 0.001, not {options.rate:g}")
    if options.name is not None and Path(options.name).name != options.name:
        raise GenerateError(f"--name is a name without folders, not {options.name}")
    if options.output.exists() and not options.output.is_dir():
        raise GenerateError(f"{options.output} is a file; -o names a folder")


def _data(model: Model, options: argparse.Namespace) -> TrainingData:
    from systolic.training.data import TrainingData

    network = model.network
    heads = [node.op for node in network.nodes if isinstance(node.op, Detection)]
    outputs = network.nodes[network.outputs[0]].shape
    count = max((head.classes for head in heads), default=outputs.channels)
    labelled = read_labelled(options.data, Classes(network.labels, count), options.split, not heads)
    if not labelled.is_labelled:
        raise LabelError(
            f"{options.data} holds pictures without labels, and training needs them: see --data of evaluate"
        )
    for note in labelled.notes:
        print(f"systolic: {note}", file=sys.stderr)
    labelled_pictures = tuple(
        picture for picture in labelled.pictures if picture.truths is not None or picture.category is not None
    )
    labels = tuple(label_of(network.labels, index) for index in range(count))
    return TrainingData(labelled_pictures, labels, network.input_shape, options.fit or model.fit)


def _values(settings: Settings, data: TrainingData, trained: Trained) -> dict[str, object]:
    return {
        **asdict(settings),
        "pictures": len(data.pictures),
        "losses": list(trained.losses),
        "network": str(trained.topology),
        "weights": str(trained.numbers),
    }


def _text(trained: Trained) -> str:
    name = trained.topology
    return (
        f"{name} and {trained.numbers.name} hold the network: systolic evaluate {name} --data FOLDER says how good it "
        f"is, systolic generate {name} --style streaming makes an accelerator of it, systolic export {name} an "
        "ONNX file"
    )
