"""Extensions by other packages: the registry of what they add, and the layers that they may add."""
