// A map is written into a circular buffer as it comes and read out along a walk: what windows in default style, reorg,
// up-sampling and resizing have in common. Reading and writing go on side by side, over row, position and frame.
//
// WALK says for the word that leaves next, in words of the frame that is walked:
//   need()          how many words of the frame must be in the buffer
//   oldest()        the least word that is needed from now on; never decreases within a frame
//   inside()        false where the word is zeros instead
//   advance(step)   goes to the next word; step: how far its address is, in 0 … SLOTS − 1; true after the frame's last
// and of the whole: frame_words() that come in; CAPACITY, words that wait at most; start(), the first address;
// pace() / share(), words that are taken for one that leaves. A pace and not greed, because a block that takes more than its
// share waits for its writer and, waiting, emits nothing.
//
//   iterations = words needed for the first position + WALK_LANDING − 1 + words that leave
//
// where the walk never waits, which the pace and the capacity are chosen for.
#ifndef SYSTOLIC_WALK_H
#define SYSTOLIC_WALK_H

#include <hls_stream.h>

#include "constant.h"
#include "instrument.h"
#include "ram.h"
#include "word.h"

constexpr int WALK_DEPTH = 6;
// Iterations from a word's arrival to its first use: its write is over by then, so that no read depends on it.
constexpr int WALK_LANDING = 3;
// A slot is written again so many words after it was set free: reads that are on their way still find the old word.
constexpr int WALK_MARGIN = 8;

constexpr int walk_slots(int capacity) { return capacity + WALK_MARGIN; }

template <int RAM, class WALK, class T, int LANES>
void walk_map(int frames, hls::stream<word<T, LANES>> &in, hls::stream<word<T, LANES>> &out, WALK walk) {
#pragma HLS INLINE
    constexpr int SLOTS = walk_slots(WALK::CAPACITY);
    word<T, LANES> buffer[SLOTS];
#pragma HLS AGGREGATE variable = buffer compact = bit
    keep_in(buffer, ram_of<RAM>());
    bool landing[WALK_LANDING];
#pragma HLS ARRAY_PARTITION variable = landing complete
    for (int k = 0; k < WALK_LANDING; ++k) {
#pragma HLS UNROLL
        landing[k] = false;
    }
    // Both count words from the start of the frame that is walked; what comes early belongs to the next one.
    int taken = 0, landed = 0;
    int taken_frame = 0, left_frame = 0, credit = 0;
    int of_frame = 0;  // words of the frame that comes
    int write_at = 0, read_at = walk.start();
    SYSTOLIC_ENTER;
    while (taken_frame < frames || left_frame < frames) {
        SYSTOLIC_PIPELINE(1, WALK_DEPTH);
#pragma HLS LOOP_TRIPCOUNT min = 1 max = 1000000
#pragma HLS DEPENDENCE variable = buffer type = inter false
        landed += landing[WALK_LANDING - 1] ? 1 : 0;
        const bool emits = left_frame < frames && landed >= walk.need();
        const int earned = credit + walk.pace();
        const bool due = !emits || earned >= walk.share();
        const bool takes = due && taken_frame < frames && taken - walk.oldest() < WALK::CAPACITY;
        if (emits) credit = takes ? earned - walk.share() : smaller(earned, walk.share());
        if (emits) {
            word<T, LANES> value = buffer[read_at];
            for (int l = 0; l < LANES; ++l) {
#pragma HLS UNROLL
                if (!walk.inside()) value.lane[l] = 0;
            }
            out.write(value);
        }
        if (takes) {
            buffer[write_at] = in.read();
            write_at = write_at + 1 == SLOTS ? 0 : write_at + 1;
            ++taken;
            if (++of_frame == walk.frame_words()) {
                of_frame = 0;
                ++taken_frame;
            }
        }
        for (int k = WALK_LANDING - 1; k > 0; --k) {
#pragma HLS UNROLL
            landing[k] = landing[k - 1];
        }
        landing[0] = takes;
        if (emits) {
            int step = 0;
            if (walk.advance(step)) {
                taken -= walk.frame_words();
                landed -= walk.frame_words();
                ++left_frame;
            }
            read_at += step;
            if (read_at >= SLOTS) read_at -= SLOTS;
        }
    }
}

#endif  // SYSTOLIC_WALK_H
