// Verilator's writer of FST files, with the compression of this folder, so that no library has to be installed.
#include "verilated_fst_c.cpp"
