"""What an agent did, read from where it is written down: transcripts of a run, logs of published outputs."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from codetaste.evaluation.activity import Activity


def run_activity(run: Path, trial_key: str) -> Activity | None:
    """Count what an agent did in the execution step of a trial of ours; blocking.

    Args:
        run: the run's folder.
        trial_key: what its jobs' keys begin with: ``infer/<agent>/<track>/<mode>/<instance>[/attempt-n]``.

    Returns:
        None where there is no transcript: what the agent did is not known then.
    """
    return None


def published_activity(folder: Path) -> Activity | None:
    """Count what an agent did by the log that the published harness left beside its patch; blocking.

    Returns:
        None where there is no log, or none in which commands can be told from words.
    """
    raise NotImplementedError
