"""Whole trials of the oldest and newest releases, with old and current models, and with what goes wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.harness.release_trials import (
    BUDGETS_USD,
    MODELS,
    ReleaseTrial,
    all_trials,
    format_trials,
    run_trials,
)

pytestmark = [pytest.mark.heavy, pytest.mark.timeout(3600)]

MAY_NOT_REPEAT = ("2.0.76", "0.7.1")
"""Releases of Claude Code and Qwen Code that may end with half a reply."""


def test_newest_release_works_with_a_current_model(
    tmp_path: Path, agents_cache: Path, bubblewrap: Path
) -> None:
    newest = {trial.harness: trial for trial in all_trials(["whole"])}
    assert all(trial.model == MODELS[name][-1] for name, trial in newest.items())
    for trial in run_trials([*newest.values()], tmp_path, agents_cache.parent):
        check_whole(trial)


@pytest.mark.slow
def test_releases_end_as_their_models_do(tmp_path: Path, agents_cache: Path, bubblewrap: Path) -> None:
    trials = run_trials(all_trials(), tmp_path, agents_cache.parent)
    print(format_trials(trials))  # noqa: T201
    for trial in trials:
        assert trial.billed_usd <= trial.settled_usd + trial.unknown_usd
        if trial.model_ends in {"whole", "429 twice"}:
            check_whole(trial)
        elif trial.model_ends == "cut once":
            assert (trial.ending == "done") == trial.patched, trial
            assert trial.patched or trial.version in MAY_NOT_REPEAT, trial
        elif trial.model_ends == "refusal":
            assert trial.billed_usd == trial.settled_usd
            assert trial.ending == "error" or trial.harness == "qwen-code", trial
        else:
            assert trial.patched
            assert trial.ending in {"budget exceeded", "error"}
            assert trial.billed_usd == trial.settled_usd <= BUDGETS_USD["endless"]


def check_whole(trial: ReleaseTrial) -> None:
    assert (trial.ending, trial.turns, trial.patched) == ("done", 5, True), trial
    assert (trial.billed_usd, trial.unknown_usd) == (trial.settled_usd, 0), trial
