// One beat of AXI4-Stream as UG1399 documents it and no more: unsigned data of D bits with TKEEP, TSTRB and TLAST.
#ifndef DOCUMENTED_AP_AXI_SDATA_H
#define DOCUMENTED_AP_AXI_SDATA_H

#include <ap_int.h>

template <int D, int U, int TI, int TD>
struct ap_axiu {
    static_assert(U == 0 && TI == 0 && TD == 0, "TUSER, TID and TDEST are not connected");
    ap_uint<D> data;
    ap_uint<(D + 7) / 8> keep;
    ap_uint<(D + 7) / 8> strb;
    ap_uint<1> last;
};

#endif  // DOCUMENTED_AP_AXI_SDATA_H
