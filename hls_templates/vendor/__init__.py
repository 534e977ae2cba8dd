"""What the vendor's tools and a board read of a design: Tcl, test bench, README, and the hardware description (.hwh).

``ports`` has the arguments of each style's top function, and ``registers`` the register map that follows from them.
``values`` is what the files are made of, with ``board_facts`` for what they need of a board; ``block_design`` decides
who uses which port of the PS; ``files`` and ``hwh`` write the text. docs/reference/vendor.md explains them.
"""
