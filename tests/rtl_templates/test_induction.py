"""Blocks between valid and ready, proved for all inputs by Yosys' induction, and blocks with a fault, refuted.

What holds is said in proofs/*.sv, which are bound into the blocks. It holds for ever: in the first cycles after a
reset, and in any cycle after so many in which it held. Data are narrow and FIFOs shallow, as the parameters below say;
every number of words, every delay and every order of valid and ready is covered. A refutation is a trace from the reset
that ends in what must not be.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.rtl_templates.induction import Block, induction, numbers_of

PIPELINE = """bind {module} pipeline_proof #(.LATENCY({latency})) proof (
    .clk, .reset, .took({took}), .gave({gave}_valid && {gave}_ready), .valid({inside}valid), .held(8'({fifo}.count)),
    .asked({fifo}.proof.asked), .running({running}), .ready(group_ready));
"""
ARRAY = ("fifo", "delay", "halves", "deal_weights", "operand", "pe_row", "mac_chain", "take_sums")
NARROW = {**numbers_of(8), "SUM_BITS = 32": "SUM_BITS = 4"}
TALL = {"ROWS": 3, "SAVE_ROWS": 2}
POOLED = {**TALL, "COLUMNS": 1, "KEPT_DEPTH": 4, "WINDOWS": 1, "UPSCALE": 2, "POSITIONS": 2, "VALUE_BITS": 2}
FED = {"COLUMNS": 2, "LANES": 1, "VALUE_BITS": 2, "WEIGHT_DEPTH": 3}
COMPUTED = {"ROWS": 3, "COLUMNS": 2, "LANES": 1, "PACK_CHAIN": 1}
HALVED = {"ROWS": 3, "COLUMNS": 3, "LANES": 2, "COUNT_BITS": 6}  # channel tiles begin in the middle of a block
TWO_PORTS = {"MAP_PORTS": 2, "COUNT_BITS": 3}
LOADED = {**TWO_PORTS, "COLUMNS": 2, "LANES": 2, "ROW_DEPTH": 8, "PIXEL_BYTES": 1, "PIXEL_LANES": 1}
ARRANGED = {**TWO_PORTS, "COLUMNS": 2, "LANES": 2, "CHUNK": 2}
BLOCKS = {
    "FIFO of one word": Block("fifo", (), "-G WIDTH=3 -G DEPTH=1"),
    "FIFO": Block("fifo", (), "-G WIDTH=3 -G DEPTH=5"),
    "FIFO with slack": Block("fifo", (), "-G WIDTH=3 -G DEPTH=7 -G SLACK=3"),
    "bursts": Block("axi_bursts", (), "-G BYTES=16 -G LENGTH=64"),
    "short bursts": Block("axi_bursts", (), "-G BYTES=4 -G LENGTH=16"),
    "read": Block("axi_read", ("axi_bursts", "fifo"), "-G BYTES=1 -G OUTSTANDING=2 -G DEPTH=3"),
    "write": Block("axi_write", ("axi_bursts", "fifo"), "-G BYTES=2 -G OUTSTANDING=2"),
    "multiply": Block(
        "multiply",
        ("fifo",),
        pipeline=PIPELINE.format(
            **{"module": "multiply", "latency": 3, "took": "group_valid && group_ready", "gave": "product"},
            **{"inside": "some.", "fifo": "some.multiplied", "running": "1'b1"},
        ),
    ),
    "requantise": Block(
        "requantise",
        ("fifo", "sdp_ram", "requantise_sum", "lut_product", "shift_and_saturate"),
        pipeline=PIPELINE.format(
            **{"module": "requantise", "latency": "LATENCY", "took": "taken", "gave": "result"},
            **{"inside": "", "fifo": "results", "running": "state == RUN"},
        ),
    ),
    "pool": Block("pool", ("sdp_ram",), numbers=POOLED, narrowed=NARROW),
    "feed weights": Block("feed_weights", ("fifo", "sdp_ram"), numbers=FED, narrowed=NARROW, late="1"),
    "array": Block("pe_array", ARRAY, "-G INSTANTIATED=0", COMPUTED, numbers_of(4), late=""),
    "array at two clocks": Block(
        "pe_array", ARRAY, "-G INSTANTIATED=0", {**COMPUTED, "COLUMNS": 4, "DSP_CLOCK": 2}, numbers_of(4), late=""
    ),
    "plan tiles": Block("plan_tiles", ("tile_rows",), numbers={**TALL, "UPSCALE": 2}, narrowed=NARROW),
    "plan chunks": Block("plan_chunks", ("tile_rows",), numbers=HALVED, narrowed=NARROW),
    "chunk rows": Block("chunk_rows", (), "-G FIRST=1 -G STEP=2", {"COUNT_BITS": 3}, NARROW),
    "read rows": Block("read_rows", (), "-G PORT=1", {**TWO_PORTS, "COUNT_BITS": 6}, numbers_of(6)),
    "read weights": Block("read_weights", narrowed=NARROW),
    "read program": Block("read_program", narrowed=NARROW),
    "sequence passes": Block("sequence_passes", narrowed=numbers_of(4)),
    "load": Block("load", ("window", "fifo", "sdp_ram"), numbers=LOADED, narrowed=NARROW),
    "arrange": Block("arrange", ("fifo", "sdp_ram"), numbers=ARRANGED, narrowed=NARROW, late="1"),
}

FAULTS = [
    ("FIFO", "free == LAST", "free == LAST - 1"),  # a place is left out
    ("FIFO", "count < ROOM", "count <= ROOM"),  # a word too many
    ("FIFO", "out_data = queue[first]", "out_data = queue[free]"),  # another word
    ("FIFO", "queue[free] <= in_data", "queue[free] <= '0"),  # other data
    ("FIFO", "if (given) queue", "if (in_valid) queue"),  # written without room
    ("FIFO with slack", "DEPTH - SLACK)", "DEPTH - SLACK + 1)"),  # room promised that is not there
    ("bursts", "if (page < beats) beats = page;", ""),  # across a page
    ("bursts", "left <= left - beats", "left <= left - beats - 1"),  # a word is left out
    ("bursts", "busy <= left != beats", "busy <= 1'b1"),  # no end
    ("read", "r_ready && r_last", "r_last"),  # an answer that waits is counted twice
    ("read", "ar_valid = burst_valid && room", "ar_valid = burst_valid"),  # more than may be on their way
    ("read", ".burst_ready(requested)", ".burst_ready(ar_ready)"),  # a burst that nobody asked for
    ("write", "w_last = beat == length", "w_last = beat + 1'b1 == length"),  # WLAST a beat early
    ("write", "idle = open == '0 &&", "idle ="),  # does not wait for answers
    ("write", ".burst_ready(requested)", ".burst_ready(aw_ready)"),
    ("multiply", ".SLACK(LATENCY)", ".SLACK(LATENCY - 1)"),  # no room for what is under way
    ("multiply", "group_valid && group_ready}", "group_valid}"),  # taken twice
    ("requantise", ".SLACK(LATENCY)", ".SLACK(LATENCY - 2)"),
    ("requantise", "taken = group_valid && group_ready", "taken = group_valid && state == RUN"),
    ("pool", "overtakes = s1_keeps", "overtakes = 1'b0"),  # a kept row is read before it is written
    ("pool", "count == tile.last_group;", "count + 1 == tile.last_group;"),  # a group is left out
    ("pool", "room = !s1_valid || group_ready;", "room = 1'b1;"),  # a group is overwritten
    ("pool", "(odd || x == last_arrival)", "odd"),  # the last one of odd columns
    ("feed weights", "held >= needed", "held + 1 >= needed"),  # fed before it has come
    ("feed weights", "if (turn[TURNS-1]) store_step", "if (turn[0]) store_step"),  # half of a step elsewhere
    ("array", ".SLACK(UNDER_WAY)", ".SLACK(UNDER_WAY - 3)"),  # issued without room for the sums
    ("array", "weights_ready = issue", "weights_ready = activations_valid && room[0]"),  # weights without their step
    ("array", ".out_ready(sums_valid && sums_ready)", ".out_ready(sums_ready)"),  # rows go apart
    ("array", "first <= left.last", "first <= 1'b0"),
    ("array at two clocks", "WAITING = (ROWS - 1 + DSP_CLOCK - 1) / DSP_CLOCK + 5", "WAITING = 1"),  # waits for nobody
    ("plan tiles", "more <= !last", "more <= !last_row"),  # channel tiles are left out
    ("plan tiles", "kept_address + pass.save_width", "kept_address + 1"),  # two tiles keep in one place
    ("plan chunks", "ends_tile = x + CHUNK >= pass", "ends_tile = x + CHUNK > pass"),  # an empty chunk
    ("plan chunks", "settled <= !(ends_tile && next_row)", "settled <= 1'b1"),  # the rows of the tile before
    ("plan chunks", "next_bank >= ROWS ? lap", "next_bank > ROWS ? lap"),
    ("chunk rows", "row <= row + STEP", "row <= row + 1"),  # another port's row
    ("chunk rows", "last_block = block + 1 == blocks", "last_block = block == blocks"),  # a block too many
    ("read rows", "row >= pass.pad_top", "row > pass.pad_top"),  # the first row is left out
    ("read rows", "more <= !strides.last", "more <= 1'b1"),  # no end
    ("read weights", "skips ? pass.tile_beats : 0", "0"),  # the first tile again, instead of the second
    ("read weights", "next_wanted <= 1'b0;\n            else", "next_wanted <= 1'b1;\n            else"),  # no end
    ("read program", "times(first, PASS_WORDS)", "times(first, PASS_WORDS - 1)"),  # another place
    ("read program", "words <= counted(words);", "words <= counted(counted(words));"),  # half of a pass
    ("sequence passes", "default: if (pass_done)", "default: if (next_valid)"),  # before all are done
    ("sequence passes", "if (last || next_valid)", "if (1'b1)"),  # planned without the pass after it
    ("load", "feeding = state == RUN && feeds_left != 0", "feeding = state == RUN"),  # more steps than there are
    ("load", "s3_valid <= s2_valid && !reset", "s3_valid <= s2_valid && room"),  # lost where it may not wait
    ("arrange", "fills = chunk_valid && !full[half]", "fills = chunk_valid && !full[!half]"),  # over what has not left
    ("arrange", "row + port < chunks[out_half].rows", "row + port <= chunks[out_half].rows"),  # a row too many
]


@pytest.mark.parametrize("name", BLOCKS)
def test_no_word_is_lost_doubled_or_overtaken(name: str, tmp_path: Path) -> None:
    said = induction(BLOCKS[name], tmp_path)
    assert "Induction step proven: SUCCESS!" in said
    assert said.count("Import proof for assert") >= 10, "there is something to prove"


@pytest.mark.parametrize(("name", "right", "wrong"), FAULTS)
def test_a_fault_is_refuted(name: str, right: str, wrong: str, tmp_path: Path) -> None:
    said = induction(BLOCKS[name], tmp_path, (right, wrong))
    assert "proof finished - model found for base case: FAIL!" in said
