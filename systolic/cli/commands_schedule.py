"""``systolic schedule``, ``compare`` and ``package``: thin over styles/systolic/explore.py and package.py."""

from __future__ import annotations

import argparse
from pathlib import Path

from boards import board as board_room
from boards.errors import ScheduleError
from cnn.quantized import QuantizedNetwork
from scheduler.systolic.formats import least_bits
from systolic.cli.options import check_efficiency, check_search
from systolic.cli.output import give, read_schedule
from systolic.cli.progress import StatusLine
from systolic.model import Calibration, load_model, quantise_model, sample_pictures
from systolic.package import package
from systolic.styles.systolic import explore

PINS = {
    "save_rows": "rows of a position that the Saver requantises a cycle",
    "chunk": "columns that it arranges before they leave",
    "map_ports": "AXI ports for maps",
    "weight_ports": "AXI ports for weights",
    "row_depth": "words of a row-buffer bank",
    "weight_depth": "steps of the weight buffer",
    "map_depth": "words of a map-buffer bank; with 0 no map stays on chip",
}
"""Numbers of the array that a user may pin, and what they are."""


def _network(options: argparse.Namespace, bits: int | None, status: StatusLine) -> QuantizedNetwork:
    """Shapes and bits decide a schedule, not numbers: a network without trained numbers takes those of seed 1."""
    status.tell("reading the network")
    seed = options.seed
    if options.weights is None and seed is None and options.network != "shapes":
        seed = 1
    model = load_model(options.network, options.weights, None, seed, options.size)
    return quantise_model(model, Calibration(sample_pictures()[:1], bits=bits), model.fit, status.tell)


def schedule(options: argparse.Namespace) -> int:
    """JSON: ``PricedSchedule.values``."""
    check_search(options)
    check_efficiency(options.ddr_efficiency)
    board = board_room.load(options.board)
    with StatusLine() as status, explore.workers(options.workers, options.dask) as executor:
        network = _network(options, options.bits, status)
        if options.schedule is not None:
            text = read_schedule(options.schedule)
            found = explore.explore_given(network, board, text, options.schedule.name, options.clock, options.batch)
        else:
            pins: dict[str, int | str | None] = {name: getattr(options, name) for name in PINS}
            pins |= explore.geometry_pins(options.array) if options.array else {}
            pins["order"] = options.order
            found = explore.explore(
                network,
                board,
                options.clock,
                options.objective,
                options.fps,
                pins,
                options.ddr_efficiency,
                executor,
                status.tell,
                1 if options.batch is None else options.batch,
            )
        status.tell("pricing")
        text = found.text()
        if options.save is not None:
            _write(options.save, explore.saved(found))
        if options.report is not None:
            from systolic.report.page import schedule_page

            _write(options.report, schedule_page(found))
    give(options, found.values(), text)
    return 0


def compare(options: argparse.Namespace) -> int:
    """JSON: ``Comparison.values``."""
    check_search(options)
    boards = [board_room.load(name) for name in options.board or ["zcu104"]]
    with StatusLine() as status, explore.workers(options.workers, options.dask) as executor:
        asked = [(bits, _network(options, bits, status)) for bits in options.bits or (None,)]
        networks = {bits or least_bits(network): network for bits, network in asked}
        status.tell("searching")
        found = explore.compare(
            networks,
            boards,
            options.array or (),
            options.clock,
            options.objective,
            options.fps,
            executor,
            options.batch or (1,),
        )
        if options.report is not None:
            from systolic.report.page import report

            status.tell("drawing")
            _write(options.report, report(found))
    give(options, found.values(), found.text())
    return 0


def make_package(options: argparse.Namespace) -> int:
    """JSON: {wheel}."""
    wheel = package(options.folder, options.output, without_bitstream=options.without_bitstream)
    where = "for the simulated board, not a real one" if options.without_bitstream else "on the board"
    give(options, {"wheel": str(wheel)}, f"written to {wheel}; {where}: pip install --no-deps {wheel.name}")
    return 0


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, "utf-8")
    except OSError as error:
        raise ScheduleError(f"{path} cannot be written: {error.strerror}; choose another file") from error
