"""The reports of both styles: text tables for a terminal, HTML pages and matplotlib figures."""
