"""Fuzzing of interrupted commands: a signal or a failing disk stops a command at any call that changes files."""
