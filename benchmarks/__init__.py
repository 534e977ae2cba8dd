"""Measurements that no gate runs: searches, models compared with traces, resources and run times."""
