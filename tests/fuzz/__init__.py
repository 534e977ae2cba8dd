"""Campaigns that look for the next defect, run by hand or at night: `python -m tests.fuzz TARGET`."""
