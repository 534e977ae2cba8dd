"""Writes the files of a design for the vendor's tools and the board: Tcl, test bench, README, hardware description.

``ports`` has the arguments of each style's top function, and ``registers`` has the register map that results from them.
``values`` has the values from which the files are written, and ``board_facts`` the facts about a board that they need.
``block_design`` assigns the masters to the ports of the processing system (PS). ``files`` writes the Tcl, the test
bench and the README, and ``hwh`` writes the hardware description (.hwh). docs/reference/vendor.md explains the files.
"""
