"""What packages of others add: the registry of it, and layers."""
