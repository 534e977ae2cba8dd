"""Fuzzing of files: ``target`` describes a kind of file, ``hunt`` tries mutated files, other modules list the kinds."""
