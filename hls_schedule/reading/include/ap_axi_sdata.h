// Beats of AXI4-Stream, reduced to the parts that a check needs.
#ifndef HLS_SCHEDULE_AP_AXI_SDATA_H
#define HLS_SCHEDULE_AP_AXI_SDATA_H

#include "ap_int.h"

template <int BITS, int USER, int ID, int DESTINATION>
struct ap_axiu {
    ap_uint<BITS> data;
    ap_uint<(BITS + 7) / 8> keep, strb;
    ap_uint<1> last;
};
template <int BITS, int USER, int ID, int DESTINATION>
struct ap_axis {
    ap_int<BITS> data;
    ap_uint<(BITS + 7) / 8> keep, strb;
    ap_uint<1> last;
};

#endif  // HLS_SCHEDULE_AP_AXI_SDATA_H
