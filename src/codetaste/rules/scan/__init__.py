"""Full scans."""
