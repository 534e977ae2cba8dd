"""Tests, one folder a room; the modules without ``test_`` are what several of them share."""
