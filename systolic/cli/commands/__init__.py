"""One file a command: its arguments, its callable, and what it prints."""
