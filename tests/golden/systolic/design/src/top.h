// tiny on a 6×8×8 systolic array: the top function's arguments. Generated.
#ifndef SYSTOLIC_TOP_H
#define SYSTOLIC_TOP_H

#include <hls_burst_maxi.h>

#include "pass.h"
#include "types.h"

void systolic_top(
    hls::burst_maxi<word_t> maps_read_0, hls::burst_maxi<word_t> maps_write_0,
    hls::burst_maxi<word_t> maps_read_1, hls::burst_maxi<word_t> maps_write_1,
    hls::burst_maxi<weight_word_t> weights_0,
    hls::burst_maxi<requantiser_t> requantisers, hls::burst_maxi<uint32_t> program,
    uint32_t first, uint32_t count, volatile uint32_t *current);

#ifndef __SYNTHESIS__
// Called after every pass, so that a test bench can read a map before its memory is used again.
void after_pass(uint32_t index);

// The two map buffers, set when the top function is called: [buffer − 1][word][bank].
extern const word_t (*map_buffers[2])[ROWS];
#endif

#endif  // SYSTOLIC_TOP_H
