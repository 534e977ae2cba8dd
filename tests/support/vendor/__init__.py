"""Reports of Vitis HLS and Vivado, for tests."""
