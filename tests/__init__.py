"""Tests, in one folder per package. Modules without ``test_`` hold code that several tests share."""
