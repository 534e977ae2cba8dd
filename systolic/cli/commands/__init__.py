"""One module per command. Its function ``run`` takes the options, prints the result, and returns the exit status."""
