"""What the vendor's manual (UG1399, Vitis HLS 2022.1 to 2024.2) says of directives and of C++ in hardware, as data."""
