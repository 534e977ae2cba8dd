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
#include "reorg.h"
#include "resize.h"
#include "softmax.h"
#include "split.h"
#include "upsample.h"
#include "vector_vector.h"
#include "weights.h"
#include "width.h"
#include "window.h"
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
    max_pool<1, 2, 4, 160, 320, 2, 2, 2, 0, 0, 0, 0>(frames, in, out);
}
void max_pool3_block(int frames, hls::stream<word<ap_uint<4>, 2>> &in, hls::stream<word<ap_uint<4>, 2>> &out) {
    max_pool<1, 2, 4, 160, 320, 3, 3, 1, 1, 1, 1, 1>(frames, in, out);
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
void depth_to_space_block(int frames, pairs &in, pairs &out) { depth_to_space<2, 16, 13, 13, 2, 2>(frames, in, out); }
void upsample_block(int frames, pairs &in, pairs &out) { upsample<2, 4, 13, 13, 2>(frames, in, out); }
void resize_block(int frames, pairs &in, pairs &out) { resize_nearest<2, 4, 13, 13, 20, 17>(frames, in, out); }
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
void element_wise_block(int frames, hls::stream<word<int_t<8>::carrier, 2>> &a,
                        hls::stream<word<int_t<8>::carrier, 2>> &b, hls::stream<word<integer<4, false>, 2>> &out) {
    element_wise<60, 6, 2, 1, int_t<8>, int_t<8>, 16, multiply_op>(frames, a, b, out, R);
}
void global_pool_block(int frames, hls::stream<word<uint_t<4>::carrier, 2>> &in,
                       hls::stream<word<integer<14, true>, 2>> &out) {
    global_pool<60, 32, 2, 1, uint_t<4>, 14>(frames, in, out, identity_t<14>());
}
void global_pool1_block(int frames, hls::stream<word<uint_t<4>::carrier, 2>> &in,
                        hls::stream<word<integer<14, true>, 2>> &out) {
    global_pool<60, 2, 2, 1, uint_t<4>, 14>(frames, in, out, identity_t<14>());
}
typedef hls::stream<word<int_t<16>::carrier, 1>> sums_t;
void label_select_block(int frames, sums_t &in, hls::stream<word<number<9>, 1>> &labels) {
    label_select<1, 10, 1, 1, int_t<16>>(frames, in, labels);
}
void label_select_values_block(int frames, sums_t &in, hls::stream<word<number<999>, 5>> &labels,
                               hls::stream<word<int_t<16>::carrier, 5>> &values) {
    label_select<1, 1000, 1, 5, int_t<16>>(frames, in, labels, values);
}
void label_select_lanes_block(int frames, hls::stream<word<int_t<32>::carrier, 8>> &in,
                              hls::stream<word<number<999>, 5>> &labels) {
    label_select<1, 1000, 8, 5, int_t<32>>(frames, in, labels);
}
void label_select_pixels_block(int frames, hls::stream<word<uint_t<4>::carrier, 21>> &in,
                               hls::stream<word<number<20>, 1>> &labels) {
    label_select<16384, 21, 21, 1, uint_t<4>>(frames, in, labels);
}
typedef hls::stream<word<share_t, 1>> shares_t;
typedef hls::stream<word<share_t, 8>> wide_shares_t;
typedef hls::stream<word<int_t<8>::carrier, 1>> logits_t;
typedef hls::stream<word<int_t<8>::carrier, 8>> wide_logits_t;
static const table_t<20, false, 0, 256, 1> POWERS = {{{1048575, 1048574}}};
static const table_t<20, false, 0, 256, 2> MORE_POWERS = {{{1048575, 1048574}, {1048575, 1048574}}};
static const table_t<20, false, -128, 256, 1> POWERS_OF_VALUES = {{{1, 2}}};
void softmax_block(int frames, logits_t &in, shares_t &out) {
    softmax<SOFTMAX_STABLE, 1, 10, 1, int_t<8>>(frames, in, out, POWERS);
}
void softmax_classes_block(int frames, wide_logits_t &in, wide_shares_t &out) {
    softmax<SOFTMAX_STABLE, 1, 1000, 8, int_t<8>>(frames, in, out, POWERS);
}
void softmax_pixels_block(int frames, hls::stream<word<int_t<8>::carrier, 21>> &in,
                          hls::stream<word<share_t, 21>> &out) {
    softmax<SOFTMAX_STABLE, 16384, 21, 21, int_t<8>>(frames, in, out, MORE_POWERS);
}
void softmax_latency_block(int frames, logits_t &in, shares_t &out) {
    softmax<SOFTMAX_LATENCY, 1, 1000, 1, int_t<8>>(frames, in, out, POWERS_OF_VALUES);
}
void softmax_latency_lanes_block(int frames, wide_logits_t &in, wide_shares_t &out) {
    softmax<SOFTMAX_LATENCY, 4, 24, 8, int_t<8>>(frames, in, out, POWERS_OF_VALUES);
}
void softmax_argmax_block(int frames, hls::stream<word<int_t<16>::carrier, 8>> &in, wide_shares_t &out) {
    softmax_argmax<1, 1000, 8, int_t<16>>(frames, in, out);
}
void softmax_argmax1_block(int frames, sums_t &in, shares_t &out) {
    softmax_argmax<1, 10, 1, int_t<16>>(frames, in, out);
}
void softmax_argmax_pixels_block(int frames, hls::stream<word<uint_t<4>::carrier, 21>> &in,
                                 hls::stream<word<share_t, 21>> &out) {
    softmax_argmax<16384, 21, 21, uint_t<4>>(frames, in, out);
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
void reorg_whole_s3_block(int frames, hls::stream<word<ap_int<4>, 1>> &in, hls::stream<word<ap_int<4>, 1>> &out) {
    reorg_darknet<1, 18, 12, 15, 3>(frames, in, out);
}
void reorg_rows_s3_block(int frames, pairs &in, pairs &out) { reorg_darknet<2, 18, 18, 15, 3>(frames, in, out); }
void reorg_block_s3_block(int frames, pairs &in, pairs &out) { reorg_block<2, 18, 27, 27, 3>(frames, in, out); }
void window_5x5_block(int frames, pairs &in, pairs &out) {
    window_default<2, 64, 208, 208, 5, 5, 2, 2, 2, 2, 2, 1, false>(frames, in, out);
}
void window_dilated_block(int frames, pairs &in, pairs &out) {
    window_default<2, 64, 52, 52, 3, 3, 1, 2, 2, 2, 2, 2, false>(frames, in, out);
}
void window_s3_block(int frames, pairs &in, pairs &out) {
    window_default<2, 2, 52, 52, 3, 3, 3, 0, 0, 0, 0, 1, true>(frames, in, out);
}
void window_1x1_block(int frames, pairs &in, pairs &out) {
    window_default<2, 8, 13, 13, 1, 1, 2, 0, 0, 0, 0, 1, false>(frames, in, out);
}
void window_parallel_dilated_block(int frames, pairs &in, hls::stream<word<ap_int<4>, 18>> &out) {
    window_parallel<1, 2, 8, 52, 52, 3, 3, 1, 2, 2, 2, 2, 2>(frames, in, out);
}
void window_parallel_uneven_block(int frames, pairs &in, hls::stream<word<ap_int<4>, 18>> &out) {
    window_parallel<1, 2, 8, 53, 51, 3, 3, 2, 0, 1, 2, 1, 1, RAM_URAM>(frames, in, out);
}
void window_parallel_p4_s2_block(int frames, hls::stream<word<ap_int<4>, 8>> &in,
                                 hls::stream<word<ap_int<4>, 36>> &out) {
    window_parallel<4, 2, 8, 416, 416, 3, 3, 2, 1, 1, 1, 1, 1, RAM_LUTRAM>(frames, in, out);
}
void window_parallel_7x7_block(int frames, pairs &in, hls::stream<word<ap_int<4>, 98>> &out) {
    window_parallel<1, 2, 64, 224, 224, 7, 7, 2, 3, 3, 3, 3, 1>(frames, in, out);
}
void max_pool3_s2_block(int frames, hls::stream<word<ap_int<8>, 4>> &in, hls::stream<word<ap_int<8>, 4>> &out) {
    max_pool<1, 4, 64, 112, 112, 3, 3, 2, 1, 1, 1, 1>(frames, in, out);
}
void max_pool5_block(int frames, hls::stream<word<ap_int<8>, 4>> &in, hls::stream<word<ap_int<8>, 4>> &out) {
    max_pool<1, 4, 64, 13, 13, 5, 5, 1, 2, 2, 2, 2>(frames, in, out);
}
void max_pool13_block(int frames, hls::stream<word<ap_int<16>, 1>> &in, hls::stream<word<ap_int<16>, 1>> &out) {
    max_pool<1, 1, 64, 13, 13, 13, 13, 1, 6, 6, 6, 6>(frames, in, out);
}
void max_pool_p4_block(int frames, hls::stream<word<ap_int<8>, 8>> &in, hls::stream<word<ap_int<8>, 4>> &out) {
    max_pool<4, 2, 64, 416, 416, 2, 2, 2, 0, 0, 0, 0>(frames, in, out);
}
void upsample4_block(int frames, pairs &in, pairs &out) { upsample<2, 64, 26, 26, 4>(frames, in, out); }
void down_sample3_block(int frames, pairs &in, pairs &out) { down_sample<2, 8, 160, 320, 3>(frames, in, out); }
void gather4_block(int frames, pairs &in, hls::stream<word<ap_int<4>, 8>> &out) {
    convert_pixels<2, 64, 1, 4, 400>(frames, in, out);
}
void scatter4_block(int frames, hls::stream<word<ap_int<4>, 8>> &in, pairs &out) {
    convert_pixels<2, 64, 4, 1, 400>(frames, in, out);
}
void add_channels_block(int frames, pairs &in, hls::stream<word<ap_int<4>, 3>> &out) {
    convert_channels<2, 3, 64, 66, 900>(frames, in, out);
}
void drop_channels_block(int frames, hls::stream<word<ap_int<4>, 7>> &in, pairs &out) {
    convert_channels<7, 2, 63, 62, 900>(frames, in, out);
}
void add_words_block(int frames, hls::stream<word<ap_int<8>, 16>> &in, hls::stream<word<ap_int<8>, 64>> &out) {
    convert_channels<16, 64, 48, 64, 900>(frames, in, out);
}
void convert_64_27_block(int frames, hls::stream<word<ap_int<16>, 64>> &in, hls::stream<word<ap_int<16>, 27>> &out) {
    convert_width<64, 27, 27>(frames, in, out);
}
void convert_5_64_block(int frames, hls::stream<word<ap_int<4>, 5>> &in, hls::stream<word<ap_int<4>, 64>> &out) {
    convert_width<5, 64, 6400>(frames, in, out);
}
void pack_sums_block(int frames, hls::stream<word<integer<32, true>, 1>> &in, hls::stream<beat_t<4>> &out) {
    pack_beats<4, 4, 1, 125, true>(frames, in, out);
}
void pack_whole_beats_block(int frames, hls::stream<word<integer<8, true>, 64>> &in, hls::stream<beat_t<64>> &out) {
    pack_beats<64, 1, 64, 2704, true>(frames, in, out);
}
void pack_wide_beats_block(int frames, hls::stream<word<integer<8, true>, 5>> &in, hls::stream<beat_t<128>> &out) {
    pack_beats<128, 1, 5, 2704, true>(frames, in, out);
}
void unpack_single_block(int frames, hls::stream<beat_t<4>> &in, hls::stream<word<integer<8, false>, 1>> &out) {
    unpack_beats<4, 1, 519168>(frames, in, out);
}
void unpack_12_block(int frames, hls::stream<beat_t<16>> &in, hls::stream<word<integer<8, false>, 12>> &out) {
    unpack_beats<16, 12, 43264>(frames, in, out);
}
void unpack_wide_beats_block(int frames, hls::stream<beat_t<128>> &in, hls::stream<word<integer<8, false>, 3>> &out) {
    unpack_beats<128, 3, 43264>(frames, in, out);
}
void reorg_whole_s5_block(int frames, hls::stream<word<ap_int<4>, 1>> &in, hls::stream<word<ap_int<4>, 1>> &out) {
    reorg_darknet<1, 100, 20, 20, 5>(frames, in, out);
}
void window_parallel_p4_block(int frames, hls::stream<word<ap_uint<4>, 32>> &in,
                              hls::stream<word<ap_uint<4>, 288>> &out) {
    window_parallel<4, 8, 8, 6, 8, 3, 3, 1, 1, 1, 1, 1, 1, RAM_URAM>(frames, in, out);
}
void pack_narrow_block(int frames, hls::stream<word<integer<16, true>, 1>> &in, hls::stream<beat_t<32>> &out) {
    pack_beats<32, 2, 1, 288, false>(frames, in, out);
}
void pack_once_block(int frames, hls::stream<word<integer<16, true>, 10>> &in, hls::stream<beat_t<32>> &out) {
    pack_beats<32, 2, 10, 1, false>(frames, in, out);
}
void gather_block_4(int frames, hls::stream<word<ap_uint<4>, 4>> &in, hls::stream<word<ap_uint<4>, 8>> &out) {
    convert_pixels<4, 8, 1, 2, 48>(frames, in, out);
}
// Constants of requantisers, with different numbers of PEs and pixels that read them at once.
static const requantise_t<8, true, 4, 3> R4 = {{{1}}, {{1}}, {{1}}, {{1}}};
static const requantise_t<4, false, 12, 1> R12 = {{{1}, {2}}, {{3}, {4}}, {{5}, {6}}, {{7}, {8}}};
static const multiply_shift_t<8, true, 4, 3> M4 = {{{1}}, {{1}}, {{1}}};
static const thresholds_t<4, false, 0, 15, 20, 4, 3> T15 = {{{{1, 2, 3}}}, {{true}}};
static const thresholds_t<6, false, 0, 63, 20, 4, 3> T63 = {{{{1, 2, 3}}}, {{true}}};
static const table_t<8, true, -128, 256, 3> L24 = {{{1, 2}, {1, 2}, {1, 2}}};
static const pieces_t<16, true, -32768, 8, 18, 3> P16 = {{{1, 2}, {1, 2}, {1, 2}}, {{3, 4}, {3, 4}, {3, 4}}};
static const pieces_t<12, true, 0, 4, 7, 1> P12 = {{{1, 2}}, {{3, 4}}};
static const thresholds_t<8, false, 0, 255, 20, 4, 3> T255 = {{{{1, 2, 3}}}, {{true}}};
void mvu_pixels_block(int frames, hls::stream<word<uint_t<4>::carrier, 4>> &in,
                      hls::stream<word<integer<4, false>, 24>> &out) {
    static const int_t<4>::carrier weights[12][4][2] = {{{1, 2}, {3, 4}}};
    matrix_vector<4, 8, 12, 2, 12, 2, int_t<4>, uint_t<4>, 11, DSP48E2>(frames, in, out, weights, R12);
}
template <int SIMD, int PIXELS, class WEIGHT, class VALUE, int SUM_BITS, int MULTIPLIER, class ACTIVATION>
void unit(int frames, hls::stream<word<typename VALUE::carrier, PIXELS * SIMD>> &in,
          hls::stream<word<typename ACTIVATION::output_t, PIXELS * 4>> &out, const ACTIVATION &activation) {
#pragma HLS INLINE
    static const typename WEIGHT::carrier weights[4][3 * (288 / SIMD)][SIMD] = {{{1}}};
    matrix_vector<64, 288, 12, SIMD, 4, PIXELS, WEIGHT, VALUE, SUM_BITS, MULTIPLIER>(frames, in, out, weights,
                                                                                     activation);
}
void mvu_int8_block(int frames, hls::stream<word<int_t<8>::carrier, 16>> &in,
                    hls::stream<word<integer<8, true>, 4>> &out) {
    unit<16, 1, narrow_t<8>, int_t<8>, 26, DSP48E2>(frames, in, out, R4);
}
void mvu_int8_p2_block(int frames, hls::stream<word<int_t<8>::carrier, 32>> &in,
                       hls::stream<word<integer<8, true>, 8>> &out) {
    unit<16, 2, narrow_t<8>, int_t<8>, 26, DSP48E2>(frames, in, out, M4);
}
void mvu_int8_thresholds_block(int frames, hls::stream<word<int_t<8>::carrier, 32>> &in,
                               hls::stream<word<integer<8, false>, 8>> &out) {
    unit<16, 2, narrow_t<8>, int_t<8>, 26, DSP48E2>(frames, in, out, T255);
}
void mvu_int4_wide_block(int frames, hls::stream<word<uint_t<4>::carrier, 288>> &in,
                         hls::stream<word<integer<4, false>, 8>> &out) {
    unit<144, 2, narrow_t<4>, uint_t<4>, 18, DSP48E2>(frames, in, out, T15);
}
void mvu_int4_lut_block(int frames, hls::stream<word<uint_t<4>::carrier, 144>> &in,
                        hls::stream<word<integer<8, true>, 4>> &out) {
    unit<144, 1, narrow_t<4>, uint_t<4>, 18, LUT>(frames, in, out, R4);
}
void mvu_int8_lut_block(int frames, hls::stream<word<uint_t<8>::carrier, 96>> &in,
                        hls::stream<word<integer<8, true>, 4>> &out) {
    unit<96, 1, narrow_t<8>, uint_t<8>, 26, LUT>(frames, in, out, M4);
}
void mvu_dsp48e1_block(int frames, hls::stream<word<uint_t<8>::carrier, 1>> &in,
                       hls::stream<word<integer<8, true>, 4>> &out) {
    unit<1, 1, narrow_t<8>, uint_t<8>, 26, DSP48E1>(frames, in, out, M4);
}
void mvu_ternary_block(int frames, hls::stream<word<narrow_t<2>::carrier, 144>> &in,
                       hls::stream<word<integer<8, true>, 4>> &out) {
    unit<144, 1, narrow_t<2>, narrow_t<2>, 12, LUT>(frames, in, out, R4);
}
void mvu_bipolar_weights_block(int frames, hls::stream<word<uint_t<4>::carrier, 96>> &in,
                               hls::stream<word<integer<6, false>, 4>> &out) {
    unit<96, 1, bipolar_t, uint_t<4>, 16, LUT>(frames, in, out, T63);
}
void mvu_int16_block(int frames, hls::stream<word<int_t<16>::carrier, 8>> &in,
                     hls::stream<word<integer<8, true>, 4>> &out) {
    unit<8, 1, narrow_t<8>, int_t<16>, 32, DSP48E2>(frames, in, out, R4);
}
template <int SIMD, int PIXELS, class WEIGHT, class VALUE, int MULTIPLIER, class ACTIVATION>
void depthwise_unit(int frames, hls::stream<word<typename VALUE::carrier, PIXELS * SIMD * 4>> &in,
                    hls::stream<word<typename ACTIVATION::output_t, PIXELS * 4>> &out, const ACTIVATION &activation) {
#pragma HLS INLINE
    static const typename WEIGHT::carrier weights[4][3 * (9 / SIMD)][SIMD] = {{{1}}};
    vector_vector<64, 12, 9, SIMD, 4, PIXELS, WEIGHT, VALUE, 20, MULTIPLIER>(frames, in, out, weights, activation);
}
void vvu_int8_block(int frames, hls::stream<word<int_t<8>::carrier, 4>> &in,
                    hls::stream<word<integer<8, true>, 4>> &out) {
    depthwise_unit<1, 1, narrow_t<8>, int_t<8>, DSP48E2>(frames, in, out, R4);
}
void vvu_int8_p2_block(int frames, hls::stream<word<int_t<8>::carrier, 24>> &in,
                       hls::stream<word<integer<8, true>, 8>> &out) {
    depthwise_unit<3, 2, narrow_t<8>, int_t<8>, DSP48E2>(frames, in, out, M4);
}
void vvu_int4_p4_block(int frames, hls::stream<word<uint_t<4>::carrier, 144>> &in,
                       hls::stream<word<integer<4, false>, 16>> &out) {
    depthwise_unit<9, 4, narrow_t<4>, uint_t<4>, DSP48E2>(frames, in, out, T15);
}
void vvu_int4_lut_block(int frames, hls::stream<word<uint_t<4>::carrier, 144>> &in,
                        hls::stream<word<integer<8, true>, 16>> &out) {
    depthwise_unit<9, 4, narrow_t<4>, uint_t<4>, LUT>(frames, in, out, R4);
}
void mvu_resident_wide_block(int frames, hls::stream<word<int_t<8>::carrier, 36>> &in,
                             hls::stream<word<narrow_t<8>::carrier, 144>> &weights,
                             hls::stream<word<integer<8, true>, 4>> &sums) {
    matrix_vector_resident<169, 288, 12, 36, 4, 1, narrow_t<8>, int_t<8>, 26, DSP48E2, RAM_URAM>(frames, in, weights,
                                                                                                 sums, R4);
}
void mvu_resident_vector_block(int frames, hls::stream<word<int_t<8>::carrier, 8>> &in,
                               hls::stream<word<narrow_t<8>::carrier, 32>> &weights,
                               hls::stream<word<integer<8, true>, 4>> &sums) {
    matrix_vector_resident<1, 288, 12, 8, 4, 1, narrow_t<8>, int_t<8>, 26, DSP48E2>(frames, in, weights, sums, R4);
}
void activate_p2_block(int frames, hls::stream<word<int_t<20>::carrier, 8>> &in,
                       hls::stream<word<integer<8, true>, 8>> &out) {
    activate<60, 12, 4, 2, int_t<20>>(frames, in, out, M4);
}
void activate_levels_block(int frames, hls::stream<word<int_t<20>::carrier, 8>> &in,
                           hls::stream<word<integer<6, false>, 8>> &out) {
    activate<60, 12, 4, 2, int_t<20>>(frames, in, out, T63);
}
void activate_table_block(int frames, hls::stream<word<int_t<8>::carrier, 48>> &in,
                          hls::stream<word<integer<8, true>, 48>> &out) {
    activate<60, 48, 24, 2, int_t<8>>(frames, in, out, L24);
}
void activate_pieces_block(int frames, hls::stream<word<int_t<16>::carrier, 48>> &in,
                           hls::stream<word<integer<16, true>, 48>> &out) {
    activate<60, 48, 24, 2, int_t<16>>(frames, in, out, P16);
}
void activate_few_pieces_block(int frames, hls::stream<word<uint_t<12>::carrier, 1>> &in,
                               hls::stream<word<integer<12, true>, 1>> &out) {
    activate<60, 4, 1, 1, uint_t<12>>(frames, in, out, P12);
}
void global_pool_p8_block(int frames, hls::stream<word<uint_t<8>::carrier, 32>> &in,
                          hls::stream<word<integer<8, true>, 4>> &out) {
    global_pool<64, 12, 4, 8, uint_t<8>, 24>(frames, in, out, M4);
}
void add5_block(int frames, hls::stream<word<int_t<8>::carrier, 4>> &a, hls::stream<word<int_t<8>::carrier, 4>> &b,
                hls::stream<word<int_t<8>::carrier, 4>> &c, hls::stream<word<int_t<8>::carrier, 4>> &d,
                hls::stream<word<int_t<8>::carrier, 4>> &e, hls::stream<word<integer<8, true>, 4>> &out) {
    add<600, 12, 4, 1, 30, term_t<int_t<8>, 32767>, term_t<int_t<8>, 12345>, term_t<int_t<8>, 77>,
        term_t<int_t<8>, 9999>, term_t<int_t<8>, 7777>>(frames, a, b, c, d, e, out, R4);
}
void fetch_wide_block(int frames, hls::stream<word<narrow_t<8>::carrier, 288>> &out,
                      hls::burst_maxi<memory_beat_t<16>> image) {
    fetch_weights<1, 900, 4, 72, narrow_t<8>, 16>(frames, out, image, 0);
}
void fetch_ternary_block(int frames, hls::stream<word<narrow_t<2>::carrier, 512>> &out,
                         hls::burst_maxi<memory_beat_t<16>> image) {
    fetch_weights<1, 900, 16, 32, narrow_t<2>, 16>(frames, out, image, 0);
}
void stream_wide_block(int frames, hls::stream<word<narrow_t<8>::carrier, 288>> &out) {
    static const narrow_t<8>::carrier weights[4][96][72] = {{{1}}};
    stream_weights<30, 96, 4, 72, narrow_t<8>, RAM_BRAM>(frames, out, weights);
}
// One width divides the other, or they are coprime; words of three bytes; few words per pixel, few folds, few beats.
typedef hls::stream<word<ap_int<4>, 1>> singles;
typedef hls::stream<word<ap_int<4>, 3>> triples;
typedef hls::stream<word<ap_int<4>, 7>> sevens;
void convert_1_3_block(int frames, singles &in, triples &out) { convert_width<1, 3, 2700>(frames, in, out); }
void convert_3_1_block(int frames, triples &in, singles &out) { convert_width<3, 1, 900>(frames, in, out); }
void convert_1_7_block(int frames, singles &in, sevens &out) { convert_width<1, 7, 2800>(frames, in, out); }
void convert_7_1_block(int frames, sevens &in, singles &out) { convert_width<7, 1, 900>(frames, in, out); }
void convert_3_7_block(int frames, triples &in, sevens &out) { convert_width<3, 7, 2800>(frames, in, out); }
void convert_7_3_block(int frames, sevens &in, triples &out) { convert_width<7, 3, 900>(frames, in, out); }
void drop_3_1_block(int frames, triples &in, singles &out) { convert_channels<3, 1, 6, 4, 900>(frames, in, out); }
void window_rgb_block(int frames, triples &in, triples &out) {
    window_default<3, 3, 6, 10, 3, 3, 1, 1, 1, 1, 1, 1, false, RAM_LUTRAM>(frames, in, out);
}
void down_sample_whole_block(int frames, pairs &in, pairs &out) { down_sample<2, 2, 10, 10, 2>(frames, in, out); }
void down_sample3_whole_block(int frames, pairs &in, pairs &out) { down_sample<2, 2, 12, 15, 3>(frames, in, out); }
static const requantise_t<4, false, 3, 2> R3 = {{{1}}, {{1}}, {{1}}, {{1}}};
static const requantise_t<4, false, 2, 1> R2 = {{{1}}, {{1}}, {{1}}, {{1}}};
void mvu_resident_rgb_block(int frames, hls::stream<word<uint_t<4>::carrier, 1>> &in,
                            hls::stream<word<narrow_t<4>::carrier, 3>> &weights,
                            hls::stream<word<integer<4, false>, 3>> &out) {
    matrix_vector_resident<15, 594, 6, 1, 3, 1, narrow_t<4>, uint_t<4>, 17, DSP48E2>(frames, in, weights, out, R3);
}
void mvu_resident_fold_block(int frames, hls::stream<word<uint_t<8>::carrier, 2>> &in,
                             hls::stream<word<narrow_t<2>::carrier, 4>> &weights,
                             hls::stream<word<integer<4, false>, 2>> &out) {
    matrix_vector_resident<48, 18, 2, 2, 2, 1, narrow_t<2>, uint_t<8>, 13, DSP48E2>(frames, in, weights, out, R2);
}
void fetch_beat_block(int frames, hls::stream<word<int_t<4>::carrier, 32>> &out,
                      hls::burst_maxi<memory_beat_t<16>> image) {
    fetch_weights<30, 1, 8, 4, int_t<4>, 16>(frames, out, image, 0);
}
// More constants than a memory has copies.
static const requantise_t<4, false, 24, 2> R24 = {{{1}, {2}}, {{3}, {4}}, {{5}, {6}}, {{7}, {8}}};
static const thresholds_t<5, false, 0, 31, 20, 1, 24> T31 = {{{{1, 2, 3}, {4, 5, 6}}}, {{true}}};
void activate_24_block(int frames, hls::stream<word<int_t<20>::carrier, 24>> &in,
                       hls::stream<word<integer<4, false>, 24>> &out) {
    activate<60, 48, 24, 1, int_t<20>>(frames, in, out, R24);
}
void activate_31_levels_block(int frames, hls::stream<word<int_t<20>::carrier, 2>> &in,
                              hls::stream<word<integer<5, false>, 2>> &out) {
    activate<60, 24, 1, 2, int_t<20>>(frames, in, out, T31);
}
