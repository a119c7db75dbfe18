"""What people see: live progress and summaries."""
