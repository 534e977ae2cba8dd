// Beats of AXI4-Stream with the members of UG1399, "AXI4-Stream Interfaces with Side-Channels", for checks. A member
// of 0 bits is one bit wide here; nothing reads it.
#ifndef HLS_SCHEDULE_AP_AXI_SDATA_H
#define HLS_SCHEDULE_AP_AXI_SDATA_H

#include "ap_int.h"

namespace hls_schedule {
template <class T, int BITS, int USER, int ID, int DESTINATION>
struct beat {
    T data;
    ap_uint<(BITS + 7) / 8> keep, strb;
    ap_uint<(USER > 0 ? USER : 1)> user;
    ap_uint<1> last;
    ap_uint<(ID > 0 ? ID : 1)> id;
    ap_uint<(DESTINATION > 0 ? DESTINATION : 1)> dest;
    T get_data() const { return data; }
    void set_data(const T &value) { data = value; }
    bool get_last() const { return last; }
    void set_last(bool value) { last = value; }
    void set_keep(const ap_uint<(BITS + 7) / 8> &value) { keep = value; }
    void keep_all() { keep = -1; }
};
}  // namespace hls_schedule

template <int BITS, int USER, int ID, int DESTINATION>
struct ap_axiu : hls_schedule::beat<ap_uint<BITS>, BITS, USER, ID, DESTINATION> {};
template <int BITS, int USER, int ID, int DESTINATION>
struct ap_axis : hls_schedule::beat<ap_int<BITS>, BITS, USER, ID, DESTINATION> {};

namespace hls {
template <class T, int USER, int ID, int DESTINATION>
struct axis : hls_schedule::beat<T, 8 * int(sizeof(T)), USER, ID, DESTINATION> {};
template <int BITS, int USER = 0, int ID = 0, int DESTINATION = 0>
using axis_data = axis<ap_uint<BITS>, USER, ID, DESTINATION>;
}  // namespace hls

#endif  // HLS_SCHEDULE_AP_AXI_SDATA_H
