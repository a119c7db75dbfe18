"""Names of what a run has in its folder for SWE-Refactor."""

from __future__ import annotations

from typing import Final

FOLDER: Final = "swe_refactor"
"""The folder, in that of the run."""
INSTANCES_FILE: Final = "instances.json"
"""The instances that the run has built, in the published shape."""
TRIALS_FILE: Final = "trials.jsonl"
"""The rows of the run's trials."""
