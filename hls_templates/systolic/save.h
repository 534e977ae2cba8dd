// Saver, last part: results come column by column, but DDR wants rows. Process ``arrange`` writes the results of a
// *chunk*, up to CHUNK columns of a tile, into one half of a buffer, while the chunk before leaves the other half row
// by row: ping-pong, in one loop with II 1. Process ``write_rows``, one for each port, writes each piece of a row to
// DDR as one burst.
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
static const int SAVED_ROWS = ROWS + 1;          // a pool of stride 1 may give one row more than the tile has
static const int ROW_BANKS = SAVE_ROWS > MAP_PORTS ? SAVE_ROWS : MAP_PORTS;
static const int BANK_ROWS = (SAVED_ROWS + ROW_BANKS - 1) / ROW_BANKS;
static const int RESULT_WORDS = 16 / VALUE_BITS;  // words that hold LANES int16 results

// A chunk of the pass. Addresses are counted up, in words of the output map.
struct chunk_t {
    tile_t tile;
    int x;                                        // first column
    int columns, rows, blocks;                    // how many, blocks of channels
    int first_block;                              // of the channel tile
    int bank, lap;                                // in a map buffer: the first row's bank, and where its lap begins
    int row_offset, block_offset, column_offset;  // in DDR: of the first row, block and column
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
    chunk.column_offset += times(CHUNK, pass.value_words);
    if (chunk.x >= pass.save_width) {
        const tile_t before = chunk.tile;
        next_tile(pass, chunk.tile);
        chunk.x = chunk.column_offset = 0;
        if (chunk.tile.channel < before.channel) chunk.first_block = chunk.block_offset = 0;
        if (chunk.tile.channel > before.channel) {
            chunk.first_block += TILE_BLOCKS;
            chunk.block_offset += times(pass.out_block_pitch, TILE_BLOCKS);
        }
        if (chunk.tile.row < before.row) {
            chunk.row_offset = chunk.lap = 0;
            chunk.bank = pass.out_turn;
        }
        if (chunk.tile.row > before.row) {
            chunk.row_offset += times(pass.out_row_pitch, chunk.rows);
            chunk.bank += chunk.rows;  // at most ROWS; after the last row tile it is not used
            if (chunk.bank >= ROWS) {
                chunk.bank -= ROWS;
                chunk.lap += pass.out_row_pitch;
            }
        }
    }
    measure_chunk(pass, chunk);
}

// [half][row / ROW_BANKS][row mod ROW_BANKS][column][channel block][word of the results]
typedef lanes_t arranged_t[2][BANK_ROWS][ROW_BANKS][CHUNK][TILE_BLOCKS][RESULT_WORDS];

// The results of one row and column as words: LANES values of VALUE_BITS in a word or, where results leave as int16,
// LANES values in RESULT_WORDS words, the lowest bits first.
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

// The words of a chunk that leave next: of several rows together, from ``row`` on. bank, lap, block_offset: as of a
// chunk.
struct place_t {
    int row, block, x, word;
    int bank, lap, block_offset;
};

inline place_t first_place(const chunk_t &chunk) {
#pragma HLS INLINE
    const place_t place = {0, 0, 0, 0, chunk.bank, chunk.lap, chunk.block_offset};
    return place;
}

// Rows that leave in the same cycle: to DDR one for each port, into a map buffer one for each bank of the chunk.
inline int leave_together(const pass_t &pass) {
#pragma HLS INLINE
    return writes_buffer(pass) ? ROW_BANKS : MAP_PORTS;
}

// False after the last.
inline bool next_place(const pass_t &pass, const chunk_t &chunk, place_t &place) {
#pragma HLS INLINE
    if (++place.word < pass.value_words) return true;
    place.word = 0;
    if (++place.x < chunk.columns) return true;
    place.x = 0;
    place.block_offset += pass.out_block_pitch;
    if (++place.block < chunk.blocks) return true;
    place.block = 0;
    place.block_offset = chunk.block_offset;
    place.row += leave_together(pass);
    place.bank += leave_together(pass);
    if (place.bank >= ROWS) {
        place.bank -= ROWS;
        place.lap += pass.out_row_pitch;
    }
    return place.row < chunk.rows;
}

// The words of one cycle, one of each row, into a map buffer.
inline void keep_words(const pass_t &pass, const chunk_t &chunk, const place_t &place, const lanes_t words[ROW_BANKS],
                       map_buffer_t to) {
#pragma HLS INLINE
    const int piece = pass.out_base + place.lap + place.block_offset + chunk.x + place.x;
    for (int bank = 0; bank < ROWS; ++bank) {
#pragma HLS UNROLL
        const bool wraps = bank < place.bank;
        const int next = bank - place.bank + (wraps ? ROWS : 0);
        if (next < ROW_BANKS && place.row + next < chunk.rows) {
            to[piece + row_in_bank(pass.out_row_pitch, wraps, bank, pass.out_turn)][bank] =
                words[minimum(next, ROW_BANKS - 1)];
        }
    }
}

// One phase: where ``fill``, takes the results of chunk ``in`` into half ``half`` of the buffer, SAVE_ROWS rows of a
// column a cycle; where ``empty``, sends chunk ``out`` from the other half to the ports or the map buffer. Ends when
// both are done.
inline void arrange_phase(const pass_t &pass, const chunk_t &in, bool fill, const chunk_t &out, bool empty, int half,
                          arranged_t buffer, hls::stream<results_t> &results, hls::stream<lanes_t> ports[MAP_PORTS],
                          map_buffer_t to) {
#pragma HLS INLINE off
    const int groups = groups_of(in.rows);  // at least 1: every tile gives a row
    int x = 0, group = 0;
    place_t place = first_place(out);
    SYSTOLIC_ENTER;
    while (fill || empty) {
        SYSTOLIC_PIPELINE(1, 4);
#pragma HLS LOOP_TRIPCOUNT min = 1 max = 4096
#pragma HLS DEPENDENCE variable = buffer type = inter false
        // Every bank is written in one place of the code and read in one: a tool cannot see that banks which are chosen
        // at run time differ.
        if (fill) {
            const results_t column = results.read();
            for (int bank = 0; bank < ROW_BANKS; ++bank) {
#pragma HLS UNROLL
                const int r = bank % SAVE_ROWS, row = group * SAVE_ROWS + r;
                if (row % ROW_BANKS == bank && row < in.rows) {
                    arrange_row(column.value[r], pass.value_words, buffer[half][row / ROW_BANKS][bank][x]);
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

static const int RESPONSES_OPEN = OUTSTANDING;  // bursts that may wait for DDR's response

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
        int row_offset = pass.out_base + chunk.row_offset + chunk.block_offset + chunk.column_offset +
                         times(pass.out_row_pitch, PORT);
        int address = row_offset;
        SYSTOLIC_ENTER;
        while (row < chunk.rows) {
            SYSTOLIC_PIPELINE(1, 3);
#pragma HLS LOOP_TRIPCOUNT min = 1 max = 4096
            if (word == 0) {
                if (open == RESPONSES_OPEN) maps.write_response();
                else ++open;
                maps.write_request(address, length);
            }
            maps.write(word_of(words.read()));
            if (++word == length) {
                word = 0;
                address += pass.out_block_pitch;
                if (++block == chunk.blocks) {
                    block = 0;
                    row += MAP_PORTS;
                    row_offset += MAP_PORTS * pass.out_row_pitch;
                    address = row_offset;
                }
            }
        }
        next_chunk(pass, chunk);
    }
    // The next pass may read what this one wrote: it must not start before DDR has answered all bursts.
    for (int i = 0; i < open; ++i) {
#pragma HLS LOOP_TRIPCOUNT min = 1 max = 16
        maps.write_response();
    }
}

#endif  // SYSTOLIC_SAVE_H
