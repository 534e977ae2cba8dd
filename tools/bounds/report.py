"""The limits of networks on a board as one object for JSON, and as a table of text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from boards.board import Board
from boards.facts import DDR_PROFILES
from scheduler.systolic.model.clock import highest_mhz
from tools.bounds.engines import EngineRate, engine_rate
from tools.bounds.layers import Layer, layers_of
from tools.bounds.limits import Format, Speed, limits_of, macs_per_second
from tools.networks.table import Entry, as_argument, load

DSP_CLOCKS = (2, 1)
"""Cycles of the DSPs per cycle of the design: 2 in SystemVerilog alone, 1 also in the C++ engine."""


@dataclass(frozen=True)
class Question:
    """The board, the format and the clock for which limits are asked.

    Attributes:
        clock_mhz: The clock of the design; None for the board's target.
        engine: Whether the present engine's search is run.
    """

    board: Board
    form: Format
    clock_mhz: float | None = None
    engine: bool = False

    def mhz(self, dsp_clock: int) -> float:
        """Return the clock of a design whose DSPs run ``dsp_clock`` times as fast."""
        return self.board.design_clock(self.clock_mhz, highest_mhz(self.board, dsp_clock)).mhz


def answered(question: Question, entries: Iterable[Entry]) -> dict[str, Any]:
    """Return the limits of networks as an object for JSON."""
    board, form = question.board, question.form
    return {
        "board": board.name,
        "bits": form.bits,
        "batch": form.batch,
        "dsp": board.resources.dsp,
        "ddr": [{"profile": profile, "gbps": _gbps(board, profile)} for profile in DDR_PROFILES],
        "clocks": [{"dsp_clock": factor, "clock_mhz": question.mhz(factor)} for factor in DSP_CLOCKS],
        "networks": [_network(question, entry) for entry in entries],
    }


def _gbps(board: Board, profile: str) -> float:
    return board.ddr.preset_gbps * board.ddr.share(profile)


def _network(question: Question, entry: Entry) -> dict[str, Any]:
    layers = layers_of(load(entry))
    with as_argument(entry) as name:
        engines = [_engine(question, name, factor) for factor in DSP_CLOCKS] if question.engine else []
    return {
        "name": entry.name,
        "title": entry.title,
        "macs": sum(layer.macs for layer in layers),
        "weights": sum(layer.weights for layer in layers),
        "maps": sum(layer.reads + layer.writes for layer in layers),
        "limits": [_limits(question, layers, factor) for factor in DSP_CLOCKS],
        "engines": engines,
        "dpu": asdict(entry.dpu) if entry.dpu else None,
    }


def _limits(question: Question, layers: Sequence[Layer], dsp_clock: int) -> dict[str, Any]:
    board, form = question.board, question.form
    rate = macs_per_second(board, form.bits, dsp_clock * question.mhz(dsp_clock))
    found = {profile: limits_of(layers, Speed(rate, _gbps(board, profile) * 1e9), form) for profile in DDR_PROFILES}
    return {
        "dsp_clock": dsp_clock,
        "source": "derived",
        "macs_fps": next(iter(found.values())).macs,
        "profiles": [
            {
                "profile": profile,
                "frame_fps": limits.frame,
                "layers_fps": limits.layers,
                "layers_in_ddr_fps": limits.layers_in_ddr,
            }
            for profile, limits in found.items()
        ],
    }


def _engine(question: Question, network: str, dsp_clock: int) -> dict[str, Any]:
    form = question.form
    rate = engine_rate(network, question.board.name, form.bits, form.batch, dsp_clock, question.clock_mhz)
    if isinstance(rate, EngineRate):
        return {"dsp_clock": dsp_clock, "source": "modelled", **asdict(rate)}
    return {"dsp_clock": dsp_clock, "reason": rate}


HEAD = (
    f"{'network':<30} {'GMAC':>7} {'M weights':>9} {'DSP':>4} {'MACs':>9}"
    f" {'frame':>9} {'':>9} {'layers':>9} {'':>9} {'in DDR':>9} {'':>9}"
)


def table(answer: dict[str, Any]) -> str:
    """Return the limits as text, in frames per second: each limit at the measured and at the optimistic DDR profile."""
    shares = ", ".join(f"{ddr['profile']} {ddr['gbps']:.2f} GB/s" for ddr in answer["ddr"])
    clocks = ", ".join(f"{clock['dsp_clock']} × {clock['clock_mhz']:.0f} MHz" for clock in answer["clocks"])
    title = f"{answer['board']}, {answer['bits']} bits, batch {answer['batch']}, {answer['dsp']} DSPs at {clocks}"
    lines = [f"{title}; DDR: {shares}. Frames/s, derived; engines modelled.", HEAD]
    for network in answer["networks"]:
        lines += [_line(network, limits) for limits in network["limits"]]
        lines += [_engine_line(engine) for engine in network["engines"]]
    return "\n".join(lines)


def _line(network: dict[str, Any], limits: dict[str, Any]) -> str:
    keys = ("frame_fps", "layers_fps", "layers_in_ddr_fps")
    rates = [profile[key] for key in keys for profile in limits["profiles"]]
    size = f"{network['macs'] / 1e9:>7.3f} {network['weights'] / 1e6:>9.2f} {limits['dsp_clock']:>3}×"
    return f"{network['title']:<30} {size} " + " ".join(f"{rate:>9,.1f}" for rate in (limits["macs_fps"], *rates))


def _engine_line(engine: dict[str, Any]) -> str:
    name = f"  engine, DSPs {engine['dsp_clock']}×"
    if "reason" in engine:
        return f"{name}: {engine['reason']}"
    rates = ", ".join(f"{rate:,.1f} {profile}" for profile, rate in engine["fps"].items())
    return f"{name}: {engine['array']}, {rates}; {engine['array_fps']:,.1f} by the steps of the array alone"
