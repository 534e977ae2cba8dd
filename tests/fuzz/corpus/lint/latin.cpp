void top() { /* éÿ */ }
