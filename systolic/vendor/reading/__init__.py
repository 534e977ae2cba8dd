"""The reports of Vitis HLS and Vivado, 2022.1 to 2024.2, as frozen facts.

``facts`` has the values, ``text`` what every reader needs (bounded files, tables, XML without a DOCTYPE); one module a
kind of report; ``reports`` knows where they lie.
"""
