#define D "/dev/zero"
#include D
void top() {}
