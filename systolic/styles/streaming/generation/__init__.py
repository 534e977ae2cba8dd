"""A folding → every file of its design, in memory: ``generate`` first, then ``plan``; ``wiring`` makes the top."""
