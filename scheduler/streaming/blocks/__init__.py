"""What every stage asks of a block, as data; blocks of other packages."""
