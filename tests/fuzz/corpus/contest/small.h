#define CONV_0_K 1 
#define CONV_0_S 1 
#define CONV_0_P 0 
#define CONV_0_IFM_CH 3 
#define CONV_0_IFM_ROW 2 
#define CONV_0_IFM_COL 3 
#define CONV_0_OFM_CH 4 
#define CONV_0_OFM_ROW 2 
#define CONV_0_OFM_COL 3 
#define CONV_0_SIMD 2 
#define CONV_0_PE 2 
#define CONV_0_IN_BIT 8 
#define CONV_0_OUT_BIT 4 
#define CONV_0_W_BIT 4 
#define CONV_0_INC_BIT 14 
#define CONV_0_L_SHIFT 8 
#define LINEAR_0_IN_LEN 4 
#define LINEAR_0_OUT_LEN 2 
#define LINEAR_0_SIMD 4 
#define LINEAR_0_PE 1 
#define LINEAR_0_IN_BIT 4 
#define LINEAR_0_W_BIT 4 
// conv_0_w
//PEs = 2, SIMD = 2
//bit = 4
const ap_uint<8> conv_0_w[2][4] = {
{"0x91", "0x7f", "0x1", "0x20"},
{"0x70", "0x0", "0xf9", "0x0"}};
// inc
const ap_int<14> conv_0_inc[2][2] = {
{"0x49a", "-0x3"},
{"0x769", "0x10"}};
const ap_int<26> conv_0_bias[2][2] = {
{"0x69b728", "-0x15423c4"},
{"0x0", "0x7"}};
const ap_uint<16> linear_0_w[1][2] = {
{"0x1234", "0x7ffd"}};
