"""The construction: commits of a history become instances in four steps, each with named outcomes (§3.3)."""
