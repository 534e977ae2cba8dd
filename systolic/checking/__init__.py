"""What a design declares beside what its sources let a vendor tool reach: ``design.check_design``."""
