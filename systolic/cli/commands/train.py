"""``systolic train``: train a low-precision network on labelled pictures."""

from __future__ import annotations

import argparse
import sys
from dataclasses import asdict, fields
from pathlib import Path
from typing import TYPE_CHECKING

from boards.errors import FileAccessError, InvalidValueError, MissingValueError
from cnn.ops import Detection
from cnn.training import check_pytorch
from host.vision.detection import label_of
from systolic.cli.inputs import check_network, check_whole, model_of
from systolic.cli.messages import log
from systolic.cli.output import write_result
from systolic.cli.progress import StatusLine
from systolic.evaluation.layouts.darknet import Classes
from systolic.evaluation.layouts.read import read_labelled
from systolic.model import Model

if TYPE_CHECKING:
    from systolic.training.data import TrainingData
    from systolic.training.loop import Settings, Trained


def run(options: argparse.Namespace) -> int:
    """Train a network. JSON: the settings, pictures, losses, network and weights; the last two are files."""
    _check(options)
    check_pytorch()
    from systolic.training.loop import Settings, train

    settings = Settings(**{each.name: getattr(options, each.name) for each in fields(Settings)})
    with StatusLine() as status:
        status.report("reading the network")
        model = model_of(options, options.seed, options.names)
        status.report("reading labels")
        data = _data(model, options)
        trained = train(
            model, data, settings, options.output, status.report, lambda line: print(line, file=sys.stderr, flush=True)
        )
    write_result(options, _values(settings, data, trained), _text(trained))
    return 0


def _check(options: argparse.Namespace) -> None:
    check_network(options.network)
    for name, low, high in (
        ("bits", 2, 8),
        ("epochs", 1, 100_000),
        ("batch", 1, 4096),
        ("threads", 1, 1024),
        ("order", 0, 1 << 32),
    ):
        check_whole(f"--{name}", getattr(options, name), low, high)
    if not 0 < options.rate < 1:
        raise InvalidValueError("--lr", options.rate, "a number between 0 and 1, such as 0.001")
    if options.name is not None and Path(options.name).name != options.name:
        raise InvalidValueError("--name", options.name, "a name without folders")
    if options.output.exists() and not options.output.is_dir():
        raise FileAccessError(
            str(options.output), "is a file", "output folder", remedy="choose another one with -o DIR"
        )


def _data(model: Model, options: argparse.Namespace) -> TrainingData:
    from systolic.training.data import TrainingData

    network = model.network
    heads = [node.op for node in network.nodes if isinstance(node.op, Detection)]
    outputs = network.nodes[network.outputs[0]].shape
    count = max((head.classes for head in heads), default=outputs.channels)
    labelled = read_labelled(options.data, Classes(network.labels, count), options.split, not heads)
    if not labelled.is_labelled:
        raise MissingValueError(
            f"labels in {options.data}",
            "training needs labelled pictures",
            remedy="see docs/how-to/evaluate.md",
        )
    for note in labelled.notes:
        log.info("%s", note)
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
        f"the trained network is in {name} and {trained.numbers.name}\n"
        f"measure its accuracy: systolic evaluate {name} --data FOLDER\n"
        f"generate an accelerator: systolic generate {name} --style streaming -o DIR\n"
        f"write an ONNX file: systolic export {name} -o FILE.onnx"
    )
