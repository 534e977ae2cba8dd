"""Writes a network in the files of UltraNet's exporter, from the DAC-SDC contest: config.json, param.h and config.h.

The files are config.json, param.h and config.h, and if the network has them, the float arrays (config.npz) and the bias
of the last layer's sums.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from cnn.exported.contest.files import CONFIG, CONFIG_HEADER, LAST_BIAS, PARAMETERS
from cnn.exported.contest.writer import (
    Link,
    PictureReading,
    chain_of,
    config_text,
    last_bias,
    numbered_arrays,
)
from cnn.exported.network import Exported, read_exported
from cnn.quantized import QuantizedNetwork
from cnn.stored.npz import npy
from hls_templates.param_header import LayerParameters, header_files

ARRAYS = "config.npz"
MAX_LANES = 16
"""Limit for PE and SIMD in param.h: the filters and the input channels that are computed at the same time."""


def contest_files(network: QuantizedNetwork, fit: str, files: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return config.json, param.h, config.h and the arrays of a chain of layers: {file name: content}.

    config.npz is one of them if the network was loaded from the exported form, which holds the float arrays.

    Args:
        network: The integers of the network.
        fit: The method that resizes pictures, one of the fits.
        files: The files that the network was loaded from, as in ``Model.files``.

    Raises:
        UnsupportedError: The formats cannot express a layer; see ``chain_of``.
    """
    chain = chain_of(network)
    trained = _trained(files)
    topology = None if trained is None else trained.topology
    arrays = None if trained is None else numbered_arrays(chain, trained.topology, trained.arrays)
    reading = PictureReading("RGB" if topology is None else topology.order, fit)
    headers = header_files([_parameters(link, reading.order == "BGR") for link in chain.kernels])
    texts = {
        CONFIG: config_text(chain, reading, None if arrays is None else topology),
        PARAMETERS: headers[PARAMETERS],
        CONFIG_HEADER: headers[CONFIG_HEADER],
    }
    bias = last_bias(chain)
    data = {ARRAYS: arrays, LAST_BIAS: None if bias is None else npy(bias)}
    written = {name: text.encode() for name, text in texts.items()}
    return written | {name: content for name, content in data.items() if content is not None}


def _trained(files: Mapping[str, bytes]) -> Exported | None:
    """Return the float form of a network that was loaded from network.json and network.npz; None for other networks."""
    if "model/network.npz" not in files:
        return None
    with tempfile.TemporaryDirectory() as folder:
        for name in ("network.json", "network.npz"):
            (Path(folder) / name).write_bytes(files[f"model/{name}"])
        return read_exported(Path(folder) / "network.json", Path(folder) / "network.npz")


def _parameters(link: Link, reversed_order: bool) -> LayerParameters:
    """Return a layer's weights, bits, sizes, requantisation and parallelism (PE, SIMD), as param.h lists them.

    Args:
        link: The layer.
        reversed_order: Whether the network was trained on BGR pictures. The integers here read RGB, so the first
            layer's weights are reversed.
    """
    op, by = link.convolution, link.shifts
    weights = op.weights[:, ::-1] if reversed_order and not link.source.inputs else op.weights
    filters, channels = op.weights.shape[:2]
    reads, gives = link.source.shape, link.node.shape
    return LayerParameters(
        name=link.name,
        weights=np.ascontiguousarray(weights),
        weight_bits=op.weight_type.bits,
        pe=_lanes(filters),
        simd=_lanes(channels),
        input=(reads.channels, reads.height, reads.width),
        output=(gives.channels, gives.height, gives.width),
        stride=op.stride,
        padding=op.padding.top,
        in_bits=link.source.type.datatype.bits,
        out_bits=link.node.type.datatype.bits,
        inc=by.multiplier if by else None,
        bias=by.bias if by else None,
        shift=int(by.shift[0]) if by else 0,
        linear=link.name.startswith("linear"),
    )


def _lanes(count: int) -> int:
    """Return PE or SIMD of ``count`` channels: the greatest divisor of ``count`` that is at most MAX_LANES."""
    return max(lanes for lanes in range(1, MAX_LANES + 1) if count % lanes == 0)
