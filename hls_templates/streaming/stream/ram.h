// The memory in which an array is kept. A template parameter cannot name the memory inside a pragma, so that each
// memory has an overload with a pragma of its own, chosen by the tag ram_of<RAM>.
#ifndef SYSTOLIC_RAM_H
#define SYSTOLIC_RAM_H

enum ram_t { RAM_AUTO, RAM_LUTRAM, RAM_BRAM, RAM_URAM };

template <int RAM>
struct ram_of {};

// keep_in: a memory that a block writes at one address and reads at another, simple dual port.
template <class T, int DEPTH>
inline void keep_in(T (&memory)[DEPTH], ram_of<RAM_AUTO>) {
#pragma HLS INLINE
#pragma HLS BIND_STORAGE variable = memory type = ram_s2p impl = auto
    static_cast<void>(memory);
}

template <class T, int DEPTH>
inline void keep_in(T (&memory)[DEPTH], ram_of<RAM_LUTRAM>) {
#pragma HLS INLINE
#pragma HLS BIND_STORAGE variable = memory type = ram_s2p impl = lutram
    static_cast<void>(memory);
}

template <class T, int DEPTH>
inline void keep_in(T (&memory)[DEPTH], ram_of<RAM_BRAM>) {
#pragma HLS INLINE
#pragma HLS BIND_STORAGE variable = memory type = ram_s2p impl = bram
    static_cast<void>(memory);
}

template <class T, int DEPTH>
inline void keep_in(T (&memory)[DEPTH], ram_of<RAM_URAM>) {
#pragma HLS INLINE
#pragma HLS BIND_STORAGE variable = memory type = ram_s2p impl = uram
    static_cast<void>(memory);
}

#endif  // SYSTOLIC_RAM_H
