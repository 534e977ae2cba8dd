// Map buffers: maps that stay on chip between two layers, the one that writes them and the next one. A pass reads one
// buffer and writes the other, so that each has one writer and one reader.
#ifndef SYSTOLIC_MAP_BUFFER_H
#define SYSTOLIC_MAP_BUFFER_H

#include <hls_burst_maxi.h>
#include <hls_stream.h>

#include "instrument.h"
#include "pass.h"
#include "read.h"
#include "save.h"
#include "types.h"

// Of the MAP_PORTS banks of a buffer, bank b is what port b of the readers reads and port b of the writers writes:
// row y lies in bank (y + turn) mod MAP_PORTS, where the reader's stride is 1 (or there is one bank) and turn is its
// padding. In a bank the rows lie as in DDR: [row][block][column] of words.
typedef lanes_t map_bank_t[MAP_DEPTH > 0 ? MAP_DEPTH : 1];

template <int PORT>
void read_bank(pass_t pass, const map_bank_t bank, hls::stream<lanes_t> &rows) {
    SYSTOLIC_PROCESS("read_rows");
    const int turn = pass.pad_top % MAP_PORTS;
    row_cursor_t at = {PORT, 0, 0};
    int word = 0;
    SYSTOLIC_ENTER;
    while (at.q < row_strides(pass)) {
        SYSTOLIC_PIPELINE(1, 4);
#pragma HLS LOOP_TRIPCOUNT min=1 max=100000
        const int row = padded_row(pass, at.q, at.phase);
        const bool exists = row_exists(pass, row);
        if (exists) {
            const int y = row - pass.pad_top;
            rows.write(bank[pass.in_base + (y + turn) / MAP_PORTS * pass.in_row_pitch + at.burst * pass.in_block_pitch + word]);
        }
        // Padding has no words: a cycle a piece to step over it.
        if (!exists || ++word == pass.burst_words) {
            word = 0;
            next_burst(pass, at);
        }
    }
}

template <int PORT>
void write_bank(pass_t pass, hls::stream<lanes_t> &words, map_bank_t bank) {
    SYSTOLIC_PROCESS("write_rows");
    const int chunks = count_chunks(pass);
    chunk_t chunk = first_chunk(pass);
    for (int i = 0; i < chunks; ++i) {
#pragma HLS LOOP_TRIPCOUNT min=1 max=1024
        piece_t at = {first_row(pass, chunk, PORT), 0, 0};
        const int count = words_of(chunk, at.row, chunk.columns);
        SYSTOLIC_ENTER;
        for (int w = 0; w < count; ++w) {
            SYSTOLIC_PIPELINE(1, 3);
#pragma HLS LOOP_TRIPCOUNT min=1 max=4096
            const int row = (chunk.y + at.row + pass.out_turn) / MAP_PORTS;
            const int block = chunk.tile.channel * TILE_BLOCKS + at.block;
            bank[pass.out_base + row * pass.out_row_pitch + block * pass.out_block_pitch + chunk.x + at.word] = words.read();
            next_word(chunk, chunk.columns, at);
        }
        next_chunk(pass, chunk);
    }
}

// The map's reader and writer of a port, from DDR or from a buffer.
template <int PORT>
void read_map(pass_t pass, hls::burst_maxi<word_t> maps, const map_bank_t bank, hls::stream<lanes_t> &rows) {
    if (pass.in_buffer != 0) read_bank<PORT>(pass, bank, rows);
    else read_rows<PORT>(pass, maps, rows);
}

template <int PORT>
void write_map(pass_t pass, hls::stream<lanes_t> &words, hls::burst_maxi<word_t> maps, map_bank_t bank) {
    if (pass.out_buffer != 0) write_bank<PORT>(pass, words, bank);
    else write_rows<PORT>(pass, words, maps);
}

#endif  // SYSTOLIC_MAP_BUFFER_H
