"""The Python interface to schedules and foldings: find the best one, compare several, find the Pareto front."""

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
    """Return the best array size and tiling of a network on a board, with the modelled cost. No design is generated.

    Args:
        network: The model.
        board: The board, or its name.
        clock_mhz: The clock. None takes the board's clock with the highest frame rate.
        bits: The bits of weights and activations: 4, 8 or 16. None for 8, or for the network's own.
        executor: Runs the search in parallel; None runs it in this process.
        options: Fields of ``SystolicOptions``.

    Raises:
        DoesNotFitError: No schedule fits the board.
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
    """Return the best folding of a network as a streaming pipeline, with its modelled cost. No design is generated.

    Args:
        network: The model.
        board: The board, or its name.
        clock_mhz: The clock. None takes the board's target clock.
        bits: The bits of weights and activations: 4, 8 or 16. None for 8, or for the network's own.
        calibration: Quantises the network instead of ``bits``, for example with 4 or 8 bits per layer.
        options: Fields of ``StreamingOptions``.

    Raises:
        DoesNotFitError: No folding fits the board.
    """
    place, style_options = board_of(board), StreamingOptions(**options)
    network = with_softmax(network, style_options.softmax)
    if calibration is None:
        quantised = shapes_of(network, bits, check_mappable)
    else:
        quantised = integers_for(network, calibration, Pipeline(place, clock_mhz, style_options))
    return streaming.explore(quantised, place, clock_mhz, style_options)


def integers_for(
    network: Model, calibration: Calibration, pipeline: Pipeline, progress: Progress = silent
) -> QuantizedNetwork:
    """Return the quantised network for a streaming pipeline. Mixed precision is chosen for this pipeline's rate.

    Args:
        network: The model.
        calibration: The calibration.
        pipeline: The pipeline for which mixed precision is chosen, unless the calibration names one.
        progress: The function that receives the current step.

    Raises:
        SeveralFaultsError: Some layers cannot be folded. This is checked before the calibration.
    """
    check_mappable(network.known)
    return quantise_model(network, replace(calibration, pipeline=calibration.pipeline or pipeline), progress)


def compare(
    network: Model,
    boards: Sequence[Board | str] = ("zcu104",),
    arrays: Sequence[str] = (),
    bits: Sequence[int] = (8,),
    batches: Sequence[int] = (1,),
    clocks_mhz: Sequence[float | None] = (None,),
    **options: Any,
) -> SystolicComparison:
    """Compare the best schedules of every combination of board, array, bits, batch and clock.

    A combination that does not fit is a row with the reason.

    Args:
        network: The model.
        boards: The boards, or their names.
        arrays: Geometries as "ROWSxCOLUMNSxLANES", for example "13x16x16". Without any, the geometry is searched.
        bits: The bits of weights and activations.
        batches: The numbers of frames per start.
        clocks_mhz: The clocks. None takes the board's clock with the highest frame rate.
        options: Fields of ``SystolicOptions``. ``ddr_gbps`` may be a sequence, whose values are combined too.
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
    """Compare the foldings that several search methods find for the same options.

    Args:
        network: The model.
        board: The board, or its name.
        clock_mhz: The clock. None takes the board's target clock.
        searches: The search methods.
        options: Fields of ``StreamingOptions``.
    """
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
    """Return the best schedule of each array size that no other one beats in both frames/s and DSPs.

    Args:
        network: The model.
        board: The board, or its name.
        clock_mhz: The clock. None takes the board's target clock.
        batch: The number of frames per start.
        options: The memory, the budget and the pinned values.
        pins: Further pinned values of the array, such as ``lanes=16``.

    Raises:
        DoesNotFitError: No schedule fits the board.
    """
    style_options = options or SystolicOptions()
    style_options = replace(style_options, batch=batch, pins={**style_options.pins, **pins})
    return systolic.front(shapes_of(network, check=refusals.check_mappable), board_of(board), clock_mhz, style_options)


def shapes_of(
    network: Model, bits: int | None = None, check: Callable[[Network | QuantizedNetwork], None] = lambda _: None
) -> QuantizedNetwork:
    """Return a network quantised with a single picture, for searches that need only its shapes and bits.

    A mapping depends only on shapes and bits, not on the values of weights and scales.

    Args:
        network: The model.
        bits: The bits of weights and activations; None for 8. A network that was quantised in training keeps its own.
        check: Raises an error for a network that cannot be mapped. It is called before the network is quantised.
    """
    check(network.known)
    if network.quantized is not None and bits == 8:
        bits = None
    return quantise_model(network, Calibration((any_picture(network.network.input_shape.channels),), bits=bits))
