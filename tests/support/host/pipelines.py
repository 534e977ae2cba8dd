"""A streaming design written by hand: one fast layer with its biases in DDR, and a detection head."""

from __future__ import annotations

import json
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from boards.board import load
from hls_templates.streaming.sources import (
    Connection,
    Element,
    Instance,
    Packet,
    StreamingValues,
    WeightPort,
    Wire,
    streaming_simulation,
    streaming_sources,
)
from hls_templates.vendor.files import vendor_files
from hls_templates.vendor.hwh import hardware_description
from hls_templates.vendor.ports import StreamingPorts
from hls_templates.vendor.values import VendorValues
from systolic.execution.build import build

HEIGHT, WIDTH = 14, 18
PIXELS = HEIGHT * WIDTH
LAYER = """\
#include "instrument.h"
#include "word.h"

// For each pixel x + bias - 128 and 128 - x, channel by channel, and two channels of padding.
inline void centre(int frames, hls::stream<word<integer<8, false>, 3>> &in,
                   hls::stream<word<integer<16, true>, 8>> &out, hls::burst_maxi<word<integer<8, true>, 3>> biases,
                   int at = 0) {
    for (int frame = 0; frame < frames; ++frame) {
        biases.read_request(at, PIXELS);
        for (int i = 0; i < PIXELS; ++i) {
            const word<integer<8, false>, 3> x = in.read();
            const word<integer<8, true>, 3> bias = biases.read();
            word<integer<16, true>, 8> y;
            for (int c = 0; c < 3; ++c) {
                y.lane[c] = int(x.lane[c]) + int(bias.lane[c]) - 128;
                y.lane[3 + c] = 128 - int(x.lane[c]);
            }
            y.lane[6] = y.lane[7] = 77;
            out.write(y);
        }
    }
}
""".replace("PIXELS", str(PIXELS))
BIASES = WeightPort("weights_centre", "word<integer<8, true>, 3>", PIXELS)
PORTS = StreamingPorts(Packet(3 * PIXELS, 8), Packet(16 * PIXELS, 16), (BIASES,))

Integers = npt.NDArray[np.int16]


def golden(picture: npt.NDArray[np.uint8]) -> Integers:
    """Return the layer's output, int16 [6, height, width], for an image of uint8 [3, height, width]."""
    values = picture.astype(np.int16)
    return np.concatenate([values + biases() - 128, 128 - values])


def biases() -> Integers:
    """Return the biases, int16 [3, height, width]."""
    return np.random.default_rng(4).integers(-30, 31, (3, HEIGHT, WIDTH)).astype(np.int16)


def make_by_hand(folder: Path, board: str = "zcu104") -> Path:
    """Write and compile all files that the host opens, and return the folder."""
    values = _values()
    sources = {**streaming_sources(values), "centre.h": LAYER}
    facts = load(board)
    vendor = VendorValues("centre", facts, facts.nearest_clock(100), PORTS, tuple(f"src/{name}" for name in sources))
    files: dict[str, Any] = {f"src/{name}": text for name, text in sources.items()} | vendor_files(vendor)
    files |= {f"simulation/{name}": text for name, text in streaming_simulation(values).items()}
    files["systolic.hwh"] = hardware_description(vendor)
    data = _data()
    files["manifest.json"] = json.dumps(manifest(board))
    for name, text in {**files, **data}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    build(folder)
    return folder


def _values() -> StreamingValues:
    x, y = Element(8, False, 3), Element(16, True, 8)
    ends = (str(PIXELS),)
    take = Instance(
        "take", "unpack_beats", "dma.h", ("8", "3", *ends), (Connection("in", "in"), Connection("out", "x")), ()
    )
    layer = Instance(
        "layer", "centre", "centre.h", (), (Connection("in", "x"), Connection("out", "y")), (), weight_ports=(BIASES,)
    )
    give = ("16", "2", "8", *ends, "true")
    leave = Instance("leave", "pack_beats", "dma.h", give, (Connection("in", "y"), Connection("out", "out")), ())
    wires = (Wire("x", x, 2), Wire("y", y, 2))
    return StreamingValues("centre", (), (take, layer, leave), wires, (), PORTS.packet_in, PORTS.packet_out, 16, 16)


def _data() -> dict[str, bytes]:
    picture = np.random.default_rng(9).integers(0, 256, (3, HEIGHT, WIDTH)).astype(np.uint8)
    packet = np.full((HEIGHT, WIDTH, 8), 77, np.int16)
    packet[:, :, :6] = golden(picture).transpose(1, 2, 0)
    return {
        "data/in.bin": np.ascontiguousarray(picture.transpose(1, 2, 0)).tobytes(),
        "data/expected.bin": packet.tobytes(),
        "data/weights_centre.bin": np.ascontiguousarray(biases().transpose(1, 2, 0)).astype(np.int8).tobytes(),
    }


def manifest(board: str = "zcu104") -> dict[str, Any]:
    """Return the manifest's fields."""
    data = _data()

    def image(path: str) -> dict[str, Any]:
        return {"path": path, "crc32": zlib.crc32(data[path])}

    out = {"channels": 6, "height": HEIGHT, "width": WIDTH, "datatype": "INT9", "scale": 1 / 32}
    layer = {"name": "centre", "node": 1, "source": "by hand:1", "macs": 0, "output": out}
    sizes = {"signed": True, "value_bytes": 2, "stream_channels": 8, "bytes": 16 * PIXELS}
    block = {"name": "centre", "kind": "Centre", "folding": "", "macs": 0, "macs_per_cycle": 0, "modelled_cycles": 1000}
    head = {"layer": 0, "kind": "region", "anchors": [[2, 3]], "classes": 1, "coords": 4, "softmax": True}
    return {
        "format": "systolic-manifest",
        "version": 2,
        "style": "streaming",
        "network": "centre",
        "labels": ["thing"],
        "board": board,
        "clock_mhz": 100.0,
        "ddr": {"gbps": 4.2, "efficiency": 0.85},
        "top": "streaming_top",
        "fit": "plain",
        "estimate": dict.fromkeys(("dsp", "bram36", "uram", "lut", "lutram"), 0),
        "burst_words": 16,
        "outstanding": 8,
        "input": {"channels": 3, "height": HEIGHT, "width": WIDTH, "datatype": "UINT8", "scale": 1 / 255},
        "packet_in": dict(vars(PORTS.packet_in)),
        "packet_out": dict(vars(PORTS.packet_out)),
        "outputs": [{"layer": 0, **out, **sizes, "offset": 0}],
        "images": [{**image("data/weights_centre.bin"), "word_bytes": 3, "port": "weights_centre"}],
        "frames_per_start": 16384,
        "layers": [{**layer, "modelled_cycles": 1000, "pixels": 1, "lanes": 8, "stream_channels": 8}],
        "blocks": [block],
        "fifos": [{"name": "x", "depth": 2, "bits": 24}],
        "heads": [head],
        "check": {"packet_in": image("data/in.bin"), "packet_out": image("data/expected.bin")},
    }
