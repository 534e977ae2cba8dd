"""How the last maps of a network become boxes: one module a family of heads. Open head first."""
