// The folding of units with weights: which tile of a layer's weight matrix a cycle uses, and how the unit gets its
// weights.
//
// The matrix has NF · PE rows and SF · SIMD columns. It is divided into tiles of PE × SIMD weights, and a cycle uses
// one tile. Tiles are used row by row: tile (nf, sf) is number nf · SF + sf. Weights are stored as [PE][NF · SF][SIMD],
// so that the weight in row nf · PE + pe and column sf · SIMD + s is at [pe][nf · SF + sf][s].
#ifndef SYSTOLIC_FOLD_H
#define SYSTOLIC_FOLD_H

#include <hls_stream.h>

#include "counter.h"
#include "word.h"

// The declared pipeline stages of a unit that adds up ``simd`` products per cycle and requantises the sum.
//
// They suffice if the tool adds the products in a chain, because nothing here ensures a tree of adders or a DSP
// cascade. Products of one-bit operands need the most stages. scheduler/streaming/model/depths.py has the same function
// in Python.
constexpr int LEAST_UNIT_DEPTH = 32;
constexpr int unit_depth(int simd) { return 2 * simd / 3 > LEAST_UNIT_DEPTH ? 2 * simd / 3 : LEAST_UNIT_DEPTH; }

// The tile of the present cycle.
template <int NF, int SF>
struct fold_t {
    counter_t<NF> nf;         // the row of tiles: the fold of the output channels
    counter_t<SF> sf;         // the column of tiles: the word of the input vector
    counter_t<NF * SF> tile;  // nf · SF + sf, in a register, so that no address needs a multiplication

    // Return whether the tile is the first of its row, where sums start from 0.
    bool first() const {
#pragma HLS INLINE
        return sf.value == 0;
    }
    // Return whether the tile is the last of its row, where sums are complete.
    bool last() const {
#pragma HLS INLINE
        return sf.last;
    }
    // Moves to the next tile.
    void step() {
#pragma HLS INLINE
        tile.next();
        if (sf.next()) nf.next();
    }
};

// Converts a word of a weight stream into a tile: lane pe · SIMD + s of the word is weight[pe][s].
template <int PE, int SIMD, class CARRIER>
inline void unpack_weights(const word<CARRIER, PE * SIMD> &packed, CARRIER (&weight)[PE][SIMD]) {
#pragma HLS INLINE
    for (int pe = 0; pe < PE; ++pe) {
#pragma HLS UNROLL
        for (int s = 0; s < SIMD; ++s) {
#pragma HLS UNROLL
            weight[pe][s] = packed.lane[pe * SIMD + s];
        }
    }
}

// read_weights returns the weights of one cycle, and has an overload for each kind of source. Embedded weights: reads
// tile number ``tile`` of an array of constants.
template <int PE, int SIMD, int TILES, class CARRIER, class STORED>
inline void read_weights(const STORED (&source)[PE][TILES][SIMD], int tile, CARRIER (&weight)[PE][SIMD]) {
#pragma HLS INLINE
    for (int pe = 0; pe < PE; ++pe) {
#pragma HLS UNROLL
        for (int s = 0; s < SIMD; ++s) {
#pragma HLS UNROLL
            weight[pe][s] = source[pe][tile][s];
        }
    }
}

// Streamed weights: reads the next word of a stream. The writer of the stream supplies the tiles in the order of use,
// so that the number of the tile is not needed.
template <int PE, int SIMD, class CARRIER>
inline void read_weights(hls::stream<word<CARRIER, PE * SIMD>> &source, int, CARRIER (&weight)[PE][SIMD]) {
#pragma HLS INLINE
    unpack_weights<PE, SIMD>(source.read(), weight);
}

#endif  // SYSTOLIC_FOLD_H
