// The operations on two values that element_wise (elementwise.h) takes as OPERATION. SUM is wide enough for every
// result.
#ifndef SYSTOLIC_OPERATION_H
#define SYSTOLIC_OPERATION_H

struct add_op {
    template <class SUM>
    static SUM of(SUM a, SUM b) {
#pragma HLS INLINE
        return SUM(a + b);
    }
};
struct subtract_op {
    template <class SUM>
    static SUM of(SUM a, SUM b) {
#pragma HLS INLINE
        return SUM(a - b);
    }
};
struct difference_op {  // |a − b|
    template <class SUM>
    static SUM of(SUM a, SUM b) {
#pragma HLS INLINE
        return a > b ? SUM(a - b) : SUM(b - a);
    }
};
struct multiply_op {
    template <class SUM>
    static SUM of(SUM a, SUM b) {
#pragma HLS INLINE
        return SUM(a * b);
    }
};
struct max_op {
    template <class SUM>
    static SUM of(SUM a, SUM b) {
#pragma HLS INLINE
        return a > b ? a : b;
    }
};
struct min_op {
    template <class SUM>
    static SUM of(SUM a, SUM b) {
#pragma HLS INLINE
        return a < b ? a : b;
    }
};

#endif  // SYSTOLIC_OPERATION_H
