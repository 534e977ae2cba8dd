// Saver, last part: results come column by column, DDR wants rows. A chunk of columns is arranged in one
// half of a buffer while the chunk before leaves the other half row by row, each row piece one burst.
#ifndef SYSTOLIC_SAVE_H
#define SYSTOLIC_SAVE_H

#include <hls_burst_maxi.h>
#include <hls_stream.h>

#include "instrument.h"
#include "map_buffer.h"
#include "pass.h"
#include "pool.h"
#include "types.h"

static const int TILE_BLOCKS = COLUMNS / LANES;  // channel blocks of the map that one channel tile fills
static const int SAVED_ROWS = ROWS + 1;          // a stride-1 pool may leave one row more than the tile has
static const int ROW_BANKS = SAVE_ROWS > MAP_PORTS ? SAVE_ROWS : MAP_PORTS;
static const int BANK_ROWS = (SAVED_ROWS + ROW_BANKS - 1) / ROW_BANKS;
static const int RESULT_WORDS = 16 / VALUE_BITS;  // words that hold LANES int16 results

// A chunk: up to CHUNK columns of one channel tile of one row tile. Where it lies in the map is counted up, in words.
struct chunk_t {
    tile_t tile;
    int x;  // its first column
    int columns, rows, blocks;
    int first_block;  // of its channel tile
    int bank, lap;    // of its first row in a map buffer: (y + out_turn) mod ROWS, and words to (y + out_turn) / ROWS
    int row_at, block_at, x_at;  // words to its first row in DDR, its first block, its first column
};

inline void measure_chunk(const pass_t &pass, chunk_t &chunk) {
#pragma HLS INLINE
    chunk.columns = minimum(CHUNK, pass.save_width - chunk.x);
    chunk.rows = rows_of_tile(pass, chunk.tile).saved;
    chunk.blocks = minimum(TILE_BLOCKS, pass.out_blocks - chunk.first_block);
}

inline chunk_t first_chunk(const pass_t &pass) {
#pragma HLS INLINE
    chunk_t chunk = {{0, 0, 0}, 0, 0, 0, 0, 0, pass.out_turn, 0, 0, 0, 0};
    measure_chunk(pass, chunk);
    return chunk;
}

inline void next_chunk(const pass_t &pass, chunk_t &chunk) {
#pragma HLS INLINE
    chunk.x += CHUNK;
    chunk.x_at += times(CHUNK, pass.value_words);
    if (chunk.x >= pass.save_width) {
        const tile_t before = chunk.tile;
        next_tile(pass, chunk.tile);
        chunk.x = chunk.x_at = 0;
        if (chunk.tile.channel < before.channel) chunk.first_block = chunk.block_at = 0;
        if (chunk.tile.channel > before.channel) {
            chunk.first_block += TILE_BLOCKS;
            chunk.block_at += times(pass.out_block_pitch, TILE_BLOCKS);
        }
        if (chunk.tile.row < before.row) {
            chunk.row_at = chunk.lap = 0;
            chunk.bank = pass.out_turn;
        }
        if (chunk.tile.row > before.row) {
            chunk.row_at += times(pass.out_row_pitch, chunk.rows);
            chunk.bank += chunk.rows;  // at most ROWS; after the last row tile it is not used
            if (chunk.bank >= ROWS) {
                chunk.bank -= ROWS;
                chunk.lap += pass.out_row_pitch;
            }
        }
    }
    measure_chunk(pass, chunk);
}

typedef lanes_t arranged_t[2][BANK_ROWS][ROW_BANKS][CHUNK][TILE_BLOCKS][RESULT_WORDS];

// One row of results becomes words: LANES values of VALUE_BITS a word, or LANES int16 in RESULT_WORDS words, the
// lowest bits first.
inline void arrange_row(const result_t values[COLUMNS], int value_words, lanes_t words[TILE_BLOCKS][RESULT_WORDS]) {
#pragma HLS INLINE
    for (int block = 0; block < TILE_BLOCKS; ++block) {
#pragma HLS UNROLL
        for (int part = 0; part < RESULT_WORDS * LANES; ++part) {
#pragma HLS UNROLL
            const int wide = values[block * LANES + part / RESULT_WORDS];
            const int narrow = part < LANES ? int(values[block * LANES + part]) : 0;
            words[block][part / LANES].lane[part % LANES] =
                value_t(value_words == 1 ? narrow : wide >> (VALUE_BITS * (part % RESULT_WORDS)));
        }
    }
}

struct place_t {
    int row, block, x, word;
    int bank, lap, block_at;  // as of a chunk
};

inline place_t first_place(const chunk_t &chunk) {
#pragma HLS INLINE
    const place_t place = {0, 0, 0, 0, chunk.bank, chunk.lap, chunk.block_at};
    return place;
}

// Rows that leave together: one a port to DDR, one a bank of the chunk into a map buffer.
inline int leave_together(const pass_t &pass) {
#pragma HLS INLINE
    return writes_buffer(pass) ? ROW_BANKS : MAP_PORTS;
}

// False after the last.
inline bool next_place(const pass_t &pass, const chunk_t &chunk, place_t &at) {
#pragma HLS INLINE
    if (++at.word < pass.value_words) return true;
    at.word = 0;
    if (++at.x < chunk.columns) return true;
    at.x = 0;
    at.block_at += pass.out_block_pitch;
    if (++at.block < chunk.blocks) return true;
    at.block = 0;
    at.block_at = chunk.block_at;
    at.row += leave_together(pass);
    at.bank += leave_together(pass);
    if (at.bank >= ROWS) {
        at.bank -= ROWS;
        at.lap += pass.out_row_pitch;
    }
    return at.row < chunk.rows;
}

// The words that leave a cycle, a row each, into a map buffer.
inline void keep_words(const pass_t &pass, const chunk_t &chunk, const place_t &at, const lanes_t words[ROW_BANKS],
                       map_buffer_t to) {
#pragma HLS INLINE
    const int piece = pass.out_base + at.lap + at.block_at + chunk.x + at.x;
    for (int bank = 0; bank < ROWS; ++bank) {
#pragma HLS UNROLL
        const bool wraps = bank < at.bank;
        const int next = bank - at.bank + (wraps ? ROWS : 0);
        if (next < ROW_BANKS && at.row + next < chunk.rows) {
            to[piece + row_in_bank(pass.out_row_pitch, wraps, bank, pass.out_turn)][bank] =
                words[minimum(next, ROW_BANKS - 1)];
        }
    }
}

inline void arrange_phase(const pass_t &pass, const chunk_t &in, bool fill, const chunk_t &out, bool empty, int half,
                          arranged_t buffer, hls::stream<results_t> &results, hls::stream<lanes_t> ports[MAP_PORTS],
                          map_buffer_t to) {
#pragma HLS INLINE off
    const int groups = groups_of(in.rows);  // a tile leaves at least one row
    int x = 0, group = 0;
    place_t place = first_place(out);
    SYSTOLIC_ENTER;
    while (fill || empty) {
        SYSTOLIC_PIPELINE(1, 4);
#pragma HLS LOOP_TRIPCOUNT min = 1 max = 4096
#pragma HLS DEPENDENCE variable = buffer type = inter false
        // Every bank is written in one place and read in one: a tool cannot see that banks chosen at run time differ.
        if (fill) {
            const results_t taken = results.read();
            for (int bank = 0; bank < ROW_BANKS; ++bank) {
#pragma HLS UNROLL
                const int r = bank % SAVE_ROWS, row = group * SAVE_ROWS + r;
                if (row % ROW_BANKS == bank && row < in.rows) {
                    arrange_row(taken.value[r], pass.value_words, buffer[half][row / ROW_BANKS][bank][x]);
                }
            }
            if (++group == groups) {
                group = 0;
                fill = ++x < in.columns;
            }
        }
        if (empty) {
            lanes_t banks[ROW_BANKS], words[ROW_BANKS];
#pragma HLS ARRAY_PARTITION variable = banks complete
#pragma HLS ARRAY_PARTITION variable = words complete
            const int first = place.row % ROW_BANKS;  // the bank of the first row that leaves
            for (int bank = 0; bank < ROW_BANKS; ++bank) {
#pragma HLS UNROLL
                const int row = minimum(place.row / ROW_BANKS + (bank < first ? 1 : 0), BANK_ROWS - 1);
                banks[bank] = buffer[1 - half][row][bank][place.x][place.block][place.word];
            }
            for (int r = 0; r < ROW_BANKS; ++r) {
#pragma HLS UNROLL
                words[r] = banks[(first + r) % ROW_BANKS];
            }
            for (int port = 0; port < MAP_PORTS; ++port) {
#pragma HLS UNROLL
                if (!writes_buffer(pass) && place.row + port < out.rows) ports[port].write(words[port]);
            }
            if (writes_buffer(pass)) keep_words(pass, out, place, words, to);
            empty = next_place(pass, out, place);
        }
    }
}

static inline void arrange(pass_t pass, hls::stream<results_t> &results, hls::stream<lanes_t> ports[MAP_PORTS],
                           map_buffer_t to) {
    SYSTOLIC_PROCESS("arrange");
    // lint: allow(static-local) a memory of its own, filled anew by every pass; on the stack it is too large
    static arranged_t buffer;
#pragma HLS ARRAY_PARTITION variable = buffer complete dim = 3
#pragma HLS ARRAY_PARTITION variable = buffer complete dim = 5
#pragma HLS ARRAY_PARTITION variable = buffer complete dim = 6
    SYSTOLIC_PRAGMA(HLS BIND_STORAGE variable = buffer type = ram_s2p impl = ARRANGED_MEMORY)
    chunk_t in = first_chunk(pass), out = in;
    for (int i = 0; i <= pass.chunks; ++i) {
#pragma HLS LOOP_TRIPCOUNT min = 2 max = 1024
        arrange_phase(pass, in, i < pass.chunks, out, i > 0, i & 1, buffer, results, ports, to);
        out = in;
        next_chunk(pass, in);
    }
}

static const int RESPONSES_OPEN = OUTSTANDING;  // bursts written before the oldest must be acknowledged

template <int PORT>
void write_rows(pass_t pass, hls::stream<lanes_t> &words, hls::burst_maxi<word_t> maps) {
    SYSTOLIC_PROCESS("write_rows");
    const int chunks = writes_buffer(pass) ? 0 : pass.chunks;
    chunk_t chunk = first_chunk(pass);
    int open = 0;
    for (int i = 0; i < chunks; ++i) {
#pragma HLS LOOP_TRIPCOUNT min = 1 max = 1024
        const int length = times(chunk.columns, pass.value_words);
        int row = PORT, block = 0, word = 0;
        int row_at = pass.out_base + chunk.row_at + chunk.block_at + chunk.x_at + times(pass.out_row_pitch, PORT);
        int at = row_at;
        SYSTOLIC_ENTER;
        while (row < chunk.rows) {
            SYSTOLIC_PIPELINE(1, 3);
#pragma HLS LOOP_TRIPCOUNT min = 1 max = 4096
            if (word == 0) {
                if (open == RESPONSES_OPEN) maps.write_response();
                else ++open;
                maps.write_request(at, length);
            }
            maps.write(word_of(words.read()));
            if (++word == length) {
                word = 0;
                at += pass.out_block_pitch;
                if (++block == chunk.blocks) {
                    block = 0;
                    row += MAP_PORTS;
                    row_at += MAP_PORTS * pass.out_row_pitch;
                    at = row_at;
                }
            }
        }
        next_chunk(pass, chunk);
    }
    // The next pass reads what was written: it may not start before DDR has answered.
    for (int i = 0; i < open; ++i) {
#pragma HLS LOOP_TRIPCOUNT min = 1 max = 16
        maps.write_response();
    }
}

#endif  // SYSTOLIC_SAVE_H
