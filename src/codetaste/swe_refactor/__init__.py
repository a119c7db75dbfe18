"""SWE-Refactor: pure Java refactorings found, enriched, verified (§3), and models compared on them (§4)."""
