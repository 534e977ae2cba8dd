"""The check of a design's declared loops, memories and DSPs against the generated sources: ``design.check_design``."""
