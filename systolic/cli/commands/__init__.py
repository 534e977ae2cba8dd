"""One module per command. Its function ``run`` takes the parsed options, prints the result, and returns the status."""
