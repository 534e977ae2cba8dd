"""The searches for a folding: an exact search with a proof, FINN's greedy search, and annealing."""
