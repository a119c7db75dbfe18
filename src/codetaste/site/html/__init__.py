"""What all pages are made with: addresses, templates, data for scripts."""
