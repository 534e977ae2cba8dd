"""Map the LUTs of a module for depth, as Vivado does on critical paths.

Yosys maps the slowest path of a module for depth and all other logic for area. The result has chains of small LUTs
that one LUT of six inputs can replace. Here each LUT takes the best set of at most six nets that determine its value
(a cut). Source of the method: Mishchenko et al., "Combinational and Sequential Mapping with Priority Cuts", ICCAD 2007.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace

from boards.errors import ChoiceError
from rtl_timing.delays import DelayTable, Pin
from rtl_timing.synthesis import Bit, Cell, Module

INPUTS = 6
"""Inputs of a LUT."""
CUTS = 8
"""Cuts that are kept per net. More find no shorter path in the modules of the engine."""
TYPICAL_WIRE_NS = 0.22
"""A wire of two loads, for the choice of cuts only."""

_Cut = frozenset[int]


def covered(module: Module, delays: DelayTable) -> Module:
    """Return a module whose LUTs are mapped for depth: each has the inputs of its best cut. LUTs that nothing reads any
    more are left out.

    Args:
        module: A synthesised module.
        delays: The delays by which cuts are compared.
    """
    luts = {cell.pins["O"][0]: cell for cell in module.cells if _is_lut(cell)}
    best = _best_cuts(module, luts, delays)
    others = [cell for cell in module.cells if not _is_lut(cell)]
    read: list[Bit] = [
        bit for cell in others for pin, bits in cell.pins.items() if pin not in cell.outputs for bit in bits
    ]
    read += [bit for port, bits in module.ports.items() if port not in module.inputs for bit in bits]
    kept: dict[int, Cell] = {}
    while read:
        bit = read.pop()
        if isinstance(bit, int) and bit in luts and bit not in kept:
            leaves = sorted(best[bit])
            pins: dict[str, tuple[Bit, ...]] = {f"I{place}": (leaf,) for place, leaf in enumerate(leaves)}
            kept[bit] = replace(luts[bit], kind=f"LUT{max(len(leaves), 1)}", pins={**pins, "O": (bit,)})
            read += leaves
    return replace(module, cells=(*others, *kept.values()))


def _is_lut(cell: Cell) -> bool:
    return cell.kind == "INV" or (cell.kind.startswith("LUT") and cell.kind[3:].isdigit())


def _inputs(cell: Cell) -> list[int]:
    return [bit for pin, (bit, *_) in cell.pins.items() if pin != "O" and isinstance(bit, int)]


def _best_cuts(module: Module, luts: Mapping[Bit, Cell], delays: DelayTable) -> dict[int, _Cut]:
    """Return, for each net that a LUT drives, its best cut: the at most six nets from which one LUT can compute it
    soonest."""
    lut_ns = delays.arcs(Cell("", "LUT6", "", {}, {"I0": (0,), "O": (1,)}, frozenset({"O"}))).through[0][2]
    lut_ns += TYPICAL_WIRE_NS
    before: dict[int, list[tuple[int, float]]] = defaultdict(list)  # net → nets before it through other primitives
    for cell in module.cells:
        if not _is_lut(cell):
            for (pin, bit), (output, position), ns in _through(cell, delays):
                source, target = cell.pins[pin][bit], cell.pins[output][position]
                if isinstance(source, int) and isinstance(target, int):
                    before[target].append((source, ns))
    times: dict[int, float] = {}
    cuts: dict[int, list[_Cut]] = {}
    best: dict[int, _Cut] = {}

    def finish(net: int) -> None:
        cell = luts.get(net)
        if cell is None:
            times[net] = max((times.get(source, 0.0) + ns for source, ns in before[net]), default=0.0)
            cuts[net] = [frozenset({net})]
            return

        def cost(cut: _Cut) -> tuple[float, int]:
            return max((times.get(leaf, 0.0) for leaf in cut), default=0.0), len(cut)

        def rank(cut: _Cut) -> tuple[tuple[float, int], list[int]]:
            return cost(cut), sorted(cut)

        merged: set[_Cut] = {frozenset()}
        for source in _inputs(cell):
            pairs = {one | other for one in merged for other in cuts.get(source, [frozenset({source})])}
            merged = set(sorted((cut for cut in pairs if len(cut) <= INPUTS), key=rank)[:CUTS])
        merged.add(frozenset(_inputs(cell)))  # of the others, none may be left
        ordered = sorted(merged, key=rank)
        best[net] = ordered[0]
        times[net] = cost(ordered[0])[0] + lut_ns
        cuts[net] = [frozenset({net}), *ordered]

    sources = {net: [source for source, _ in pairs] for net, pairs in before.items()}
    sources |= {net: _inputs(cell) for net, cell in luts.items() if isinstance(net, int)}
    for net in _in_order(sources):
        finish(net)
    return best


def _through(cell: Cell, delays: DelayTable) -> tuple[tuple[Pin, Pin, float], ...]:
    try:
        return delays.arcs(cell).through
    except ChoiceError:  # an instance of another module
        return ()


def _in_order(before: Mapping[int, Sequence[int]]) -> list[int]:
    """Return nets so that each follows the nets that it depends on (``before``). A loop of logic is cut at one of its
    nets."""
    done: set[int] = set()
    order: list[int] = []
    for start in sorted(before):
        if start in done:
            continue
        done.add(start)
        stack = [(start, iter(before[start]))]
        while stack:
            net, rest = stack[-1]
            following = next((source for source in rest if source in before and source not in done), None)
            if following is None:
                order.append(net)
                stack.pop()
            else:
                done.add(following)
                stack.append((following, iter(before[following])))
    return order
