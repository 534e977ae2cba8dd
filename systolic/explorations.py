"""Schedules and foldings as a user of Python has them: the best one, several side by side, the Pareto front."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import replace
from typing import Any

from boards.board import Board
from boards.progress import Progress, silent
from cnn.network import Network
from cnn.quantized import QuantizedNetwork
from scheduler.streaming.refusals import check_mappable
from scheduler.systolic.network import refusals
from systolic.designs import board_of
from systolic.evaluation.mixed import Pipeline
from systolic.model import Calibration, Model, any_picture, quantise_model, with_softmax
from systolic.styles.streaming import exploration as streaming
from systolic.styles.streaming.arguments import SEARCHES
from systolic.styles.streaming.comparison import StreamingComparison
from systolic.styles.streaming.mapping import StreamingMapping
from systolic.styles.streaming.options import StreamingOptions
from systolic.styles.systolic import exploration as systolic
from systolic.styles.systolic.comparison import ParetoFront, SystolicComparison
from systolic.styles.systolic.mapping import SystolicMapping
from systolic.styles.systolic.options import Alternatives, SystolicOptions


def schedule(
    network: Model,
    board: Board | str = "zcu104",
    clock_mhz: float | None = None,
    bits: int | None = None,
    executor: Executor | None = None,
    **options: Any,
) -> SystolicMapping:
    """The best array and tiling for a network, priced; nothing is generated.

    clock_mhz: where it is None, that of the board which gives the most frames a second. bits: of weights and
    activations, 4, 8 or 16. executor: what the search runs in. options: fields of ``SystolicOptions``. DoesNotFitError
    if nothing fits.
    """
    style_options = SystolicOptions(**options)
    shapes = shapes_of(network, bits, refusals.check_mappable)
    return systolic.explore(shapes, board_of(board), clock_mhz, style_options, executor)


def fold(
    network: Model,
    board: Board | str = "ultra96-v2",
    clock_mhz: float | None = None,
    bits: int | None = None,
    calibration: Calibration | None = None,
    **options: Any,
) -> StreamingMapping:
    """The folding of a network as a pipeline, priced; nothing is generated.

    clock_mhz: the board's highest where it is None. bits: 4, 8 or 16. calibration: instead of ``bits``, whose integers
    are folded, such as bits by layer. options: fields of ``StreamingOptions``. DoesNotFitError if nothing fits.
    """
    place, style_options = board_of(board), StreamingOptions(**options)
    network = with_softmax(network, style_options.softmax)
    if calibration is None:
        quantised = shapes_of(network, bits, check_mappable)
    else:
        quantised = integers_for(network, calibration, Pipeline(place, clock_mhz, style_options))
    return streaming.explore(quantised, place, clock_mhz, style_options)


def integers_for(
    network: Model, calibration: Calibration, pipeline: Pipeline, tell: Progress = silent
) -> QuantizedNetwork:
    """What calibration makes of a network, bits by layer for this pipeline unless it names another one.

    SeveralFaultsError for layers that cannot be folded, before anything is calibrated.
    """
    check_mappable(network.known)
    return quantise_model(network, replace(calibration, pipeline=calibration.pipeline or pipeline), tell)


def compare(
    network: Model,
    boards: Sequence[Board | str] = ("zcu104",),
    arrays: Sequence[str] = (),
    bits: Sequence[int] = (8,),
    batches: Sequence[int] = (1,),
    clocks_mhz: Sequence[float | None] = (None,),
    **options: Any,
) -> SystolicComparison:
    """Every board × array × bits × batch × clock side by side.

    arrays: "13x16x16"; none searches the geometry. clocks_mhz: None for the one that gives the most frames a second.
    What does not fit is a row that says why. options: fields of ``SystolicOptions``; ``ddr_gbps`` may be several.
    """
    networks = {count: shapes_of(network, count, refusals.check_mappable) for count in bits}
    gbps = options.pop("ddr_gbps", None)
    alternatives = Alternatives(
        tuple(map(board_of, boards)),
        tuple(arrays),
        tuple(batches),
        tuple(clocks_mhz),
        tuple(gbps) if isinstance(gbps, Sequence) else (gbps,),
    )
    return systolic.compare(networks, alternatives, SystolicOptions(**options))


def compare_foldings(
    network: Model,
    board: Board | str = "ultra96-v2",
    clock_mhz: float | None = None,
    searches: Sequence[str] = SEARCHES,
    **options: Any,
) -> StreamingComparison:
    """What each search makes of the same wish. options: fields of ``StreamingOptions``."""
    style_options = StreamingOptions(**options)
    shapes = shapes_of(with_softmax(network, style_options.softmax), check=check_mappable)
    return streaming.compare(shapes, board_of(board), clock_mhz, style_options, searches)


def pareto_front(
    network: Model,
    board: Board | str = "zcu104",
    clock_mhz: float | None = None,
    batch: int = 1,
    options: SystolicOptions | None = None,
    **pins: int,
) -> ParetoFront:
    """The best schedule of every geometry that is on the front.

    clock_mhz: the board's highest where it is None. options: memory, budget and pins. pins: more numbers of the array,
    such as lanes=16. DoesNotFitError if nothing fits.
    """
    style_options = options or SystolicOptions()
    style_options = replace(style_options, batch=batch, pins={**style_options.pins, **pins})
    return systolic.front(shapes_of(network, check=refusals.check_mappable), board_of(board), clock_mhz, style_options)


def shapes_of(
    network: Model, bits: int | None = None, check: Callable[[Network | QuantizedNetwork], None] = lambda _: None
) -> QuantizedNetwork:
    """Shapes and bits decide a mapping, not numbers: one picture is enough to calibrate on.

    bits: 8 where it is None; those of a network that was quantised when it was trained are its own. check: raises for a
    network that cannot be mapped, before it is quantised.
    """
    check(network.known)
    if network.quantized is not None and bits == 8:
        bits = None
    return quantise_model(network, Calibration((any_picture(network.network.input_shape.channels),), bits=bits))
