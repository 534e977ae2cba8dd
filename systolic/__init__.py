"""systolic."""
