// Saver, last part: results come column by column, but DDR wants rows. Process ``arrange`` writes the results of a
// *chunk*, up to CHUNK columns of a tile, into one half of a buffer, while the chunk before leaves the other half row
// by row: ping-pong, in one loop with II 1. Process ``write_rows``, one for each port, writes each piece of a row to
// DDR as one burst. Process ``plan_chunks`` counts the chunks ahead for both. Where maps are added, ``arrange`` adds them to
// what leaves (add.h).
#ifndef SYSTOLIC_SAVE_H
#define SYSTOLIC_SAVE_H

#include <hls_burst_maxi.h>
#include <hls_stream.h>

#include "instrument.h"
#include "map_buffer.h"
#include "pass.h"
#include "pool.h"
#include "types.h"

// Of a tile at most: a pool of stride 1 may give one row more than it has, an upsample so many rows for each.
static const int SAVED_ROWS = UPSCALE > 1 ? UPSCALE * ROWS : ROWS + 1;
static const int ROW_BANKS = SAVE_ROWS > MAP_PORTS ? SAVE_ROWS : MAP_PORTS;
static const int BANK_ROWS = (SAVED_ROWS + ROW_BANKS - 1) / ROW_BANKS;

static const int TILE_BLOCKS = (COLUMNS + LANES - 1) / LANES;  // channel blocks that a channel tile fills, or in part
static const bool HALF_BLOCKS = COLUMNS % LANES != 0;  // every second tile begins, and ends, in the middle of one
static const int RESULT_WORDS = 16 / VALUE_BITS;       // words that hold LANES int16 results

// Words of so many results of a row and a channel block: one each, or RESULT_WORDS where they leave as int16.
inline int result_words(const pass_t &pass, int columns) {
#pragma HLS INLINE
    return pass.value_words == 1 ? columns : columns * RESULT_WORDS;
}

// A chunk: up to CHUNK columns of a tile. Addresses are counted up, in words of the output map.
struct chunk_t {
    int16_t columns, rows;
    int8_t blocks;   // of channels
    int8_t odd;      // 1: its channel tile begins in the middle of a block
    int16_t bank;    // in a map buffer: the first row's bank
    int lap;         // in a map buffer: where the lap of that bank begins
    int row_offset;  // in DDR: of the first row; for read_added: in the map that is added
    int offset;      // of the first block and column within a row
};

// Where a chunk lies in the pass.
struct chunk_cursor_t {
    tile_t tile;
    int x, first_block;               // first column, first block
    int block_offset, column_offset;  // of these
};

// Where a map that is added lies in the map buffer that is not read, and where results go into one: how its rows are
// counted there. Both have as many words, and a sum takes the place of what was added.
inline int kept_pitch(const pass_t &pass) {
#pragma HLS INLINE
    return writes_buffer(pass) ? pass.out_row_pitch : pass.added_row_pitch;
}

// Ports that write, one more where maps are added: it writes the sums. After these, whoever reads what is added.
static const int SAVE_PORTS = MAP_PORTS + (ADDED_MAPS > 0 ? 1 : 0);
static const int CHUNK_READERS = MAP_PORTS + (ADDED_MAPS > 0 ? 2 : 0);

// Whether a port writes in this pass: those of maps, the one of sums, and who reads what is added.
inline bool takes_chunks(const pass_t &pass, int port) {
#pragma HLS INLINE
    if (port > MAP_PORTS) return adds_from_ddr(pass);
    return !writes_buffer(pass) && adds(pass) == (port == MAP_PORTS);
}

static inline void plan_chunks(pass_t pass, hls::stream<chunk_t> &chunks,
                               hls::stream<chunk_t> port_chunks[CHUNK_READERS]) {
    SYSTOLIC_PROCESS("plan_chunks");
    const int tile_pitch = times(pass.out_block_pitch, TILE_BLOCKS), chunk_words = result_words(pass, CHUNK);
    const int shared_pitch = tile_pitch - pass.out_block_pitch, lap_pitch = kept_pitch(pass);
    int added_row = 0;
    chunk_cursor_t at = {{0, 0, 0}, 0, 0, 0, 0};
    chunk_t chunk = {0, 0, 0, 0, int16_t(pass.out_turn), 0, 0, 0};
    SYSTOLIC_ENTER;
    for (int i = 0; i < pass.chunks; ++i) {
        SYSTOLIC_PIPELINE(TILE_CYCLES, 8);
#pragma HLS LOOP_TRIPCOUNT min = 1 max = 1024
        chunk.columns = minimum(CHUNK, pass.save_width - at.x);
        chunk.rows = rows_of_tile(pass, at.tile).saved;
        chunk.blocks = int8_t(minimum(TILE_BLOCKS, pass.out_blocks - at.first_block));
        chunk.odd = HALF_BLOCKS ? at.tile.channel & 1 : 0;
        chunk.offset = at.block_offset + at.column_offset;
        chunks.write(chunk);
        for (int port = 0; port < CHUNK_READERS; ++port) {
#pragma HLS UNROLL
            chunk_t port_chunk = chunk;
            if (port > MAP_PORTS) port_chunk.row_offset = added_row;
            if (takes_chunks(pass, port)) port_chunks[port].write(port_chunk);
        }
        at.x += CHUNK;
        at.column_offset += chunk_words;
        if (at.x >= pass.save_width) {
            const tile_t before = at.tile;
            next_tile(pass, at.tile);
            at.x = at.column_offset = 0;
            if (at.tile.channel < before.channel) at.first_block = at.block_offset = 0;
            if (at.tile.channel > before.channel) {
                const bool shared = HALF_BLOCKS && chunk.odd == 0;  // the next tile begins in its last block
                at.first_block += TILE_BLOCKS - (shared ? 1 : 0);
                at.block_offset += shared ? shared_pitch : tile_pitch;
            }
            if (at.tile.row < before.row) {
                chunk.row_offset = chunk.lap = added_row = 0;
                chunk.bank = pass.out_turn;
            }
            if (at.tile.row > before.row) {
                chunk.row_offset += times(pass.out_row_pitch, chunk.rows);
                const int turned = chunk.bank + chunk.rows;  // after the last row tile it is not used
                chunk.bank = bank_of(turned);
                chunk.lap += lap_words(turned, lap_pitch);
                if (ADDED_MAPS > 0) added_row += times(pass.added_row_pitch, chunk.rows);
            }
        }
    }
}

// [half][row / ROW_BANKS][row mod ROW_BANKS][column][channel block][word of the results]
typedef word_t arranged_t[2][BANK_ROWS][ROW_BANKS][CHUNK][TILE_BLOCKS][RESULT_WORDS];

// Result ``lane`` of a tile's blocks: half a block further where the tile begins in the middle of one.
inline result_t placed(const result_t values[COLUMNS], bool odd, int lane) {
#pragma HLS INLINE
    if (!HALF_BLOCKS) return values[lane];
    return odd ? values[maximum(lane - LANES / 2, 0)] : values[minimum(lane, COLUMNS - 1)];
}

// The results of one row and column, a word of each channel block: LANES values of VALUE_BITS or, where results leave
// as int16, LANES values in RESULT_WORDS words, the lowest bits first.
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
                const int wide = placed(values, odd, block * LANES + (word * LANES + l) / RESULT_WORDS);
                const int narrow = placed(values, odd, block * LANES + l);
                const int bit = VALUE_BITS * ((word * LANES + l) % RESULT_WORDS);
                lanes.lane[l] = value_t(value_words == 1 ? narrow : wide >> bit);
            }
            words[block][word] = word_of(lanes);
        }
    }
}

// Which halves of a word are the tile's, of block ``block`` of its blocks and word ``word`` of RESULT_WORDS. Where
// results leave as int16 a half of the block is whole words.
inline halves_t own_halves(const pass_t &pass, const chunk_t &chunk, int block, int word) {
#pragma HLS INLINE
    const bool lower = !HALF_BLOCKS || chunk.odd == 0 || block > 0;
    const bool upper = !HALF_BLOCKS || chunk.odd != 0 || block < TILE_BLOCKS - 1;
    const bool whole = word < RESULT_WORDS / 2 ? lower : upper;
    halves_t out;
    out.lower = pass.value_words == 1 ? lower : whole;
    out.upper = pass.value_words == 1 ? upper : whole;
    return out;
}

// The words of a chunk that leave next: of several rows together, from ``row`` on. block_offset: from the chunk's first
// block to this one, in a map buffer.
struct place_t {
    int row, block, x, word;
    int block_offset;
};

// Rows that leave in the same cycle: to DDR one for each port, into a map buffer one for each bank of the chunk, one
// where a map is added.
inline int leave_together(const pass_t &pass) {
#pragma HLS INLINE
    return adds(pass) ? 1 : writes_buffer(pass) ? ROW_BANKS : MAP_PORTS;
}

// False after the last. Every count is compared with its last value, beside the others and not after them.
inline bool next_place(const pass_t &pass, const chunk_t &chunk, int together, place_t &place) {
#pragma HLS INLINE
    const bool last_word = place.word == pass.value_words - 1;
    const bool last_column = last_word && place.x == chunk.columns - 1;
    const bool last_block = last_column && place.block == chunk.blocks - 1;
    const bool last_row = last_block && place.row >= chunk.rows - together;
    place.word = last_word ? 0 : place.word + 1;
    if (last_word) place.x = last_column ? 0 : place.x + 1;
    if (last_column) {
        place.block = last_block ? 0 : place.block + 1;
        place.block_offset = last_block ? 0 : place.block_offset + pass.out_block_pitch;
    }
    if (last_block) place.row += together;
    return !last_row;
}

// Where the words that leave lie in a map buffer: the bank of the first of their rows, and the address that they would
// have there without padding above (row_in_bank).
struct kept_place_t {
    int bank, address;
};

inline kept_place_t kept_place(const pass_t &pass, const chunk_t &chunk, const place_t &place) {
#pragma HLS INLINE
    const int turned = chunk.bank + place.row;
    const int base = writes_buffer(pass) ? pass.out_base : pass.added_base;
    const int lap = chunk.lap + lap_words(turned, kept_pitch(pass));
    kept_place_t out;
    out.bank = bank_of(turned);
    out.address = base + chunk.offset + place.block_offset + place.x + lap;
    return out;
}

// The words of one cycle, one of each row, into a map buffer. A half that is another tile's is read and written back: in
// this pass nobody else reads that buffer, and a word comes once in a phase.
inline void keep_words(const pass_t &pass, const chunk_t &chunk, const place_t &place, const kept_place_t &at,
                       int together, const word_t words[ROW_BANKS], map_buffer_t to) {
#pragma HLS INLINE
    const halves_t own = own_halves(pass, chunk, place.block, place.word);
    for (int bank = 0; bank < ROWS; ++bank) {
#pragma HLS UNROLL
        const bool wraps = bank < at.bank;
        const int next = bank - at.bank + (wraps ? ROWS : 0);
        if (next < together && place.row + next < chunk.rows) {
            word_t &kept = to[at.address + row_in_bank(pass.out_row_pitch, wraps, bank, pass.out_turn)][bank];
            const word_t word = words[minimum(next, ROW_BANKS - 1)];
            kept = HALF_BLOCKS ? with_halves(kept, word, own) : word;
        }
    }
}

// What leaves of a map to which none is added. Engines that add maps have another one of these, in add.h.
inline word_t leaving_word(const pass_t &, const kept_place_t &, const map_buffer_t, const word_t &result) {
#pragma HLS INLINE
    return result;
}

// Of one phase; products of an addition take some more.
static const int ARRANGE_STAGES = ADDED_MAPS > 0 ? 15 : 7;

// One phase: where ``fill``, takes the results of chunk ``in`` into half ``half`` of the buffer, SAVE_ROWS rows of a
// column a cycle; where ``empty``, sends chunk ``out`` from the other half to the ports or the map buffer. Ends when
// both are done. added: of engines that add maps, the words that come from DDR.
template <typename... ADDED>
void arrange_phase(const pass_t &pass, const chunk_t &in, bool fill, const chunk_t &out, bool empty, int half,
                   arranged_t buffer, hls::stream<results_t> &results, hls::stream<word_t> ports[SAVE_PORTS],
                   map_buffer_t to, ADDED &...added) {
#pragma HLS INLINE off
    const int last_group = groups_of(in.rows) - 1, last_column = in.columns - 1;  // every tile gives a row
    const int together = leave_together(pass);
    int x = 0, group = 0;
    place_t place = {0, 0, 0, 0, 0};
    SYSTOLIC_ENTER;
    while (fill || empty) {
        SYSTOLIC_PIPELINE(1, ARRANGE_STAGES);
#pragma HLS LOOP_TRIPCOUNT min = 1 max = 4096
#pragma HLS DEPENDENCE variable = buffer type = inter false
#pragma HLS DEPENDENCE variable = to type = inter false
        // Every bank is written in one place of the code and read in one: a tool cannot see that banks which are chosen
        // at run time differ.
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
        if (empty) {
            const kept_place_t at = kept_place(pass, out, place);
            word_t banks[ROW_BANKS], words[ROW_BANKS];
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
                const word_t word = banks[(first + r) % ROW_BANKS];
                words[r] = r == 0 ? leaving_word(pass, at, to, word, added...) : word;
            }
            for (int port = 0; port < SAVE_PORTS; ++port) {
#pragma HLS UNROLL
                const int row = port % MAP_PORTS;
                if (takes_chunks(pass, port) && place.row + row < out.rows) ports[port].write(words[row]);
            }
            if (writes_buffer(pass)) keep_words(pass, out, place, at, together, words, to);
            empty = next_place(pass, out, together, place);
        }
    }
}

// Every chunk of a pass, one phase after the other.
template <typename... ADDED>
void arrange_chunks(const pass_t &pass, hls::stream<chunk_t> &chunks, hls::stream<results_t> &results,
                    hls::stream<word_t> ports[SAVE_PORTS], map_buffer_t to, arranged_t buffer, ADDED &...added) {
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

// Of engines that add no maps; those that do have arrange_and_add (add.h).
static inline void arrange(pass_t pass, hls::stream<chunk_t> &chunks, hls::stream<results_t> &results,
                           hls::stream<word_t> ports[SAVE_PORTS], map_buffer_t to) {
    SYSTOLIC_PROCESS("arrange");
    // lint: allow(static-local) a memory of its own, filled anew by every pass; on the stack it is too large
    static arranged_t buffer;
#pragma HLS ARRAY_PARTITION variable = buffer complete dim = 3
#pragma HLS ARRAY_PARTITION variable = buffer complete dim = 5
#pragma HLS ARRAY_PARTITION variable = buffer complete dim = 6
    SYSTOLIC_PRAGMA(HLS BIND_STORAGE variable = buffer type = ram_s2p impl = ARRANGED_MEMORY)
    arrange_chunks(pass, chunks, results, ports, to, buffer);
}

// Bursts that are requested together. Their answers are awaited after the data of those that follow, so that DDR's
// latency is hidden and at most OUTSTANDING are open.
static const int BURSTS_TOGETHER = OUTSTANDING / 2;

// Awaits DDR's answers to so many bursts.
inline void await_answers(int bursts, hls::burst_maxi<word_t> &maps) {
#pragma HLS INLINE
    SYSTOLIC_ENTER;
    for (int i = 0; i < bursts; ++i) {
        SYSTOLIC_PIPELINE(1, 5);
#pragma HLS LOOP_TRIPCOUNT min = 1 max = 16
        maps.write_response();
    }
}

// Where the words of a chunk are that a port writes: in the bursts of its blocks.
struct written_t {
    int word, block;
};

// Writes a word. Where it may be of two channel tiles, the half of the other one stays as it is in DDR. Only arrays with
// HALF_BLOCKS have that.
template <bool HALVES>
struct writer_t {
    static void write(const pass_t &, const chunk_t &, int, written_t &, const word_t &word,
                      hls::burst_maxi<word_t> &maps) {
#pragma HLS INLINE
        maps.write(word);
    }
};
template <>
struct writer_t<true> {
    template <typename PORT>
    static void write(const pass_t &pass, const chunk_t &chunk, int length, written_t &at, const word_t &word,
                      PORT &maps) {
#pragma HLS INLINE
        maps.write(word, bytes_of(own_halves(pass, chunk, at.block, at.word % RESULT_WORDS)));
        const bool last = at.word == length - 1;
        at.word = last ? 0 : at.word + 1;
        if (last) at.block = at.block == chunk.blocks - 1 ? 0 : at.block + 1;
    }
};

// Requests, data and answers each have a loop of their own: in one loop a tool may order the next request behind the
// answer to the last. The ports take the rows of a chunk in turn; the one after them takes all rows, of sums.
template <int PORT>
void write_rows(pass_t pass, hls::stream<chunk_t> &chunks, hls::stream<word_t> &words, hls::burst_maxi<word_t> maps) {
    SYSTOLIC_PROCESS("write_rows");
    const int first_row = PORT % MAP_PORTS, rows = PORT < MAP_PORTS ? MAP_PORTS : 1;  // and from one to the next
    const int port_offset = pass.out_base + times(pass.out_row_pitch, first_row);
    const int row_step = PORT < MAP_PORTS ? MAP_PORTS * pass.out_row_pitch : pass.out_row_pitch;
    const int count = takes_chunks(pass, PORT) ? pass.chunks : 0;
    int unanswered = 0;
    for (int i = 0; i < count; ++i) {
#pragma HLS LOOP_TRIPCOUNT min = 1 max = 1024
        const chunk_t chunk = chunks.read();
        const int length = result_words(pass, chunk.columns), last_block = chunk.blocks - 1;
        int row = first_row, block = 0;
        written_t written = {0, 0};
        int row_offset = port_offset + chunk.row_offset + chunk.offset, address = row_offset;
        while (row < chunk.rows) {
#pragma HLS LOOP_TRIPCOUNT min = 1 max = 8
            int requested = 0, requested_words = 0;
            SYSTOLIC_ENTER;
            while (requested != BURSTS_TOGETHER && row < chunk.rows) {
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
                writer_t<HALF_BLOCKS>::write(pass, chunk, length, written, words.read(), maps);
            }
            await_answers(unanswered, maps);
            unanswered = requested;
        }
    }
    // The next pass may read what this one wrote: it must not start before DDR has answered all bursts.
    await_answers(unanswered, maps);
}

#endif  // SYSTOLIC_SAVE_H
