// A faulty streaming top function. The first byte of the packet selects the fault: 1 omits TLAST, 2 sets it early,
// 3 ends too early, 4 writes more than a packet, 5 does not read a beat of the frame.
#include "top.h"

void streaming_top(hls::stream<beat_t<IN_BEAT>> &in, hls::stream<beat_t<OUT_BEAT>> &out,
                   hls::burst_maxi<word<integer<8, true>, 4>>, int) {
    int how = 0;
    for (int i = 0; i < IN_BEATS; ++i) {
        if (how == 5 && i == IN_BEATS - 1) break;
        const beat_t<IN_BEAT> beat = in.read();
        if (i == 0) how = byte_of<IN_BEAT>(beat, 0);
    }
    const int beats = how == 3 ? OUT_BEATS - 2 : how == 4 ? OUT_BEATS + 3 : OUT_BEATS;
    for (int i = 0; i < beats; ++i) {
        const uint8_t bytes[OUT_BEAT] = {0};
        beat_t<OUT_BEAT> beat;
        set_beat<OUT_BEAT>(beat, bytes, (how == 2 && i == 4) || (how != 1 && i == OUT_BEATS - 1));
        out.write(beat);
    }
}
