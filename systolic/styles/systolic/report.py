"""Reports of schedules: tables for a terminal, and a page with the same tables and pictures."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from scheduler.systolic.area.logic import SOURCE
from scheduler.systolic.area.memories import PRIMITIVES
from scheduler.systolic.area.resources import built, fifo_table
from systolic.report.page import html_table, page, pair, picture
from systolic.report.tables import (
    BUILT_FIFO_HEAD,
    ENERGY_HEAD,
    Cell,
    built_fifo_rows,
    energy_rows,
    overhead_words,
    table,
)
from systolic.styles.ddr_profiles import PROFILES_HEAD, profiles_cell, profiles_text
from systolic.styles.systolic.priced import PricedSchedule

LAYER_HEAD = (
    *("layer", "order", "column tiles", "cycles", "PEs busy", "DDR bytes", "result"),
    *("bound by", "overhead", "runner-up"),
)


def layer_rows(mapping: PricedSchedule) -> list[list[Cell]]:
    """Return the rows of the layer table: tiling, cycles, DDR bytes and what bounds each layer."""
    lines: list[list[Cell]] = []
    for layer, why in zip(mapping.cost.layers, mapping.runners_up, strict=True):
        lines.append(
            [
                layer.shape.name,
                layer.tiling.order,
                f"{layer.tiling.columns.count} × {layer.tiling.columns.width}",
                layer.total,
                f"{mapping.cost.efficiency(layer):.0%}",
                layer.traffic.total,
                "on chip" if layer.tiling.on_chip else "DDR",
                layer.bound_by,
                overhead_words(layer.overhead.part, layer.overhead.cycles, layer.total),
                why,
            ]
        )
    return lines


def totals(mapping: PricedSchedule) -> str:
    """Return a few lines for a terminal: cycles per frame, rate, DDR traffic, energy and proof of a schedule."""
    priced = mapping.cost
    total_bytes = priced.bytes_per_frame
    of_batch = f"; a batch of {priced.batch} frames: {priced.cycles:,} cycles" if priced.batch > 1 else ""
    lines = [
        f"modelled: {priced.cycles_per_frame:,} cycles per frame, {priced.frames_per_second:.1f} frames/s{of_batch}, "
        f"{priced.cycles / mapping.clock_mhz / 1e3:.2f} ms",
        f"DDR: {total_bytes / 1e6:.2f} MB per frame, {total_bytes * priced.frames_per_second / 1e9:.2f} GB/s",
        profiles_text(mapping.board, priced.ddr.rate, mapping.ddr_profiles),
        f"MACs: {priced.macs / (priced.array.macs_per_cycle * priced.cycles):.1%} of the array's peak",
    ]
    lines.append(str(mapping.energy))
    primitives = (f"{b.name} in {PRIMITIVES[mapping.placement[b.name]]}" for b in built(mapping.schedule.array))
    lines.append("buffers: " + ", ".join(primitives))
    if mapping.holds:
        lines.append(str(mapping.holds))
    if mapping.proof:
        proof = mapping.proof
        lines.append(
            f"proven best of {proof.geometries} geometries: {proof.priced} priced ({proof.arrays:,} arrays), "
            f"{proof.ruled_out} ruled out by their bound"
            + (f"; least area within {proof.tolerance:.1%} of the fewest cycles" if proof.tolerance else "")
        )
    return "\n".join(lines)


BUDGET_HEAD = ("resource", "used", "of", "share", "source")


def budget_rows(mapping: PricedSchedule) -> list[list[Cell]]:
    """Return the rows of the resource table: estimated use, and the amount that the board has."""
    used, board = mapping.usage, mapping.board.resources
    counted = "estimate: primitives by their shapes"
    rows = [("DSP", used.dsp, board.dsp, counted), ("BRAM36", used.bram36, board.bram36, counted)]
    rows += [("URAM", used.uram, board.uram, counted)] if board.uram else []
    rows += [("LUT", used.lut, board.lut, SOURCE), ("LUT as memory", used.lutram, board.lutram, counted)]
    rows += [("FF", mapping.fabric.ff, board.ff, SOURCE)]
    return [[name, count, total, f"{count / total:.0%}", source] for name, count, total, source in rows]


def layer_energy_rows(mapping: PricedSchedule) -> list[list[Cell]]:
    """Return the rows of the energy table in µJ, one per layer and a last one for the frame."""
    names = [layer.shape.name for layer in mapping.cost.layers]
    return energy_rows(names, mapping.layer_energies, mapping.energy)


BASELINE_HEAD = ("schedule", "cycles", "frames/s", PROFILES_HEAD, "DDR MB", "weights on chip KiB", "source")


def baseline_rows(mapping: PricedSchedule) -> list[list[Cell]]:
    """Return the rows of the baseline table: this schedule, and others with the same MACs per cycle."""
    clock, own = mapping.clock_mhz * 1e6, mapping.cost
    at_profiles, megabytes = profiles_cell(mapping.ddr_profiles), own.bytes_per_frame / 1e6
    rows: list[list[Cell]] = [
        ["this", own.cycles_per_frame, own.frames_per_second, at_profiles, megabytes, None, "modelled, engine"]
    ]
    for baseline in mapping.baselines:
        rate, at_profiles = clock / baseline.cycles, profiles_cell(mapping.baseline_profiles[baseline.name])
        memory = (baseline.bytes / 1e6, baseline.on_chip // 1024)
        rows.append([baseline.name, baseline.cycles, rate, at_profiles, *memory, baseline.source])
    return rows


BASELINE_NOTE = (
    "convor, scale-sim-os and naive are models of other schedules with the same MACs per cycle. They cannot be "
    "generated. They do not include handshakes, the fetching of passes, and waiting for the Saver or for single words "
    "of the DDR. Only scale-sim-os includes fill and drain of the array. The engine's cycles include all of these, so "
    "a baseline can have fewer cycles."
)


def mapping_text(mapping: PricedSchedule) -> str:
    """Return the text that ``systolic schedule`` prints."""
    return "\n\n".join(
        [
            mapping.title,
            table(LAYER_HEAD, layer_rows(mapping)),
            totals(mapping),
            table(BUDGET_HEAD, budget_rows(mapping)),
            table(ENERGY_HEAD, layer_energy_rows(mapping)),
            table(BASELINE_HEAD, baseline_rows(mapping)),
            BASELINE_NOTE,
        ]
    )


def mapping_html(mapping: PricedSchedule) -> str:
    """Return the HTML with the tables and figures of one schedule, without the head of a page."""
    return f"<h2>{escape(mapping.title)}</h2>{_body(mapping)}"


def _body(mapping: PricedSchedule) -> str:
    from systolic.styles.systolic import figures  # here, because importing matplotlib is slow
    from systolic.styles.systolic.tiling_picture import tiling, tiling_words

    pictures = (draw(mapping) for draw in figures.OF_MAPPING.values())
    note = escape(totals(mapping)).replace("\n", "<br>")
    return "".join(
        [
            f"<p>{note}</p>",
            html_table(LAYER_HEAD, layer_rows(mapping)),
            html_table(BUDGET_HEAD, budget_rows(mapping)),
            html_table(ENERGY_HEAD, layer_energy_rows(mapping)),
            html_table(BUILT_FIFO_HEAD, built_fifo_rows(fifo_table(mapping.schedule.array))),
            html_table(BASELINE_HEAD, baseline_rows(mapping)),
            f'<p class="note">{escape(BASELINE_NOTE)}</p>',
            *map(picture, pictures),
            pair([(tiling(mapping, layer), tiling_words(mapping, layer)) for layer in shown_layers(mapping)]),
        ]
    )


def shown_layers(mapping: PricedSchedule) -> list[int]:
    """Return the indices of layers whose tiling is drawn: the first, and the slowest of each loop order."""
    layers = mapping.cost.layers
    slowest = {
        order: max((n for n in range(len(layers)) if layers[n].tiling.order == order), key=lambda n: layers[n].total)
        for order in {layer.tiling.order for layer in layers}
    }
    return sorted({0, *slowest.values()})


def mapping_page(mapping: PricedSchedule, front: Sequence[PricedSchedule] = ()) -> str:
    """Return the HTML page that ``systolic schedule --report`` writes, with the Pareto front if given."""
    return page(mapping.title, _body(mapping), geometries_html(front, mapping))


def geometries_html(front: Sequence[PricedSchedule], chosen: PricedSchedule | None) -> str:
    """Return the HTML that draws the Pareto front with a mark at the chosen schedule; "" without a front."""
    from systolic.styles.systolic.figures import pareto  # here, because importing matplotlib is slow

    return "<h2>Geometries</h2>" + picture(pareto(front, chosen)) if front else ""
