"""The longest paths, the co-simulation, and checks whether the reports belong to this design."""

from __future__ import annotations

from collections.abc import Iterator

from systolic.vendor.claims import Claims
from systolic.vendor.comparison.rows import HOLDS, OPEN, WORSE, ClockRow
from systolic.vendor.reading.facts import CoSimulation, Synthesis, Timing
from systolic.vendor.reading.reports import TOLERANCE_NS, Reports

SAME_CLOCK = 1.001
"""The largest ratio of a reported period to the claimed one that counts as the same clock.

A PS divides its PLLs by integers, so its clock can be a little slower than the one of the design.
"""


def clock_rows(reports: Reports) -> Iterator[ClockRow]:
    """Yield a row with the longest path that Vitis HLS estimates, then one with Vivado's longest path."""
    if reports.synthesis:
        yield from _estimated(reports.synthesis)
    if reports.timing:
        yield _routed(reports.timing)


def _estimated(synthesis: Synthesis) -> Iterator[ClockRow]:
    path, budget, target = synthesis.estimated_ns, synthesis.budget_ns, synthesis.target_ns
    if not (path and budget and target):
        return
    limit = budget + TOLERANCE_NS
    late = [module.name for module in synthesis.modules if (module.estimated_ns or 0) > limit]
    advice = (
        f"paths are too long in {', '.join(late[:6]) or synthesis.top}; the rows of their loops say where"
        if path > limit
        else ""
    )
    # Vitis HLS reserves a share of the period for routing, so the highest clock keeps the same share.
    yield ClockRow(
        "Vitis HLS, estimated", path, budget, 1000 * budget / target / path, WORSE if path > limit else HOLDS, advice
    )


def _routed(timing: Timing) -> ClockRow:
    """Return the row of the longest path in Vivado's timing report: of the clock with the least setup slack."""
    slacks = [(timing.wns_ns if clock.wns_ns is None else clock.wns_ns, clock.period_ns) for clock in timing.clocks]
    slack, period = min(slacks)
    path = period - slack
    advice = []
    if timing.wns_ns < 0:
        advice.append(
            f"{timing.failing:,} endpoints miss setup, the worst by {-timing.wns_ns:.3f} ns: shorten the first path of "
            f"vivado/timing.rpt, or generate for a clock of at most {1000 / path:.0f} MHz"
        )
    if timing.whs_ns < 0:
        advice.append(
            f"hold is missed by {-timing.whs_ns:.3f} ns, which a slower clock does not fix: route with another strategy"
        )
    verdict = WORSE if advice else HOLDS
    return ClockRow(f"Vivado, {timing.state.lower()}", path, period, 1000 / path, verdict, "; ".join(advice))


def co_simulation(claims: Claims, fact: CoSimulation | None) -> tuple[str, str]:
    """Return a sentence about the co-simulation of RTL and C++, and the verdict.

    Its cycles have no influence on the verdict, because a co-simulation models another memory than the board's.
    """
    if fact is None:
        return "no report", OPEN
    if fact.status != "Pass":
        return f"{fact.status}: the output of the RTL differs from the words that the test bench expects", WORSE
    cycles = fact.total or fact.latency
    text = f"Pass in {cycles:,} cycles" if cycles else "Pass"
    return f"{text}; the model has {claims.cycles:,} for all passes" if claims.cycles and cycles else text, HOLDS


def conflicts(claims: Claims, reports: Reports) -> Iterator[str]:
    """Yield the reasons why a report cannot belong to this design, one sentence each."""
    synthesis, timing = reports.synthesis, reports.timing
    if synthesis and synthesis.part and synthesis.part != claims.part:
        yield f"the synthesis is for {synthesis.part}, but the design for {claims.part}: run run_hls.tcl of this folder"
    target = synthesis.target_ns if synthesis else None
    if target is not None and target > claims.period_ns * SAME_CLOCK + TOLERANCE_NS:
        yield (
            f"the target period of the synthesis is {target:g} ns, but the design claims {claims.period_ns:.3f} ns: "
            "run run_hls.tcl of this folder"
        )
    period = min(clock.period_ns for clock in timing.clocks) if timing else 0
    if period > claims.period_ns * SAME_CLOCK:
        yield (
            f"Vivado's fastest clock has {1000 / period:.2f} MHz, but the design claims {claims.clock_mhz:g} MHz: run "
            "build_vivado.tcl of this folder without clock=, or generate the design for that clock"
        )


def missing(reports: Reports) -> Iterator[str]:
    """Yield what no report contains, such as "II, depth and memories", each with the command that produces it."""
    if reports.synthesis is None:
        yield "II, depth and memories: systolic vendor DIR --csynth, or vitis_hls -f run_hls.tcl in DIR"
    elif reports.synthesis.target_ns is None:
        yield "the estimated period: it is in csynth.xml, which is missing from the folder of csynth.rpt"
    if reports.co_simulation is None:
        yield (
            "whether the RTL computes the same as the C++: "
            'SYSTOLIC_STEPS="synth cosim" vitis_hls -f run_hls.tcl (with a small network)'
        )
    if reports.timing is None or reports.utilisation is None:
        yield "the clock and placed resources: vivado -mode batch -source build_vivado.tcl"
