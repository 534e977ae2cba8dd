"""Every format of files that networks are read from: the project's own, and those of other packages."""
