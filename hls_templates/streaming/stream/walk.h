// The loop that default windows, reorg, depth to space, up-sampling and resizing share. It writes a map into a circular
// buffer in the order of arrival, and reads it in the order of a *walk*.
//
// Each iteration reads at most one input word and writes at most one output word, II 1. Reading and writing continue
// across the ends of rows and frames.
//
// The class WALK gives the order of the output words. An object of it is at one output word of a frame:
//   inside()       whether the output word is a word of the map; otherwise padding is written
//   step()         moves to the next output word, also from a frame's last word to the next frame's first, and returns
//                  the move (move_t)
// Its constants, for the whole run, are:
//   FRAME_WORDS    words of an input frame
//   CAPACITY       the most input words that are stored at a time
//   START          the buffer address of the first output word
//   NEED           input words that must be stored before the first output word is read
//   READ_PACE, WRITE_PACE    READ_PACE input words are read for every WRITE_PACE output words
//
// The walk is one word ahead of the output. When a word is written, the move to the next word is already in registers,
// so that a cycle contains only additions. Whether the next iteration may write (``ready``) or read (``room``) is a
// register too: it is computed for each combination of events of the present iteration, and one result is selected.
//
// Words are read at an even pace and not as soon as there is room. A block that reads faster than its share has to wait
// for the writer of its input, and while it waits it does not write either.
//
//   iterations = NEED + WALK_LANDING − 1 + output words        if the walk never waits
//
// The pace and the capacity are chosen so that the walk does not wait.
#ifndef SYSTOLIC_WALK_H
#define SYSTOLIC_WALK_H

#include <hls_stream.h>

#include "constant.h"
#include "counter.h"
#include "instrument.h"
#include "progress.h"
#include "ram.h"
#include "word.h"

constexpr int WALK_DEPTH = 8;  // declared pipeline stages of the loop
// Iterations from a word's arrival to its first use. Its write into the buffer is complete by then.
constexpr int WALK_LANDING = 3;
// Slots of the buffer in addition to its capacity. A released slot is overwritten at least this many input words later,
// so that reads that are still in the pipeline find the old word.
constexpr int WALK_MARGIN = 8;
static_assert(WALK_DEPTH <= WALK_MARGIN,
              "WALK_MARGIN must be at least WALK_DEPTH, so that no word is overwritten before its last read");

// The words of the buffer.
constexpr int walk_slots(int capacity) { return capacity + WALK_MARGIN; }

// The move from one output word to the next:
//   address   the increase of the buffer address modulo SLOTS, 0 … SLOTS − 1
//   need      further input words that must be stored before the next output word can be read
//   oldest    further input words that are no longer needed, whose slots are released
//   ends      whether the move starts from the last word of a frame
struct move_t {
    int address, need, oldest;
    bool ends;
};

// The sequence value(n) = min(FIRST + n · STEP, LIMIT), and its increments increment(n) = value(n + 1) − value(n). A
// run-time increment costs two comparisons with constants, and no multiplication.
template <long FIRST, long STEP, long LIMIT>
struct increments_below_t {
    static constexpr int WHOLE = FIRST < LIMIT ? (LIMIT - FIRST) / STEP : 0;
    static constexpr int value(long n) { return FIRST + n * STEP < LIMIT ? FIRST + n * STEP : LIMIT; }
    static constexpr int REST = value(WHOLE + 1) - value(WHOLE);

    template <class COUNT>
    static int increment(const COUNT &n) {
#pragma HLS INLINE
        return n < WHOLE ? int(STEP) : n == WHOLE ? REST : 0;
    }
};

// The sequence value(n) = max(FIRST + n · STEP, 0), and its increments increment(n) = value(n + 1) − value(n).
template <long FIRST, long STEP>
struct increments_above_t {
    static constexpr int BELOW = FIRST < 0 ? -FIRST / STEP : 0;
    static constexpr int value(long n) { return FIRST + n * STEP > 0 ? FIRST + n * STEP : 0; }
    static constexpr int REST = value(BELOW + 1) - value(BELOW);

    template <class COUNT>
    static int increment(const COUNT &n) {
#pragma HLS INLINE
        return n < BELOW ? 0 : n == BELOW ? REST : int(STEP);
    }
};

// Distributes READ_PACE reads evenly over WRITE_PACE writes, READ_PACE ≤ WRITE_PACE.
template <int READ_PACE, int WRITE_PACE>
struct pace_t {
    number<READ_PACE + WRITE_PACE> credit;  // READ_PACE for every write, less WRITE_PACE for every read
    bool due;  // a register: whether an input word is read together with the next output word

    pace_t() : credit(0), due(READ_PACE >= WRITE_PACE) {}

    // Counts an output word. ``word_read`` says that an input word was read in the same iteration. A read that is due
    // but not possible stays due, and no further reads accumulate.
    void next(bool word_read) {
#pragma HLS INLINE
        const bool after[2] = {credit + 2 * READ_PACE >= WRITE_PACE, credit + 2 * READ_PACE >= 2 * WRITE_PACE};
        const number<READ_PACE + WRITE_PACE> credits[2] = {
            number<READ_PACE + WRITE_PACE>(credit + READ_PACE),
            number<READ_PACE + WRITE_PACE>(credit + (READ_PACE - WRITE_PACE))};
        credit = word_read ? credits[1] : due ? number<READ_PACE + WRITE_PACE>(WRITE_PACE) : credits[0];
        due = word_read ? after[1] : due || after[0];
    }
};

// The loop over all frames of a run.
//   RAM       the kind of memory of the buffer (ram.h)
//   PADDING    the value of padding, which is written if the walk is outside of the map
template <int RAM, int PADDING = 0, class WALK, class T, int LANES>
void walk_map(int frames, hls::stream<word<T, LANES>> &in, hls::stream<word<T, LANES>> &out, WALK walk) {
#pragma HLS INLINE
    constexpr int SLOTS = walk_slots(WALK::CAPACITY);
    typedef integer<bits_of<4L * WALK::CAPACITY>::value + 1, true> words_t;
    word<T, LANES> buffer[SLOTS];
// One memory word holds all lanes, because a cycle reads and writes whole words.
#pragma HLS AGGREGATE variable = buffer compact = bit
    bind_memory(buffer, ram_of<RAM>());
    bool recent_reads[WALK_LANDING - 1];  // whether a word was read in each of the last iterations, the newest first
#pragma HLS ARRAY_PARTITION variable = recent_reads complete
    for (int k = 0; k < WALK_LANDING - 1; ++k) {
#pragma HLS UNROLL
        recent_reads[k] = false;
    }
    frames_t input_frames(frames), output_frames(frames);  // frames to read, and frames to write
    counter_t<WALK::FRAME_WORDS> frame_word;               // the number of the next input word of its frame
    counter_t<SLOTS> write_address;                        // the slot of the next input word
    words_t read_address = WALK::START;                    // the slot of the next output word
    pace_t<WALK::READ_PACE, WALK::WRITE_PACE> pace;
    // surplus_words: words that are stored in the buffer, less the words that the next output word needs. ready: at
    // least 0.
    // free_slots: words of the capacity that are free. room: free_slots > 0.
    words_t surplus_words = -WALK::NEED, free_slots = WALK::CAPACITY;
    bool ready = WALK::NEED == 0, room = true;
    bool inside = walk.inside();
    move_t move = walk.step();
    // Values derived from the move, in registers of their own, so that no addition precedes a comparison in a cycle.
    words_t need = move.need, need_less_one = move.need - 1, oldest = move.oldest;
    words_t release = -move.oldest, release_less_one = 1 - move.oldest, address = move.address,
            last_slots = SLOTS - move.address;
    bool ends = move.ends;
    SYSTOLIC_ENTER;
    while (input_frames.open || output_frames.open) {
        SYSTOLIC_PIPELINE(1, WALK_DEPTH);
#pragma HLS LOOP_TRIPCOUNT min = 1 max = 1000000
// WALK_LANDING keeps reads after the write of the same word, and WALK_MARGIN keeps writes after the read of the old
// word.
#pragma HLS DEPENDENCE variable = buffer type = inter false
        const bool writes = output_frames.open && ready;
        const bool reads = input_frames.open && room && (!writes || pace.due);
        if (writes) {
            word<T, LANES> value = buffer[read_address];
            for (int l = 0; l < LANES; ++l) {
#pragma HLS UNROLL
                if (!inside) value.lane[l] = PADDING;
            }
            out.write(value);
        }
        if (reads) {
            buffer[write_address.value] = in.read();
            write_address.next();
            if (frame_word.next()) input_frames.next();
        }
        // Each pair holds the result without and with one of the events that may happen in this iteration.
        const bool word_arrives = recent_reads[WALK_LANDING - 2];
        const bool ready_unchanged[2] = {surplus_words >= 0, surplus_words >= -1},
                   ready_after_write[2] = {surplus_words >= need, surplus_words >= need_less_one};
        ready = writes ? (word_arrives ? ready_after_write[1] : ready_after_write[0])
                       : (word_arrives ? ready_unchanged[1] : ready_unchanged[0]);
        surplus_words = surplus_words - (writes ? need : words_t(0)) + (word_arrives ? 1 : 0);
        const bool room_unchanged[2] = {free_slots > 0, free_slots > 1},
                   room_after_write[2] = {free_slots > release, free_slots > release_less_one};
        room = writes ? (reads ? room_after_write[1] : room_after_write[0])
                      : (reads ? room_unchanged[1] : room_unchanged[0]);
        free_slots = free_slots + (writes ? oldest : words_t(0)) - (reads ? 1 : 0);
        for (int k = WALK_LANDING - 2; k > 0; --k) {
#pragma HLS UNROLL
            recent_reads[k] = recent_reads[k - 1];
        }
        recent_reads[0] = reads;
        if (writes) {
            // last_slots is SLOTS less the step, so that the comparison finds whether the new address wraps.
            const bool wraps = read_address >= last_slots;
            read_address += wraps ? words_t(-last_slots) : address;
            pace.next(reads);
            if (ends) output_frames.next();
            inside = walk.inside();
            move = walk.step();
            need = move.need;
            need_less_one = move.need - 1;
            oldest = move.oldest;
            release = -move.oldest;
            release_less_one = 1 - move.oldest;
            address = move.address;
            last_slots = SLOTS - move.address;
            ends = move.ends;
        }
    }
}

#endif  // SYSTOLIC_WALK_H
