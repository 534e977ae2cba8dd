"""Proofs by induction with Yosys, for all inputs: the handshakes and the arithmetic of blocks. Faults are refuted.

The properties are in proofs/*.sv, which are bound into the blocks. They hold for ever: in the first cycles after a
reset, and in any cycle after a number of cycles in which they held. Data are narrow and FIFOs shallow, as the
parameters below say. Every number of words, every delay and every order of valid and ready is covered. A refutation is
a trace from the reset to a violated property.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.rtl.induction import Block, induction, numbers_of

pytestmark = pytest.mark.proof

PIPELINE = """bind {module} pipeline_proof #(.LATENCY({latency})) proof (
    .clk, .reset, .took({took}), .gave({gave}_valid && {gave}_ready), .valid({inside}valid), .held(8'({fifo}.count)),
    .asked({fifo}.proof.asked), .running({running}), .ready(group_ready));
"""
ARRAY = ("fifo", "delay", "clock_half", "distribute_weights", "operand", "pe_row", "mac_chain", "capture_sums")
NARROW = {**numbers_of(8), "SUM_BITS = 32": "SUM_BITS = 4"}
TALL = {"ROWS": 3, "SAVE_ROWS": 2}
POOLED = {**TALL, "COLUMNS": 1, "KEPT_DEPTH": 4, "WINDOWS": 1, "UPSCALE": 2, "POSITIONS": 2, "VALUE_BITS": 2}
FED = {"COLUMNS": 2, "LANES": 1, "VALUE_BITS": 2, "WEIGHT_DEPTH": 3}
COMPUTED = {"ROWS": 3, "COLUMNS": 2, "LANES": 1, "PACK_CHAIN": 1}
PLACED = {"ROWS": 3, "SAVE_ROWS": 2, "COLUMNS": 3, "LANES": 2, "VALUE_BITS": 2, "CHUNK": 2, "COUNT_BITS": 3}
PLACED_ON_CHIP = {**PLACED, "MAP_DEPTH": 4}
UPSCALED_ON_CHIP = {**PLACED_ON_CHIP, "UPSCALE": 2}
RESULTS_OF_4 = {**numbers_of(6), "RESULT_BITS = 16": "RESULT_BITS = 4"}
DOUBLED = {"DSP_CLOCK": 2, "COLUMNS": 8, "VALUE_BITS": 2}
FIELDS = {"COLUMNS": 2, "LANES": 1, "PACK_CHAIN": 1, "PACK_COLUMNS": 2, "POSITIONS": 2}
ROW = ("mac_chain", "capture_sums")
MAPS = {"MAP_DEPTH": 3, "COLUMNS": 2, "LANES": 2, "VALUE_BITS": 4, "PIXEL_BYTES": 1, "PIXEL_LANES": 2, "ADDED_MAPS": 1}
REQUANTISER = ("fifo", "sdp_ram", "requantise_sum", "lut_product", "shift_and_saturate")
CONSTANTS = {"COLUMNS": 2, "LANES": 2, "CHANNEL_TILES": 2, "REQUANTISE_DSPS": 1}
REQUANTISED = {"REQUANTISE_DSPS": 1}
HALVES_TO_EVEN = {"LATE_OFFSETS": 2}
MULTIPLIED = {"COLUMNS": 1, "LANES": 1, "VALUE_BITS": 4}
HALVED = {"ROWS": 3, "COLUMNS": 3, "LANES": 2, "COUNT_BITS": 6}  # channel tiles begin in the middle of a block
TWO_PORTS = {"MAP_PORTS": 2, "COUNT_BITS": 3}
LOADED = {**TWO_PORTS, "COLUMNS": 2, "LANES": 2, "ROW_DEPTH": 8, "PIXEL_BYTES": 1, "PIXEL_LANES": 1}
STORED = {**TWO_PORTS, "COLUMNS": 1, "LANES": 1, "ROW_DEPTH": 8, "PIXEL_BYTES": 1, "PIXEL_LANES": 1}
STORED_OF_3 = {**STORED, "ROWS": 3}
STORED_ON_CHIP = {**STORED, "MAP_DEPTH": 4, "MAP_STRIDE": 2}
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
        REQUANTISER,
        pipeline=PIPELINE.format(
            **{"module": "requantise", "latency": "LATENCY", "took": "group_taken", "gave": "result"},
            **{"inside": "", "fifo": "results", "running": "state == RUN"},
        ),
    ),
    "requantise's constants": Block(
        "requantise", REQUANTISER, "", CONSTANTS, {"SUM_BITS = 32": "SUM_BITS = 4"}, proof="requantise_constants"
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
    "load, 3 rows": Block("load", ("window", "fifo", "sdp_ram"), "", {**LOADED, "ROWS": 3}, NARROW),
    "load's places": Block("load", ("window", "fifo", "sdp_ram"), "", STORED, numbers_of(6), proof="load_places"),
    "load's places, 3 rows": Block(
        "load", ("window", "fifo", "sdp_ram"), "", STORED_OF_3, numbers_of(6), proof="load_places"
    ),
    "load's places, on chip": Block(
        "load", ("window", "fifo", "sdp_ram"), "-D STRIDE=1", STORED_ON_CHIP, numbers_of(6), proof="load_places"
    ),
    "load's places, on chip, two rows a stride": Block(
        "load", ("window", "fifo", "sdp_ram"), "-D STRIDE=2", STORED_ON_CHIP, numbers_of(6), proof="load_places"
    ),
    "arrange's places": Block("arrange", ("fifo", "sdp_ram"), "", PLACED, RESULTS_OF_4, proof="arrange_places"),
    "arrange's places, on chip": Block(
        "arrange", ("fifo", "sdp_ram"), "", PLACED_ON_CHIP, RESULTS_OF_4, proof="arrange_places"
    ),
    "arrange's places, on chip, upscaled": Block(
        "arrange", ("fifo", "sdp_ram"), "", UPSCALED_ON_CHIP, RESULTS_OF_4, proof="arrange_places"
    ),
    "registers": Block("control_slave"),
    "halves": Block("clock_half", doubled=True, asserts=2),
    "deal weights": Block("distribute_weights", ("delay",), "-G PLACE=0", DOUBLED, doubled=True, asserts=5),
    "deal weights, three late": Block("distribute_weights", ("delay",), "-G PLACE=3", DOUBLED, doubled=True, asserts=5),
    "operand": Block("operand", ("delay",), "-G WIDTH=3 -G STEPS=2", DOUBLED, doubled=True, asserts=5),
    "operand, odd": Block("operand", ("delay",), "-G WIDTH=3 -G STEPS=3", DOUBLED, doubled=True, asserts=5),
    "take sums": Block("capture_sums", (), "-G WIDTH=3", DOUBLED, doubled=True, asserts=5),
    "take sums of odd rows": Block("capture_sums", (), "-G WIDTH=3 -G ODD=1", DOUBLED, doubled=True, asserts=5),
    "fields": Block("pe_row", ROW, "-G INSTANTIATED=0", {**FIELDS, "VALUE_BITS": 4, "PACK_SHIFT": 11}, asserts=4),
    "pack weights": Block("pack_weights", numbers={"COLUMNS": 6, "VALUE_BITS": 4}, asserts=2),
    "sum by threes": Block("ternary_adder_tree", (), "-G COUNT=8 -G WIDTH=3", asserts=1),
    "window": Block("window", numbers={"LANES": 8}, asserts=8),
    "window of 4 bits": Block("window", numbers={"LANES": 16, "PIXEL_LANES": 8, "VALUE_BITS": 4}, asserts=16),
    "window of 16 bits": Block("window", numbers={"LANES": 8, "VALUE_BITS": 16}, asserts=8),
    "tile rows": Block("tile_rows", numbers={**TALL, "UPSCALE": 2}, narrowed=NARROW, asserts=4),
    "memory": Block("sdp_ram", (), "-G WIDTH=3 -G DEPTH=3", asserts=3),
    "memory of halves": Block("sdp_ram_halves", (), "-G WIDTH=4 -G DEPTH=3 -G HALVES=1", asserts=5),
    "memory of whole words": Block("sdp_ram_halves", (), "-G WIDTH=4 -G DEPTH=3 -G HALVES=0", asserts=5),
    "map buffers": Block("map_buffers", ("sdp_ram_halves",), numbers=MAPS, asserts=7),
    "map buffers of halves": Block("map_buffers", ("sdp_ram_halves",), numbers={**MAPS, "COLUMNS": 3}, asserts=7),
    "product in LUTs": Block("lut_product", (), "-G NUMBER_BITS=5 -G FACTOR_BITS=7", asserts=1),
    "shift and saturate": Block("shift_and_saturate", (), asserts=1),
    "shift and saturate, halves to even": Block("shift_and_saturate", (), "", HALVES_TO_EVEN, asserts=1),
    "requantise a sum": Block(
        "requantise_sum", ("shift_and_saturate",), "", {**REQUANTISED, "SUM_BITS": 24}, asserts=3
    ),
    "requantise with an offset": Block(
        "requantise_sum", ("shift_and_saturate",), "", {**REQUANTISED, "LATE_OFFSETS": 1}, asserts=3
    ),
    "a piece of a line": Block(
        "look_up_segment", ("sdp_ram", "lut_product"), "", {"TABLE_DEPTH": 256, "TABLE_SLOPES": 1}, asserts=4
    ),
    "a piece of a line, or a value of 11 bits": Block(
        "look_up_segment", ("sdp_ram", "lut_product"), "", {"TABLE_DEPTH": 2048, "TABLE_SLOPES": 1}, asserts=4
    ),
    "multiply's values": Block("multiply", ("fifo",), numbers=MULTIPLIED, proof="multiply_values", asserts=1),
    "add words": Block("add_words", (), "", {"LANES": 1, "VALUE_BITS": 4}, numbers_of(5), asserts=5),
    "add words of 16 bits": Block("add_words", (), "", {"LANES": 1, "VALUE_BITS": 16}, numbers_of(3), asserts=5),
    "arrange": Block("arrange", ("fifo", "sdp_ram"), numbers=ARRANGED, narrowed=NARROW, late="1"),
}

FAULTS = [
    ("FIFO", "write_pointer == LAST", "write_pointer == LAST - 1"),  # one place is never used
    ("FIFO", "count < ROOM", "count <= ROOM"),  # one word too many is accepted
    ("FIFO", "out_data = queue[read_pointer]", "out_data = queue[write_pointer]"),  # a wrong word is output
    ("FIFO", "queue[write_pointer] <= in_data", "queue[write_pointer] <= '0"),  # zeros are stored
    ("FIFO", "if (push) queue", "if (in_valid) queue"),  # written without room
    ("FIFO with slack", "DEPTH - SLACK)", "DEPTH - SLACK + 1)"),  # room is promised that does not exist
    ("bursts", "if (page < beats) beats = page;", ""),  # a burst crosses a page
    ("bursts", "remaining <= remaining - beats", "remaining <= remaining - beats - 1"),  # a word is left out
    ("bursts", "busy <= remaining != beats", "busy <= 1'b1"),  # it never ends
    ("read", "r_ready && r_last", "r_last"),  # a waiting answer is counted twice
    ("read", "ar_valid = burst_valid && room", "ar_valid = burst_valid"),  # too many bursts are unanswered
    ("read", ".burst_ready(requested)", ".burst_ready(ar_ready)"),  # a burst that was not requested
    ("write", "w_last = beat == length", "w_last = beat + 1'b1 == length"),  # WLAST a beat early
    ("write", "idle = open_bursts == '0 &&", "idle ="),  # it does not wait for answers
    ("write", ".burst_ready(requested)", ".burst_ready(aw_ready)"),
    ("multiply", ".SLACK(LATENCY)", ".SLACK(LATENCY - 1)"),  # no room for the words in the pipeline
    ("multiply", "group_valid && group_ready}", "group_valid}"),  # a group is taken twice
    ("requantise", ".SLACK(LATENCY)", ".SLACK(LATENCY - 2)"),
    ("requantise", "group_taken = group_valid && group_ready", "group_taken = group_valid && state == RUN"),
    ("pool", "read_after_write = s1_store_row", "read_after_write = 1'b0"),  # a kept row is read before it is written
    ("pool", "count == tile.last_group;", "count + 1 == tile.last_group;"),  # a group is left out
    ("pool", "room = !s1_valid || group_ready;", "room = 1'b1;"),  # a group is overwritten
    ("pool", "(odd || x == last_arrival)", "odd"),  # the last one of an odd number of columns
    ("feed weights", "stored >= needed", "stored + 1 >= needed"),  # a tile is fed before it has arrived
    (
        "feed weights",
        "if (bank_group[BANK_GROUPS-1]) store_step",
        "if (bank_group[0]) store_step",
    ),  # half of a step is stored elsewhere
    ("array", ".SLACK(IN_FLIGHT)", ".SLACK(IN_FLIGHT - 3)"),  # a step is issued without room for its sums
    ("array", "weights_ready = issue", "weights_ready = activations_valid && room[0]"),  # weights without activations
    ("array", ".out_ready(sums_valid && sums_ready)", ".out_ready(sums_ready)"),  # rows are read at different times
    ("array", "first <= position_steps.last", "first <= 1'b0"),
    ("array at two clocks", "ROW_WAIT = (ROWS - 1 + DSP_CLOCK - 1) / DSP_CLOCK + 5", "ROW_WAIT = 1"),  # too little room
    ("plan tiles", "more <= !last", "more <= !last_row"),  # channel tiles are left out
    ("plan tiles", "stored_address + pass.save_width", "stored_address + 1"),  # two tiles keep rows in one place
    ("plan chunks", "ends_tile = x + CHUNK >= pass", "ends_tile = x + CHUNK > pass"),  # an empty chunk
    (
        "plan chunks",
        "products_valid <= !(ends_tile && next_row)",
        "products_valid <= 1'b1",
    ),  # the rows of the previous tile
    ("plan chunks", "bank_of(next_bank)", "next_bank"),  # a bank that does not exist
    (
        "plan chunks",
        "lap_offset(next_bank, lap_pitch)",
        "lap_offset(output_rows, lap_pitch)",
    ),  # as if row 0 were in bank 0
    ("chunk rows", "row <= row + STEP", "row <= row + 1"),  # another port's row
    ("chunk rows", "last_block = block + 1 == blocks", "last_block = block == blocks"),  # a block too many
    ("read rows", "row >= pass.pad_top", "row > pass.pad_top"),  # the first row is left out
    ("read rows", "more <= !strides.last", "more <= 1'b1"),  # it never ends
    ("read weights", "first_is_loaded ? pass.tile_beats : 0", "0"),  # the first tile again, instead of the second
    ("read weights", "next_pending <= 1'b0;\n            else", "next_pending <= 1'b1;\n            else"),  # no end
    ("read program", "address_product(first, PASS_WORDS)", "address_product(first, PASS_WORDS - 1)"),  # a wrong address
    (
        "read program",
        "words <= next_countdown(words);",
        "words <= next_countdown(next_countdown(words));",
    ),  # only half of a pass
    ("sequence passes", "default: if (pass_done)", "default: if (next_valid)"),  # before all modules are done
    ("sequence passes", "if (last || next_valid)", "if (1'b1)"),  # planned without the next pass
    ("load", "feeding = state == RUN && remaining_feeds != 0", "feeding = state == RUN"),  # more steps than there are
    ("load", "s3_valid <= s2_valid && !reset", "s3_valid <= s2_valid && room"),  # a step is lost if there is no room
    (
        "load's places",
        "bank < load_bank ? next_slot_address : slot_address",
        "slot_address",
    ),  # overwrites a row that is still needed
    ("load's places", "rows[(load_stride + group_row[bank])", "rows[(group_row[bank])"),  # another port's row
    ("load's places", "pass.last_slot ? 0 : load_slot + pass", "0 ? 0 : load_slot + pass"),  # only one slot is used
    ("load's places, 3 rows", "store_address <= early_store_address", "store_address <= '0"),  # all words in one place
    ("load's places, 3 rows", "load_bank + group - (wraps ? ROWS : 0)", "load_bank + group"),  # a wrong bank
    ("load's places, on chip", "pass.in_turn - pass.pad_top;", "0 - pass.pad_top;"),  # as if row 0 were in bank 0
    ("load's places, on chip", "above <= bank < pass.in_turn;", "above <= 1'b0;"),  # a lap too far down
    ("load's places, on chip", "? load_piece + pass.in_block_pitch : load_place", "? load_place + 1 : load_place"),
    (
        "load's places, on chip, two rows a stride",
        "store_lower ? buffer_read_words",
        "!store_lower ? buffer_read_words",
    ),  # the other of two
    ("load's places, on chip, two rows a stride", "to_near ? lap_below[NEAR] : lap_below[FAR]", "lap_below[NEAR]"),
    ("arrange", "fill = chunk_valid && !full[half]", "fill = chunk_valid && !full[!half]"),  # overwrites results
    ("arrange", "row + port < chunks[out_half].rows", "row + port <= chunks[out_half].rows"),  # a row too many
    ("arrange's places", "(half ? BANK_ROWS * CHUNK : 0)", "(half ? CHUNK : 0)"),  # overwrites results
    ("arrange's places", "s1_first <= row % ROW_BANKS", "s1_first <= 0"),  # a wrong row
    ("arrange's places", "lane_results[r] << (LANES / 2 * RESULT_BITS)", "lane_results[r] << (LANES * RESULT_BITS)"),
    ("arrange's places, on chip", "0) - (bank < pass.out_turn", "0) - (bank < 0"),  # as if row 0 were in bank 0
    ("arrange's places, on chip", "next < ROW_BANKS && s1_row + next < s1_rows", "next < ROW_BANKS"),  # a row too many
    (
        "arrange's places, on chip",
        "places[half] <= buffer_base + chunk.offset + chunk.lap",
        "places[half] <= buffer_base",
    ),
    (
        "arrange's places, on chip",
        "block_offset + pass.out_block_pitch",
        "block_offset + buffer_row_pitch",
    ),  # a wrong block
    (
        "arrange's places, on chip, upscaled",
        "first_bank = bank_of(unwrapped_bank)",
        "first_bank = wrap_once(unwrapped_bank, ROWS)",
    ),
    ("registers", "bvalid <= writes || (bvalid && !bready)", "bvalid <= writes"),  # a waiting answer is lost
    ("registers", "awvalid && wvalid && !bvalid", "awvalid && wvalid"),  # two writes, one answer
    ("registers", "arready = !rvalid && !reset", "arready = !reset"),  # data change while an answer waits
    ("registers", "{awaddr[ADDRESS_BITS-1:2], 2'b00}", "awaddr"),  # a byte at its own address is dropped
    ("registers", "if (writes_control && wdata[0]) started", "if (writes_control && wdata[0] && !done) started"),
    ("registers", "if (done) {finished, ready}", "if (done && !reads) {finished, ready}"),  # an end is never reported
    ("halves", "second_half <= toggle != sampled_toggle", "second_half <= toggle"),  # a half lasts a cycle
    ("halves", "second_half <= toggle != sampled_toggle", "second_half <= toggle == sampled_toggle"),  # the other half
    ("deal weights", "second_half ? crossing", "!second_half ? crossing"),  # the other half
    ("deal weights", "n / PACK_COLUMNS * 2 * PACK_COLUMNS + n % PACK_COLUMNS", "n"),  # neighbours in different halves
    ("deal weights, three late", ".CYCLES(PLACE % 2)", ".CYCLES(0)"),  # half a cycle too soon
    ("deal weights, three late", ".CYCLES(1 + PLACE / 2)", ".CYCLES(PLACE / 2)"),  # a cycle too soon
    ("operand", ".CYCLES(1 + STEPS / 2)", ".CYCLES(STEPS / 2)"),
    ("operand, odd", ".CYCLES(1 + STEPS % 2)", ".CYCLES(1)"),  # half a cycle too soon
    ("take sums", "{sum, previous_sum}", "{previous_sum, sum}"),  # halves exchanged
    ("take sums of odd rows", "{previous_sum, older_sum}", "{sum, previous_sum}"),  # halves of two cycles
    ("take sums of odd rows", "older_sum <= previous_sum", "older_sum <= sum"),
    (
        "fields",
        "chain_sums[h][AT+:FIELD_BITS] + FIELD_BITS'(borrowed)",
        "chain_sums[h][AT+:FIELD_BITS]",
    ),  # the borrow is ignored
    ("fields", "borrowed = chain_sums[h][AT-1]", "borrowed = chain_sums[h][AT-2]"),  # a wrong sign
    ("pack weights", "<<< 14", "<<< 13"),
    ("pack weights", "18'(signed'(weights[3*t+1]))", "18'(weights[3*t+1])"),  # without its sign
    ("sum by threes", "LEVEL_WIDTH'(level[k][(3*i+2)%COUNT])", "LEVEL_WIDTH'(0)"),  # only two of three are added
    ("sum by threes", "WIDTH + 2 * (k + 1);", "WIDTH + 1;"),  # too narrow
    ("window", "{words, words} >> {start", "words >> {start"),  # nothing follows the odd word
    ("window", "inside_map[lane/PIXEL_LANES]", "inside_map[0]"),  # the padding of another pixel
    ("window of 4 bits", "around >> (lane % NIBBLES * 4)", "around"),  # the lower nibble twice
    ("window of 16 bits", "if (VALUE_BITS > 8 && pixels)", "if (1'b0)"),  # two bytes as a value
    ("tile rows", "rows.stored_rows = first_row & 1", "rows.stored_rows = 0"),  # half of a window is lost
    (
        "tile rows",
        "rows.output_rows = last ? available : available - 1",
        "rows.output_rows = available",
    ),  # a row is saved twice
    ("tile rows", "(available + 1) >>> 1", "available >>> 1"),  # the last row is lost
    ("memory", "if (read) read_data", "read_data"),  # a word that was read is not stable
    ("memory", "if (write) memory", "memory"),
    ("memory of halves", "write && write_halves[h]", "write"),  # the other half is written too
    ("memory of halves", "write_data[h*(WIDTH/2)+:WIDTH/2]", "write_data[0+:WIDTH/2]"),
    ("memory of whole words", "if (write) memory", "if (write && write_halves[0]) memory"),
    ("map buffers", "adds_second ? add_address[bank] : read_address[bank]", "read_address[bank]"),  # a wrong address
    ("map buffers", "read_from == 1 ? first : second", "read_from == 2 ? first : second"),  # the other buffer
    ("map buffers", "write[bank] && write_to == 2", "write[bank] && write_to != 1"),  # also the words for DDR
    ("map buffers of halves", "ADDED_MAPS == 0 ? '0 : adds_first ? first : second", "first"),
    ("map buffers of halves", "write && write_halves[h]", "write"),
    ("product in LUTs", "digit[2] ^ digit[1] ? WIDE'(multiplicand) <<< 1", "digit[2] ? WIDE'(multiplicand) <<< 1"),
    ("product in LUTs", "parts[part][2*k+:2] = last[1:0]", "parts[part][2*k+:2] = last[2:1]"),
    ("product in LUTs", "UPPER_BITS'(first >>> (2 * THIRD))", "UPPER_BITS'(first >> (2 * THIRD))"),  # without its sign
    ("shift and saturate", "shifted[0] && s2_rounds", "shifted[0]"),  # always rounded
    ("shift and saturate", "half >= greatest", "half > greatest"),  # rounded beyond the limit
    ("shift and saturate, halves to even", "!sticky && shifted[1] == odd", "shifted[1] == odd"),  # rounds too far down
    ("shift and saturate, halves to even", "shifted[1] == odd", "!shifted[1]"),  # only to even
    ("shift and saturate, halves to even", "s2_sticky || (s2[0]", "(s2[0]"),  # only the last bits count
    ("shift and saturate, halves to even", "wide[31:NEAR_HALF] != '0", "wide[31:0] == '1"),  # none of 32 places
    ("shift and saturate", "s1_overflow || !fours[fine[3:2]]", "s1_overflow"),  # the bits that a shift drops at the top
    ("requantise's constants", "ADDRESS_BITS'(group.channel)", "ADDRESS_BITS'(tile)"),  # constants of another tile
    (
        "requantise's constants",
        ".write(constant_written && column_select[n])",
        ".write(constant_written)",
    ),  # into the other column too
    (
        "requantise's constants",
        "start_countdown(pass.channels)",
        "start_countdown(pass.channels - 1)",
    ),  # runs before the last has arrived
    ("requantise a sum", "with_bias < 0", "registered < 0"),  # the sign without the bias
    ("requantise a sum", "BIASED_BITS'(registered)", "BIASED_BITS'(unsigned'(registered))"),  # a sum without its sign
    ("requantise with an offset", "(late ? '0 : signed'(constants.bias))", "constants.bias"),  # the bias is added too
    ("requantise with an offset", "{late && constants.late_sign", "{1'b0"),  # without the multiplier's sign
    ("requantise with an offset", "49'(offset)", "49'(unsigned'(offset))"),
    ("a piece of a line", "8'd128", "8'd0"),  # truncated
    ("a piece of a line", "values[STAGES-1]", "values[STAGES-2]"),  # the value of the next cycle
    ("a piece of a line", "TABLE_BITS'(aligned[15:8])", "TABLE_BITS'(aligned[7:0])"),  # the piece by the lower bits
    ("a piece of a line, or a value of 11 bits", "&& align_shift == 4'd8", ""),  # also a value on a line
    ("a piece of a line, or a value of 11 bits", "values[0][TABLE_BITS-1:0]", "value[TABLE_BITS-1:0]"),  # the next one
    ("a piece of a line", "segment_offset <= aligned[7:0]", "segment_offset <= value[7:0]"),  # of the next value
    ("a piece of a line", "value << align_shift", "value << align_shift[2:0]"),  # a shift by 8 is ignored
    ("a piece of a line", "{segment_starts[1], 8", "{segment_starts[0], 8"),  # the start of another piece
    ("multiply's values", "b[VALUE_BITS-1] ? -(wide", "b[VALUE_BITS-1] ? (wide"),  # a factor's sign is ignored
    ("multiply's values", "s1_factors <= factors", "s1_factors <= products"),
    ("multiply's values", "if (pass.pool_stride < 0) s3_group", "s3_group"),  # in every pass
    ("add words", "bits[i+1] ? wide <<< (i + 1)", "bits[i+1] ? wide <<< i"),
    ("add words", "ends && i == PART - 2 ? -upper", "i == PART - 4 ? -upper"),  # the sign in the middle
    ("add words", "below ? least : ", ""),  # only one limit
    ("add words", "masked[by.shift] != by.odd", "masked[by.shift]"),  # only to even
    ("add words", " || (rounds_up && shifted == greatest)", ""),  # rounded beyond the limit
    ("add words", "(sticky || masked", "(masked"),  # more than a half is rounded down too
    ("add words of 16 bits", "<<< (PART * part)", "<<< (PART * part - part)"),
    ("add words of 16 bits", "by.other, other[", "by.own, other["),  # a wrong factor
]


@pytest.mark.parametrize("name", BLOCKS)
def test_block_properties_are_proved(name: str, tmp_path: Path) -> None:
    said = induction(BLOCKS[name], tmp_path)
    assert "Induction step proven: SUCCESS!" in said
    assert said.count("Import proof for assert") >= BLOCKS[name].asserts, "the proof must have assertions"


@pytest.mark.parametrize(("name", "right", "wrong"), FAULTS)
def test_block_fault_is_refuted(name: str, right: str, wrong: str, tmp_path: Path) -> None:
    said = induction(BLOCKS[name], tmp_path, (right, wrong))
    assert "proof finished - model found for base case: FAIL!" in said
