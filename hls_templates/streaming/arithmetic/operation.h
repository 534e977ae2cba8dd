// Operations on two values, for element_wise, channel_wise (elementwise.h) and window_pool.h. POOLS: whether it may take
// any number of values, in whatever groups, and be done with the next one a cycle later.
#ifndef SYSTOLIC_OPERATION_H
#define SYSTOLIC_OPERATION_H

struct add_op {
    static constexpr bool POOLS = true;
    template <class SUM>
    static SUM of(SUM a, SUM b) {
#pragma HLS INLINE
        return SUM(a + b);
    }
};
struct subtract_op {
    static constexpr bool POOLS = false;
    template <class SUM>
    static SUM of(SUM a, SUM b) {
#pragma HLS INLINE
        return SUM(a - b);
    }
};
struct difference_op {  // |a − b|
    static constexpr bool POOLS = false;
    template <class SUM>
    static SUM of(SUM a, SUM b) {
#pragma HLS INLINE
        return a > b ? SUM(a - b) : SUM(b - a);
    }
};
struct multiply_op {
    static constexpr bool POOLS = false;
    template <class SUM>
    static SUM of(SUM a, SUM b) {
#pragma HLS INLINE
        return SUM(a * b);
    }
};
struct max_op {
    static constexpr bool POOLS = true;
    template <class SUM>
    static SUM of(SUM a, SUM b) {
#pragma HLS INLINE
        return a > b ? a : b;
    }
};
struct min_op {
    static constexpr bool POOLS = true;
    template <class SUM>
    static SUM of(SUM a, SUM b) {
#pragma HLS INLINE
        return a < b ? a : b;
    }
};

#endif  // SYSTOLIC_OPERATION_H
