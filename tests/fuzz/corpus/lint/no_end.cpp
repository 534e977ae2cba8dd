#pragma HLS
void top( /* 
