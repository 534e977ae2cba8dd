"""JSON has the same keys of every style and engine: null stands for what one of them does not tell."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from systolic.execution.build import Variant
from systolic.execution.result import FrameResult
from systolic.execution.simulation import LayerResult, Simulation
from systolic.styles.streaming.cycles import StreamingFifos
from systolic.styles.streaming.fifos import Fifos
from systolic.styles.streaming.measure import StreamingReport
from systolic.styles.systolic.counts import SystolicCounts
from systolic.styles.systolic.cycles import SystolicFifos
from systolic.styles.systolic.measure import SystolicReport
from systolic.trace.advice import Advice
from systolic.trace.report import LayerTime
from systolic.trace.timing import MemoryTiming, ProcessTiming, RegionTiming, TraceTiming

GOLDEN = Path(__file__).parents[1] / "golden"
LAYERS = (LayerTime("short", 100, 1000, 0.5, 90), LayerTime("long", 300, 3000, 0.25, 310))
REGION = RegionTiming(7, False, 396, 4, (ProcessTiming("load", 300, 50, 30, 16, 0, 300),), (), ())
TIMING = TraceTiming(200, MemoryTiming(), (REGION,))


def cycles() -> dict[str, dict[str, Any]]:
    counted = SystolicCounts("net", 200, 8, 40, MemoryTiming(), LAYERS, [400.0], 0)
    return {
        "array in C++": SystolicReport("net", 200, 8, 2, LAYERS, TIMING).values(),
        "array in SystemVerilog": counted.values(),
        "pipeline": StreamingReport("net", 200, 8, 300, 420, LAYERS, TIMING).values(),
    }


def test_cycles_have_the_same_keys_of_every_style_and_engine() -> None:
    told = cycles()
    assert len({tuple(values) for values in told.values()}) == 1
    assert len({tuple(layer) for values in told.values() for layer in values["layers"]}) == 1
    assert len({tuple(process) for values in told.values() for process in values["processes"]}) == 1
    for name, values in told.items():
        assert (values["bound_by"], values["dsp"]) == ("long", 8), name
        assert values["source"] == ("counted" if name == "array in SystemVerilog" else "traced")
        assert 0 < values["dsp_efficiency"] <= 1
    assert told["array in C++"]["latency_cycles"] == told["array in SystemVerilog"]["latency_cycles"] == 400


def test_a_simulation_has_the_same_keys_of_every_engine() -> None:
    layer, output = LayerResult("conv1", 4, 0, None), np.zeros((1, 2, 2), np.int8)
    told = [
        FrameResult("net", Simulation((layer,), (output,), Variant(), cycles), (20.0,), None, "").values()
        for cycles in ((), (9,))
    ]
    assert [list(values["layers"][0]) for values in told] == [list(told[0]["layers"][0])] * 2
    assert [values["layers"][0]["cycles"] for values in told] == [None, 9]


def test_depths_of_fifos_have_the_same_keys_of_every_style() -> None:
    advice = Advice({"rows": 2}, {"rows": 4}, 90, 91, 90, ((1, None), (2, 91)))
    array = SystolicFifos(advice).values()
    pipeline = StreamingFifos(Fifos({"a": 2}, {"a": 8}, 91, 120, 90, 16, 64, 3), {"a": 4}).values()
    assert list(array) == list(pipeline)
    assert (array["cycles"], array["best_cycles"]) == (pipeline["cycles"], pipeline["best_cycles"]) == (91, 90)
    assert (array["curve"], pipeline["curve"]) == ([[1, None], [2, 91]], None)


def test_generated_designs_have_the_same_keys_of_every_style() -> None:
    array, pipeline = (
        json.loads((GOLDEN / style / "generate.json").read_text()) for style in ("systolic", "streaming")
    )
    assert list(array) == list(pipeline)
    assert list(array["estimate"]) == list(pipeline["estimate"])
    own = {"array": array, "layers": array, "heads": array, "folding": pipeline, "blocks": pipeline, "fifos": pipeline}
    assert {key for key in array if (array[key] is None) != (pipeline[key] is None)} == set(own)
    assert all(values[key] is not None for key, values in own.items())  # the pipeline's network was trained
