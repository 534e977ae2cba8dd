// small as a streaming pipeline: the top function's arguments. Generated.
#ifndef SYSTOLIC_TOP_H
#define SYSTOLIC_TOP_H

#include <hls_stream.h>

#include "dma.h"

// A frame is one input packet and one output packet. BYTES: bytes per packet. BEAT: bytes per beat. BEATS: beats per
// packet.
static const int IN_BYTES = 1536, IN_BEAT = 8, IN_BEATS = 192;
static const int OUT_BYTES = 9216, OUT_BEAT = 8, OUT_BEATS = 1152;

void streaming_top(hls::stream<beat_t<IN_BEAT> > &in, hls::stream<beat_t<OUT_BEAT> > &out,
                   int frames);

#ifndef __SYNTHESIS__
// The two ends of the DMA as processes next to the pipeline, so that a trace also counts their cycles.
void dma_read(int frames, hls::stream<beat_t<IN_BEAT> > &in);
void dma_write(int frames, hls::stream<beat_t<OUT_BEAT> > &out);
#endif

#endif  // SYSTOLIC_TOP_H
