"""The way from a case to a design: from the network's files to a written folder, with the functions that users call."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from boards import board as boards
from boards.board import Board
from boards.errors import SystolicError, UnsupportedError
from cnn.darknet.files import read_topology as read_cfg
from cnn.darknet.files import write_darknet_weights
from cnn.exported.seed import seeded_arrays
from cnn.exported.topology_file import read_topology as read_json
from cnn.network import Network
from cnn.quantisation.calibration import choose_ranges, observe
from cnn.quantisation.quantise import quantise, quantise_format
from cnn.quantisation.zero_points import quantise_with_zero_points
from cnn.quantized import QuantizedNetwork
from cnn.stored.npz import write_arrays
from host.vision.picture import Pixels
from scheduler.streaming import folding_file
from scheduler.streaming import graph as g
from scheduler.streaming.lower import lower as lower_to_stream
from scheduler.systolic import schedule_file
from scheduler.systolic.array import Array
from scheduler.systolic.layers import lower as lower_to_array
from scheduler.systolic.network.copies import with_copies
from scheduler.systolic.rules import check_schedule
from scheduler.systolic.schedule import schedule_of
from systolic.files import write
from systolic.loading import load_model
from systolic.model import MAX_RANGE_BITS, DesignInputs, Model, with_softmax
from systolic.styles.registry import AnyStyle, open_design, style_named
from systolic.styles.streaming.options import StreamingOptions
from systolic.styles.style import NetworkMapping, OpenedDesign, Plan
from systolic.styles.systolic.options import SystolicOptions
from tests.fuzz.networks.added import with_added
from tests.fuzz.networks.case import Case
from tests.fuzz.networks.darknet import cfg_text
from tests.fuzz.networks.dice import Dice
from tests.fuzz.networks.numbers import darknet_numbers, exported_numbers, pixels_of
from tests.support.foldings import drawn_folding
from tests.support.onnx.quantising import Form, folded, quantised
from tests.support.onnx.writer import written
from tests.support.schedules import legal_tilings, staying


class RefusedError(Exception):
    """A refusal of the case with a sentence, before anything is written.

    Attributes:
        stage: The stage that refuses: "read", "quantise", "map" or "generate".
        sentence: The reason.
    """

    def __init__(self, stage: str, sentence: str) -> None:
        super().__init__(f"{stage}: {sentence}")
        self.stage, self.sentence = stage, sentence


@dataclass(frozen=True, eq=False)
class Prepared:
    """A case's design, and everything that was made on the way to it.

    Attributes:
        network: The quantised network.
        mapping: The schedule or the folding.
        plan: The generated files, before they are written.
        pictures: The uint8 input images of shape (channels, rows, columns). Their number is the design's batch.
        design: The written design, opened again.
    """

    case: Case
    model: Model
    network: QuantizedNetwork
    options: Any
    mapping: NetworkMapping
    plan: Plan
    pictures: tuple[Pixels, ...]
    design: OpenedDesign

    @property
    def style(self) -> AnyStyle:
        return style_named(self.case.style)

    @property
    def board(self) -> Board:
        return boards.load(self.case.target["board"])

    def mapped(self, options: Any) -> NetworkMapping:
        """Map the network once more, with other options."""
        mapping: NetworkMapping = self.style.map(self.network, self.board, self.case.target["clock"], options, _silent)
        return mapping

    def planned(self, mapping: NetworkMapping, options: Any) -> Plan:
        """Generate the design once more."""
        inputs = DesignInputs(self.model.files, self.pictures[0], self.model.fit)
        plan: Plan = self.style.generate(mapping, inputs, options, _silent)
        return plan


def prepare(case: Case, folder: Path) -> Prepared:
    """Write the design of a case to ``folder``/design.

    Raises:
        RefusedError: The project refuses the case. A later SystolicError refuses what the project itself wrote.
    """
    style, board = style_named(case.style), boards.load(case.target["board"])
    with _stage("read"):
        read = with_added(read_model(case, folder), case.network.get("added"))
        model = with_softmax(read, case.target.get("softmax", "none"))
    pictures = tuple(pixels_of(case.pixels, model.network.input_shape, case.mapping.get("batch", 1)))
    with _stage("quantise"):
        network = _integers(case, model)
    with _stage("map"):
        options = _OPTIONS[case.style](case, network, board)
        mapping = style.map(network, board, case.target["clock"], options, _silent)
    with _stage("generate"):
        plan = style.generate(mapping, DesignInputs(model.files, pictures[0], model.fit), options, _silent)
    write(plan.files, folder / "design")
    return Prepared(case, model, network, options, mapping, plan, pictures, open_design(folder / "design"))


def _silent(_: str) -> None:
    pass


@contextmanager
def _stage(name: str) -> Iterator[None]:
    try:
        yield
    except SystolicError as error:
        raise RefusedError(name, str(error)) from error


# --- network -----------------------------------------------------------------------------------------------------


def read_model(case: Case, folder: Path) -> Model:
    """Read the network from files as users have them.

    These are a cfg with its weights, a topology with its arrays, or an ONNX file.
    """
    if case.network["form"] == "exported":
        path, weights = folder / "network.json", folder / "network.npz"
        path.write_text(json.dumps(case.network["topology"]), "utf-8")
        topology = read_json(path)
        arrays = exported_numbers(seeded_arrays(topology, case.numbers["seed"]), case.numbers)
        weights.write_bytes(write_arrays(arrays))
    else:
        path, weights = folder / "network.cfg", folder / "network.weights"
        path.write_text(cfg_text(case.network["sections"]), "utf-8")
        network = darknet_numbers(read_cfg(path), case.numbers)
        if case.network["form"] == "onnx":
            return load_model(_onnx_file(case, network, folder))
        weights.write_bytes(write_darknet_weights(network))
    return load_model(path, weights)


def _onnx_file(case: Case, network: Network, folder: Path) -> Path:
    forms = {key: case.network[key] for key in ("views", "transposed", "last", "dilated") if key in case.network}
    model = written(network, case.network["opset"], **forms)
    shape = network.input_shape
    sides = (shape.channels, shape.height, shape.width)
    if "quantised" in case.network:
        form = Form(**case.network["quantised"])
        first = not case.network.get("last")
        return quantised(folded(model, folder), folder, form, (1, *(sides if first else (*sides[1:], sides[0]))))
    path = folder / "network.onnx"
    path.write_bytes(model.SerializeToString())
    return path


def _integers(case: Case, model: Model) -> QuantizedNetwork:
    """Quantise the network as ``systolic.model.quantise_model`` does, but with images of any number of channels."""
    if model.quantized is not None:
        return model.quantized
    bits, shape = case.target["bits"], model.network.input_shape
    inputs = [p.astype(np.float32) / np.float32(255) for p in pixels_of({"kind": "noise", "seed": 1}, shape, 2)]
    inputs += [p.astype(np.float32) / np.float32(255) for p in pixels_of({"kind": "waves", "seed": 1}, shape, 1)]
    statistics = observe(model.network, inputs)
    if case.target.get("zero_points"):
        return quantise_with_zero_points(model.network, statistics, case.target["method"], bits)
    finer = case.target.get("activation_bits")
    ranges = choose_ranges(statistics, case.target["method"], bits=min(finer or bits, MAX_RANGE_BITS))
    if finer:
        return quantise(model.network, ranges, bits=bits, activation_bits=finer)
    return quantise_format(model.network, ranges, bits)


# --- mapping -----------------------------------------------------------------------------------------------------


def _systolic_options(case: Case, network: QuantizedNetwork, board: Board) -> SystolicOptions:
    wish = case.mapping
    if wish["kind"] == "drawn":
        return SystolicOptions(schedule=drawn_schedule(case, network))
    return SystolicOptions(
        batch=wish["batch"], objective=wish["objective"], fps=wish["fps"], array=wish["array"], pins=wish["pins"]
    )


def drawn_schedule(case: Case, network: QuantizedNetwork) -> str:
    """Return the JSON text of a random legal schedule.

    Maps stay on chip as drawn. If some layer then has no legal tiling, no map stays on chip.

    Raises:
        UnsupportedError: A layer has no legal tiling on the array.
    """
    wish = case.mapping
    array, batch, dice = Array(**wish["array"]), wish["batch"], Dice(wish["seed"])
    network = with_copies(network, array.added_maps > 0)
    layers = lower_to_array(network, batch, array.added_maps > 0)
    by_strip = {layer.strip: dice.chance(wish["stay"]) for layer in layers}
    stays = staying(network, layers, array)
    on_chip = [may and by_strip[layer.strip] for layer, may in zip(layers, stays, strict=True)]
    legal = legal_tilings(network, array, batch, on_chip=on_chip)
    if not all(legal):
        on_chip = [False] * len(layers)
        legal = legal_tilings(network, array, batch)
    if not all(legal):
        raise UnsupportedError(network.name, "no tiling of one of its layers fits the buffers of the drawn array")
    chosen = [replace(dice.pick(fitting), on_chip=stay) for fitting, stay in zip(legal, on_chip, strict=True)]
    return schedule_file.to_json(check_schedule(schedule_of(network, array, chosen, batch)))


def _streaming_options(case: Case, network: QuantizedNetwork, board: Board) -> StreamingOptions:
    wish, graph = case.mapping, lower_to_stream(network)
    if wish["kind"] == "drawn":
        text = folding_file.to_json(drawn_folding(graph, board, wish["seed"]))
        return StreamingOptions(folding=text, estimated_fifos=wish["estimated_fifos"])
    dice = Dice(wish["seed"])
    units = [block.name for block in graph.blocks if isinstance(block.op, g.MatrixVector)]
    return StreamingOptions(
        fps=wish["fps"],
        search=wish["kind"],
        deadline=None,
        effort=20,
        attempts=1,
        max_padding=wish["max_padding"],
        max_pixels=wish["max_pixels"],
        pad_ends=wish["pad_ends"],
        external=tuple(name for name in units if dice.chance(wish["external"])),
        estimated_fifos=wish["estimated_fifos"],
    )


_OPTIONS: dict[str, Callable[[Case, QuantizedNetwork, Board], Any]] = {
    "systolic": _systolic_options,
    "streaming": _streaming_options,
}
