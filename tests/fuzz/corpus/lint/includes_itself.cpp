#include __FILE__
void top() {}
