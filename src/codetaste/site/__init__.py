"""The report as a static site, and the same pages live while a run goes on."""
