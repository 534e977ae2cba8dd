"""How a folding is searched for: exact with a proof, greedy as FINN publishes it, annealing."""
