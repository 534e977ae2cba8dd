"""Readers of the reports of Vitis HLS and Vivado, 2022.1 to 2024.2.

``facts`` has the values that are read. ``text`` reads bounded files, tables, and XML without a DOCTYPE. Each kind of
report has one module, and ``reports`` finds and reads all reports of a folder.
"""
