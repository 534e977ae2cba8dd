// A small design for tests of the comparison, which does not change with the engine.
#ifndef PARAMETERS_H
#define PARAMETERS_H

static const int WEIGHT_DEPTH = 512;
static const int PORTS = 2;
static const int POOL_DEPTH = 3 + 1;

#define WEIGHT_MEMORY bram  // 8 × 512 words of 64 bits in 8 BRAM36
#define ROW_MEMORY uram     // 4 × 4,096 words of 72 bits in 4 URAM
#define MAP_MEMORY lutram   // 12 × 32 words of 64 bits in 528 LUTRAM

#endif
