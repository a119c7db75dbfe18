"""What runs have brought about, read once for reports, pages, figures, rows and other formats."""
