// tiny on a 6×8×8 systolic array
// Top function: it runs the layer program, one DATAFLOW region per pass. Generated; the processes are fixed headers.
//   PYNQ-Z2, array 6×8×8, target clock 100 MHz
//   conv1: 16×16×16 in 3 row tile(s) × 2 channel tile(s) × 1 column tile(s), 6 cycles per position
//   kernel columns × channels unrolled over the lanes; weights resident: 12 steps in the buffer, read once per pass; the next rows are loaded during computation; max pool 2/2 fused; the output stays on chip
//   conv2: 14×8×8 in 2 row tile(s) × 2 channel tile(s) × 1 column tile(s), 2 cycles per position
//   input channels unrolled over the lanes; weights resident: 4 steps in the buffer, read once per pass; the next rows are loaded during computation
//   rows: 12 × 512 words of 64 bits in 12 BRAM36
//   weights: 8 × 512 words of 64 bits in 8 BRAM36
//   kept sums: 1 × 512 words of 256 bits in 4 BRAM36
//   requantisers: 8 × 2 words of 72 bits in 384 LUTRAM
//   map buffers: 12 × 32 words of 64 bits in 528 LUTRAM
//   arranged: 4 × 64 words of 64 bits in 352 LUTRAM
//   requantiser products: 8 × 32 × 16 bits in 16 DSP
#include "top.h"

#include "feed.h"
#include "load.h"
#include "map_buffer.h"
#include "pe_array.h"
#include "pool.h"
#include "read.h"
#include "requantise.h"
#include "save.h"

#ifndef __SYNTHESIS__
const word_t (*map_buffers[2])[ROWS];
#endif

// Loader (read_rows, load, read_weights, feed_weights) → PE array (pe_row) → Saver (pool, requantise, arrange,
// write_rows). plan_tiles and plan_chunks compute the tiles and chunks for the Saver in advance.
// One pass: a DATAFLOW region whose processes run concurrently, connected by FIFOs. ``from`` and ``to`` are the map
// buffers that it reads and writes.
static void run_pass(int index, pass_t pass, pass_t next, weight_plan_t plan,
                     hls::burst_maxi<word_t> maps_read_0, hls::burst_maxi<word_t> maps_write_0,
                     hls::burst_maxi<word_t> maps_read_1, hls::burst_maxi<word_t> maps_write_1,
                     hls::burst_maxi<weight_word_t> weights_0,
                     row_buffer_t row_buffer, weight_buffer_t weight_buffer, const map_buffer_t from, map_buffer_t to,
                     hls::burst_maxi<requantiser_t> requantisers) {
    SYSTOLIC_DATAFLOW(index);
    // The caller changes these only while the region is idle, so that processes read them from registers instead of
    // FIFOs.
#pragma HLS STABLE variable=pass
#pragma HLS STABLE variable=next
#pragma HLS STABLE variable=plan
    hls::stream<word_t> rows[MAP_PORTS], saved[SAVE_PORTS];
    hls::stream<weight_word_t> beats[WEIGHT_PORTS];
    hls::stream<row_activations_t> activations[ROWS];
    hls::stream<weights_t> weights[ROWS];
    hls::stream<positions_t> sums[ROWS];
    hls::stream<pool_tile_t> tiles;
    hls::stream<chunk_t> chunks, port_chunks[CHUNK_READERS];
    hls::stream<group_t> groups;
    hls::stream<results_t> results;
    SYSTOLIC_FIFO(rows, 64, 32, srl);
    SYSTOLIC_FIFO(beats, 64, 16, srl);
    SYSTOLIC_FIFO(saved, 64, 16, srl);
    SYSTOLIC_FIFO(activations, 64, 19, srl);
    SYSTOLIC_FIFO(weights, 512, 4, srl);
    SYSTOLIC_FIFO(sums, 256, 19, srl);
    SYSTOLIC_FIFO(tiles, 113, 4, srl);
    SYSTOLIC_FIFO(chunks, 160, 4, srl);
    SYSTOLIC_FIFO(port_chunks, 160, 4, srl);
    SYSTOLIC_FIFO(groups, 273, 4, srl);
    SYSTOLIC_FIFO(results, 128, 4, srl);
    read_rows<0>(pass, maps_read_0, rows[0]);
    read_rows<1>(pass, maps_read_1, rows[1]);
    load(pass, row_buffer, from, rows, activations);
    read_weights(pass, next, plan, weights_0, beats[0]);
    feed_weights(pass, plan, weight_buffer, beats, weights[0]);
    pe_row(pass, activations[0], weights[0], weights[1], sums[0]);
    pe_row(pass, activations[1], weights[1], weights[2], sums[1]);
    pe_row(pass, activations[2], weights[2], weights[3], sums[2]);
    pe_row(pass, activations[3], weights[3], weights[4], sums[3]);
    pe_row(pass, activations[4], weights[4], weights[5], sums[4]);
    last_pe_row(pass, activations[5], weights[5], sums[5]);
    plan_tiles(pass, tiles);
    pool(pass, tiles, sums, groups);
    requantise(pass, requantisers, groups, results);
    plan_chunks(pass, chunks, port_chunks);
    arrange(pass, chunks, results, saved, to);
    write_rows<0>(pass, port_chunks[0], saved[0], maps_write_0);
    write_rows<1>(pass, port_chunks[1], saved[1], maps_write_1);
}

// Read the words of pass ``index`` of the layer program.
static void fetch_pass(hls::burst_maxi<uint32_t> program, int index, uint32_t words[PASS_WORDS]) {
    program.read_request(index * PASS_WORDS, PASS_WORDS);
    SYSTOLIC_SEQUENTIAL(REQUEST_STAGES);
    SYSTOLIC_ENTER;
    for (int w = 0; w < PASS_WORDS; ++w) {
        SYSTOLIC_PIPELINE(1, 3);
        words[w] = program.read();
    }
}

void systolic_top(
    hls::burst_maxi<word_t> maps_read_0, hls::burst_maxi<word_t> maps_write_0,
    hls::burst_maxi<word_t> maps_read_1, hls::burst_maxi<word_t> maps_write_1,
    hls::burst_maxi<weight_word_t> weights_0,
    // lint: allow(reserved-name) Vitis HLS names its registers program_r_1 and program_r_2; the driver finds them
    hls::burst_maxi<requantiser_t> requantisers, hls::burst_maxi<uint32_t> program,
    uint32_t first, uint32_t count, volatile uint32_t *current) {
#pragma HLS INTERFACE mode=m_axi port=maps_read_0 bundle=maps_0 offset=slave depth=512 latency=11 num_read_outstanding=8 max_read_burst_length=64
#pragma HLS INTERFACE mode=m_axi port=maps_write_0 bundle=maps_0 offset=slave depth=512 latency=11 num_write_outstanding=8 max_write_burst_length=64
#pragma HLS INTERFACE mode=m_axi port=maps_read_1 bundle=maps_1 offset=slave depth=512 latency=11 num_read_outstanding=8 max_read_burst_length=64
#pragma HLS INTERFACE mode=m_axi port=maps_write_1 bundle=maps_1 offset=slave depth=512 latency=11 num_write_outstanding=8 max_write_burst_length=64
#pragma HLS INTERFACE mode=m_axi port=weights_0 bundle=weights_0 offset=slave depth=128 latency=11 num_read_outstanding=8 max_read_burst_length=64
#pragma HLS INTERFACE mode=m_axi port=requantisers bundle=program offset=slave depth=32 latency=11 num_read_outstanding=8 max_read_burst_length=64
#pragma HLS INTERFACE mode=m_axi port=program bundle=layers offset=slave depth=128 latency=11 num_read_outstanding=8 max_read_burst_length=64
#pragma HLS INTERFACE mode=s_axilite port=first
#pragma HLS INTERFACE mode=s_axilite port=count
#pragma HLS INTERFACE mode=s_axilite port=current
#pragma HLS INTERFACE mode=s_axilite port=return
    // Memories that must survive a pass are declared here, and not in their processes, so that every call of the region
    // uses the same ones.
    // lint: allow(static-local) every pass fills this memory anew; it would be too large for the stack
    static row_buffer_t row_buffer;
#pragma HLS ARRAY_PARTITION variable=row_buffer complete dim=2
#pragma HLS ARRAY_PARTITION variable=row_buffer complete dim=3
    SYSTOLIC_PRAGMA(HLS BIND_STORAGE variable = row_buffer type = ram_s2p impl = ROW_MEMORY)
    // lint: allow(static-local) at the end of a pass, this memory holds the first weight tile of the next pass
    static weight_buffer_t weight_buffer;
#pragma HLS ARRAY_PARTITION variable=weight_buffer complete dim=2
    SYSTOLIC_PRAGMA(HLS BIND_STORAGE variable = weight_buffer type = ram_s2p impl = WEIGHT_MEMORY)
    // lint: allow(static-local) this memory keeps a map from the pass that writes it to the passes that read it
    static map_buffer_t map_buffer_1;
#pragma HLS ARRAY_PARTITION variable=map_buffer_1 complete dim=2
    SYSTOLIC_PRAGMA(HLS BIND_STORAGE variable = map_buffer_1 type = ram_s2p impl = MAP_MEMORY)
    // lint: allow(static-local) this memory keeps a map from the pass that writes it to the passes that read it
    static map_buffer_t map_buffer_2;
#pragma HLS ARRAY_PARTITION variable=map_buffer_2 complete dim=2
    SYSTOLIC_PRAGMA(HLS BIND_STORAGE variable = map_buffer_2 type = ram_s2p impl = MAP_MEMORY)
    // One region serves both directions, because the two buffers are selected before it starts. A single call cannot take
    // both buffers: load and arrange_and_add would read the same one, and a region allows one reader. The synthesis
    // report must show one instance of run_pass; two would need twice the DSPs.
#pragma HLS ALLOCATION function instances=run_pass limit=1
#ifndef __SYNTHESIS__
    map_buffers[0] = map_buffer_1;
    map_buffers[1] = map_buffer_2;
#endif
    // In registers, so that decode_pass takes no cycle. A memory of two ports would take PASS_WORDS / 2.
    uint32_t words[PASS_WORDS];
#pragma HLS ARRAY_PARTITION variable=words complete
    fetch_pass(program, first, words);
    pass_t pass = decode_pass(words);
    for (uint32_t i = 0; i < count; ++i) {
#pragma HLS LOOP_TRIPCOUNT min=1 max=2
        const bool last = i + 1 == count;
        // The program counter, for a host whose wait times out. It is volatile, so that every value is written.
        *current = first + i;
        pass_t next = pass;
        if (!last) {
            fetch_pass(program, first + i + 1, words);
            next = decode_pass(words);
        }
        if (pass.in_buffer == 2 || pass.out_buffer == 1)
        run_pass(first + i, pass, next, plan_weights(pass, next, i == 0, last),
                 maps_read_0, maps_write_0,
                 maps_read_1, maps_write_1,
                 weights_0,
                 row_buffer, weight_buffer, map_buffer_2, map_buffer_1,
                 requantisers);
        else
        // lint: allow(dataflow-call-sites) every pass fills its processes' memories anew, so both calls may share them
        run_pass(first + i, pass, next, plan_weights(pass, next, i == 0, last),
                 maps_read_0, maps_write_0,
                 maps_read_1, maps_write_1,
                 weights_0,
                 row_buffer, weight_buffer, map_buffer_1, map_buffer_2,
                 requantisers);
#ifndef __SYNTHESIS__
        after_pass(first + i);
#endif
        pass = next;
    }
}
