"""``systolic demo``: the whole path with an embedded trained network and a picture of its samples."""

from __future__ import annotations

import argparse

from systolic.cli.messages import log


def run(options: argparse.Namespace) -> int:
    """JSON: {generate, simulate, run}: the objects of the three commands; truth: {matched, missed, added, mean_iou} of
    the objects that were drawn and the boxes."""
    log.info("showing the whole path, which takes up to a minute: %s", PATH)
    from systolic.cli.demonstration import demonstrate  # after the first line, since its imports take a second

    return demonstrate(options)


PATH = "quantise a trained network, search a mapping, generate, compile and execute it, find objects in a picture"
