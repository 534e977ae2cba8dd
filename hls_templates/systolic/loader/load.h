// Loader, maps: process load owns the row buffer.
//
// Each cycle (II 1) it does two things. It feeds: it reads one word of the row buffer for each of the array's ROWS
// rows, and writes these words to ``activations``. It also loads: while the array computes a tile, the rows that only
// the next tile needs arrive from the ports or from a map buffer. They are stored in slots whose rows are no longer
// needed. One loop does both, so that loading takes no cycles of its own and the buffer need not be doubled.
#ifndef SYSTOLIC_LOAD_H
#define SYSTOLIC_LOAD_H

#include <hls_stream.h>

#include "countdown.h"
#include "instrument.h"
#include "map_buffer.h"
#include "pass.h"
#include "read.h"
#include "types.h"

// A *row stride* is the ``stride`` rows from one output row's window to the next one's. It is the unit of the row
// buffer. Row stride q is in bank (q + first_bank) mod ROWS, so that the ROWS rows of a step are always in different
// banks. first_bank is 0, except if a map buffer has its rows in other banks than the padding implies. In its bank, a
// row stride takes a *slot*; the slots of a bank are used in turn. A slot is identified by the address of its first
// word, so that addresses are accumulated and never multiplied.
//
// A bank has two halves, for words of even and of odd address, so that two neighbouring words can be read per cycle: a
// window of pixels may begin within a word, and two positions that share DSPs are neighbours. Row numbers include the
// padding above the map ("padded rows").

// [address / 2][address mod 2][bank]
typedef word_t row_buffer_t[ROW_DEPTH / 2][2][ROWS];

// Return the row strides of a *group*, which are loaded together: one per port if rows arrive from DDR, or the row
// strides that move per cycle from a map buffer.
inline int group_size(const pass_t &pass) {
#pragma HLS INLINE
    return reads_buffer(pass) ? row_strides_per_cycle(pass) : MAP_PORTS;
}

// Values that are constant during a pass. They are computed before the loops, so that the loops only add, compare and
// select.
struct load_constants_t {
    int stride_rows[ROWS];  // rows from a row stride to the r-th one after it, r · stride
    bank_t last_bank;       // if a group begins in a bank above this one, the next group begins in a smaller bank
    bank_t bank_step, wrapped_bank_step;  // banks from a group's first one to the next group's: group, or group − ROWS
    int group, rows_to_next_group;  // row strides per group; rows from the last row of a row stride to the next group
    int lap_pitch;                  // words from a row stride's lap to the lap of the one ROWS row strides below
    bool extra_rotation;            // map-buffer banks are rotated one row further than this layer's padding above
    bank_t first_bank;  // the bank of row stride 0; non-zero only if stride is 1 and a map buffer is rotated
    // If a map buffer is read with a stride above 2: the distance to the row r row strides below, in banks and in words
    // of whole laps.
    int stride_banks[MAX_STRIDED_ROWS + 1], stride_words[MAX_STRIDED_ROWS + 1];
};

// Return the rows from a group to the next one, if a map buffer is read with a stride above 2.
inline int strided_group_rows(const pass_t &pass) {
#pragma HLS INLINE
    const int group_size = strided_rows_per_cycle(pass.stride);
    int rows = 0;
    for (int r = 0; r < MAX_STRIDED_ROWS; ++r) {
#pragma HLS UNROLL
        rows += r < group_size ? pass.stride : 0;
    }
    return rows;
}

// Compute stride_banks and stride_words. The banks and laps of one row stride are constants for each value of the
// stride. They are accumulated for r row strides, so that no divider is needed.
inline void compute_stride_distances(const pass_t &pass, load_constants_t &out) {
#pragma HLS INLINE
    int banks = 0, words = 0;
    for (int s = 3; s <= MAP_STRIDE; ++s) {
#pragma HLS UNROLL
        if (pass.stride != s) continue;
        banks = s % ROWS;
        for (int lap = 1; lap <= MAP_STRIDE / ROWS; ++lap) {
#pragma HLS UNROLL
            words += lap * ROWS <= s ? pass.in_row_pitch : 0;
        }
    }
    out.stride_banks[0] = out.stride_words[0] = 0;
    for (int r = 1; r <= MAX_STRIDED_ROWS; ++r) {
#pragma HLS UNROLL
        const int unwrapped_bank = out.stride_banks[r - 1] + banks;
        out.stride_banks[r] = wrap_once(unwrapped_bank, ROWS);
        out.stride_words[r] = out.stride_words[r - 1] + words + (unwrapped_bank >= ROWS ? pass.in_row_pitch : 0);
    }
}

inline load_constants_t constants_of(const pass_t &pass) {
#pragma HLS INLINE
    load_constants_t out;
    out.stride_rows[0] = 0;
    for (int r = 1; r < ROWS; ++r) {
#pragma HLS UNROLL
        out.stride_rows[r] = out.stride_rows[r - 1] + pass.stride;
    }
    out.group = group_size(pass);
    out.last_bank = ROWS - 1 - out.group;
    out.bank_step = out.group;
    out.wrapped_bank_step = out.group - ROWS;
    const int paired_rows = reads_row_pairs(pass) && ROWS % 2 == 1 ? 2 * ROWS : ROWS;
    const int buffer_group_rows = has_large_stride(pass) ? strided_group_rows(pass) : paired_rows;
    out.rows_to_next_group = (reads_buffer(pass) ? buffer_group_rows : MAP_PORTS * pass.stride) - pass.phases + 1;
    out.lap_pitch = reads_row_pairs(pass) ? 2 * pass.in_row_pitch : pass.in_row_pitch;
    // With stride 2, in_lap · ROWS + in_turn is pad_top or pad_top + 1.
    out.extra_rotation = ((pass.pad_top + pass.in_turn + (ROWS % 2 == 1 ? pass.in_lap : 0)) & 1) != 0;
    out.first_bank = pass.stride == 1 ? laps_to_rows(pass.in_lap) + pass.in_turn - pass.pad_top : 0;
    compute_stride_distances(pass, out);
    return out;
}

// The place of a row in a map buffer that is read with a stride above 2: its bank, and the address of its lap
// (row_offset_in_bank in map_buffer.h).
struct row_place_t {
    int bank, lap;
};

// Return the place that is ``banks`` banks and ``words`` words of laps further than ``from``. A lap has ``pitch``
// words.
inline row_place_t advance_place(const row_place_t &from, int banks, int words, int pitch) {
#pragma HLS INLINE
    const int unwrapped_bank = from.bank + banks;
    const row_place_t out = {wrap_once(unwrapped_bank, ROWS), from.lap + words + (unwrapped_bank >= ROWS ? pitch : 0)};
    return out;
}

// The word that is loaded next. The fields describe the group's first row stride; the others follow from the constants.
struct load_cursor_t {
    int row_stride, row, slot;  // the row stride, the padded row that is loaded, the first word of the slot
    bank_t bank;                // the bank of row stride q
    int offset;                 // words from the slot's first word to this one
    int column;                 // words from the start of the contiguous piece to this one
    int lap, piece;  // addresses in a map buffer: of the lap of row stride q (row_offset_in_bank), and of the piece
    countdown_t columns, words, phases;  // words of the piece, words of the row, rows of the row stride
    row_place_t group_place,
        row_place;  // for a stride above 2: the place of the group's first row, and of the row that is loaded
};

inline load_cursor_t first_load(const pass_t &pass, const load_constants_t &constants) {
#pragma HLS INLINE
    load_cursor_t load;
    load.row_stride = load.row = load.slot = load.offset = load.column = 0;
    load.bank = constants.first_bank;
    // The address that padded row 0 would have. It is before the map.
    load.lap = load.piece = pass.in_base - address_product(pass.in_row_pitch, pass.in_lap);
    load.group_place.bank = laps_to_rows(pass.in_lap) + pass.in_turn - pass.pad_top;
    load.group_place.lap = load.lap;
    load.row_place = load.group_place;
    start_countdown(load.columns, pass.burst_words);
    start_countdown(load.words, pass.row_words);
    start_countdown(load.phases, pass.phases);
    return load;
}

// Return the slot after this one in its bank; the first slot follows the last one.
inline int next_slot(const pass_t &pass, int slot) {
#pragma HLS INLINE
    return slot == pass.last_slot ? 0 : slot + pass.slot_words;
}

// Advance by one word if ``loads`` is set. It is called in every cycle, so that the loop has no branch around it.
inline void next_load(const pass_t &pass, const load_constants_t &constants, bool loads, load_cursor_t &load) {
#pragma HLS INLINE
    const bool ends_piece = loads && load.columns.last;
    const bool ends_row = loads && load.words.last;
    const bool ends_stride = ends_row && load.phases.last;
    const bool wraps = load.bank > constants.last_bank;  // the next group begins in a smaller bank
    count_down(load.columns, loads);
    count_down(load.words, loads);
    count_down(load.phases, ends_row);
    const int lap = wraps ? load.lap + constants.lap_pitch : load.lap;
    const int group = constants.group;
    const row_place_t next_row_place = advance_place(load.row_place, 1, 0, pass.in_row_pitch);
    const row_place_t next_group_place =
        advance_place(load.group_place, constants.stride_banks[minimum(group, MAX_STRIDED_ROWS)],
                      constants.stride_words[minimum(group, MAX_STRIDED_ROWS)], pass.in_row_pitch);
    if (ends_row) {
        load.row_place = ends_stride ? next_group_place : next_row_place;
        load.piece = has_large_stride(pass) ? load.row_place.lap : ends_stride ? lap : load.lap;
    } else if (ends_piece) {
        load.piece += pass.in_block_pitch;
    }
    if (ends_stride) load.group_place = next_group_place;
    if (loads) {
        load.offset = ends_stride ? 0 : load.offset + 1;
        load.column = ends_piece ? 0 : load.column + 1;
    }
    if (ends_row) load.row += ends_stride ? constants.rows_to_next_group : 1;
    if (ends_stride) {
        load.row_stride += constants.group;
        load.bank += wraps ? constants.wrapped_bank_step : constants.bank_step;
        load.slot = wraps ? next_slot(pass, load.slot) : load.slot;
        load.lap = lap;
    }
}

// Go back to row stride ``end`` if the last group extended beyond it, so that the next group begins there.
inline void rewind_load(const pass_t &pass, const load_constants_t &constants, int end, load_cursor_t &load) {
#pragma HLS INLINE
    const int excess = load.row_stride - end;
    if (excess <= 0) return;
    load.row_stride -= excess;
    load.row -= address_product(pass.stride, excess);
    if (has_large_stride(pass)) {
        const int unwrapped_bank = load.group_place.bank - constants.stride_banks[minimum(excess, MAX_STRIDED_ROWS)];
        load.group_place.lap -=
            constants.stride_words[minimum(excess, MAX_STRIDED_ROWS)] + (unwrapped_bank < 0 ? pass.in_row_pitch : 0);
        load.group_place.bank = unwrapped_bank + (unwrapped_bank < 0 ? ROWS : 0);
        load.row_place = load.group_place;
        load.piece = load.group_place.lap;
    }
    load.bank -= excess;
    if (load.bank < 0) {
        load.bank += ROWS;
        load.lap -= constants.lap_pitch;
        load.slot = load.slot == 0 ? pass.last_slot : load.slot - pass.slot_words;
        load.piece = has_large_stride(pass) ? load.group_place.lap : load.lap;
    }
}

// The start of a tile: the slot and the padded row of its first input row, the first channel block that it reads, and
// the words from a row's first word to that block.
struct tile_start_t {
    int slot, row;
    int block, block_offset;
};

// The step that is fed next: a kernel row, a group of kernel columns and a channel block, for the windows at one
// column.
struct feed_cursor_t {
    int left_edge, pixel;     // columns of the map: the window's left edge, and the first of the kernel columns
    int ky, phase_offset;     // the kernel row, and the words from its slot's first word to it
    int slot, bank;           // the slot and the bank of kernel row ky of the tile's first window
    int block, block_offset;  // the channel block, and the words from a row's first word to it
    countdown_t blocks, groups, kernel_rows, positions, kernel_phases;
};

inline feed_cursor_t first_feed(const pass_t &pass, const load_constants_t &constants, const tile_start_t &start) {
#pragma HLS INLINE
    feed_cursor_t feed;
    feed.left_edge = feed.pixel = -pass.pad_left;
    feed.ky = feed.phase_offset = 0;
    feed.bank = constants.first_bank;
    feed.slot = start.slot;
    feed.block = start.block;
    feed.block_offset = start.block_offset;
    start_countdown(feed.blocks, pass.tile_blocks);
    start_countdown(feed.groups, pass.kernel_groups);
    start_countdown(feed.kernel_rows, pass.kernel_height);
    start_countdown(feed.positions,
                    pass.positions == 1 ? pass.out_width : (pass.out_width + POSITIONS - 1) / POSITIONS);
    start_countdown(feed.kernel_phases, pass.stride);
    return feed;
}

// Advance to the next step. Channel blocks are the innermost loop, then kernel columns, kernel rows, positions and
// channel tiles.
inline void next_feed(const pass_t &pass, const load_constants_t &constants, tile_start_t &start, feed_cursor_t &feed) {
#pragma HLS INLINE
    const bool ends_group = feed.blocks.last;
    const bool ends_row = ends_group && feed.groups.last;
    const bool ends_window = ends_row && feed.kernel_rows.last;
    const bool ends_tile = ends_window && feed.positions.last;
    const bool ends_stride = ends_row && feed.kernel_phases.last;
    count_down(feed.blocks, true);
    count_down(feed.groups, ends_group);
    count_down(feed.kernel_rows, ends_row);
    count_down(feed.positions, ends_window);
    count_down(feed.kernel_phases, ends_row);
    if (ends_window) restart_countdown(feed.kernel_phases);

    // A channel tile of a depthwise layer reads the next channel blocks, not the same ones again.
    const bool begins_blocks = ends_group && !(ends_tile && pass.depthwise);
    feed.block = begins_blocks ? start.block : feed.block + 1;
    feed.block_offset = begins_blocks ? start.block_offset : feed.block_offset + pass.block_words;
    if (ends_tile && pass.depthwise) {
        start.block = feed.block;
        start.block_offset = feed.block_offset;
    }

    const int left_edge = ends_tile ? -pass.pad_left : ends_window ? feed.left_edge + pass.advance : feed.left_edge;
    feed.pixel = ends_row ? left_edge : ends_group ? feed.pixel + pass.group_pixels : feed.pixel;
    feed.left_edge = left_edge;

    if (ends_window) {
        feed.ky = feed.phase_offset = 0;
        feed.bank = constants.first_bank;
        feed.slot = start.slot;
    } else if (ends_row) {
        const bool wraps = ends_stride && feed.bank == ROWS - 1;
        ++feed.ky;
        feed.phase_offset = ends_stride ? 0 : feed.phase_offset + pass.row_words;
        if (ends_stride) feed.bank = wraps ? 0 : feed.bank + 1;
        if (wraps) feed.slot = next_slot(pass, feed.slot);
    }
}

// An input pixel has PIXEL_BYTES bytes in DDR. A word has WORD_PIXELS pixels, and a step of the array takes
// STEP_PIXELS.
static const int WORD_PIXELS = WORD_BYTES / PIXEL_BYTES;
static const int STEP_PIXELS = LANES / PIXEL_LANES;

// Return a byte p (0 … 255) of a pixel as signed values that the array can multiply. The conversion is exact: the bias
// of the first layer includes the constants that are subtracted here (scheduler/systolic/program).
//   16 bits   p itself
//    8 bits   p − 128: the top bit flipped
//    4 bits   two values, h = ⌊p / 16⌋ − 8 in the odd lane and l = p mod 16 − 8 in the even one: the top bit of each
//             nibble flipped. p = 16 · h + l + 136, so that products of odd lanes count 16 times (pe_array.h).
// ``index`` is the lane: it counts the values of the pixels.
inline value_t pixel_value(const lanes_t &pixels, int index) {
#pragma HLS INLINE
    const value_t raw = pixels.lane[VALUE_BITS == 16 ? index / 2 : index];
    if (VALUE_BITS == 16) return value_t((raw >> (8 * (index % 2))) & 255);
    return value_t(raw ^ value_t(-(1 << (VALUE_BITS - 1))));
}

// Return the same for a pixel of padding, whose channels all have the value ``pixel``.
inline value_t padding_value(int pixel, int index) {
#pragma HLS INLINE
    if (VALUE_BITS == 16) return value_t(pixel);
    if (VALUE_BITS == 8) return value_t(pixel - 128);
    return value_t(((index % 2 == 1 ? pixel >> 4 : pixel) & 15) - 8);
}

// Return STEP_PIXELS pixels, starting with pixel ``shift`` of the consecutive words ``low`` and ``high``. ``first`` is
// the map column of the first pixel. Columns outside of 0 … width − 1 are padding and have the value ``around``.
inline lanes_t pixel_window(const word_t &low, const word_t &high, int shift, int first, int width, int around) {
#pragma HLS INLINE
    const lanes_t pixels = lanes_of(extract_word(low, high, shift * PIXEL_BYTES));
    lanes_t out;
    for (int p = 0; p < STEP_PIXELS; ++p) {
#pragma HLS UNROLL
        const bool inside = first + p >= 0 && first + p < width;
        for (int c = 0; c < PIXEL_LANES; ++c) {
#pragma HLS UNROLL
            const value_t value = pixel_value(pixels, p * PIXEL_LANES + c);
            out.lane[p * PIXEL_LANES + c] = inside ? value : padding_value(around, c);
        }
    }
    return out;
}

// The reads of a map buffer with a stride above 2. Per bank: whether it is read, and at which address. Per row stride
// of the group: the bank of its row.
struct strided_reads_t {
    bool bank_read[ROWS];
    int address[ROWS], bank[MAX_STRIDED_ROWS];
};

// Return the reads for one word of each row stride of the group. ``row_valid``: the row strides that are loaded.
// ``row``: the place of the first one's row. ``piece``: the address of its word, in a bank without padding in its first
// lap.
inline strided_reads_t plan_strided_reads(const pass_t &pass, const load_constants_t &constants, const row_place_t &row,
                                          int piece, const bool row_valid[ROWS]) {
#pragma HLS INLINE
    strided_reads_t out;
    int at[MAX_STRIDED_ROWS];
#pragma HLS ARRAY_PARTITION variable = at complete
    for (int r = 0; r < MAX_STRIDED_ROWS; ++r) {
#pragma HLS UNROLL
        const row_place_t place =
            advance_place(row, constants.stride_banks[r], constants.stride_words[r], pass.in_row_pitch);
        out.bank[r] = place.bank;
        at[r] = piece + place.lap - row.lap + row_offset_in_bank(pass.in_row_pitch, false, place.bank, pass.in_turn);
    }
    for (int bank = 0; bank < ROWS; ++bank) {
#pragma HLS UNROLL
        out.bank_read[bank] = false;
        out.address[bank] = 0;
        for (int r = 0; r < MAX_STRIDED_ROWS; ++r) {
#pragma HLS UNROLL
            const bool matches = row_valid[r] && out.bank[r] == bank;
            out.bank_read[bank] |= matches;
            if (matches) out.address[bank] = at[r];
        }
    }
    return out;
}

// Read one word of each row stride of the group from a map buffer. words[bank] is the word for that bank of the row
// buffer. ``bank_valid``: whether the bank takes a word. ``at``: the address of the word, relative to a lap of the bank
// of the same number. ``group_row``: the row stride within the group that the bank takes. ``lower``: whether the lower
// row of each pair moves (stride 2).
//
// With stride 2, bank q of the row buffer takes rows 2q and 2q + 1, which are in banks 2q mod ROWS and 2q + 1 mod ROWS
// of the map buffer. So bank b of the map buffer serves one of two banks q: the near one, and the far one, whose row is
// ROWS rows, one lap, further down. If ROWS is odd, one of the two takes the upper rows and the other the lower rows.
// If ROWS is even, both take rows of b's parity, and half of the banks move per cycle.
inline void move_words(const pass_t &pass, bool lower, const bool bank_valid[ROWS], const int at[ROWS],
                       const strided_reads_t &strided_reads, const int group_row[ROWS], const map_buffer_t from,
                       word_t words[ROWS]) {
#pragma HLS INLINE
    const bool row_pairs = reads_row_pairs(pass);
    word_t banks[ROWS];
#pragma HLS ARRAY_PARTITION variable = banks complete
    for (int bank = 0; bank < ROWS; ++bank) {
#pragma HLS UNROLL
        const bool odd = bank % 2 == 1;
        // For odd ROWS: the bank q whose upper row 2q, or lower row 2q + 1, equals ``bank`` or bank + ROWS.
        const int upper_row = odd ? (bank + ROWS) / 2 : bank / 2, lower_row = odd ? bank / 2 : (bank + ROWS - 1) / 2;
        const int near = ROWS % 2 == 1 ? upper_row : bank / 2, far = ROWS % 2 == 1 ? lower_row : bank / 2 + ROWS / 2;
        const bool serves_near = ROWS % 2 == 1 ? !lower : bank_valid[near];
        const bool next_lap = ROWS % 2 == 1 ? odd == serves_near : !serves_near;
        const bool read = ROWS % 2 == 1 || odd == lower;
        const int paired = (serves_near ? at[near] : at[far]) + (next_lap ? pass.in_row_pitch : 0);
        const bool small_stride_read =
            row_pairs ? read && (serves_near ? bank_valid[near] : bank_valid[far]) : bank_valid[bank];
        const int place =
            (row_pairs ? paired : at[bank]) + row_offset_in_bank(pass.in_row_pitch, false, bank, pass.in_turn);
        const bool bank_read = has_large_stride(pass) ? strided_reads.bank_read[bank] : small_stride_read;
        const int address = has_large_stride(pass) ? strided_reads.address[bank] : place;
        if (bank_read) banks[bank] = from[address][bank];
    }
    for (int bank = 0; bank < ROWS; ++bank) {
#pragma HLS UNROLL
        const word_t paired = lower ? banks[(2 * bank + 1) % ROWS] : banks[2 * bank % ROWS];
        const word_t strided = banks[strided_reads.bank[minimum(group_row[bank], MAX_STRIDED_ROWS - 1)]];
        words[bank] = has_large_stride(pass) ? strided : row_pairs ? paired : banks[bank];
    }
}

// Load one word of every row stride of a group into the row buffer, from its port or from the map buffer. The loop is
// over banks and not over rows, so that each bank has a single write in the code. If two writes selected their banks at
// run time, the HLS tool would have to assume that they use the same bank.
inline void load_words(const pass_t &pass, const load_constants_t &constants, const load_cursor_t &load, int end,
                       row_buffer_t rows, const map_buffer_t from, hls::stream<word_t> ports[MAP_PORTS]) {
#pragma HLS INLINE
    bool row_valid[ROWS];  // rows of the group that are in the map and before row stride ``end``
#pragma HLS ARRAY_PARTITION variable = row_valid complete
    for (int r = 0; r < ROWS; ++r) {
#pragma HLS UNROLL
        row_valid[r] =
            r < constants.group && load.row_stride + r < end && row_exists(pass, load.row + constants.stride_rows[r]);
    }
    word_t read[MAP_PORTS];
#pragma HLS ARRAY_PARTITION variable = read complete
    for (int port = 0; port < MAP_PORTS; ++port) {
#pragma HLS UNROLL
        if (!reads_buffer(pass) && row_valid[(port - load.row_stride) & (MAP_PORTS - 1)])
            read[port] = ports[port].read();
    }
    const int slot_address = load.slot + load.offset, next_slot_address = next_slot(pass, load.slot) + load.offset;
    const int piece = load.piece + load.column;
    bool bank_valid[ROWS];
    int group_row[ROWS], at[ROWS];
    word_t buffer_words[ROWS];
#pragma HLS ARRAY_PARTITION variable = bank_valid complete
#pragma HLS ARRAY_PARTITION variable = group_row complete
#pragma HLS ARRAY_PARTITION variable = at complete
#pragma HLS ARRAY_PARTITION variable = buffer_words complete
    for (int bank = 0; bank < ROWS; ++bank) {
#pragma HLS UNROLL
        const bool wraps = bank < load.bank;
        group_row[bank] = bank - int(load.bank) + (wraps ? ROWS : 0);
        bank_valid[bank] = row_valid[group_row[bank]];
        at[bank] = piece + (wraps ? constants.lap_pitch : 0);
    }
    const bool lower = ((load.row & 1) != 0) != constants.extra_rotation;
    const strided_reads_t strided_reads = plan_strided_reads(pass, constants, load.row_place, piece, row_valid);
    if (reads_buffer(pass)) move_words(pass, lower, bank_valid, at, strided_reads, group_row, from, buffer_words);
    for (int bank = 0; bank < ROWS; ++bank) {
#pragma HLS UNROLL
        if (bank_valid[bank]) {
            const int address = bank < load.bank ? next_slot_address : slot_address;
            rows[address >> 1][address & 1][bank] =
                reads_buffer(pass) ? buffer_words[bank] : read[(load.row_stride + group_row[bank]) & (MAP_PORTS - 1)];
        }
    }
}

// Return the activations of the step ``feed``: one word, or STEP_PIXELS pixels, for each row of the array; padding has
// the value pass.around. ``row`` is the padded row of the tile's first input row.
inline activations_t read_activations(const pass_t &pass, const load_constants_t &constants, const feed_cursor_t &feed,
                                      int row, row_buffer_t rows) {
#pragma HLS INLINE
    // pixel / WORD_PIXELS, rounded down. Columns of padding are negative and less than 64 words to the left, so that 64
    // words are added before the division.
    const int word = pass.pixel_input ? (feed.pixel + 64 * WORD_PIXELS) / WORD_PIXELS - 64 : feed.pixel;
    const int shift = pass.pixel_input ? feed.pixel - word * WORD_PIXELS : 0;

    // Words ``word`` and ``word`` + 1 of every bank are read, one from the even and one from the odd half. If a word is
    // left or right of the map, or its channel block is beyond the last one, its values are not used below. Its address
    // is moved into the buffer, so that the read is legal.
    const bool block_exists = feed.block < pass.in_blocks;
    const int last_word = pass.block_words - 1;
    const int low_word = clamp(-1, word, last_word), next = low_word < last_word ? 1 : 0;
    const int from = feed.phase_offset + (block_exists ? feed.block_offset : 0) + low_word;
    const int slot_address = feed.slot + from, next_slot_address = next_slot(pass, feed.slot) + from;
    word_t low[ROWS], high[ROWS];
#pragma HLS ARRAY_PARTITION variable = low complete
#pragma HLS ARRAY_PARTITION variable = high complete
    for (int bank = 0; bank < ROWS; ++bank) {
#pragma HLS UNROLL
        const int address = bank < feed.bank ? next_slot_address : slot_address;
        const word_t even = rows[maximum(0, (address + next) >> 1)][0][bank];
        const word_t odd = rows[maximum(0, address >> 1)][1][bank];
        low[bank] = (address & 1) != 0 ? odd : even;
        high[bank] = (address & 1) != 0 ? even : odd;
    }

    activations_t out;
    for (int m = 0; m < ROWS; ++m) {
#pragma HLS UNROLL
        const int bank = wrap_once(m + feed.bank, ROWS);
        const bool exists = row_exists(pass, row + constants.stride_rows[m] + feed.ky) && block_exists;
        for (int p = 0; p < POSITIONS; ++p) {
#pragma HLS UNROLL
            const int column = feed.pixel + p;  // two positions are computed together only if the stride is 1
            const bool inside = exists && column >= 0 && column < pass.in_width;
            if (pass.pixel_input) {
                out.row[m].position[p] = pixel_window(low[bank], high[bank], shift + p, exists ? column : -LANES,
                                                      exists ? pass.in_width : 0, pass.around);
            } else {
                const lanes_t values = lanes_of(p == 0 ? low[bank] : high[bank]);
                for (int l = 0; l < LANES; ++l) {
#pragma HLS UNROLL
                    out.row[m].position[p].lane[l] = inside ? values.lane[l] : value_t(pass.around);
                }
            }
        }
    }
    return out;
}

// One phase of the loop, max(feeds, loads) cycles long. It feeds ``feeds`` steps from ``start`` on, channel tile after
// channel tile. It loads ``loads`` words from each port or bank, up to row stride ``end``. ``next`` is the cursor of
// the loads and is advanced.
inline void load_phase(const pass_t &pass, const load_constants_t &constants, tile_start_t start, int feeds,
                       load_cursor_t &next, int loads, int end, row_buffer_t rows, const map_buffer_t from,
                       hls::stream<word_t> ports[MAP_PORTS], hls::stream<row_activations_t> activations[ROWS]) {
#pragma HLS INLINE off
    const int cycles = maximum(feeds, loads), cycles_without_load = cycles - loads;
    const int row = start.row;
    int credit = -cycles_without_load;
    load_cursor_t load = next;
    feed_cursor_t feed = first_feed(pass, constants, start);
    SYSTOLIC_ENTER;
    for (int i = 0; i < cycles; ++i) {
        SYSTOLIC_PIPELINE(1, 8);
#pragma HLS LOOP_TRIPCOUNT min = 1 max = 1000000
// Loads go to slots that no feed of the same phase reads, so that iterations are independent.
#pragma HLS DEPENDENCE variable = rows type = inter false
        // Loads are spread evenly over the phase, as in feed_phase (feed.h). A load stalls until DDR has delivered its
        // word, and the array would stall with it if all loads came first. Meanwhile the readers fill their FIFOs.
        const bool loading = credit >= 0;
        credit += loading ? -cycles_without_load : loads;
        if (loading) load_words(pass, constants, load, end, rows, from, ports);
        next_load(pass, constants, loading, load);
        // After the last feed, the cursor still advances, but nothing is read at it.
        if (i < feeds) {
            const activations_t step = read_activations(pass, constants, feed, row, rows);
            for (int m = 0; m < ROWS; ++m) {
#pragma HLS UNROLL
                activations[m].write(step.row[m]);
            }
        }
        next_feed(pass, constants, start, feed);
    }
    rewind_load(pass, constants, end, load);
    next = load;
}

// The row buffer belongs to the top function: the HLS tool may build a process more than once, and all copies must
// share the buffer.
inline void load(pass_t pass, row_buffer_t rows, const map_buffer_t from, hls::stream<word_t> ports[MAP_PORTS],
                 hls::stream<row_activations_t> activations[ROWS]) {
    SYSTOLIC_PROCESS("load");
    // All phases share one instance of the loop, because they run one after the other.
#pragma HLS ALLOCATION function instances = load_phase limit = 1
    const load_constants_t constants = constants_of(pass);
    const int tile_rows = address_product(pass.stride, ROWS);
    // Words per port or bank: for the first tile, which includes the rows that its kernel reaches beyond ROWS row
    // strides, and for each further tile.
    const int first_loads = reads_buffer(pass) ? pass.first_moves : pass.first_loads;
    const int loads =
        address_product(pass.slot_words, reads_buffer(pass) ? move_cycles(pass) : (ROWS + MAP_PORTS - 1) / MAP_PORTS);
    load_cursor_t cursor = first_load(pass, constants);
    int end = ROWS + pass.ahead;
    tile_start_t start = {0, 0, 0, 0};
    load_phase(pass, constants, start, 0, cursor, first_loads, end, rows, from, ports, activations);
    const int rounds = pass.inputs_resident ? pass.channel_tiles : 1;
    for (int round = 0; round < rounds; ++round) {
#pragma HLS LOOP_TRIPCOUNT min = 1 max = 64
        start.slot = start.row = 0;
        for (int tile = 0; tile < pass.row_tiles; ++tile) {
#pragma HLS LOOP_TRIPCOUNT min = 1 max = 64
            const bool more = round == 0 && tile + 1 < pass.row_tiles;
            if (more) end += ROWS;
            const bool during = more && pass.overlap;  // the next tile's rows are loaded while this tile is fed
            load_phase(pass, constants, start, pass.row_feeds, cursor, during ? loads : 0,
                       during ? end : cursor.row_stride, rows, from, ports, activations);
            if (more && !pass.overlap) {
                load_phase(pass, constants, start, 0, cursor, loads, end, rows, from, ports, activations);
            }
            start.slot = next_slot(pass, start.slot);
            start.row += tile_rows;
        }
        if (pass.depthwise) {
            start.block += pass.tile_blocks;
            start.block_offset += address_product(pass.block_words, pass.tile_blocks);
        }
    }
}

#endif  // SYSTOLIC_LOAD_H
