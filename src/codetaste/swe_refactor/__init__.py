"""SWE-Refactor: pure Java refactorings found, enriched and verified (§3), and models compared on them (§4)."""
