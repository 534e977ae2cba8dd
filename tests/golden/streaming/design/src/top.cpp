// small as a streaming pipeline
// Top function: each layer has its own hardware, and all layers work concurrently. Generated; the blocks are fixed
// headers. A process handles one frame after the other and keeps no data between frames. So a frame's output is
// complete even if no frame follows. With frames = 1 and AUTO_RESTART, the host can send each frame when it is
// available.
//   Ultra96-V2, target clock 300 MHz
//   at best a frame every 13,936 cycles; the slowest block is first_window (closed formula)
//   input: one value a cycle, 1,539 cycles per frame
//   first_window: one value a cycle, 13,936 cycles per frame
//   first: simd 9, 12,320 cycles per frame
//   half: one value a cycle, 4,101 cycles per frame
//   sums: simd 4, 9,248 cycles per frame
//   sums_out: one value a cycle, 4,611 cycles per frame
#include "top.h"

#include "dma.h"
#include "matrix_vector.h"
#include "max_pool.h"
#include "tap.h"
#include "width.h"
#include "window.h"
#include "constants.h"

// 3×16×32 pixels from the DMA, 1 values per cycle
static void input_process(int frames,
                          hls::stream<beat_t<8> > &in,
                          hls::stream<word<integer<8, false>, 1> > &out) {
    SYSTOLIC_PROCESS("input");
    for (int frame = 0; frame < frames; ++frame) {
#pragma HLS LOOP_TRIPCOUNT min=1 max=16
        unpack_beats<8, 1, 1536, integer<8, false>>(1, in, out);
    }
}

// 3×3 window, stride 1: 1 channels of a tap per cycle
static void first_window_process(int frames,
                                 hls::stream<word<integer<8, false>, 1> > &in,
                                 hls::stream<word<integer<8, false>, 1> > &out) {
    SYSTOLIC_PROCESS("first_window");
    for (int frame = 0; frame < frames; ++frame) {
#pragma HLS LOOP_TRIPCOUNT min=1 max=16
        window_default<1, 3, 16, 32, 3, 3, 1, 1, 1, 1, 1, 1, false, RAM_AUTO>(1, in, out);
    }
}

// words of 1 values into words of 9
static void width_to_first_process(int frames,
                                   hls::stream<word<integer<8, false>, 1> > &in,
                                   hls::stream<word<integer<8, false>, 9> > &out) {
    SYSTOLIC_PROCESS("width_to_first");
    for (int frame = 0; frame < frames; ++frame) {
#pragma HLS LOOP_TRIPCOUNT min=1 max=16
        convert_width<1, 9, 13824>(1, in, out);
    }
}

// first: 216 weights, PE 1, SIMD 9, 1 pixel(s) per weight, multipliers: dsp, weights embedded
static void first_process(int frames,
                          hls::stream<word<integer<8, false>, 9> > &in,
                          hls::stream<word<integer<4, false>, 1> > &out) {
    SYSTOLIC_PROCESS("first");
    for (int frame = 0; frame < frames; ++frame) {
#pragma HLS LOOP_TRIPCOUNT min=1 max=16
        matrix_vector<512, 27, 8, 9, 1, 1, narrow_t<4>, uint_t<8>, 16, DSP48E2>(1, in, out, first_weights, first_activation);
    }
}

// 2×2 max pool, stride 2
static void half_process(int frames,
                         hls::stream<word<integer<4, false>, 1> > &in,
                         hls::stream<word<integer<4, false>, 1> > &out) {
    SYSTOLIC_PROCESS("half");
    for (int frame = 0; frame < frames; ++frame) {
#pragma HLS LOOP_TRIPCOUNT min=1 max=16
        max_pool<1, 1, 8, 16, 32, 2, 2, 2, 0, 0, 0, 0, RAM_AUTO>(1, in, out);
    }
}

// words of 1 values into words of 4
static void width_to_sums_process(int frames,
                                  hls::stream<word<integer<4, false>, 1> > &in,
                                  hls::stream<word<integer<4, false>, 4> > &out) {
    SYSTOLIC_PROCESS("width_to_sums");
    for (int frame = 0; frame < frames; ++frame) {
#pragma HLS LOOP_TRIPCOUNT min=1 max=16
        convert_width<1, 4, 1024>(1, in, out);
    }
}

// sums: 288 weights, PE 1, SIMD 4, 1 pixel(s) per weight, multipliers: dsp, weights embedded
static void sums_process(int frames,
                         hls::stream<word<integer<4, false>, 4> > &in,
                         hls::stream<word<integer<16, true>, 1> > &out) {
    SYSTOLIC_PROCESS("sums");
    for (int frame = 0; frame < frames; ++frame) {
#pragma HLS LOOP_TRIPCOUNT min=1 max=16
        matrix_vector<128, 8, 36, 4, 1, 1, narrow_t<4>, uint_t<4>, 11, DSP48E2>(1, in, out, sums_weights, sums_activation);
    }
}

// sums_out to the DMA, 2 byte(s) per value
static void sums_out_process(int frames,
                             hls::stream<word<integer<16, true>, 1> > &in,
                             hls::stream<beat_t<8> > &out) {
    SYSTOLIC_PROCESS("sums_out");
    for (int frame = 0; frame < frames; ++frame) {
#pragma HLS LOOP_TRIPCOUNT min=1 max=16
        pack_beats<8, 2, 1, 4608, true, integer<16, true>>(1, in, out);
    }
}

// lint: allow(reserved-name) Vitis HLS names the ports in_r and out_r; build_vivado.tcl looks for them
void streaming_top(hls::stream<beat_t<IN_BEAT> > &in, hls::stream<beat_t<OUT_BEAT> > &out,
                   int frames) {
#pragma HLS INTERFACE mode=axis port=in
#pragma HLS INTERFACE mode=axis port=out
#pragma HLS INTERFACE mode=s_axilite port=frames
#pragma HLS INTERFACE mode=s_axilite port=return
    SYSTOLIC_DATAFLOW(0);
    hls::stream<word<integer<8, false>, 1> > from_input;
    hls::stream<word<integer<8, false>, 1> > from_first_window;
    hls::stream<word<integer<8, false>, 9> > to_first;
    hls::stream<word<integer<4, false>, 1> > from_first;
    hls::stream<word<integer<4, false>, 1> > from_half;
    hls::stream<word<integer<4, false>, 4> > to_sums;
    hls::stream<word<integer<16, true>, 1> > from_sums;
    SYSTOLIC_FIFO(from_input, 8, 2, srl);
    SYSTOLIC_FIFO(from_first_window, 8, 2, srl);
    SYSTOLIC_FIFO(to_first, 72, 2, srl);
    SYSTOLIC_FIFO(from_first, 4, 2, srl);
    SYSTOLIC_FIFO(from_half, 4, 2, srl);
    SYSTOLIC_FIFO(to_sums, 16, 2, srl);
    SYSTOLIC_FIFO(from_sums, 16, 2, srl);
#ifndef __SYNTHESIS__
    SYSTOLIC_STREAM(in, 2);
    SYSTOLIC_STREAM(out, 2);
    dma_read(frames, in);
#endif
    input_process(frames, in, from_input);
    first_window_process(frames, from_input, from_first_window);
    width_to_first_process(frames, from_first_window, to_first);
    first_process(frames, to_first, from_first);
    SYSTOLIC_TAP(0, from_first);
    half_process(frames, from_first, from_half);
    SYSTOLIC_TAP(1, from_half);
    width_to_sums_process(frames, from_half, to_sums);
    sums_process(frames, to_sums, from_sums);
    SYSTOLIC_TAP(2, from_sums);
    sums_out_process(frames, from_sums, out);
#ifndef __SYNTHESIS__
    dma_write(frames, out);
#endif
}
