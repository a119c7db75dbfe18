"""SWE-Refactor: pure Java refactorings found in histories, enriched and verified (§3)."""
