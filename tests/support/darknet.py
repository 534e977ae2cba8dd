"""Pieces of cfg files, and the network or the error that a whole one gives."""

from __future__ import annotations

from pathlib import Path

import pytest

from boards.errors import SystolicError
from cnn.darknet.files import read_topology
from cnn.network import Network

NET = "[net]\nwidth=16\nheight=12\nchannels=4\nbatch=1\n"
CONV = "[convolutional]\nfilters=8\nsize=3\nstride=1\npad=1\nactivation=leaky\n"
NORMED = CONV + "batch_normalize=1\n"
POOL = "[maxpool]\nsize=2\nstride=2\n"


def topology(tmp_path: Path, text: str) -> Network:
    cfg = tmp_path / "net.cfg"
    cfg.write_text(text, encoding="utf-8")
    return read_topology(cfg)


def refusal(tmp_path: Path, text: str) -> SystolicError:
    with pytest.raises(SystolicError) as caught:
        topology(tmp_path, text)
    return caught.value
