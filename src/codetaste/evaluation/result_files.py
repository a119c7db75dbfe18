"""What is written of an evaluation, in the published layout, and how what others wrote is read back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from codetaste.benchmark.instance import Instance
    from codetaste.evaluation.evaluate import Evaluation
    from codetaste.evaluation.score import TestCounts

RESULT, SCORES = "evaluation_result.json", "scores.json"
POSITIVE_SARIF, NEGATIVE_SARIF = "rules_positive.sarif", "rules_negative.sarif"
RULE_OUTPUT, TEST_OUTPUT = "rule_output.txt", "test_output.txt"


def scores_json(evaluation: Evaluation) -> dict[str, Any]:
    """Return what ``scores.json`` holds: every value, what it comes from, and what should be known of it."""
    raise NotImplementedError


def write_evaluation(
    folder: Path,
    evaluation: Evaluation,
    *,
    instance: Instance,
    agent_config: Mapping[str, Any],
    inference_metadata: Mapping[str, Any] | None,
    instance_metadata: Mapping[str, Any] | None,
    timestamp: str,
    test_output: bytes | None = None,
) -> dict[str, str]:
    """Write the files of ``evaluation`` into ``folder``; blocks.

    ``evaluation_result.json`` and the SARIF files are there only where the patch is scored: whoever reads the
    published layout takes a file that is there for a score. ``scores.json`` is always there, and written last.

    Args:
        folder: ``evaluation/`` beside ``prediction.diff``.
        evaluation: what to write.
        instance: what was scored.
        agent_config: ``agent_config.json`` of the prediction.
        inference_metadata: ``inference_metadata.json`` of it, if it has any.
        instance_metadata: ``instance_metadata.json`` of the instance, if it has any.
        timestamp: when it was evaluated, ISO 8601.
        test_output: what a test run printed, to be kept beside.

    Returns:
        The sha256 (hex) of each file's bytes, by name.

    Raises:
        StorageFull: no space left.
        JournalError: they cannot be written.
    """
    raise NotImplementedError


def recorded_tests(folder: Path) -> TestCounts | None:
    """Return the test results that ``evaluation_result.json`` in ``folder`` records, None where it has none."""
    raise NotImplementedError
