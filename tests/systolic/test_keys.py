"""Test the keys of JSON outputs: every style and engine has the same keys, with null for an unknown value."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from systolic.execution.build import Variant
from systolic.execution.result import FrameResult
from systolic.execution.simulation import LayerResult, Simulation
from systolic.styles.streaming.measure import StreamingReport
from systolic.styles.systolic.counts import SystolicCounts
from systolic.styles.systolic.measure import SystolicReport
from systolic.trace.report import FifoDepths, LayerTime
from systolic.trace.timing import MemoryTiming, ProcessTiming, RegionTiming, TraceTiming

GOLDEN = Path(__file__).parents[1] / "golden"
LAYERS = (LayerTime("short", 100, 1000, 0.5, 90), LayerTime("long", 300, 3000, 0.25, 310))
REGION = RegionTiming(7, False, 396, 4, (ProcessTiming("load", 300, 50, 30, 16, 0, 300),), (), ())
TIMING = TraceTiming(200, MemoryTiming(), (REGION,))


def cycles() -> dict[str, dict[str, Any]]:
    """Return the JSON of a cycle report for each style and engine."""
    facts: dict[str, Any] = {"network": "net", "clock_mhz": 200, "dsp": 8, "macs_per_cycle": 40, "layers": LAYERS}
    return {
        "array in C++": SystolicReport(**facts, timing=TIMING).values(),
        "array in SystemVerilog": SystolicCounts(
            **facts, memory=MemoryTiming(), pass_cycles=[400.0], mismatches=0
        ).values(),
        "pipeline": StreamingReport(**facts, interval=300, latency=420, timing=TIMING).values(),
    }


def test_cycle_report_keys_are_the_same_for_all_styles() -> None:
    told = cycles()
    assert len({tuple(values) for values in told.values()}) == 1
    assert len({tuple(layer) for values in told.values() for layer in values["layers"]}) == 1
    assert len({tuple(process) for values in told.values() for process in values["processes"]}) == 1
    for name, values in told.items():
        assert (values["bound_by"], values["dsp"]) == ("long", 8), name
        assert values["source"] == ("counted" if name == "array in SystemVerilog" else "traced")
        assert 0 < values["dsp_efficiency"] <= 1
    assert told["array in C++"]["latency_cycles"] == told["array in SystemVerilog"]["latency_cycles"] == 400


def test_simulation_keys_are_the_same_for_all_engines() -> None:
    layer, output = LayerResult("conv1", 4, 0, None), np.zeros((1, 2, 2), np.int8)
    told = [
        FrameResult("net", Simulation((layer,), (output,), Variant(), cycles), (20.0,), None, "").values()
        for cycles in ((), (9,))
    ]
    assert [list(values["layers"][0]) for values in told] == [list(told[0]["layers"][0])] * 2
    assert [values["layers"][0]["cycles"] for values in told] == [None, 9]


def test_fifo_depth_keys_are_the_same_for_all_styles() -> None:
    told = FifoDepths(least={"rows": 2}, declared={"rows": 4}, cycles=91, best_cycles=90).values()
    assert list(told)[:4] == ["least", "declared", "cycles", "best_cycles"]
    unknown = ["latency_cycles", "widths", "bits", "fixed_bits", "curve"]
    assert list(told)[4:] == unknown == [key for key, value in told.items() if value is None]
    curve = FifoDepths(least={}, declared={}, cycles=91, best_cycles=90, curve=((1, None), (2, 91))).values()["curve"]
    assert curve == [[1, None], [2, 91]]


def test_generate_keys_are_the_same_for_all_styles() -> None:
    array, pipeline = (
        json.loads((GOLDEN / style / "generate.json").read_text()) for style in ("systolic", "streaming")
    )
    assert list(array) == list(pipeline)
    assert list(array["estimate"]) == list(pipeline["estimate"])
    own = {"array": array, "layers": array, "heads": array, "folding": pipeline, "blocks": pipeline, "fifos": pipeline}
    assert {key for key in array if (array[key] is None) != (pipeline[key] is None)} == set(own)
    # The pipeline's network was quantised in training, but the array's network was not.
    assert all(values[key] is not None for key, values in own.items())
