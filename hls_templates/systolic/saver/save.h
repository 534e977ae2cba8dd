// Saver, last part: results arrive column by column and are output row by row, as DDR needs them.
//
// A *chunk* is up to CHUNK columns of a tile. Process ``arrange`` writes the results of a chunk into one half of a
// buffer. Meanwhile it outputs the chunk before from the other half, row by row: ping-pong, in one loop with II 1.
// Process ``write_rows``, one per port, writes each piece of a row to DDR as one burst. Process ``plan_chunks``
// computes the chunks in advance for both. In passes with a residual add, ``arrange`` adds the residual map to its
// output (add.h).
#ifndef SYSTOLIC_SAVE_H
#define SYSTOLIC_SAVE_H

#include <hls_burst_maxi.h>
#include <hls_stream.h>

#include "instrument.h"
#include "map_buffer.h"
#include "pass.h"
#include "pool.h"
#include "types.h"

// Upper limit for the output rows of a tile. A pool of stride 1 may output one row more than the tile has, and an
// upsample outputs UPSCALE rows for each.
static const int MAX_OUTPUT_ROWS = UPSCALE > 1 ? UPSCALE * ROWS : ROWS + 1;
// Rows of the buffer that are accessed per cycle, each in its own bank, and rows per bank.
static const int ROW_BANKS = SAVE_ROWS > MAP_PORTS ? SAVE_ROWS : MAP_PORTS;
static const int BANK_ROWS = (MAX_OUTPUT_ROWS + ROW_BANKS - 1) / ROW_BANKS;

static const int TILE_BLOCKS = (COLUMNS + LANES - 1) / LANES;  // channel blocks of a channel tile, partial ones too
static const bool HALF_BLOCKS = COLUMNS % LANES != 0;          // every second tile begins in the middle of a block
static const int RESULT_WORDS = 16 / VALUE_BITS;               // words of LANES int16 results

// Return the words of ``columns`` results in a row and channel block: one each, or RESULT_WORDS each if they are
// written as int16.
inline int result_words(const pass_t &pass, int columns) {
#pragma HLS INLINE
    return pass.value_words == 1 ? columns : columns * RESULT_WORDS;
}

// A chunk: up to CHUNK columns of a tile. Addresses are accumulated and count words of the output map.
struct chunk_t {
    int16_t columns, rows;
    int8_t blocks;   // channel blocks
    int8_t odd;      // 1: its channel tile begins in the middle of a block
    int16_t bank;    // in a map buffer: the bank of the first row
    int lap;         // in a map buffer: the address of the lap of that row
    int row_offset;  // in DDR: the address of the first row; for read_added, in the residual map
    int offset;      // from a row's first word to the chunk's first block and column
};

// The position of a chunk in the pass.
struct chunk_cursor_t {
    tile_t tile;
    int x, first_block;               // the first column and the first channel block
    int block_offset, column_offset;  // words of a row before this block, and of a block before this column
};

// Return the row pitch of a map buffer that the Saver accesses. In a map buffer, the output and the residual map have
// the same layout, because a sum may replace the residual value. If only the residual map is there, its own row pitch
// is used.
inline int buffer_row_pitch(const pass_t &pass) {
#pragma HLS INLINE
    return writes_buffer(pass) ? pass.out_row_pitch : pass.added_row_pitch;
}

// Ports that write. Engines with residual adds have one more, which writes the sums. CHUNK_READERS also counts the
// reader of the residual map (read_added).
static const int SAVE_PORTS = MAP_PORTS + (ADDED_MAPS > 0 ? 1 : 0);
static const int CHUNK_READERS = MAP_PORTS + (ADDED_MAPS > 0 ? 2 : 0);

// Return whether a port receives the chunks of this pass. Ports below MAP_PORTS write results, port MAP_PORTS writes sums, and
// the number after it is read_added, which reads the residual map from DDR.
inline bool port_is_active(const pass_t &pass, int port) {
#pragma HLS INLINE
    if (port > MAP_PORTS) return residual_in_ddr(pass);
    return !writes_buffer(pass) && has_residual_add(pass) == (port == MAP_PORTS);
}

// Process that computes the chunks of a pass in advance, for arrange and for every port.
static inline void plan_chunks(pass_t pass, hls::stream<chunk_t> &chunks,
                               hls::stream<chunk_t> port_chunks[CHUNK_READERS]) {
    SYSTOLIC_PROCESS("plan_chunks");
    const int tile_pitch = address_product(pass.out_block_pitch, TILE_BLOCKS), chunk_words = result_words(pass, CHUNK);
    const int shared_pitch = tile_pitch - pass.out_block_pitch, lap_pitch = buffer_row_pitch(pass);
    int added_row = 0;
    chunk_cursor_t at = {{0, 0, 0}, 0, 0, 0, 0};
    chunk_t chunk = {0, 0, 0, 0, int16_t(pass.out_turn), 0, 0, 0};
    SYSTOLIC_ENTER;
    for (int i = 0; i < pass.chunks; ++i) {
        SYSTOLIC_PIPELINE(TILE_CYCLES, 8);
#pragma HLS LOOP_TRIPCOUNT min = 1 max = 1024
        chunk.columns = minimum(CHUNK, pass.save_width - at.x);
        chunk.rows = rows_of_tile(pass, at.tile).output_rows;
        chunk.blocks = int8_t(minimum(TILE_BLOCKS, pass.out_blocks - at.first_block));
        chunk.odd = HALF_BLOCKS ? at.tile.channel & 1 : 0;
        chunk.offset = at.block_offset + at.column_offset;
        chunks.write(chunk);
        for (int port = 0; port < CHUNK_READERS; ++port) {
#pragma HLS UNROLL
            chunk_t port_chunk = chunk;
            if (port > MAP_PORTS) port_chunk.row_offset = added_row;
            if (port_is_active(pass, port)) port_chunks[port].write(port_chunk);
        }
        at.x += CHUNK;
        at.column_offset += chunk_words;
        if (at.x >= pass.save_width) {
            const tile_t before = at.tile;
            next_tile(pass, at.tile);
            at.x = at.column_offset = 0;
            if (at.tile.channel < before.channel) at.first_block = at.block_offset = 0;
            if (at.tile.channel > before.channel) {
                const bool shared = HALF_BLOCKS && chunk.odd == 0;  // the next tile begins in this tile's last block
                at.first_block += TILE_BLOCKS - (shared ? 1 : 0);
                at.block_offset += shared ? shared_pitch : tile_pitch;
            }
            if (at.tile.row < before.row) {
                chunk.row_offset = chunk.lap = added_row = 0;
                chunk.bank = pass.out_turn;
            }
            if (at.tile.row > before.row) {
                chunk.row_offset += address_product(pass.out_row_pitch, chunk.rows);
                const int unwrapped_bank = chunk.bank + chunk.rows;  // not used after the last row tile
                chunk.bank = bank_of(unwrapped_bank);
                chunk.lap += lap_offset(unwrapped_bank, lap_pitch);
                if (ADDED_MAPS > 0) added_row += address_product(pass.added_row_pitch, chunk.rows);
            }
        }
    }
}

// [half][row / ROW_BANKS][row mod ROW_BANKS][column][channel block][word of the results]
typedef word_t arrange_buffer_t[2][BANK_ROWS][ROW_BANKS][CHUNK][TILE_BLOCKS][RESULT_WORDS];

// Return the result for lane ``lane`` of a tile's channel blocks. If the tile begins in the middle of a block, its
// results are half a block further.
inline result_t select_result(const result_t values[COLUMNS], bool odd, int lane) {
#pragma HLS INLINE
    if (!HALF_BLOCKS) return values[lane];
    return odd ? values[maximum(lane - LANES / 2, 0)] : values[minimum(lane, COLUMNS - 1)];
}

// Arrange the results of one row and column as words, one per channel block: LANES values of VALUE_BITS. If results are
// written as int16, LANES values take RESULT_WORDS words, the lowest bits first.
inline void arrange_row(const result_t values[COLUMNS], int value_words, bool odd,
                        word_t words[TILE_BLOCKS][RESULT_WORDS]) {
#pragma HLS INLINE
    for (int block = 0; block < TILE_BLOCKS; ++block) {
#pragma HLS UNROLL
        for (int word = 0; word < RESULT_WORDS; ++word) {
#pragma HLS UNROLL
            lanes_t lanes;
            for (int l = 0; l < LANES; ++l) {
#pragma HLS UNROLL
                const int wide = select_result(values, odd, block * LANES + (word * LANES + l) / RESULT_WORDS);
                const int narrow = select_result(values, odd, block * LANES + l);
                const int bit = VALUE_BITS * ((word * LANES + l) % RESULT_WORDS);
                lanes.lane[l] = value_t(value_words == 1 ? narrow : wide >> bit);
            }
            words[block][word] = word_of(lanes);
        }
    }
}

// Return the halves of a word that belong to the tile. ``block`` counts the channel blocks of the tile, and ``word``
// the RESULT_WORDS words of a column. If results are written as int16, half a block is whole words.
inline halves_t tile_halves(const pass_t &pass, const chunk_t &chunk, int block, int word) {
#pragma HLS INLINE
    const bool lower = !HALF_BLOCKS || chunk.odd == 0 || block > 0;
    const bool upper = !HALF_BLOCKS || chunk.odd != 0 || block < TILE_BLOCKS - 1;
    const bool whole = word < RESULT_WORDS / 2 ? lower : upper;
    halves_t out;
    out.lower = pass.value_words == 1 ? lower : whole;
    out.upper = pass.value_words == 1 ? upper : whole;
    return out;
}

// The words of a chunk that are output next. Several rows are output together, from ``row`` on. block_offset: words
// from the chunk's first block to this block, in a map buffer.
struct place_t {
    int row, block, x, word;
    int block_offset;
};

// Return the rows that are output per cycle: one per port to DDR, one per bank of the chunk to a map buffer, and one
// with a residual add.
inline int output_rows_per_cycle(const pass_t &pass) {
#pragma HLS INLINE
    return has_residual_add(pass) ? 1 : writes_buffer(pass) ? ROW_BANKS : MAP_PORTS;
}

// Advance to the next words. Return false after the last ones. Every counter is compared with its last value in
// parallel, so that no comparison depends on another.
inline bool next_place(const pass_t &pass, const chunk_t &chunk, int rows_per_cycle, place_t &place) {
#pragma HLS INLINE
    const bool last_word = place.word == pass.value_words - 1;
    const bool last_column = last_word && place.x == chunk.columns - 1;
    const bool last_block = last_column && place.block == chunk.blocks - 1;
    const bool last_row = last_block && place.row >= chunk.rows - rows_per_cycle;
    place.word = last_word ? 0 : place.word + 1;
    if (last_word) place.x = last_column ? 0 : place.x + 1;
    if (last_column) {
        place.block = last_block ? 0 : place.block + 1;
        place.block_offset = last_block ? 0 : place.block_offset + pass.out_block_pitch;
    }
    if (last_block) place.row += rows_per_cycle;
    return !last_row;
}

// The place of the output words in a map buffer: the bank of their first row, and the address of that row in a bank
// without padding in its first lap (row_offset_in_bank).
struct buffer_place_t {
    int bank, address;
};

inline buffer_place_t buffer_place(const pass_t &pass, const chunk_t &chunk, const place_t &place) {
#pragma HLS INLINE
    const int unwrapped_bank = chunk.bank + place.row;
    const int base = writes_buffer(pass) ? pass.out_base : pass.added_base;
    const int lap = chunk.lap + lap_offset(unwrapped_bank, buffer_row_pitch(pass));
    buffer_place_t out;
    out.bank = bank_of(unwrapped_bank);
    out.address = base + chunk.offset + place.block_offset + place.x + lap;
    return out;
}

// Write the words of one cycle, one per row, to a map buffer. If half of a word belongs to another channel tile, the
// word is read and written back. No other process accesses that buffer in this pass, and a phase writes each word once.
inline void write_buffer(const pass_t &pass, const chunk_t &chunk, const place_t &place, const buffer_place_t &at,
                         int rows_per_cycle, const word_t words[ROW_BANKS], map_buffer_t to) {
#pragma HLS INLINE
    const halves_t halves = tile_halves(pass, chunk, place.block, place.word);
    for (int bank = 0; bank < ROWS; ++bank) {
#pragma HLS UNROLL
        const bool wraps = bank < at.bank;
        const int next = bank - at.bank + (wraps ? ROWS : 0);
        if (next < rows_per_cycle && place.row + next < chunk.rows) {
            word_t &stored_word =
                to[at.address + row_offset_in_bank(pass.out_row_pitch, wraps, bank, pass.out_turn)][bank];
            const word_t word = words[minimum(next, ROW_BANKS - 1)];
            stored_word = HALF_BLOCKS ? merge_halves(stored_word, word, halves) : word;
        }
    }
}

// Return the output word if no residual map is added. Engines with residual adds have an overload in add.h.
inline word_t output_word(const pass_t &, const buffer_place_t &, const map_buffer_t, const word_t &result) {
#pragma HLS INLINE
    return result;
}

// Pipeline depth of a phase. The products of a residual add need more stages.
static const int ARRANGE_STAGES = ADDED_MAPS > 0 ? 15 : 7;

// One phase. If ``fill`` is set, write the results of chunk ``in`` into half ``half`` of the buffer, SAVE_ROWS rows of
// a column per cycle. If ``drain`` is set, output chunk ``out`` from the other half to the ports or to the map buffer.
// The phase ends when both are done. ``added``: in engines with residual adds, the stream of words from DDR.
template <typename... ADDED>
void arrange_phase(const pass_t &pass, const chunk_t &in, bool fill, const chunk_t &out, bool drain, int half,
                   arrange_buffer_t buffer, hls::stream<results_t> &results, hls::stream<word_t> ports[SAVE_PORTS],
                   map_buffer_t to, ADDED &...added) {
#pragma HLS INLINE off
    const int last_group = groups_of(in.rows) - 1, last_column = in.columns - 1;  // every tile outputs at least one row
    const int rows_per_cycle = output_rows_per_cycle(pass);
    int x = 0, group = 0;
    place_t place = {0, 0, 0, 0, 0};
    SYSTOLIC_ENTER;
    while (fill || drain) {
        SYSTOLIC_PIPELINE(1, ARRANGE_STAGES);
#pragma HLS LOOP_TRIPCOUNT min = 1 max = 4096
// Fills and reads use different halves, and a phase writes each word of ``to`` once, so that iterations are
// independent.
#pragma HLS DEPENDENCE variable = buffer type = inter false
#pragma HLS DEPENDENCE variable = to type = inter false
        // Each bank has a single write and a single read in the code. If banks were selected at run time, the HLS tool
        // could not see that they differ.
        if (fill) {
            const results_t column = results.read();
            word_t words[SAVE_ROWS][TILE_BLOCKS][RESULT_WORDS];
#pragma HLS ARRAY_PARTITION variable = words complete dim = 0
            for (int r = 0; r < SAVE_ROWS; ++r) {
#pragma HLS UNROLL
                arrange_row(column.value[r], pass.value_words, in.odd != 0, words[r]);
            }
            for (int bank = 0; bank < ROW_BANKS; ++bank) {
#pragma HLS UNROLL
                const int r = bank % SAVE_ROWS, row = group * SAVE_ROWS + r;
                if (row % ROW_BANKS != bank || row >= in.rows) continue;
                for (int block = 0; block < TILE_BLOCKS; ++block) {
#pragma HLS UNROLL
                    for (int word = 0; word < RESULT_WORDS; ++word) {
#pragma HLS UNROLL
                        buffer[half][row / ROW_BANKS][bank][x][block][word] = words[r][block][word];
                    }
                }
            }
            const bool last = group == last_group;
            fill = !(last && x == last_column);
            group = last ? 0 : group + 1;
            if (last) ++x;
        }
        if (drain) {
            const buffer_place_t at = buffer_place(pass, out, place);
            word_t banks[ROW_BANKS], words[ROW_BANKS];
#pragma HLS ARRAY_PARTITION variable = banks complete
#pragma HLS ARRAY_PARTITION variable = words complete
            const int first = place.row % ROW_BANKS;  // the bank of the first row that is output
            for (int bank = 0; bank < ROW_BANKS; ++bank) {
#pragma HLS UNROLL
                const int row = minimum(place.row / ROW_BANKS + (bank < first ? 1 : 0), BANK_ROWS - 1);
                banks[bank] = buffer[1 - half][row][bank][place.x][place.block][place.word];
            }
            for (int r = 0; r < ROW_BANKS; ++r) {
#pragma HLS UNROLL
                const word_t word = banks[(first + r) % ROW_BANKS];
                words[r] = r == 0 ? output_word(pass, at, to, word, added...) : word;
            }
            for (int port = 0; port < SAVE_PORTS; ++port) {
#pragma HLS UNROLL
                const int row = port % MAP_PORTS;
                if (port_is_active(pass, port) && place.row + row < out.rows) ports[port].write(words[row]);
            }
            if (writes_buffer(pass)) write_buffer(pass, out, place, at, rows_per_cycle, words, to);
            drain = next_place(pass, out, rows_per_cycle, place);
        }
    }
}

// All chunks of a pass. One phase fills with chunk i and outputs chunk i − 1, so that there is one more phase than
// chunks.
template <typename... ADDED>
void arrange_chunks(const pass_t &pass, hls::stream<chunk_t> &chunks, hls::stream<results_t> &results,
                    hls::stream<word_t> ports[SAVE_PORTS], map_buffer_t to, arrange_buffer_t buffer, ADDED &...added) {
#pragma HLS INLINE
    chunk_t in = {}, out = {};
    for (int i = 0; i <= pass.chunks; ++i) {
#pragma HLS LOOP_TRIPCOUNT min = 2 max = 1024
        const bool fill = i < pass.chunks;
        if (fill) in = chunks.read();
        arrange_phase(pass, in, fill, out, i > 0, i & 1, buffer, results, ports, to, added...);
        out = in;
    }
}

// Process ``arrange`` of engines without residual adds. Engines with residual adds have arrange_and_add (add.h).
static inline void arrange(pass_t pass, hls::stream<chunk_t> &chunks, hls::stream<results_t> &results,
                           hls::stream<word_t> ports[SAVE_PORTS], map_buffer_t to) {
    SYSTOLIC_PROCESS("arrange");
    // lint: allow(static-local) every pass fills this memory anew; it would be too large for the stack
    static arrange_buffer_t buffer;
#pragma HLS ARRAY_PARTITION variable = buffer complete dim = 3
#pragma HLS ARRAY_PARTITION variable = buffer complete dim = 5
#pragma HLS ARRAY_PARTITION variable = buffer complete dim = 6
    SYSTOLIC_PRAGMA(HLS BIND_STORAGE variable = buffer type = ram_s2p impl = ARRANGED_MEMORY)
    arrange_chunks(pass, chunks, results, ports, to, buffer);
}

// Bursts that are requested in one group. Their responses are awaited after the data of the next group, which hides the
// latency of DDR. At most OUTSTANDING bursts are open.
static const int BURSTS_PER_GROUP = OUTSTANDING / 2;

// Wait for DDR's responses to ``bursts`` bursts.
inline void wait_for_responses(int bursts, hls::burst_maxi<word_t> &maps) {
#pragma HLS INLINE
    SYSTOLIC_ENTER;
    for (int i = 0; i < bursts; ++i) {
        SYSTOLIC_PIPELINE(1, 5);
#pragma HLS LOOP_TRIPCOUNT min = 1 max = 16
        maps.write_response();
    }
}

// The word that a port writes next: its number within the burst, and the channel block of the burst.
struct write_cursor_t {
    int word, block;
};

// Write one word. If two channel tiles share the word, only this tile's half is written, and the other half stays as it
// is in DDR. Only arrays with HALF_BLOCKS have such words.
template <bool HALVES>
struct writer_t {
    static void write(const pass_t &, const chunk_t &, int, write_cursor_t &, const word_t &word,
                      hls::burst_maxi<word_t> &maps) {
#pragma HLS INLINE
        maps.write(word);
    }
};
template <>
struct writer_t<true> {
    template <typename PORT>
    static void write(const pass_t &pass, const chunk_t &chunk, int length, write_cursor_t &at, const word_t &word,
                      PORT &maps) {
#pragma HLS INLINE
        maps.write(word, byte_enables_of(tile_halves(pass, chunk, at.block, at.word % RESULT_WORDS)));
        const bool last = at.word == length - 1;
        at.word = last ? 0 : at.word + 1;
        if (last) at.block = at.block == chunk.blocks - 1 ? 0 : at.block + 1;
    }
};

// Process of one writing port. Requests, data and responses have a loop each: in one loop, the HLS tool may order the
// next request after the response to the last one. The first MAP_PORTS ports write the rows of a chunk in turn. The
// port after them writes all rows of the sums.
template <int PORT>
void write_rows(pass_t pass, hls::stream<chunk_t> &chunks, hls::stream<word_t> &words, hls::burst_maxi<word_t> maps) {
    SYSTOLIC_PROCESS("write_rows");
    // rows: from one of this port's rows to the next.
    const int first_row = PORT % MAP_PORTS, rows = PORT < MAP_PORTS ? MAP_PORTS : 1;
    const int port_offset = pass.out_base + address_product(pass.out_row_pitch, first_row);
    const int row_step = PORT < MAP_PORTS ? MAP_PORTS * pass.out_row_pitch : pass.out_row_pitch;
    const int count = port_is_active(pass, PORT) ? pass.chunks : 0;
    int open_bursts = 0;
    for (int i = 0; i < count; ++i) {
#pragma HLS LOOP_TRIPCOUNT min = 1 max = 1024
        const chunk_t chunk = chunks.read();
        const int length = result_words(pass, chunk.columns), last_block = chunk.blocks - 1;
        int row = first_row, block = 0;
        write_cursor_t write_cursor = {0, 0};
        int row_offset = port_offset + chunk.row_offset + chunk.offset, address = row_offset;
        while (row < chunk.rows) {
#pragma HLS LOOP_TRIPCOUNT min = 1 max = 8
            int requested = 0, requested_words = 0;
            SYSTOLIC_ENTER;
            while (requested != BURSTS_PER_GROUP && row < chunk.rows) {
                SYSTOLIC_PIPELINE(1, 2);
#pragma HLS LOOP_TRIPCOUNT min = 1 max = 8
                maps.write_request(address, length);
                ++requested;
                requested_words += length;
                const bool last = block == last_block;
                block = last ? 0 : block + 1;
                address = last ? row_offset + row_step : address + pass.out_block_pitch;
                if (last) {
                    row_offset += row_step;
                    row += rows;
                }
            }
            SYSTOLIC_ENTER;
            for (int word = 0; word < requested_words; ++word) {
                SYSTOLIC_PIPELINE(1, 3);
#pragma HLS LOOP_TRIPCOUNT min = 1 max = 4096
                writer_t<HALF_BLOCKS>::write(pass, chunk, length, write_cursor, words.read(), maps);
            }
            wait_for_responses(open_bursts, maps);
            open_bursts = requested;
        }
    }
    // The next pass may read the output of this pass, so that this pass must not end before DDR has answered all
    // bursts.
    wait_for_responses(open_bursts, maps);
}

#endif  // SYSTOLIC_SAVE_H
