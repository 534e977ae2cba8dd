"""What the vendor's tools and a board read of a design: Tcl, test bench, README, and the hardware description (.hwh).

``ports`` has the arguments of each style's top function, ``registers`` the register map that follows from them,
``board_facts`` what of a board is needed, ``files`` and ``hwh`` the text. docs/reference/vendor.md explains them.
"""
