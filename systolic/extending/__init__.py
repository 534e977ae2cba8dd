"""Passes by name over what a user loaded, and front-ends of other packages."""
