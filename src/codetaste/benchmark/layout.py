"""Names and paths of the published layout: of a benchmark, and of the outputs of a run; no file is touched.

::

    instances.csv                                                       a benchmark
    reviews.jsonl
    assets/descriptions/<owner>/<repo>/<hash8>/{description,open_description}.md, change.json
    assets/rules/<owner>/<repo>/<hash8>/rules_{positive,negative}.yml
    assets/diffs/<owner>/<repo>/<hash8>/golden.diff
    baseline_results/<owner>/<repo>/<hash8>/{golden_agent,null_agent}.jsonl
    instance_images/<owner>/<repo>/<hash8>/{instance_metadata,environment}.json
    instance_images/<owner>/<repo>/<hash8>/scripts/{setup_system.sh,setup_shell.sh,run_tests,SUMMARY.md,…}

    outputs/<track>/<mode>/<owner>/<repo>/<hash8>/<agent>/              a run: the first attempt of a trial
    outputs/<track>/<mode>/<owner>/<repo>/<hash8>/<agent>/attempt-<n>/  later attempts
    outputs/pseudo_agents/direct/<owner>/<repo>/<hash8>/{golden_agent,null_agent}/
    transcripts/<job key>.jsonl, events/<job key>.jsonl
    case_studies/reports/<owner>/<repo>/<hash8>/<track>/<mode>/<by>.{md,json}
    case_studies/labels/<owner>/<repo>/<hash8>/<track>/<mode>/<agent>/<by>.json
    mining/<mining run>/{candidates.csv,candidate_scores.jsonl}
"""

from __future__ import annotations

import re
from enum import StrEnum
from typing import TYPE_CHECKING

from codetaste.rules.registration import Direction

if TYPE_CHECKING:
    from pathlib import Path

    from codetaste.benchmark.instance import Instance


class Track(StrEnum):
    """How detailed the task description is (CodeTaste §2.1)."""

    INSTRUCTED = "instructed"
    OPEN = "open"


class Mode(StrEnum):
    """How an agent gets from the task to the patch (CodeTaste §3.5)."""

    DIRECT = "direct"
    PLAN = "plan"
    MULTIPLAN = "multiplan"


class FinishReason(StrEnum):
    """How a trial, or one agent run of it, ended; the published harness rejects metadata with any other."""

    SUCCESS = "success"
    TIMEOUT = "timeout"
    BUDGET_EXCEEDED = "budget_exceeded"
    EXECUTION_ERROR = "execution_error"
    """The agent's own fault."""
    ERROR = "error"
    """Something that the agent needed failed."""
    UNKNOWN = "unknown"
    """It still runs, was stopped, or reported no result."""
    ERROR_PLANMODE = "error_planmode"
    ERROR_MULTIPLAN = "error_multiplan"
    ERROR_JUDGE = "error_judge"

    @property
    def by_limit(self) -> bool:
        """Whether a budget or a time limit ended it."""
        return self in {FinishReason.TIMEOUT, FinishReason.BUDGET_EXCEEDED}


MODES = tuple(Mode)
PSEUDO_TRACK = "pseudo_agents"
"""The folder beside the tracks for the predictions of golden and null agent."""
GOLDEN, NULL = "golden_agent", "null_agent"
"""Ids of the pseudo agents, which submit X* and an empty patch."""
_ATTEMPT = re.compile(r"attempt-([1-9][0-9]{0,5})")
TRACKS = (*(track.value for track in Track), PSEUDO_TRACK)

# Files of a benchmark.
INSTANCES_FILE = "instances.csv"
REVIEWS_FILE = "reviews.jsonl"
"""Decisions of people about descriptions."""
IGNORE_FILE = "assets/default.semgrepignore"
INSTANCE_METADATA_FILE = "instance_metadata.json"
ENVIRONMENT_FILE = "environment.json"
ENVIRONMENT_SCRIPTS = SETUP_SYSTEM, SETUP_SHELL, RUN_TESTS = "setup_system.sh", "setup_shell.sh", "run_tests"
"""The scripts that every execution environment has, in the order in which they run."""
SCRIPTS_SUMMARY = "SUMMARY.md"
"""What the setup agent wrote about its scripts, beside them."""
BASELINES_FOLDER = "baseline_results"
RULES_FILES = {Direction.ADDITIVE: "rules_positive.yml", Direction.REDUCTIVE: "rules_negative.yml"}
GOLDEN_PATCH_FILE = "golden.diff"
CHANGE_FILE = "change.json"
"""What people wrote about the change: message, pull requests, issues."""
DESCRIPTION_FILES = {Track.INSTRUCTED: "description.md", Track.OPEN: "open_description.md"}

# Folders and files of a run.
OUTPUTS_FOLDER = "outputs"
TRANSCRIPTS_FOLDER = "transcripts"
EVENTS_FOLDER = "events"
RUN_CONFIG_FILE = "config.json"
CASE_STUDIES_FOLDER = "case_studies"
"""What agents wrote about the trials of a run: reports, failure labels, and the journal of their own run."""

# Files of a mining run, in a folder of its name below the folder of mining.
MINING_FOLDER = "mining"
STEPS_FILE = "steps.json"
"""In the folder of mining: yield and cost of each step from commits to instances."""
CANDIDATES_FILE = "candidates.csv"
CANDIDATE_SCORES_FILE = "candidate_scores.jsonl"

# Files of a trial.
PREDICTION_FILE = "prediction.diff"
METADATA_FILE = "inference_metadata.json"
AGENT_CONFIG_FILE = "agent_config.json"
PLAN_FILE = "refactoring_plan.md"
PLANS_FOLDER = "refactoring_plans"
PLAN_FILES = tuple(f"{PLANS_FOLDER}/refactoring_plan{number}.md" for number in range(5))
PLAN_METADATA_FILES = {
    Mode.PLAN: "plan_metadata.json",
    Mode.MULTIPLAN: "multiplan_generation_metadata.json",
}
JUDGE_METADATA_FILE = "multiplan_metadata.json"
JUDGE_OUTPUT_FILE = "judge.out"
EXECUTION_LOG_FILE = "inference.out"
TRAJECTORY_FILE = "trajectory.json"
"""In ATIF, of trials of other harnesses."""
PLAN_LOG_FILES = {Mode.PLAN: "plan.out", Mode.MULTIPLAN: "multiplan.out"}

# Files of a trial's evaluation.
EVALUATION_FOLDER = "evaluation"
RESULT_FILE = "evaluation_result.json"
SCORES_FILE = "scores.json"
ACTIVITY_FILE = "activity.json"
REFACTORINGS_FILE = "refactorings.json"
REFACTORING_ROWS_FILE = "refactorings.jsonl"
POSITIVE_SARIF_FILE = "rules_positive.sarif"
NEGATIVE_SARIF_FILE = "rules_negative.sarif"
TEST_OUTPUT_FILE = "test_output.txt"
RULE_OUTPUT_FILE = "rule_output.txt"

TRIAL_FILES = (
    *(PREDICTION_FILE, METADATA_FILE, AGENT_CONFIG_FILE, PLAN_FILE, *PLAN_METADATA_FILES.values()),
    *(JUDGE_METADATA_FILE, JUDGE_OUTPUT_FILE),
)
TRIAL_LOG_FILES = (EXECUTION_LOG_FILE, TRAJECTORY_FILE, *PLAN_LOG_FILES.values())
EVALUATION_FILES = (
    *(RESULT_FILE, SCORES_FILE, ACTIVITY_FILE, POSITIVE_SARIF_FILE, NEGATIVE_SARIF_FILE, TEST_OUTPUT_FILE),
    *(
        REFACTORINGS_FILE,
        REFACTORING_ROWS_FILE,
        RULE_OUTPUT_FILE,
        INSTANCE_METADATA_FILE,
        *RULES_FILES.values(),
    ),
)


def rules_path(root: Path, instance: Instance, direction: Direction) -> Path:
    """Return the path of the rules of ``instance`` in the benchmark ``root``."""
    return root / "assets/rules" / instance.path / RULES_FILES[direction]


def description_path(root: Path, instance: Instance, track: Track) -> Path:
    """Return the path of the task description of ``instance`` in the benchmark ``root``."""
    return root / "assets/descriptions" / instance.path / DESCRIPTION_FILES[track]


def change_path(root: Path, instance: Instance) -> Path:
    """Return the path of what people wrote about the change of ``instance`` in the benchmark ``root``."""
    return root / "assets/descriptions" / instance.path / CHANGE_FILE


def golden_path(root: Path, instance: Instance) -> Path:
    """Return the path of the golden patch of ``instance`` in the benchmark ``root``."""
    return root / "assets/diffs" / instance.path / GOLDEN_PATCH_FILE


def environment_folder(root: Path, instance: Instance) -> Path:
    """Return the folder of the execution environment of ``instance`` in the benchmark ``root``."""
    return root / "instance_images" / instance.path


def scripts_folder(root: Path, instance: Instance) -> Path:
    """Return the folder of the scripts of that environment."""
    return environment_folder(root, instance) / "scripts"


def trial_folder(outputs: Path, track: str, mode: str, path: str, agent: str, attempt: int = 1) -> Path:
    """Return the folder of a trial at the instance with the folder ``path``."""
    first = outputs / track / mode / path / agent
    return first if attempt == 1 else first / attempt_name(attempt)


def attempt_name(attempt: int) -> str:
    """Return the name of a later attempt in paths and keys."""
    return f"attempt-{attempt}"


def parse_attempt(name: str) -> int | None:
    """Return the attempt with this name; None if it is no attempt's name."""
    found = _ATTEMPT.fullmatch(name)
    return int(found[1]) if found else None


def pseudo_trial_folder(outputs: Path, path: str, agent: str) -> Path:
    """Return the folder of a pseudo agent's prediction, which belongs to no track."""
    return trial_folder(outputs, PSEUDO_TRACK, Mode.DIRECT, path, agent)
