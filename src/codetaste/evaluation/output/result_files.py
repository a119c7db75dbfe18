"""Write the files of an evaluation in the published layout, and read recorded test results and scores back.

``evaluation_result.json``, the SARIF files, the rules and the instance's metadata exist only if the patch is
scored, because readers of the published layout take an existing file for a score. Our own ``scores.json``
always exists and is written last.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from codetaste.benchmark.layout import (
    INSTANCE_METADATA_FILE,
    NEGATIVE_SARIF_FILE,
    POSITIVE_SARIF_FILE,
    RESULT_FILE,
    RULE_OUTPUT_FILE,
    RULES_FILES,
    SCORES_FILE,
    TEST_OUTPUT_FILE,
)
from codetaste.core.files import read_regular_file, write_atomically
from codetaste.errors import ConfigError, JournalError
from codetaste.evaluation.metrics import ifr, ifr_minus, ifr_plus
from codetaste.evaluation.output.sarif import render_sarif
from codetaste.evaluation.output.scores_json import scores_to_json
from codetaste.evaluation.test_runs.recorded import parse_test_counts

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from codetaste.benchmark.instance import Instance
    from codetaste.evaluation.evaluate import Evaluation
    from codetaste.evaluation.metrics import RuleCounts, TestCounts

_OF_A_SCORE = frozenset({
    *(RESULT_FILE, POSITIVE_SARIF_FILE, NEGATIVE_SARIF_FILE, INSTANCE_METADATA_FILE, *RULES_FILES.values()),
})  # fmt: skip
"""Files that only a scored patch has."""
_MAX_RESULT_BYTES = 64 * 1024**2
_MAX_LISTED_PROBLEMS = 200


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
    """Write the files of ``evaluation`` into ``folder``, replacing those of an earlier evaluation.

    Args:
        folder: ``evaluation/`` beside ``prediction.diff``.
        evaluation: the evaluation.
        instance: the instance of the patch.
        agent_config: ``agent_config.json`` of the prediction.
        inference_metadata: ``inference_metadata.json`` of the prediction, if it has one.
        instance_metadata: ``instance_metadata.json`` of the instance, if it has one.
        timestamp: time of the evaluation, ISO 8601.
        test_output: output of a test run, to be stored too.

    Returns:
        The sha256 (hex) of each file's bytes, by name.

    Raises:
        StorageFull: no space left.
        JournalError: a file cannot be written.
    """
    files = {RULE_OUTPUT_FILE: _rule_output(evaluation).encode("utf-8", "backslashreplace")}
    if test_output is not None:
        files[TEST_OUTPUT_FILE] = test_output
    if evaluation.rule_counts is not None:
        tests = evaluation.pass_result.tests
        for name, rules, matches in (
            (POSITIVE_SARIF_FILE, evaluation.rules.positive, evaluation.positive_matches),
            (NEGATIVE_SARIF_FILE, evaluation.rules.negative, evaluation.negative_matches),
        ):
            if rules:
                files[name] = render_sarif(rules, matches, evaluation.problems, evaluation.engine)
        of_instance = dict(instance_metadata or _metadata_of(instance))
        files |= {name: content for name, content in _rule_files(evaluation).items() if content}
        files[INSTANCE_METADATA_FILE] = _json(of_instance)
        files[RESULT_FILE] = _json(
            {
                "instance_metadata": of_instance,
                "agent_config": dict(agent_config),
                "agent_test_metrics": tests
                and {**asdict(tests), "pass_rate": tests.pass_rate, "is_valid": tests.is_valid},
                "agent_rule_metrics": _rules(evaluation.rule_counts),
                "inference_metadata": None if inference_metadata is None else dict(inference_metadata),
                "evaluation_timestamp": timestamp,
            }
        )
    files[SCORES_FILE] = _json({"instance": instance.id, **scores_to_json(evaluation)})
    for name in (SCORES_FILE, *(_OF_A_SCORE - files.keys())):
        path = folder / name
        try:
            path.unlink(missing_ok=True)
        except NotADirectoryError:
            continue
        except OSError as error:
            text = f"{path}: an earlier result cannot be removed: {error.strerror}"
            raise JournalError(text) from None
    for name, content in files.items():
        write_atomically(folder / name, content)
    return {name: sha256(content).hexdigest() for name, content in files.items()}


def read_recorded_tests(folder: Path, patch_sha256: str = "") -> TestCounts | None:
    """Return the test results recorded in ``evaluation_result.json`` in ``folder``, None if it has none.

    Without that file, because the patch has no score, they are read from ``scores.json``. If ``patch_sha256``
    is given and the scores are of another patch, the result is None.

    Raises:
        ConfigError: the file exists and is not a complete JSON object.
    """
    scores = read_scores(folder) or {}
    if patch_sha256 and scores.get("patch_sha256", patch_sha256) != patch_sha256:
        return None
    result = _read_object(folder / RESULT_FILE)
    return parse_test_counts(scores.get("tests") if result is None else result.get("agent_test_metrics"))


def read_scores(folder: Path) -> dict[str, Any] | None:
    """Return the content of ``scores.json`` in ``folder``, None if it is missing or unreadable."""
    try:
        return _read_object(folder / SCORES_FILE)
    except ConfigError:
        return None


def _read_object(path: Path) -> dict[str, Any] | None:
    """Read a JSON object, None if the file does not exist."""
    try:
        result = json.loads(read_regular_file(path, _MAX_RESULT_BYTES))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{path}: not valid JSON: {error}") from None
    if not isinstance(result, dict):
        raise ConfigError(f"{path}: expected a JSON object")
    return result


def _rule_files(evaluation: Evaluation) -> dict[str, bytes]:
    """Return the files of rules that the patch was scored with, b"" for a missing one."""
    rules = evaluation.rules
    return dict(zip(RULES_FILES.values(), (rules.positive_file, rules.negative_file), strict=True))


def _rules(counts: RuleCounts) -> dict[str, Any]:
    """Return the published form, in which a direction without rules has the rate 1."""
    plus, minus = ifr_plus(counts), ifr_minus(counts)
    return {
        "positive_rules_matched": counts.positive_matched,
        "negative_rules_matched": counts.negative_matched,
        "total_positive_rules": counts.positive_total,
        "total_negative_rules": counts.negative_total,
        "ifr": ifr(counts),
        "positive_ifr": 1.0 if plus is None else plus,
        "negative_ifr": 1.0 if minus is None else minus,
    }


def _metadata_of(instance: Instance) -> dict[str, Any]:
    return {
        "owner": instance.owner,
        "repo": instance.repo,
        "base_hash": instance.commit_hash,
        "golden_hash": instance.golden_commit_hash,
        "golden_metrics": None,
        "base_metrics": None,
        **dict.fromkeys(("setup_image", "runtime_image", "has_execution_environment")),
        "reason_no_execution_environment": "",
    }


def _rule_output(evaluation: Evaluation) -> str:
    """Return a human-readable summary of the scan."""
    lines = [f"{evaluation.engine or 'the rule engine'} on R with the patch", f"{evaluation.status}"]
    lines += [evaluation.reason] if evaluation.reason else []
    if evaluation.rule_counts is not None:
        positive, negative = len(evaluation.rules.positive), len(evaluation.rules.negative)
        lines.append(f"{positive} positive rules: {len(evaluation.positive_matches)} results")
        lines.append(f"{negative} negative rules: {len(evaluation.negative_matches)} results")
    lines += [f"note: {note}" for note in evaluation.notes]
    for problem in evaluation.problems[:_MAX_LISTED_PROBLEMS]:
        parts = filter(None, [problem.rule_id, problem.path, problem.message])
        lines.append(f"{problem.kind}: {' '.join(parts)}")
    hidden = len(evaluation.problems) - _MAX_LISTED_PROBLEMS
    return "\n".join([*lines, *([f"… and {hidden} more problems"] if hidden > 0 else []), ""])


def _json(data: Mapping[str, Any]) -> bytes:
    """Return ``data`` as JSON; NaN and infinities, which metadata of other programs may have, become null."""
    finite = json.loads(json.dumps(data), parse_constant=lambda _: None)
    return (json.dumps(finite, indent=2, allow_nan=False) + "\n").encode()
