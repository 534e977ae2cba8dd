"""Packages that add layers, blocks, front-ends and passes, for tests."""
