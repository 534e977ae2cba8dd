"""The sentences of the pages that contain figures.

A sentence is text of a page with figures in braces. ``{yolo.cycles:,} cycles`` means the figure ``cycles`` of the
example ``yolo``. A field with the format ``s`` is a name. A blank also matches a line break. Each sentence must occur
on its page exactly once.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from string import Formatter
from types import SimpleNamespace

from tools.figures.folder import Values
from tools.figures.tables import identifier
from tools.networks.table import Entry, entries

NETWORK_ROW = (
    " | {{networks.{0}_array:s}} | {{networks.{0}_cycles:,}} | {{networks.{0}_fps:,.1f}}"
    " | {{networks.{0}_modelled:,}}"
    " | {{networks.{0}_worst:s}}, {{networks.{0}_worst_off:+.1%}} of {{networks.{0}_worst_cycles:,}} |"
)
NETWORKS = {
    "yolov3_tiny": "| yolov3-tiny 416×416",
    "yolov4_tiny": "| yolov4-tiny 416×416",
    "yolo_fastest": "| yolo-fastest 320×320",
    "yolov8n": "| YOLOv8n's layout and size 640×640 (`tests/support/onnx/yolov8.py`)",
    "squeezenet": "| squeezenet",
    "skynet": "| skynet",
    "mobilenet_v1": "| mobilenet-v1",
    "mobilenet_v2": "| mobilenet-v2",
    "unet_small": "| unet-small",
    "resnet8": "| resnet8",
    "ds_cnn": "| ds-cnn",
}

LIMITS = ("layers_measured_1", "layers_optimistic_1", "layers_measured_4", "layers_optimistic_4")
LIMITS_IN_DDR = ("layers_in_ddr_measured_1", "layers_in_ddr_optimistic_1")


def _bounds_row(entry: Entry) -> str:
    """Return a row of the limits of a network, with two rates per column after the first three."""

    def rate(figure: str) -> str:
        return f"{{bounds.{identifier(entry.name)}_{figure}:,.0f}}"

    def rates(*figures: str) -> str:
        return " / ".join(map(rate, figures))

    size = f"{{bounds.{identifier(entry.name)}_gmac:.3f}} | {{bounds.{identifier(entry.name)}_weights:.2f}}"
    alone = f"{rate('macs')} | {rates('frame_measured_1', 'frame_optimistic_1')}"
    by_layer = f"{rates(*LIMITS[:2])} | {rates(*LIMITS[2:])} | {rates(*LIMITS_IN_DDR)}"
    return f"| {entry.title} | {size} | {alone} | {by_layer} | {rate('single')} | {rate('dpu') if entry.dpu else '–'} |"


SIX_ROW = (
    "{{formats.{0}_lut:,}} | {{formats.{0}_modelled:,}} | {{formats.{0}_cycles:,}} | {{formats.{0}_fps:.1f}}"
    " / {{formats.{0}_fps_optimistic:.1f}} |"
)
ENGINE = (
    "{{engines.{0}_array:s}}, {{engines.{0}_fps:.1f}} frames/s"
    " | {{engines.{0}_lut:,}} ({{engines.{0}_lut_share:.0%}})"
    " | {{engines.{0}_ff:,}} |"
)

SENTENCES: Mapping[str, tuple[str, ...]] = {
    "README.md": (
        "| {yolo.cycles:,} cycles per frame, **{yolo.fps:.1f} frames/s** at {yolo.clock_mhz:.0f} MHz (optimistic DDR"
        " share: {yolo.fps_optimistic:.1f}); {yolo.dsp_efficiency:.1%} of two MACs in each of {yolo.dsp}"
        " of {yolo.board_dsp} DSPs |",
        "a frame every {ultranet.cycles:,} cycles, **{ultranet.fps:,.0f} frames/s** at {ultranet.clock_mhz:.0f} MHz;"
        " {ultranet.dsp} of {ultranet.board_dsp} DSPs and {ultranet.lut_share:.0%} of the LUTs (estimated)",
        "{yolo.mismatches} of them differ from the golden model",
    ),
    "docs/tutorial/first.md": (
        "{demo.mismatches} mismatches in {demo.values:,} values",
        "`conv1` takes {demo.conv1_modelled:,} *modelled* cycles",
    ),
    "docs/tutorial/zcu104.md": (
        "the trace gives **{yolo.cycles:,} cycles per frame, {yolo.fps:.1f} frames/s at a target clock of"
        " {yolo.clock_mhz:.0f} MHz**",
        "sustains {yolo.ddr_efficiency:.0%} of {yolo.ddr_gbps:.2f} GB/s",
        "it gives {yolo.fps_optimistic:.1f} frames/s.",
        "The scheduler's formula says {yolo.modelled:,}.",
    ),
    "docs/tutorial/ultranet.md": (
        "**a frame every {ultranet.cycles:,} cycles, {ultranet.fps:,.0f} frames/s at the board's target clock of"
        " {ultranet.clock_mhz:.0f} MHz**",
        "a latency of {ultranet.latency:,} cycles.",
        "Estimated: {ultranet.dsp} of {ultranet.board_dsp} DSPs and {ultranet.lut_share:.0%} of the LUTs.",
        "up to {ultranet.highest_clock_mhz:.0f} MHz according to its code",
        "about {ultranet.part_clock_mhz:.0f} MHz on the board's part",
    ),
    "docs/how-to/trace_cycles.md": (
        "in int8 the result is {yolo.fps_derived:.1f} frames/s at {yolo.clock_mhz:.0f} MHz",
    ),
    "docs/explanation/proof.md": (
        "that this holds up to {yolo.highest_clock_mhz:.0f} MHz;",
        "finds that all {ultranet.loops} loops start an iteration every cycle, up to"
        " {ultranet.highest_clock_mhz:.0f} MHz,",
    ),
    "docs/explanation/engine.md": (
        "| int8 | 13×16×16 | {yolo.cycles:,} | {yolo.fps:.0f} / {yolo.fps_optimistic:.0f} | the array |",
        "| **frame** | **{yolo.cycles:,}** |",
        "| tiny-yolov2-voc 416×416 | 13×16×16 | {yolo.cycles:,} | {yolo.fps:.1f} / {yolo.fps_optimistic:.1f}"
        " | {yolo.modelled:,} |",
        "with random weights has the golden model's bits in all three ({yolo.values:,} values)",
        "| int4 | {formats.int4_array:s} | {formats.int4_cycles:,} | {formats.int4_fps:.0f}"
        " / {formats.int4_fps_optimistic:.0f} |",
        "| int16 | {formats.int16_array:s} | {formats.int16_cycles:,} | {formats.int16_fps:.0f}"
        " / {formats.int16_fps_optimistic:.0f} |",
        "| 1, within the budget of 80 % | " + SIX_ROW.format("six"),
        "| 2, with `--lut-share 0.9` | " + SIX_ROW.format("six_fast"),
        *(text + NETWORK_ROW.format(name) for name, text in NETWORKS.items()),
    ),
    "docs/reference/bounds.md": (
        "{bounds.dsp:,} DSPs with two products per cycle at {bounds.clock_mhz:.0f} MHz, doubled for the DSPs.",
        "{bounds.measured_gbps:.2f} GB/s, the measured share, or {bounds.optimistic_gbps:.2f} GB/s",
        *map(_bounds_row, entries()),
    ),
    "docs/explanation/scheduler.md": (
        "in LUTRAM: {yolo.bram36:.0f} BRAM36, {yolo.lut:,} LUTs of 230,400 (estimates).",
        "of DDR a frame instead of 20.2, and {yolo.cycles:,} cycles instead of",
    ),
    "docs/explanation/rtl.md": (
        "| ZCU104 | " + ENGINE.format("zcu104_hls") + " " + ENGINE.format("zcu104_rtl"),
        "| Ultra96-V2 | " + ENGINE.format("ultra96_hls") + " " + ENGINE.format("ultra96_rtl"),
        "| PYNQ-Z2 | " + ENGINE.format("pynq_z2_hls") + " " + ENGINE.format("pynq_z2_rtl"),
        "| ZCU104, 4 bits, six products per DSP | " + ENGINE.format("six_hls") + " " + ENGINE.format("six_rtl"),
        "| ZCU104, DSPs at twice the clock | – | – | – | " + ENGINE.format("doubled_rtl"),
    ),
    "docs/explanation/host.md": (
        "not measured. {yolo.ms:.3f} ms per frame ({yolo.fps:.1f} frames/s; {yolo.fps_optimistic:.1f} at the optimistic"
        " DDR share): cycles *traced*",
    ),
    "docs/explanation/folding.md": (
        "takes {ultranet.cycles:,} cycles per frame, {ultranet.fps_200:,.0f} frames/s at 200 MHz, with {ultranet.dsp}"
        " of {ultranet.board_dsp} DSPs and {ultranet.lut_share:.0%} of the LUTs.",
    ),
    "docs/explanation/streaming.md": (
        "| cycles per frame | {ultranet.modelled:,} |",
        "| | {ultranet.cycles:,} |",
        "| frames/s at 214, 214 and 300 MHz | {ultranet.fps:,.0f} |",
    ),
}

Figures = Mapping[str, Values]


@dataclass(frozen=True)
class Difference:
    """A figure of a page that differs from the record.

    ``said`` is missing (None) unless the page has the sentence once.
    """

    page: str
    sentence: str
    said: str | None
    recorded: str

    def __str__(self) -> str:
        if self.said is None:
            return f"{self.page}: must say once: {self.sentence}"
        return f"{self.page}: says {self.said}, but the record has {self.recorded}: {self.sentence}"


def differences(page: str, text: str, figures: Figures) -> Iterator[Difference]:
    """Yield the figures of a page that differ from the record."""
    for sentence in SENTENCES[page]:
        found = list(re.finditer(_pattern(sentence), text))
        written = _written(sentence, figures)
        if len(found) != 1:
            yield Difference(page, sentence, None, " ".join(written))
            continue
        for said, recorded in zip(found[0].groups(), written, strict=True):
            if said != recorded:
                yield Difference(page, sentence, said, recorded)


def renewed(page: str, text: str, figures: Figures) -> str:
    """Return a page's text with the recorded figures in its sentences. A sentence that is not found is skipped."""
    for sentence in SENTENCES[page]:
        found = list(re.finditer(_pattern(sentence), text))
        if len(found) == 1:
            for group, value in reversed(list(enumerate(_written(sentence, figures), start=1))):
                text = text[: found[0].start(group)] + value + text[found[0].end(group) :]
    return text


def spans(page: str, text: str) -> Iterator[tuple[int, int]]:
    """Yield the begin and end of each sentence on a page."""
    for sentence in SENTENCES.get(page, ()):
        yield from (match.span() for match in re.finditer(_pattern(sentence), text))


def _pattern(sentence: str) -> str:
    parts = []
    for literal, field, form, _ in Formatter().parse(sentence):
        parts.append(re.escape(literal).replace(r"\ ", r"\s+"))
        if field is not None:
            parts.append(r"([^\s|,]+)" if form == "s" else r"([+−]?[\d.,]*\d(?: %)?)")
    return "".join(parts)


def _written(sentence: str, figures: Figures) -> list[str]:
    names = {example: SimpleNamespace(**values) for example, values in figures.items()}
    formatter = Formatter()
    written = []
    for _, field, form, _ in formatter.parse(sentence):
        if field is not None:
            value, _ = formatter.get_field(field, (), names)
            written.append(format(value, form or "").replace("%", " %").replace("-", "−"))
    return written
