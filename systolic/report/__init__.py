"""What both styles show with: tables for a terminal, pages for a browser, pictures as matplotlib figures."""
