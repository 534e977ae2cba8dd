"""``systolic demo``: generate, simulate and run an accelerator for a built-in network and a sample picture."""

from __future__ import annotations

import argparse

from systolic.cli.messages import log


def run(options: argparse.Namespace) -> int:
    """Generate the accelerator of a built-in network, simulate it, run it on a sample picture and print the results.

    JSON: {generate, simulate, run, truth}. The first three are the objects of these commands. truth compares the boxes
    with the objects in the picture: {matched, missed, added, mean_iou}.
    """
    log.info("running all steps, which takes up to a minute: %s", PATH)
    from systolic.cli.demonstration import demonstrate  # after the first line, because its imports take a second

    return demonstrate(options)


PATH = "quantise a trained network, search a mapping, generate and compile the code, find objects in a picture"
