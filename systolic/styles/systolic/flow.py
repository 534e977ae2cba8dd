"""The pipeline, as a table of contents: model → integers → schedule → design."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from boards.board import Board, Clock
from boards.errors import QuantiseError, ScheduleError
from cnn.quantisation.calibration import calibrate
from cnn.quantisation.quantise import quantise_format
from cnn.quantized import QuantizedNetwork
from host.vision.picture import FITS, load_picture
from scheduler.hardware.ddr import link_of
from scheduler.systolic.model.cost import Cost, cost
from scheduler.systolic.rules import check_schedule
from scheduler.systolic.schedule_file import from_json
from scheduler.systolic.search.choose import choose
from scheduler.systolic.tiling import SystolicSchedule
from systolic.design import Design
from systolic.model import Model, calibration_inputs
from systolic.styles.systolic.generate import generate

Progress = Callable[[str], None]


WIDE_BITS = 12
"""What the least squared error is asked at for 16 bits: activations have 8 to 16 of them (quantisation/widths.py)."""


@dataclass(frozen=True)
class Calibration:
    """pictures: what activation ranges are measured on. method: max, percentile or mse.

    fit: one of FITS; the model's own where it is None. bits: of weights and activations, 4, 8 or 16; 8 where it is
    None, and then a model may bring integers of its own.
    """

    pictures: tuple[Path, ...]
    method: str = "mse"
    fit: str | None = None
    bits: int | None = None


@dataclass(frozen=True, eq=False)
class Generated:
    network: QuantizedNetwork
    schedule: SystolicSchedule
    cost: Cost
    clock: Clock
    design: Design


def quantise_model(model: Model, calibration: Calibration, fit: str, tell: Progress) -> QuantizedNetwork:
    """The model's integers: its own, or those that calibration gives. QuantiseError for bits that are neither."""
    if model.quantized is not None:
        if calibration.bits is not None:
            raise QuantiseError(
                f"{model.quantized.name} was quantised when it was trained, so that it cannot be brought to "
                f"{calibration.bits} bits; leave out --bits"
            )
        return model.quantized
    network, bits = model.network, 8 if calibration.bits is None else calibration.bits
    inputs = calibration_inputs(network, calibration.pictures, fit)
    total = len(inputs)
    ranges = calibrate(
        network,
        inputs,
        calibration.method,
        bits=min(bits, WIDE_BITS),
        progress=lambda done: tell(f"calibrating, picture {done} of {total}"),
    )
    return quantise_format(network, ranges, bits)


def make_design(
    model: Model,
    board: Board,
    clock_mhz: float | None,
    calibration: Calibration,
    tell: Progress = lambda _: None,
    given: tuple[str, str] | None = None,
    batch: int | None = None,
) -> Generated:
    """Everything between a model and the files of its accelerator; the errors are those of each step.

    given: a saved schedule as (JSON, name of its file), instead of a search. batch: frames that share the weights'
    passage; what ``given`` says, or 1, where it is None.
    """
    asked = None if clock_mhz is None else board.nearest_clock(clock_mhz).mhz
    tell("quantising")
    fit = calibration.fit or model.fit
    network = quantise_model(model, calibration, fit, tell)
    tell("scheduling")
    if given is None:
        found = choose(network, board, asked, 1 if batch is None else batch)
        schedule, clock = found.schedule, board.nearest_clock(found.link.clock_mhz)
    else:
        schedule = check_schedule(given_schedule(network, given, batch))
        clock = board.clocks()[-1] if asked is None else board.nearest_clock(asked)
    shape = network.input_shape
    vector, _ = FITS[fit](load_picture(calibration.pictures[0]), shape.height, shape.width)
    tell("generating")
    priced = cost(schedule, link_of(board, clock.mhz))
    return Generated(network, schedule, priced, clock, generate(schedule, board, clock, model.files, vector, fit))


def given_schedule(network: QuantizedNetwork, given: tuple[str, str], batch: int | None) -> SystolicSchedule:
    """given: JSON and the name of its file. ScheduleError where another batch than the file's is asked for."""
    schedule = from_json(given[0], network, given[1])
    if batch not in (None, schedule.batch):
        raise ScheduleError(
            f"{given[1]} is a schedule for batches of {schedule.batch} frame(s), --batch asks for {batch}; leave "
            "--batch out, or save a schedule of that batch"
        )
    return schedule
