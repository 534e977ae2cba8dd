// Every block of a streaming pipeline as a function of its own, for a check of what its loops reach.
#include "activate.h"
#include "concat.h"
#include "discard.h"
#include "dma.h"
#include "down_sample.h"
#include "duplicate.h"
#include "elementwise.h"
#include "global_pool.h"
#include "label_select.h"
#include "matrix_vector.h"
#include "matrix_vector_resident.h"
#include "max_pool.h"
#include "pad.h"
#include "pixel_pad.h"
#include "reorg.h"
#include "resize.h"
#include "split.h"
#include "upsample.h"
#include "vector_vector.h"
#include "weights.h"
#include "width.h"
#include "window.h"
#include "window_pool.h"
typedef word<ap_int<4>, 2> pair_t;
typedef hls::stream<pair_t> pairs;
void window_default_block(int frames, pairs &in, pairs &out) {
    window_default<2, 4, 13, 20, 3, 3, 1, 1, 1, 1, 1, 1, false>(frames, in, out);
}
void window_depthwise_block(int frames, pairs &in, pairs &out) {
    window_default<2, 4, 13, 20, 3, 3, 2, 1, 1, 1, 1, 1, true>(frames, in, out);
}
void window_parallel_block(int frames, pairs &in, hls::stream<word<ap_int<4>, 18>> &out) {
    window_parallel<1, 2, 8, 160, 320, 3, 3, 1, 1, 1, 1, 1, 1, RAM_BRAM>(frames, in, out);
}
void window_parallel_s2_block(int frames, pairs &in, hls::stream<word<ap_int<4>, 18>> &out) {
    window_parallel<1, 2, 8, 160, 320, 3, 3, 2, 1, 1, 1, 1, 1, RAM_BRAM>(frames, in, out);
}
void window_parallel_p2_block(int frames, hls::stream<word<ap_int<4>, 4>> &in, hls::stream<word<ap_int<4>, 36>> &out) {
    window_parallel<2, 2, 8, 160, 320, 3, 3, 1, 1, 1, 1, 1, 1, RAM_BRAM>(frames, in, out);
}
void max_pool_block(int frames, hls::stream<word<ap_uint<4>, 2>> &in, hls::stream<word<ap_uint<4>, 2>> &out) {
    max_pool<1, 2, 4, 160, 320, 2, 2, 0, 0, 0, 0>(frames, in, out);
}
void max_pool3_block(int frames, hls::stream<word<ap_uint<4>, 2>> &in, hls::stream<word<ap_uint<4>, 2>> &out) {
    max_pool<1, 2, 4, 160, 320, 3, 1, 1, 1, 1, 1>(frames, in, out);
}
void convert_channels_block(int frames, pairs &in, pairs &out) { convert_channels<2, 2, 4, 6, 30>(frames, in, out); }
void convert_width_block(int frames, hls::stream<word<ap_int<4>, 6>> &in, hls::stream<word<ap_int<4>, 4>> &out) {
    convert_width<6, 4, 400>(frames, in, out);
}
void convert_up_block(int frames, hls::stream<word<ap_int<4>, 4>> &in, hls::stream<word<ap_int<4>, 16>> &out) {
    convert_width<4, 16, 400>(frames, in, out);
}
void convert_down_block(int frames, hls::stream<word<ap_int<4>, 16>> &in, hls::stream<word<ap_int<4>, 4>> &out) {
    convert_width<16, 4, 400>(frames, in, out);
}
void convert_36_64_block(int frames, hls::stream<word<ap_int<4>, 36>> &in, hls::stream<word<ap_int<4>, 16>> &out) {
    convert_width<36, 16, 400>(frames, in, out);
}
void gather_block(int frames, pairs &in, hls::stream<word<ap_int<4>, 4>> &out) {
    convert_pixels<2, 4, 1, 2, 400>(frames, in, out);
}
void scatter_block(int frames, hls::stream<word<ap_int<4>, 4>> &in, pairs &out) {
    convert_pixels<2, 4, 2, 1, 400>(frames, in, out);
}
void concat_block(int frames, pairs &out, pairs &a, pairs &b, pairs &c) {
    concat<2, 300, 4, 4, 6>(frames, out, a, b, c);
}
void split_block(int frames, pairs &in, pairs &a, pairs &b, pairs &c) { split<2, 300, 4, 4, 6>(frames, in, a, b, c); }
void duplicate_block(int frames, pairs &in, pairs &a, pairs &b) { duplicate<2, 300>(frames, in, a, b); }
void discard_block(int frames, pairs &in) { discard<2, 300>(frames, in); }
void down_sample_block(int frames, pairs &in, pairs &out) { down_sample<2, 8, 160, 320, 2>(frames, in, out); }
void reorg_darknet_block(int frames, pairs &in, pairs &out) { reorg_darknet<2, 8, 16, 20, 2>(frames, in, out); }
void reorg_whole_block(int frames, hls::stream<word<ap_int<4>, 1>> &in, hls::stream<word<ap_int<4>, 1>> &out) {
    reorg_darknet<1, 8, 10, 20, 2>(frames, in, out);
}
void upsample_block(int frames, pairs &in, pairs &out) { upsample<2, 4, 13, 13, 2>(frames, in, out); }
void resize_block(int frames, pairs &in, pairs &out) { resize_nearest<2, 4, 13, 13, 20, 17>(frames, in, out); }
void pixel_pad_block(int frames, pairs &in, pairs &out) { pixel_pad<2, 4, 13, 20, 2>(frames, in, out); }
void mvu_block(int frames, hls::stream<word<uint_t<4>::carrier, 72>> &in,
               hls::stream<word<integer<14, true>, 16>> &out) {
    static const int_t<4>::carrier weights[8][8][36] = {{{1, 2, 3}}};
    matrix_vector<320, 144, 16, 36, 8, 2, int_t<4>, uint_t<4>, 14, DSP48E2>(frames, in, out, weights, identity_t<14>());
}
static const requantise_t<4, false, 2, 3> R = {
    {{1, 2, 5}, {3, 4, 6}}, {{1, 2, 3}, {3, 4, 7}}, {{1, 2, 8}, {3, 4, 9}}, {{1, 2, 3}, {3, 4, 1}}};
void mvu_requantise_block(int frames, hls::stream<word<uint_t<4>::carrier, 4>> &in,
                          hls::stream<word<integer<4, false>, 2>> &out) {
    static const int_t<4>::carrier weights[2][12][4] = {{{1, 2, 3}}};
    matrix_vector<320, 16, 6, 4, 2, 1, int_t<4>, uint_t<4>, 14, DSP48E2>(frames, in, out, weights, R);
}
void mvu_streamed_block(int frames, hls::stream<word<uint_t<4>::carrier, 72>> &in,
                        hls::stream<word<int_t<4>::carrier, 288>> &weights,
                        hls::stream<word<integer<14, true>, 16>> &sums) {
    matrix_vector_streamed<6, 36, 8, 36, 8, 2, int_t<4>, uint_t<4>, 14, DSP48E2>(frames, in, weights, sums,
                                                                                 identity_t<14>());
}
void mvu_resident_block(int frames, hls::stream<word<uint_t<4>::carrier, 8>> &in,
                        hls::stream<word<int_t<4>::carrier, 16>> &weights,
                        hls::stream<word<integer<14, true>, 8>> &sums) {
    matrix_vector_resident<60, 36, 8, 4, 4, 2, int_t<4>, uint_t<4>, 14, DSP48E2>(frames, in, weights, sums,
                                                                                 identity_t<14>());
}
void vvu_block(int frames, hls::stream<word<uint_t<4>::carrier, 4>> &in, hls::stream<word<integer<14, true>, 4>> &out) {
    static const int_t<4>::carrier weights[4][18][1] = {{{1}}};
    vector_vector<320, 8, 9, 1, 4, 1, int_t<4>, uint_t<4>, 14, DSP48E2>(frames, in, out, weights, identity_t<14>());
}
void add_block(int frames, hls::stream<word<integer<14, true>, 16>> &a, hls::stream<word<uint_t<4>::carrier, 16>> &b,
               hls::stream<word<integer<16, true>, 16>> &out) {
    add<600, 16, 8, 2, 16, term_t<int_t<14>, 1>, term_t<uint_t<4>, 3>>(frames, a, b, out, identity_t<16>());
}
void activate_block(int frames, hls::stream<word<int_t<14>::carrier, 2>> &in,
                    hls::stream<word<integer<4, false>, 2>> &out) {
    activate<60, 6, 2, 1, int_t<14>>(frames, in, out, R);
}
static const thresholds_t<8, false, 0, 255, 20, 1, 1> T = {{{{1, 2, 3}}}, {{true}}};
void activate_thresholds_block(int frames, hls::stream<word<int_t<20>::carrier, 1>> &in,
                               hls::stream<word<integer<8, false>, 1>> &out) {
    activate<60, 1, 1, 1, int_t<20>>(frames, in, out, T);
}
void mvu_bits_block(int frames, hls::stream<word<bipolar_t::carrier, 96>> &in,
                    hls::stream<word<integer<8, false>, 1>> &out) {
    static const bipolar_t::carrier weights[1][1][96] = {{{1, 0, 1, 1}}};
    matrix_vector<320, 96, 1, 96, 1, 1, bipolar_t, bipolar_t, 14, LUT>(frames, in, out, weights, T);
}
void pad_block(int frames, pairs &in, pairs &out) { pad<2, 4, 13, 20, 1, 2, 3, 4>(frames, in, out); }
void window_pool_block(int frames, hls::stream<word<uint_t<4>::carrier, 18>> &in,
                       hls::stream<word<integer<4, false>, 2>> &out) {
    window_pool<60, 6, 9, 9, 2, 1, uint_t<4>, 14, add_op>(frames, in, out, R);
}
void window_pool_max_block(int frames, hls::stream<word<int_t<8>::carrier, 50>> &in,
                           hls::stream<word<integer<4, false>, 2>> &out) {
    window_pool<60, 6, 25, 25, 2, 1, int_t<8>, 8, max_op>(frames, in, out, R);
}
void element_wise_block(int frames, hls::stream<word<int_t<8>::carrier, 2>> &a,
                        hls::stream<word<int_t<8>::carrier, 2>> &b, hls::stream<word<integer<4, false>, 2>> &out) {
    element_wise<60, 6, 2, 1, int_t<8>, int_t<8>, 16, multiply_op>(frames, a, b, out, R);
}
void channel_wise_block(int frames, hls::stream<word<int_t<16>::carrier, 2>> &in,
                        hls::stream<word<integer<4, false>, 2>> &out) {
    static const int_t<16>::carrier constants[2][3] = {{1, 2, 3}, {4, 5, 6}};
    channel_wise<60, 6, 2, 1, int_t<16>, int_t<16>, 32, multiply_op>(frames, in, out, constants, R);
}
void global_pool_block(int frames, hls::stream<word<uint_t<4>::carrier, 2>> &in,
                       hls::stream<word<integer<14, true>, 2>> &out) {
    global_pool<60, 32, 2, 1, uint_t<4>, 14>(frames, in, out, identity_t<14>());
}
void global_pool1_block(int frames, hls::stream<word<uint_t<4>::carrier, 2>> &in,
                        hls::stream<word<integer<14, true>, 2>> &out) {
    global_pool<60, 2, 2, 1, uint_t<4>, 14>(frames, in, out, identity_t<14>());
}
void label_block(int frames, hls::stream<word<int_t<8>::carrier, 2>> &in,
                 hls::stream<word<integer<7, false>, 5>> &out) {
    label_select<100, 2, 5, int_t<8>, 7>(frames, in, out);
}
void label1_block(int frames, hls::stream<word<int_t<16>::carrier, 1>> &in,
                  hls::stream<word<integer<10, false>, 1>> &out) {
    label_select<1000, 1, 1, int_t<16>, 10>(frames, in, out);
}
void stream_weights_block(int frames, hls::stream<word<int_t<4>::carrier, 32>> &out) {
    static const int_t<4>::carrier weights[8][9][4] = {{{1, 2, 3}}};
    stream_weights<30, 9, 8, 4, int_t<4>>(frames, out, weights);
}
void fetch_weights_block(int frames, hls::stream<word<int_t<4>::carrier, 32>> &out,
                         hls::burst_maxi<memory_beat_t<8>> image) {
    fetch_weights<30, 9, 8, 4, int_t<4>, 8>(frames, out, image, 0);
}
void load_weights_block(int frames, hls::stream<word<int_t<4>::carrier, 32>> &out,
                        hls::burst_maxi<memory_beat_t<8>> image) {
    load_weights<30, 9, 8, 4, int_t<4>, 8>(frames, out, image, 0);
}
void unpack_block(int frames, hls::stream<beat_t<8>> &in, hls::stream<word<ap_uint<8>, 3>> &out) {
    unpack_beats<8, 3, 51200>(frames, in, out);
}
void pack_block(int frames, hls::stream<word<ap_int<14>, 3>> &in, hls::stream<beat_t<8>> &out) {
    pack_beats<8, 2, 3, 2400, true>(frames, in, out);
}
void append_block(int frames, hls::stream<beat_t<8>> &a, hls::stream<beat_t<8>> &b, hls::stream<beat_t<8>> &out) {
    append_beats<8, 100, 200, true>(frames, a, b, out);
}
