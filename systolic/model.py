"""What a user names → a network, the files it came from, and its integers."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from boards import board as board_room
from boards.board import Board
from boards.errors import ConflictError, UnsupportedError, cut
from boards.progress import Progress, ProgressStep
from cnn import zoo
from cnn.darknet.cfg import MAX_CFG_BYTES, read_text
from cnn.darknet.files import is_letterboxed, read_darknet, read_names, write_darknet_weights
from cnn.exported.contest.files import is_contest, translated
from cnn.exported.network import read_exported
from cnn.network import Network
from cnn.onnx.advice import Check
from cnn.onnx.network import read_onnx
from cnn.passes.transform import transformed
from cnn.quantisation.calibration import choose_ranges, observe
from cnn.quantisation.quantise import quantise_format
from cnn.quantisation.zero_points import quantise_with_zero_points
from cnn.quantized import QuantizedNetwork
from cnn.softmax import integers_on_accelerator, on_accelerator
from cnn.stored.npz import write_arrays
from host.vision.picture import Pixels
from systolic.evaluation.mixed import PICTURES, Pipeline, Trial, quantise_for
from systolic.extending.added import ADDED_FILE, is_added, passes_of, read_added
from systolic.extending.objects import is_object, refuse_keras_file, write_object
from systolic.pictures import calibration_inputs, network_input_of, network_inputs, views_of

WIDE_BITS = 12
"""What the least squared error is asked at for 16 bits: activations have 8 to 16 of them (quantisation/widths.py)."""

USUAL_BOARD = "zcu104"
"""Whose rate bits by layer keep a share of, where nothing is said."""

ONNX_FILE = "model/network.onnx"
TRAINED_FIT = {"shapes": "letterbox"}
"""The fit that a built-in network was trained with; darknet's YOLOv2 of the time stretched pictures plainly."""


@dataclass(frozen=True, eq=False)
class Model:
    """``files``: the network in the form it came in, kept in the design so that its float reference can be run.

    fit: how pictures are brought to size where the user does not say. quantized: of a network that was quantised by
    training its integers, which need no calibration; ``network`` is then its float form. notes: sentences, of what was
    read in one of two ways. random: whether a seed drew the weights.
    """

    network: Network
    fit: str
    files: Mapping[str, bytes]
    quantized: QuantizedNetwork | None = None
    notes: tuple[str, ...] = ()
    random: bool = False

    @property
    def known(self) -> Network | QuantizedNetwork:
        """What can be looked at before anything is calibrated."""
        return self.quantized or self.network

    def __repr__(self) -> str:
        return repr(self.known)

    def _repr_html_(self) -> str:
        shape, labels = self.network.input_shape, ", ".join(self.network.labels)
        return (
            f"<p><b>{escape(self.network.name)}</b>: {len(self.network.nodes)} layers, {shape.width} × {shape.height} "
            f"pixels of {shape.channels} channels; labels: {escape(labels) or 'none'}</p>"
        )


@dataclass(frozen=True)
class Calibration:
    """pictures: what activation ranges are measured on, files or uint8 [height, width, channels]. method: max,
    percentile, mse or entropy.

    fit: one of FITS; the model's own where it is None. bits: of weights and activations, 4, 8 or 16; 8 where it is
    None, and then a model may bring integers of its own. reconstruct: fit the weights to the first pictures and parts
    of them, layer by layer, instead of rounding each to the nearest. mixed: 4 or 8 bits a layer instead of ``bits``,
    those that lose least at this share of the rate that 4 bits have as a pipeline. pipeline: on which board, and how it
    is folded; that of the design where one is made, else a ZCU104. zero_points: behind ReLU, leaky ReLU and functions,
    so that all integers are used.
    """

    pictures: tuple[Path | Pixels, ...]
    method: str = "mse"
    fit: str | None = None
    bits: int | None = None
    reconstruct: bool = False
    mixed: float | None = None
    pipeline: Pipeline | None = None
    zero_points: bool = False


@dataclass(frozen=True, eq=False)
class DesignInputs:
    """What a design carries beside its mapping.

    files: the network in the form it came in. picture: uint8 [channels, height, width], the frame of the test bench.
    fit: how pictures are brought to size.
    """

    files: Mapping[str, bytes]
    picture: npt.NDArray[np.uint8]
    fit: str = "plain"


def load_model(
    name: Path | str | Any,
    weights: Path | str | Any = None,
    names: Path | str | None = None,
    seed: int | None = None,
    size: tuple[int, int] | None = None,
    cuts: Sequence[str] = (),
) -> Model:
    """A cfg file with its weights, a JSON file with its npz, an ONNX file, a built-in network, a PyTorch module or a
    Keras model.

    weights: numbers of a cfg or JSON file; of a module an example of its input, a tensor [1, channels, …].
    names: labels of a cfg, an ONNX file or a module; a JSON file has its own. size: (width, height) of the input
    instead of the file's: a fully convolutional network takes any. cuts: tensors of an ONNX file at which the network
    ends. Raises the errors of the file's reader, and ConflictError or UnsupportedError for arguments that the kind of
    network does not take.
    """
    return load_checked(name, weights, names, seed, size, cuts, None)


def load_checked(
    name: Path | str | Any,
    weights: Path | str | Any,
    names: Path | str | None,
    seed: int | None,
    size: tuple[int, int] | None,
    cuts: Sequence[str],
    check: Check | None,
) -> Model:
    """``load_model``. check: raises where a network cannot be mapped; a cut that an error offers can."""
    if is_object(name):
        with tempfile.TemporaryDirectory() as folder:
            return _load_onnx(write_object(name, weights, seed, Path(folder)), _path(names), size, tuple(cuts), check)
    name, weights, names = str(name), _path(weights), _path(names)
    _check_numbers(name, weights, seed, cuts)
    if is_added(name):
        network, data = read_added(Path(name), weights, seed, size)
        return Model(_labelled(network, names), "plain", {f"{ADDED_FILE}{Path(name).suffix}": data})
    if name.endswith(".onnx"):
        return _load_onnx(Path(name), names, size, tuple(cuts), check)
    refuse_keras_file(name)
    return replace(_load_layers(name, weights, names, seed, size), random=seed is not None)


def _load_layers(
    name: str, weights: Path | None, names: Path | None, seed: int | None, size: tuple[int, int] | None
) -> Model:
    """A cfg or JSON file, or a built-in network."""
    given = name.endswith((".cfg", ".json", ".h"))
    cfg = Path(name) if given else zoo.topology_file(name)
    if cfg.suffix in (".json", ".h"):
        return _load_exported(cfg, weights, names, seed, size)
    if not given:
        names = names or zoo.labels_file(name)
        weights = weights or (_beside(cfg, ".weights") if seed is None else None)
    source = None if seed is None else zoo.seeded(seed)
    with _sized(cfg, size) as sized:
        network = read_darknet(sized, weights, names, weight_source=source)
        files = {"model/network.cfg": sized.read_bytes(), "model/network.weights": write_darknet_weights(network)}
        plain = "letterbox" if is_letterboxed(sized) else "plain"
    return Model(network, TRAINED_FIT.get(name, plain), files)


def _check_numbers(name: str, weights: Path | None, seed: int | None, cuts: Sequence[str]) -> None:
    """Raise ConflictError if there are two sources of numbers, UnsupportedError if a file cannot be cut."""
    if name.endswith(".onnx"):
        if weights is not None or seed is not None:
            raise ConflictError(
                (f"the network {cut(name)}", "--weights" if seed is None else "--seed"),
                "an .onnx file holds its own numbers",
                remedy="leave out --weights and --seed",
            )
        return
    if cuts:
        raise UnsupportedError(
            f"--cut with the network {cut(name)}", "only an .onnx file ends at tensors", remedy="leave it out"
        )
    if weights is not None and seed is not None:
        raise ConflictError(("--weights", "--seed"), "the numbers are trained ones, or random ones")


def _path(named: Path | str | None) -> Path | None:
    return None if named is None else Path(named)


def with_softmax(model: Model, method: str) -> Model:
    """Return the model with its softmax on the accelerator, by a method of cnn.softmax; "none" leaves it to the host.
    Raises the errors of ``on_accelerator`` and ``integers_on_accelerator``."""
    if method == "none":
        return model
    integers = model.quantized and integers_on_accelerator(model.quantized, method)
    return replace(model, network=on_accelerator(model.network, method), quantized=integers)


def networks() -> tuple[str, ...]:
    """The built-in networks, by name."""
    return tuple(zoo.names())


def boards() -> tuple[Board, ...]:
    """Every board that is known."""
    return tuple(board_room.load(name) for name in board_room.names())


def _load_exported(
    topology: Path, weights: Path | None, names: Path | None, seed: int | None, size: tuple[int, int] | None
) -> Model:
    if names is not None:
        raise UnsupportedError(
            f"--names with the network {topology.name}",
            "the file holds its own labels",
            remedy=f"write the labels into {topology.name}",
        )
    if is_contest(topology):
        with translated(topology, weights or (_beside(topology, ".npz") if seed is None else None)) as (text, numbers):
            return _load_exported(text, numbers, None, seed, size)
    with _sized(topology, size) as sized:
        made = zoo.load_exported_file(sized, weights or (_beside(topology, ".npz") if seed is None else None), seed)
        files = {"model/network.json": sized.read_bytes(), "model/network.npz": write_arrays(made.arrays)}
    return Model(made.network, made.topology.fit, files, made.quantized)


def _load_onnx(
    path: Path, names: Path | None, size: tuple[int, int] | None, cuts: tuple[str, ...], check: Check | None
) -> Model:
    read = read_onnx(path, size, cuts, check)
    network, quantized = read.network, read.quantized
    network = _labelled(network, names)
    quantized = quantized and replace(quantized, labels=network.labels)
    return Model(network, "plain", {ONNX_FILE: read.data}, quantized, read.notes)


def _labelled(network: Network, names: Path | None) -> Network:
    return network if names is None else replace(network, labels=read_names(names, network))


def _beside(cfg: Path, ending: str) -> Path | None:
    path = cfg.with_suffix(ending)
    return path if path.is_file() else None


@contextmanager
def _sized(cfg: Path, size: tuple[int, int] | None) -> Iterator[Path]:
    """The file itself, or a copy under the same name that asks for an input of ``size``, all else alike."""
    if size is None:
        yield cfg
        return
    text = read_text(cfg, MAX_CFG_BYTES, "network file")
    for key, value in zip(("width", "height"), size, strict=True):
        if cfg.suffix == ".json":
            text = re.sub(rf'("{key}"\s*:\s*)\d+', rf"\g<1>{value}", text, count=1)
        else:
            text = re.sub(rf"(?m)^\s*{key}\s*=.*$", f"{key}={value}", text, count=1)
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / cfg.name
        copy.write_text(text, "utf-8")
        yield copy


def trained_integers(folder: Path) -> bool:
    """Whether a generated folder's network was quantised by training, and is kept in that form."""
    return (folder / "model" / "network.json").is_file()


def reload(folder: Path) -> Network:
    """The float network of a generated folder; of one that was quantised by training its float form."""
    return transformed(_reload(folder), *passes_of(folder))


def _reload(folder: Path) -> Network:
    """As it was read."""
    if trained_integers(folder):
        return read_exported(folder / "model" / "network.json", folder / "model" / "network.npz").network
    if (folder / ONNX_FILE).is_file():
        return read_onnx(folder / ONNX_FILE).network
    added = next((path for path in folder.glob(f"{ADDED_FILE}.*") if is_added(path)), None)
    if added is not None:
        return read_added(added)[0]
    return read_darknet(folder / "model" / "network.cfg", folder / "model" / "network.weights")


def sample_pictures(network: str = "shapes") -> tuple[Path, ...]:
    """That come with a built-in network; those of ``shapes`` are what calibration uses where none are given."""
    folder = zoo.folder(network) / "samples"
    return tuple(sorted(path for path in folder.iterdir() if path.suffix in (".png", ".jpg")))


def any_picture(channels: int) -> Path | Pixels:
    """What does where shapes alone decide: an embedded sample, or noise where no picture has so many channels."""
    if channels in (1, 3):
        return sample_pictures()[0]
    return np.random.default_rng(0).integers(0, 256, (64, 64, channels), np.uint8)


def inputs_of(model: Model, calibration: Calibration) -> DesignInputs:
    """Return the design's files with the first picture of the calibration as the test bench's frame: any where a model
    has its own integers and none was given. Raises the errors of ``network_input_of``."""
    fit, picture = calibration.fit or model.fit, calibration.pictures[0]
    are_samples = isinstance(picture, Path) and picture == sample_pictures()[0]
    if model.quantized is not None and are_samples:
        picture = any_picture(model.network.input_shape.channels)
    return DesignInputs(model.files, network_input_of(model.network, picture, fit), fit)


def quantise_model(model: Model, calibration: Calibration, tell: Progress = lambda _: None) -> QuantizedNetwork:
    """Return the model's integers: its own, or those that calibration gives; ConflictError if the model has its own and
    the calibration asks for others."""
    if model.quantized is not None:
        _check_own(model.quantized, calibration)
        return model.quantized
    network, bits = model.network, 8 if calibration.bits is None else calibration.bits
    fit, total = calibration.fit or model.fit, len(calibration.pictures)
    statistics = observe(
        network,
        calibration_inputs(network, calibration.pictures, fit),
        progress=lambda count: tell(ProgressStep(f"calibrating, picture {count} of {total}", count, total)),
    )
    views = tuple(views_of(network, calibration.pictures, fit)) if calibration.reconstruct else ()
    if calibration.mixed is not None:
        measured = tuple(network_inputs(network, calibration.pictures[:PICTURES], fit))
        trial = Trial(statistics, calibration.method, measured, views)
        pipeline = calibration.pipeline or Pipeline(board_room.load(USUAL_BOARD))
        return quantise_for(network, trial, calibration.mixed, pipeline, tell)
    if views:
        tell(f"fitting the weights to {len(views)} views of pictures")
    if calibration.zero_points:
        return quantise_with_zero_points(network, statistics, calibration.method, bits, views)
    ranges = choose_ranges(statistics, calibration.method, bits=min(bits, WIDE_BITS))
    return quantise_format(network, ranges, bits, views)


def _check_own(quantised: QuantizedNetwork, calibration: Calibration) -> None:
    """Raise ConflictError if a calibration asks for other integers than the network has."""
    flags = {
        f"--bits {calibration.bits}": calibration.bits is not None,
        "--reconstruct": calibration.reconstruct,
        "--mixed": calibration.mixed is not None,
        "--zero-points": calibration.zero_points,
    }
    for flag in (flag for flag, asked in flags.items() if asked):
        raise ConflictError(
            (f"the network {quantised.name}", flag),
            "the network was quantised when it was trained, and keeps its integers",
            remedy=f"leave out {flag.split()[0]}",
        )
