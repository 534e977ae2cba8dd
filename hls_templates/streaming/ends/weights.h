// Weight streamers supply the weights of units whose weights are not embedded (matrix_vector_streamed and others).
//
// A streamer writes the TILES = (MH / PE) · (MW / SIMD) tiles of a layer in order, one tile of PE · SIMD weights per
// word. It repeats all tiles for each of the GROUPS = POSITIONS / PIXELS groups of positions of a frame. All loops have
// II 1.
//
//   stream_weights   decoupled: constants in a memory next to the unit (LUTRAM or BRAM). Each cycle reads the memory
//                    and writes a word
//       cycles per frame = GROUPS · TILES
//       cycles per run   = frames · (cycles per frame) + WEIGHTS_DEPTH
//   load_weights     decoupled, in a memory without initial content (URAM). Once per start, a first loop fills the
//                    memory from DDR, one beat per cycle. The second loop is the same as in stream_weights
//       cycles per run   = TILES · BEATS, and the cycles of stream_weights
//   fetch_weights    external: reads all tiles from DDR again for each group, one beat per cycle. The beats of the next
//                    group are requested before the beats of this group are read
//       cycles per frame = GROUPS · (TILES · BEATS + fetch_depth(TILES · BEATS)), if DDR supplies a beat per cycle
//
// In DDR a tile is a whole number of beats (BEATS) of BYTES bytes. Weight pe · SIMD + simd is stored in the next 1, 2,
// 4, 8 or 16 bits, the fewest of these that hold it, from the least significant bit on. scheduler/streaming/weights.py
// writes this image.
#ifndef SYSTOLIC_WEIGHTS_H
#define SYSTOLIC_WEIGHTS_H

#include <hls_burst_maxi.h>
#include <hls_stream.h>

#include "counter.h"
#include "datatype.h"
#include "instrument.h"
#include "progress.h"
#include "ram.h"
#include "word.h"

constexpr int WEIGHTS_DEPTH = 4;  // declared pipeline stages of a loop that reads an on-chip memory

// The declared pipeline stages of a loop that reads ``beats`` beats. The tool dissolves a loop of one iteration. Its
// beat is then read in the iteration of the surrounding loop, after the request, which takes more stages.
constexpr int fetch_depth(int beats) { return beats == 1 ? 9 : 4; }

// One beat of DDR.
template <int BYTES>
using memory_beat_t = word<uint8_t, BYTES>;

// The bits of DDR for a weight of ``bits`` bits.
constexpr int slot_bits(int bits) { return bits <= 1 ? 1 : bits <= 2 ? 2 : bits <= 4 ? 4 : bits <= 8 ? 8 : 16; }

// The beats of ``bytes`` bytes for ``weights`` weights of ``bits`` bits.
constexpr int beats_of(int weights, int bits, int bytes) {
    return (weights * slot_bits(bits) + 8 * bytes - 1) / (8 * bytes);
}

// bind_rom binds an array of constants to a kind of read-only memory. The tag ram_of<RAM> selects the overload, as in
// ram.h.
template <class T, int A, int B, int C>
inline void bind_rom(const T (&memory)[A][B][C], ram_of<RAM_AUTO>) {
#pragma HLS INLINE
#pragma HLS BIND_STORAGE variable = memory type = rom_1p impl = auto
    static_cast<void>(memory);
}
template <class T, int A, int B, int C>
inline void bind_rom(const T (&memory)[A][B][C], ram_of<RAM_LUTRAM>) {
#pragma HLS INLINE
#pragma HLS BIND_STORAGE variable = memory type = rom_1p impl = lutram
    static_cast<void>(memory);
}
template <class T, int A, int B, int C>
inline void bind_rom(const T (&memory)[A][B][C], ram_of<RAM_BRAM>) {
#pragma HLS INLINE
#pragma HLS BIND_STORAGE variable = memory type = rom_1p impl = bram
    static_cast<void>(memory);
}

template <int GROUPS, int TILES, int PE, int SIMD, class WEIGHT, int RAM = RAM_AUTO, class STORED>
void stream_weights(int frames, hls::stream<word<typename WEIGHT::carrier, PE * SIMD>> &out,
                    const STORED (&weights)[PE][TILES][SIMD]) {
#pragma HLS INLINE
// All PEs and lanes use the same address, so that the weights are one wide memory.
#pragma HLS ARRAY_RESHAPE variable = weights complete dim = 1
#pragma HLS ARRAY_RESHAPE variable = weights complete dim = 3
    static_assert(RAM != RAM_URAM, "RAM must not be RAM_URAM, which has no initial content; use load_weights");
    bind_rom(weights, ram_of<RAM>());
    counter_t<TILES> tile;
    progress_t<GROUPS * TILES> done;
    SYSTOLIC_ENTER;
    while (done.before(frames)) {
        SYSTOLIC_PIPELINE(1, WEIGHTS_DEPTH);
#pragma HLS LOOP_TRIPCOUNT min = 1 max = 1000000
        word<typename WEIGHT::carrier, PE * SIMD> value;
        for (int pe = 0; pe < PE; ++pe) {
#pragma HLS UNROLL
            for (int s = 0; s < SIMD; ++s) {
#pragma HLS UNROLL
                value.lane[pe * SIMD + s] = weights[pe][tile.value][s];
            }
        }
        out.write(value);
        tile.next();
        done.next();
    }
}

// Returns weight number ``index`` from the bytes of a tile. SLOT is the bits of a weight in DDR, EACH the weights per
// byte, and WIDTH the bytes in which a weight is stored.
template <class WEIGHT, int ROOM>
inline typename WEIGHT::carrier unpack_weight(const uint8_t (&bytes)[ROOM], int index) {
#pragma HLS INLINE
    typedef typename WEIGHT::carrier carrier;
    constexpr int SLOT = slot_bits(WEIGHT::bits), EACH = SLOT < 8 ? 8 / SLOT : 1, WIDTH = SLOT < 8 ? 1 : SLOT / 8;
    const int first = index / EACH * WIDTH;
    int raw = bytes[first];
    if (WIDTH == 2) raw |= bytes[first + WIDTH - 1] << 8;
    raw = (raw >> (index % EACH * SLOT)) & ((1 << SLOT) - 1);
    // x ^ sign − sign extends the sign bit. A bipolar weight is its carrier, which is unsigned.
    const int sign = WEIGHT::low < 0 && !WEIGHT::bipolar ? 1 << (SLOT - 1) : 0;
    return carrier((raw ^ sign) - sign);
}

// The bytes of a tile, which arrive beat by beat. ``put`` stores beat number ``beat``, and ``weights`` returns the tile
// as a word.
template <int PE, int SIMD, class WEIGHT, int BYTES>
struct tile_t {
    static constexpr int BEATS = beats_of(PE * SIMD, WEIGHT::bits, BYTES);
    uint8_t bytes[BEATS * BYTES];

    void put(int beat, const memory_beat_t<BYTES> &value) {
#pragma HLS INLINE
        // Every byte is written at a constant index, because a run-time index would need a multiplexer per byte.
        for (int b = 0; b < BEATS; ++b) {
#pragma HLS UNROLL
            for (int i = 0; i < BYTES; ++i) {
#pragma HLS UNROLL
                if (b == beat) bytes[b * BYTES + i] = value.lane[i];
            }
        }
    }
    word<typename WEIGHT::carrier, PE * SIMD> weights() const {
#pragma HLS INLINE
        word<typename WEIGHT::carrier, PE * SIMD> value;
        for (int l = 0; l < PE * SIMD; ++l) {
#pragma HLS UNROLL
            value.lane[l] = unpack_weight<WEIGHT>(bytes, l);
        }
        return value;
    }
};

// ``base`` is the address in beats at which the image begins in DDR. PASS is the beats of all tiles.
template <int GROUPS, int TILES, int PE, int SIMD, class WEIGHT, int BYTES>
void fetch_weights(int frames, hls::stream<word<typename WEIGHT::carrier, PE * SIMD>> &out,
                   hls::burst_maxi<memory_beat_t<BYTES>> image, int base) {
#pragma HLS INLINE
    typedef tile_t<PE, SIMD, WEIGHT, BYTES> tile_type;
    constexpr int PASS = TILES * tile_type::BEATS;
    tile_type tile;
#pragma HLS ARRAY_PARTITION variable = tile.bytes complete
    counter_t<tile_type::BEATS> beat;
    progress_t<GROUPS> done;
    if (done.before(frames)) image.read_request(base, PASS);
    while (done.before(frames)) {
#pragma HLS LOOP_TRIPCOUNT min = 1 max = 1000000
        // The next group is requested before the beats of this group are read, so that DDR supplies them without a
        // pause.
        done.next();
        if (done.before(frames)) image.read_request(base, PASS);
        SYSTOLIC_ENTER;
        for (int i = 0; i < PASS; ++i) {
            SYSTOLIC_PIPELINE(1, fetch_depth(PASS));
            tile.put(beat.value, image.read());
            if (beat.last) out.write(tile.weights());
            beat.next();
        }
    }
}

// ``base`` is the address in beats at which the image begins in DDR. RAM is the kind of memory of the weights (ram.h).
template <int GROUPS, int TILES, int PE, int SIMD, class WEIGHT, int BYTES, int RAM = RAM_URAM>
void load_weights(int frames, hls::stream<word<typename WEIGHT::carrier, PE * SIMD>> &out,
                  hls::burst_maxi<memory_beat_t<BYTES>> image, int base) {
#pragma HLS INLINE
    typedef tile_t<PE, SIMD, WEIGHT, BYTES> tile_type;
    word<typename WEIGHT::carrier, PE * SIMD> weights[TILES];
#pragma HLS AGGREGATE variable = weights compact = bit
    bind_memory(weights, ram_of<RAM>());
    tile_type tile;
#pragma HLS ARRAY_PARTITION variable = tile.bytes complete
    counter_t<TILES> index;
    counter_t<tile_type::BEATS> beat;
    image.read_request(base, TILES * tile_type::BEATS);
    SYSTOLIC_ENTER;
    for (int i = 0; i < TILES * tile_type::BEATS; ++i) {
        SYSTOLIC_PIPELINE(1, fetch_depth(TILES * tile_type::BEATS));
        tile.put(beat.value, image.read());
        if (beat.last) weights[index.value] = tile.weights();
        if (beat.next()) index.next();
    }
    progress_t<GROUPS * TILES> done;
    SYSTOLIC_ENTER;
    while (done.before(frames)) {
        SYSTOLIC_PIPELINE(1, WEIGHTS_DEPTH);
#pragma HLS LOOP_TRIPCOUNT min = 1 max = 1000000
        out.write(weights[index.value]);
        index.next();
        done.next();
    }
}

#endif  // SYSTOLIC_WEIGHTS_H
