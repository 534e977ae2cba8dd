"""Every command that writes is stopped at any of its calls that change files, by a signal or by a disk that fails."""
