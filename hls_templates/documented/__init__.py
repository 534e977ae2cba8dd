"""The rules of the vendor's manual for directives and for C++ in hardware, as data.

The manual is UG1399, for Vitis HLS 2022.1 to 2024.2.
``directives`` lists the directives, with the types of ``options``. ``synthesis`` lists names in C++.
"""
