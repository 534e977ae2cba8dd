"""How the network that comes with the project was trained: pictures drawn from a seed, loss, precision."""
