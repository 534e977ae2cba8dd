// The loop that default windows, reorg, up-sampling and resizing share: a map is written into a circular buffer as it
// comes, and read out along a *walk*. Reading and writing go on side by side, II 1, over the borders of rows and
// frames.
//
// WALK stands at a word of the frame that is walked:
//   inside()       false where zeros leave instead of the word
//   step()         goes to the next word, behind the frame's last to the first of the next, and says how (move_t)
// and has, for the whole run:
//   FRAME_WORDS    words of a frame that comes
//   CAPACITY       most words that wait in the buffer
//   START, NEED    the first address; words of the frame that must be in the buffer for the first word
//   PACE, SHARE    PACE words are taken for SHARE words that leave
//
// The loop is a word ahead of what leaves: it knows already how the walk goes on when a word leaves, so that a cycle
// only adds. Whether a word leaves or comes next is a register (``ready``, ``room``), found for all that may happen in a
// cycle, of which one is chosen.
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
#include "counter.h"
#include "instrument.h"
#include "progress.h"
#include "ram.h"
#include "word.h"

constexpr int WALK_DEPTH = 8;
// Iterations from a word's arrival to its first use. Its write is complete by then, so that no read has to wait for it.
constexpr int WALK_LANDING = 3;
// Words between the one that frees a slot and the one that is written there: reads in the pipeline still find the old
// word.
constexpr int WALK_MARGIN = 8;
static_assert(WALK_DEPTH <= WALK_MARGIN, "no read lies further behind than the words that leave a slot alone");

constexpr int walk_slots(int capacity) { return capacity + WALK_MARGIN; }

// From a word that leaves to the next: how much further its address is, 0 … SLOTS − 1; how many words more the buffer must
// have had; how many words more are needed no longer; and whether it is the first of a frame.
struct move_t {
    int address, need, oldest;
    bool ends;
};

// What rises by STEP each time, but not beyond LIMIT: from FIRST, ``rise(n)`` from the n-th value to the next.
template <long FIRST, long STEP, long LIMIT>
struct rising_t {
    static constexpr int WHOLE = FIRST < LIMIT ? (LIMIT - FIRST) / STEP : 0;
    static constexpr int value(long n) { return FIRST + n * STEP < LIMIT ? FIRST + n * STEP : LIMIT; }
    static constexpr int REST = value(WHOLE + 1) - value(WHOLE);

    template <class COUNT>
    static int rise(const COUNT &n) {
#pragma HLS INLINE
        return n < WHOLE ? int(STEP) : n == WHOLE ? REST : 0;
    }
};

// What rises by STEP each time, and counts as 0 while it is below.
template <long FIRST, long STEP>
struct surfacing_t {
    static constexpr int BELOW = FIRST < 0 ? -FIRST / STEP : 0;
    static constexpr int value(long n) { return FIRST + n * STEP > 0 ? FIRST + n * STEP : 0; }
    static constexpr int REST = value(BELOW + 1) - value(BELOW);

    template <class COUNT>
    static int rise(const COUNT &n) {
#pragma HLS INLINE
        return n < BELOW ? 0 : n == BELOW ? REST : int(STEP);
    }
};

// Words are taken evenly. ``due``: a word is taken with the next that leaves.
template <int PACE, int SHARE>
struct pace_t {
    number<PACE + SHARE> credit;
    bool due;

    pace_t() : credit(0), due(PACE >= SHARE) {}

    // A word leaves; taken: and one is taken. One that is due and cannot be taken stays due.
    void next(bool taken) {
#pragma HLS INLINE
        const bool after[2] = {credit + 2 * PACE >= SHARE, credit + 2 * PACE >= 2 * SHARE};
        const number<PACE + SHARE> credits[2] = {number<PACE + SHARE>(credit + PACE),
                                                 number<PACE + SHARE>(credit + (PACE - SHARE))};
        credit = taken ? credits[1] : due ? number<PACE + SHARE>(SHARE) : credits[0];
        due = taken ? after[1] : due || after[0];
    }
};

// AROUND: what leaves where the walk is outside of the map.
template <int RAM, int AROUND = 0, class WALK, class T, int LANES>
void walk_map(int frames, hls::stream<word<T, LANES>> &in, hls::stream<word<T, LANES>> &out, WALK walk) {
#pragma HLS INLINE
    constexpr int SLOTS = walk_slots(WALK::CAPACITY);
    typedef integer<bits_of<4L * WALK::CAPACITY>::value + 1, true> words_t;
    word<T, LANES> buffer[SLOTS];
#pragma HLS AGGREGATE variable = buffer compact = bit
    keep_in(buffer, ram_of<RAM>());
    bool landing[WALK_LANDING - 1];
#pragma HLS ARRAY_PARTITION variable = landing complete
    for (int k = 0; k < WALK_LANDING - 1; ++k) {
#pragma HLS UNROLL
        landing[k] = false;
    }
    frames_t coming(frames), leaving(frames);
    counter_t<WALK::FRAME_WORDS> frame_word;  // of the frame that comes
    counter_t<SLOTS> write_address;
    words_t read_address = WALK::START;
    pace_t<WALK::PACE, WALK::SHARE> pace;
    // Words that have landed beyond those that the next word needs, and places for words that come; of both, whether
    // there are enough.
    words_t landed = -WALK::NEED, places = WALK::CAPACITY;
    bool ready = WALK::NEED == 0, room = true;
    bool inside = walk.inside();
    move_t move = walk.step();
    // What is compared with ``landed``, ``places`` and 0 is there already, so that nothing is added before a comparison.
    words_t need = move.need, need_less = move.need - 1, oldest = move.oldest;
    words_t no_place = -move.oldest, a_place = 1 - move.oldest, address = move.address,
            last_slots = SLOTS - move.address;
    bool ends = move.ends;
    SYSTOLIC_ENTER;
    while (coming.open || leaving.open) {
        SYSTOLIC_PIPELINE(1, WALK_DEPTH);
#pragma HLS LOOP_TRIPCOUNT min = 1 max = 1000000
#pragma HLS DEPENDENCE variable = buffer type = inter false
        const bool emits = leaving.open && ready;
        const bool takes = coming.open && room && (!emits || pace.due);
        if (emits) {
            word<T, LANES> value = buffer[read_address];
            for (int l = 0; l < LANES; ++l) {
#pragma HLS UNROLL
                if (!inside) value.lane[l] = AROUND;
            }
            out.write(value);
        }
        if (takes) {
            buffer[write_address.value] = in.read();
            write_address.next();
            if (frame_word.next()) coming.next();
        }
        const bool lands = landing[WALK_LANDING - 2];
        const bool still[2] = {landed >= 0, landed >= -1}, then[2] = {landed >= need, landed >= need_less};
        ready = emits ? (lands ? then[1] : then[0]) : (lands ? still[1] : still[0]);
        landed = landed - (emits ? need : words_t(0)) + (lands ? 1 : 0);
        const bool kept[2] = {places > 0, places > 1}, freed[2] = {places > no_place, places > a_place};
        room = emits ? (takes ? freed[1] : freed[0]) : (takes ? kept[1] : kept[0]);
        places = places + (emits ? oldest : words_t(0)) - (takes ? 1 : 0);
        for (int k = WALK_LANDING - 2; k > 0; --k) {
#pragma HLS UNROLL
            landing[k] = landing[k - 1];
        }
        landing[0] = takes;
        if (emits) {
            const bool around = read_address >= last_slots;
            read_address += around ? words_t(-last_slots) : address;
            pace.next(takes);
            if (ends) leaving.next();
            inside = walk.inside();
            move = walk.step();
            need = move.need;
            need_less = move.need - 1;
            oldest = move.oldest;
            no_place = -move.oldest;
            a_place = 1 - move.oldest;
            address = move.address;
            last_slots = SLOTS - move.address;
            ends = move.ends;
        }
    }
}

#endif  // SYSTOLIC_WALK_H
