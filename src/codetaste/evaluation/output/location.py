"""The folder for the results of a patch file, and a check that it has no results of another patch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from codetaste.benchmark.layout import (
    EVALUATION_FOLDER,
    NEGATIVE_SARIF_FILE,
    POSITIVE_SARIF_FILE,
    PREDICTION_FILE,
    RESULT_FILE,
    RULE_OUTPUT_FILE,
    SCORES_FILE,
    TEST_OUTPUT_FILE,
)
from codetaste.errors import ConfigError
from codetaste.evaluation.output.result_files import read_scores

if TYPE_CHECKING:
    from pathlib import Path

_WRITTEN = (
    *(RESULT_FILE, POSITIVE_SARIF_FILE, NEGATIVE_SARIF_FILE),
    *(RULE_OUTPUT_FILE, TEST_OUTPUT_FILE, SCORES_FILE),
)


def results_folder(patch: Path) -> Path:
    """Return the results folder of a patch file: ``evaluation/`` beside a prediction, as published.

    One folder can have many other patch files, so the name of their results folder contains the file's name.
    """
    return patch.parent / (EVALUATION_FOLDER if patch.name == PREDICTION_FILE else f"{patch.stem}-evaluation")


def check_results_folder(folder: Path, instance: str, patch_sha256: str) -> None:
    """Check that writing to ``folder`` replaces at most an earlier evaluation of the same patch.

    Raises:
        ConfigError: it has results of another patch, or files that codetaste did not write.
    """
    if folder.exists() and not folder.is_dir():
        raise ConfigError(f"{folder} is not a folder; name another folder with --out")
    present = next((folder / name for name in _WRITTEN if (folder / name).exists()), None)
    if present is None:
        return
    scores = read_scores(folder)
    if scores is None:
        raise ConfigError(
            f"{present} was not written by codetaste; name another folder with --out to keep it"
        )
    if (scores.get("instance"), scores.get("patch_sha256")) != (instance, patch_sha256):
        raise ConfigError(
            f"{folder} has the evaluation of another patch ({scores.get('instance')}); "
            "remove it, or name another folder with --out"
        )
