// Verilator's writer of FST files, with this folder's compression: no library has to be installed for it.
#include "verilated_fst_c.cpp"
