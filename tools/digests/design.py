"""Generates the design of a row of the table, and writes it to a folder that can be executed."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import systolic
from cnn.quantized import QuantizedNetwork
from host.vision.picture import Pixels
from systolic.designs import board_of
from systolic.files import DesignFiles
from systolic.model import DesignInputs, inputs_of, quantise_model
from systolic.styles.registry import style_named
from systolic.styles.streaming.generation.generate import FoldedNetwork
from systolic.styles.streaming.generation.generate import generate as generate_pipeline
from systolic.styles.style import NetworkMapping
from tools.digests.added_layer import installed
from tools.digests.onnx_networks import NETWORKS
from tools.digests.table import Row

HERE = Path(__file__).parent
SEED = 1
CLOCK_MHZ = 100.0

LEFT_OUT = ("model/",)
"""Folders of a design with files that no generator writes: the network's own files."""


@dataclass(frozen=True, eq=False)
class Generated:
    """A row's mapping, its files, and the picture of its test bench, uint8 ``(channels, height, width)``."""

    row: Row
    mapping: NetworkMapping
    files: DesignFiles
    picture: Pixels

    @property
    def sources(self) -> Mapping[str, bytes]:
        """Every generated file by its path."""
        return {name: data for name, data in self.files.files.items() if not name.startswith(LEFT_OUT)}


def generate(row: Row) -> Generated:
    """Return the design of a row, without compiling or searching.

    FIFO depths of a pipeline are the folding's estimates, because traced depths would need an execution.
    """
    model = model_of(row.network)
    calibration = systolic.Calibration((_picture(row.network),), bits=row.bits or None)
    inputs = inputs_of(model, calibration)
    with package_of(row.network):
        options = style_named(row.style).options(**_options(row))
        mapping = _mapped(row, options)
        return Generated(row, mapping, _files(row, mapping, inputs, options), inputs.picture)


def _mapped(row: Row, options: Any) -> NetworkMapping:
    board, quantised = board_of(row.board), quantised_of(row.network, row.bits)
    mapping: NetworkMapping = style_named(row.style).map(quantised, board, CLOCK_MHZ, options, _silent)
    return mapping


def mapping_file(row: Row) -> Path:
    """Return the file of a row's schedule or folding."""
    return HERE / "mappings" / f"{row.name}.json"


def _options(row: Row) -> dict[str, Any]:
    saved = mapping_file(row).read_text("utf-8")
    if row.style == "streaming":
        return {"folding": saved}
    return {"schedule": saved, "engine": row.engine}


def _files(row: Row, mapping: Any, inputs: DesignInputs, options: Any) -> DesignFiles:
    if row.style == "streaming":
        source = FoldedNetwork(mapping.network, mapping.folded.folding, mapping.board, mapping.clock, mapping.ddr)
        return generate_pipeline(source, inputs, mapping.estimate)
    files: DesignFiles = style_named(row.style).generate(mapping, inputs, options, _silent).files
    return files


@cache
def quantised_of(network: str, bits: int) -> QuantizedNetwork:
    """Return the integer network; with ``bits`` 0 it has the file's own integers."""
    calibration = systolic.Calibration((_picture(network),), bits=bits or None)
    return quantise_model(model_of(network), calibration)


@cache
def _picture(network: str) -> Pixels:
    """Return noise, uint8 ``(height, width, channels)``, with the size of the network's input."""
    shape = model_of(network).network.input_shape
    return np.random.default_rng(SEED).integers(0, 256, (shape.height, shape.width, shape.channels), np.uint8)


@cache
def model_of(network: str) -> systolic.Model:
    """Return a network of the table."""
    with package_of(network), network_file(network) as path:
        return systolic.load(path, seed=None if path.suffix == ".onnx" else SEED)


def package_of(network: str) -> AbstractContextManager[None]:
    """Return a context in which the package that a network needs is installed."""
    return installed() if network == "added" else nullcontext()


@contextmanager
def network_file(network: str) -> Iterator[Path]:
    """Yield the file of a network."""
    if network in NETWORKS:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / f"{network}.onnx"
            path.write_bytes(NETWORKS[network]().SerializeToString())
            yield path
        return
    yield next(path for path in (HERE / "networks").iterdir() if path.stem == network)


def _silent(_: str) -> None:
    pass


def searched(row: Row) -> str:
    """Return the JSON of the mapping that a search finds for a row.

    ``generate`` reads the mapping from its file instead.
    """
    with package_of(row.network):
        return _mapped(row, style_named(row.style).options(**_search(row))).to_json()


def _search(row: Row) -> dict[str, Any]:
    if row.style == "streaming":
        search, _, rate = row.choice.partition(":")
        return {"search": search, "fps": float(rate), "deadline": None}
    array, _, order = row.choice.partition(":")
    pins = {"map_depth": 0 if row.maps == "ddr" else 256}
    pins |= {"dsp_clock": 2} if row.dsps == "double" else {}
    pins |= {"dsp_products": 6} if row.dsps == "six" else {}
    return {"array": array, "order": order or None, "pins": pins, "engine": row.engine, "batch": row.batch}
