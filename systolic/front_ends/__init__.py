"""Every format of files that networks are read from: the project's own four, and those of other packages."""
