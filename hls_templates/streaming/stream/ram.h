// The kind of memory that stores an array. A template parameter cannot name the memory inside a pragma. Each kind
// therefore has an overload with its own pragma, and the tag ram_of<RAM> selects the overload.
#ifndef SYSTOLIC_RAM_H
#define SYSTOLIC_RAM_H

enum ram_t { RAM_AUTO, RAM_LUTRAM, RAM_BRAM, RAM_URAM };

template <int RAM>
struct ram_of {};

// bind_memory binds an array to a simple dual-port memory: a block writes it at one address and reads it at another in
// the same cycle. The cast marks the parameter as used, because only the pragma names it.
template <class T, int DEPTH>
inline void bind_memory(T (&memory)[DEPTH], ram_of<RAM_AUTO>) {
#pragma HLS INLINE
#pragma HLS BIND_STORAGE variable = memory type = ram_s2p impl = auto
    static_cast<void>(memory);
}

template <class T, int DEPTH>
inline void bind_memory(T (&memory)[DEPTH], ram_of<RAM_LUTRAM>) {
#pragma HLS INLINE
#pragma HLS BIND_STORAGE variable = memory type = ram_s2p impl = lutram
    static_cast<void>(memory);
}

template <class T, int DEPTH>
inline void bind_memory(T (&memory)[DEPTH], ram_of<RAM_BRAM>) {
#pragma HLS INLINE
#pragma HLS BIND_STORAGE variable = memory type = ram_s2p impl = bram
    static_cast<void>(memory);
}

template <class T, int DEPTH>
inline void bind_memory(T (&memory)[DEPTH], ram_of<RAM_URAM>) {
#pragma HLS INLINE
#pragma HLS BIND_STORAGE variable = memory type = ram_s2p impl = uram
    static_cast<void>(memory);
}

#endif  // SYSTOLIC_RAM_H
