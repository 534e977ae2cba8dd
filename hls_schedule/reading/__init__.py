"""HLS C++ or the vendor's bitcode → LLVM IR → loops: ``frontend`` compiles, ``ir`` reads."""
