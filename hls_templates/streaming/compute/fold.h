// Folding of the units with weights: which part of a layer's matrix is computed in a cycle, and its weights.
//
// A matrix of NF · PE rows and SF · SIMD columns is cut into tiles of PE × SIMD, one a cycle, row of tiles by row of
// tiles. Weights lie as [PE][NF · SF][SIMD]: row nf · PE + pe, column sf · SIMD + s is [pe][nf · SF + sf][s].
#ifndef SYSTOLIC_FOLD_H
#define SYSTOLIC_FOLD_H

#include <hls_stream.h>

#include "counter.h"
#include "word.h"

// Stages of a unit that adds ``simd`` products a cycle, with a requantiser behind: no fewer than follow where the products
// are added one behind the other, as nothing here relies on a tree of adders or on a DSP's cascade. What is one bit wide
// takes most. scheduler/streaming/model/depths.py is the same in Python.
constexpr int LEAST_UNIT_DEPTH = 32;
constexpr int unit_depth(int simd) { return 2 * simd / 3 > LEAST_UNIT_DEPTH ? 2 * simd / 3 : LEAST_UNIT_DEPTH; }

// Tile (nf, sf), and its number nf · SF + sf.
template <int NF, int SF>
struct fold_t {
    counter_t<NF> nf;
    counter_t<SF> sf;
    counter_t<NF * SF> tile;

    bool first() const {
#pragma HLS INLINE
        return sf.value == 0;
    }
    bool last() const {
#pragma HLS INLINE
        return sf.last;
    }
    void step() {
#pragma HLS INLINE
        tile.next();
        if (sf.next()) nf.next();
    }
};

// A word of a weight stream as a tile: lane pe · SIMD + s is the weight of PE pe, lane s.
template <int PE, int SIMD, class CARRIER>
inline void spread_weights(const word<CARRIER, PE * SIMD> &packed, CARRIER (&weight)[PE][SIMD]) {
#pragma HLS INLINE
    for (int pe = 0; pe < PE; ++pe) {
#pragma HLS UNROLL
        for (int s = 0; s < SIMD; ++s) {
#pragma HLS UNROLL
            weight[pe][s] = packed.lane[pe * SIMD + s];
        }
    }
}

// The weights of one cycle, by what holds them. Embedded: tile ``tile`` of an array of constants.
template <int PE, int SIMD, int TILES, class CARRIER, class STORED>
inline void take_weights(const STORED (&source)[PE][TILES][SIMD], int tile, CARRIER (&weight)[PE][SIMD]) {
#pragma HLS INLINE
    for (int pe = 0; pe < PE; ++pe) {
#pragma HLS UNROLL
        for (int s = 0; s < SIMD; ++s) {
#pragma HLS UNROLL
            weight[pe][s] = source[pe][tile][s];
        }
    }
}

// Streamed: the next word of a stream, which brings the tiles in their order.
template <int PE, int SIMD, class CARRIER>
inline void take_weights(hls::stream<word<CARRIER, PE * SIMD>> &source, int, CARRIER (&weight)[PE][SIMD]) {
#pragma HLS INLINE
    spread_weights<PE, SIMD>(source.read(), weight);
}

#endif  // SYSTOLIC_FOLD_H
