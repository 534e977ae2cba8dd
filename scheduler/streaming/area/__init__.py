"""What a folding takes of a board, estimated before any vendor tool, and how much of the board that is."""
