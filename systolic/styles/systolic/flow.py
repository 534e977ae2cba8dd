"""The pipeline, as a table of contents: model → integers → schedule → design."""

from __future__ import annotations

from dataclasses import dataclass

from boards.board import Board
from boards.errors import ScheduleError
from boards.facts import Clock
from cnn.quantized import QuantizedNetwork
from host.vision.picture import FITS, load_picture
from scheduler.hardware.ddr import ddr_timing
from scheduler.systolic.model.cost import Cost, cost
from scheduler.systolic.rules import check_schedule
from scheduler.systolic.schedule import SystolicSchedule
from scheduler.systolic.schedule_file import from_json
from scheduler.systolic.search.search import choose
from systolic.files import DesignFiles
from systolic.model import Calibration, Model, Progress, quantise_model
from systolic.styles.systolic.generate import generate


@dataclass(frozen=True, eq=False)
class SystolicPlan:
    network: QuantizedNetwork
    schedule: SystolicSchedule
    cost: Cost
    clock: Clock
    design: DesignFiles


def make_design(
    model: Model,
    board: Board,
    clock_mhz: float | None,
    calibration: Calibration,
    tell: Progress = lambda _: None,
    given: tuple[str, str] | None = None,
    batch: int | None = None,
) -> SystolicPlan:
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
        schedule, clock = found.schedule, board.nearest_clock(found.ddr.clock_mhz)
    else:
        schedule = check_schedule(given_schedule(network, given, batch))
        clock = board.clocks()[-1] if asked is None else board.nearest_clock(asked)
    shape = network.input_shape
    vector, _ = FITS[fit](load_picture(calibration.pictures[0]), shape.height, shape.width)
    tell("generating")
    priced = cost(schedule, ddr_timing(board, clock.mhz))
    return SystolicPlan(network, schedule, priced, clock, generate(schedule, board, clock, model.files, vector, fit))


def given_schedule(network: QuantizedNetwork, given: tuple[str, str], batch: int | None) -> SystolicSchedule:
    """given: JSON and the name of its file. ScheduleError where another batch than the file's is asked for."""
    schedule = from_json(given[0], network, given[1])
    if batch not in (None, schedule.batch):
        raise ScheduleError(
            f"{given[1]} is a schedule for batches of {schedule.batch} frame(s), --batch asks for {batch}; leave "
            "--batch out, or save a schedule of that batch"
        )
    return schedule
