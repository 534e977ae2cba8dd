"""What a network ends in."""
