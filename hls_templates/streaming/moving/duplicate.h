// Supplies several readers with the same stream. Each cycle reads a word and writes it to every output stream, II 1:
// iterations = F · WORDS for F frames of WORDS words.
#ifndef SYSTOLIC_DUPLICATE_H
#define SYSTOLIC_DUPLICATE_H

#include <hls_stream.h>

#include "instrument.h"
#include "progress.h"
#include "word.h"

constexpr int DUPLICATE_DEPTH = 2;  // declared pipeline stages

// Writes ``value`` to every stream. The compiler expands the recursion into a sequence of writes.
template <class W>
inline void write_all(const W &) {
#pragma HLS INLINE
}

template <class W, class... STREAMS>
inline void write_all(const W &value, hls::stream<W> &first, STREAMS &...others) {
#pragma HLS INLINE
    first.write(value);
    write_all(value, others...);
}

template <int LANES, int WORDS, class T, class... STREAMS>
void duplicate(int frames, hls::stream<word<T, LANES>> &in, STREAMS &...outs) {
#pragma HLS INLINE
    progress_t<WORDS> done;
    SYSTOLIC_ENTER;
    while (done.before(frames)) {
        SYSTOLIC_PIPELINE(1, DUPLICATE_DEPTH);
#pragma HLS LOOP_TRIPCOUNT min = 1 max = 1000000
        write_all(in.read(), outs...);
        done.next();
    }
}

#endif  // SYSTOLIC_DUPLICATE_H
