"""Files that the project reads, mutated: ``target`` says what one is, ``hunt`` looks, the rest say which."""
