"""Commands that search a mapping, of which shapes alone decide."""
