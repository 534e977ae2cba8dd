"""Translates a config.json with its .npz, or a param.h with its config.h, to a topology JSON and an .npz."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from boards.errors import ConflictError, FileAccessError
from cnn.darknet.cfg import file_label, read_bounded, read_text
from cnn.exported.contest.config import config_values, network_keys, read_config
from cnn.exported.contest.headers import read_headers
from cnn.exported.contest.numbered import is_numbered, layer_parts, read_numbered
from cnn.exported.network import array_shapes
from cnn.exported.topology import Topology
from cnn.exported.topology_writer import topology_text
from cnn.maps import FloatArray
from cnn.stored.npz import array_headers, finite, parse_array, read_arrays, write_arrays

PARAMETERS = "param.h"
CONFIG, CONFIG_HEADER, LAST_BIAS = "config.json", "config.h", "last_bias.npy"
HEADER_LIMIT = 1 << 25
"""Bytes of a param.h: about 25 million weights of four bits."""
BIAS_LIMIT = 1 << 20


def is_contest(path: Path) -> bool:
    """Return whether a file is a param.h or config.json of UltraNet's exporter, and not a topology JSON.

    Raises:
        FileAccessError: The file cannot be read.
    """
    return path.suffix == ".h" or (path.suffix == ".json" and config_values(path) is not None)


@contextmanager
def translated(path: Path, weights: Path | None) -> Iterator[tuple[Path, Path | None]]:
    """Yield the paths of a temporary topology JSON and .npz (None without arrays) made from UltraNet's files.

    Args:
        path: A config.json or a param.h.
        weights: The .npz of a config.json, with numbered or named arrays.

    Raises:
        ConflictError: ``weights`` is given with a param.h, which holds its own arrays.
        SystolicError: ``read_config``, ``read_headers`` or ``read_arrays`` raised it.
    """
    text, arrays = _translated(path, weights)
    with tempfile.TemporaryDirectory() as folder:
        topology, numbers = (Path(folder) / f"{path.stem}{ending}" for ending in (".json", ".npz"))
        topology.write_text(text, "utf-8")
        if arrays is not None:
            numbers.write_bytes(arrays)
        yield topology, None if arrays is None else numbers


def _translated(path: Path, weights: Path | None) -> tuple[str, bytes | None]:
    if path.suffix == ".h":
        if weights is not None:
            subjects, reason = ("--weights", file_label(path)), "the header holds its own numbers"
            raise ConflictError(subjects, reason, remedy="leave out --weights")
        topology, arrays = _parameters(path)
    elif weights is None:
        return topology_text(read_config(path, None, path.stem)), None
    else:
        topology, arrays = _configured(path, weights)
    return topology_text(topology), write_arrays(arrays)


def _configured(path: Path, weights: Path) -> tuple[Topology, Mapping[str, FloatArray]]:
    """Return the topology of UltraNet's config.json, and the arrays of its .npz by the names convN_w, bnN_gamma …

    The epsilon of the numbered arrays is used if the file does not state one.
    """
    shapes = array_headers(weights)
    topology = read_config(path, layer_parts(shapes, weights.name), weights.stem)
    shapes_read = array_shapes(topology)
    if not is_numbered(shapes):
        return topology, read_arrays(weights, shapes_read)
    norm_keys = network_keys(config_values(path) or {}, file_label(path)).get("batch_norm", {})
    arrays, epsilon = read_numbered(weights, shapes_read, topology.epsilon if "epsilon" in norm_keys else None)
    return topology if epsilon is None else replace(topology, epsilon=epsilon), arrays


def _parameters(path: Path) -> tuple[Topology, Mapping[str, FloatArray]]:
    """Return the topology of UltraNet's param.h and the config.h next to it, and the arrays by the names convN_w …

    A config.json and a file with the last bias are read too if the folder has them.
    """
    config_header, config, bias = (path.with_name(name) for name in (CONFIG_HEADER, CONFIG, LAST_BIAS))
    if not config_header.is_file():
        remedy = f"copy the {CONFIG_HEADER} that was written with {file_label(path)}"
        raise FileAccessError(str(config_header), "does not exist", "header", remedy=remedy)
    headers, configuration = (read_text(file, HEADER_LIMIT, "header") for file in (path, config_header))
    values = (config_values(config) or {}) if config.is_file() else {}
    network = {"name": path.stem, **network_keys(values, CONFIG)}
    topology, arrays = read_headers((headers, configuration), (file_label(path), CONFIG_HEADER), network)
    last = next((kernel for _, kernel in reversed(topology.kernels) if kernel.output_bits is None), None)
    if last is None or not bias.is_file():
        return topology, arrays
    data = read_bounded(bias, BIAS_LIMIT, "bias file")
    values_of_bias = finite(LAST_BIAS, "bias", parse_array(LAST_BIAS, "bias", data, (last.filters,)))
    return topology, {**arrays, f"conv{last.number}_b": values_of_bias}
