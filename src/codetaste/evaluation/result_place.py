"""Where the results of scoring a patch file go, and that nothing of another patch is lost there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from codetaste.errors import ConfigError
from codetaste.evaluation.result_files import (
    NEGATIVE_SARIF,
    POSITIVE_SARIF,
    RESULT,
    RULE_OUTPUT,
    SCORES,
    TEST_OUTPUT,
    read_scores,
)

if TYPE_CHECKING:
    from pathlib import Path

PREDICTION = "prediction.diff"


def results_folder(patch: Path) -> Path:
    """Return where results of the patch file ``patch`` go: ``evaluation/`` beside a prediction, as published.

    Other files can be many in one folder, so that theirs carry the file's name.
    """
    return patch.parent / ("evaluation" if patch.name == PREDICTION else f"{patch.stem}-evaluation")


def check_place(folder: Path, instance: str, patch_sha256: str) -> None:
    """Check that results in ``folder`` replace at the most an earlier evaluation of the same patch.

    Raises:
        ConfigError: results of something else are there, or of nobody knows what.
    """
    if folder.exists() and not folder.is_dir():
        raise ConfigError(f"{folder} is no folder; name another place with --out")
    theirs = [
        name
        for name in (RESULT, POSITIVE_SARIF, NEGATIVE_SARIF, RULE_OUTPUT, TEST_OUTPUT, SCORES)
        if (folder / name).exists()
    ]
    if not theirs:
        return
    scores = read_scores(folder)
    if scores is None:
        raise ConfigError(
            f"{folder / theirs[0]} was not written by codetaste; name another folder with --out, "
            "so that it is not lost"
        )
    if (scores.get("instance"), scores.get("patch_sha256")) != (instance, patch_sha256):
        raise ConfigError(
            f"{folder} has the evaluation of another patch ({scores.get('instance')}); "
            "remove it, or name another folder with --out"
        )
