"""What a network begins and ends in."""
