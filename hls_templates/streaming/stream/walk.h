// The loop that default windows, reorg, up-sampling and resizing share: a map is written into a circular buffer as it
// comes, and read out along a *walk*. Reading and writing go on side by side, II 1, over the borders of rows and
// frames.
//
// WALK says, for the word that leaves next, in words of the frame that is walked:
//   need()          how many words of the frame must be in the buffer
//   oldest()        the first word that is still needed; it never decreases within a frame
//   inside()        false where zeros leave instead of the word
//   advance(step)   goes to the next word, and is true after the frame's last; step: how much further the next address
//                   is, 0 … SLOTS − 1
// and for the whole run:
//   frame_words()   words of a frame that comes
//   CAPACITY        most words that wait in the buffer
//   start()         the first address
//   pace(), share() pace() words are taken for share() words that leave
//
// Words are taken at this even pace and not whenever there is room: a block that takes faster than its share has to
// wait for its writer, and while it waits it writes nothing either.
//
//   iterations = words needed for the first position + WALK_LANDING − 1 + words that leave
//
// where the walk never waits; pace and capacity are chosen so that it does not.
#ifndef SYSTOLIC_WALK_H
#define SYSTOLIC_WALK_H

#include <hls_stream.h>

#include "constant.h"
#include "instrument.h"
#include "ram.h"
#include "word.h"

constexpr int WALK_DEPTH = 6;
// Iterations from a word's arrival to its first use. Its write is complete by then, so that no read has to wait for it.
constexpr int WALK_LANDING = 3;
// Words between the one that frees a slot and the one that is written there: reads in the pipeline still find the old
// word.
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
    // Words that were taken, and that may be used: from the start of the frame that is walked, those of later frames
    // too.
    int taken = 0, landed = 0;
    int taken_frame = 0, left_frame = 0, credit = 0;
    int frame_word = 0;  // words of the frame that comes, so far
    int write_address = 0, read_address = walk.start();
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
            word<T, LANES> value = buffer[read_address];
            for (int l = 0; l < LANES; ++l) {
#pragma HLS UNROLL
                if (!walk.inside()) value.lane[l] = 0;
            }
            out.write(value);
        }
        if (takes) {
            buffer[write_address] = in.read();
            write_address = write_address + 1 == SLOTS ? 0 : write_address + 1;
            ++taken;
            if (++frame_word == walk.frame_words()) {
                frame_word = 0;
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
            read_address += step;
            if (read_address >= SLOTS) read_address -= SLOTS;
        }
    }
}

#endif  // SYSTOLIC_WALK_H
