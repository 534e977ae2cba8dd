"""Hardware facts that both styles build on: the DDR, primitives of the fabric, integer arithmetic.

``ddr`` what the board's memory gives and how ports of it are built; ``primitives`` what BRAM, URAM, LUTs and shift
registers hold; ``arithmetic`` the divisions that sizes are counted with. Nothing here knows of a network or of a style.
"""
