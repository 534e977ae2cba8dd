"""The formats of networks that were quantised in training: .json with .npz, and UltraNet's param.h or config.json.

One is a .json topology with the arrays in an .npz file. The other is the param.h or config.json that UltraNet's
exporter writes.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from cnn import zoo
from cnn.exported.contest.files import is_contest, translated
from cnn.exported.network import read_exported
from cnn.network import Network
from cnn.stored.npz import write_arrays
from systolic.front_ends.front_end import FrontEnd, LoadOptions
from systolic.front_ends.sized import sized
from systolic.model import Model


def read(path: Path, options: LoadOptions) -> Model:
    """Return the model of a .json topology file of this project, or of a config.json of UltraNet's exporter.

    If the options give neither weights nor a seed, the arrays are read from the .npz file with the same stem in the
    same folder, if there is one. Raises the errors of ``translated`` and ``load_exported_file``.
    """
    weights_file = path.with_suffix(".npz")
    if options.weights is None and options.seed is None and weights_file.is_file():
        options = replace(options, weights=weights_file)
    return read_header(path, options) if is_contest(path) else _read_topology(path, options)


def read_header(path: Path, options: LoadOptions) -> Model:
    """Return the model of UltraNet's param.h or config.json.

    Raises the errors of ``translated`` and ``load_exported_file``.
    """
    with translated(path, options.weights) as (topology, numbers):
        return _read_topology(topology, replace(options, weights=numbers))


def _read_topology(path: Path, options: LoadOptions) -> Model:
    with sized(path, options.size, r'("KEY"\s*:\s*)\d+', r"\g<1>VALUE") as topology:
        made = zoo.load_exported_file(topology, options.weights, options.seed)
        files = {"model/network.json": topology.read_bytes(), "model/network.npz": write_arrays(made.arrays)}
    return Model(made.network, made.topology.fit, files, made.quantized)


def reread(path: Path) -> Network:
    """Return the float form of a design's .json topology file, with the arrays of the .npz file next to it."""
    return read_exported(path, path.with_suffix(".npz")).network


EXPORTED = FrontEnd("an exported .json", read, reread, takes=("weights", "seed", "size"), holds="labels")
HEADER = FrontEnd("a param.h", read_header, reread, takes=("seed", "size"), holds="weights and labels")
