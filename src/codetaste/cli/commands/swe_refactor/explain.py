"""``codetaste swe-refactor explain``: why a commit gave no instance in a run, or which ones it gave."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from codetaste.cli.options import AsJson
from codetaste.console.command import command
from codetaste.console.json import json_document
from codetaste.console.streams import print_result
from codetaste.core.text import printable
from codetaste.errors import ConfigError
from codetaste.swe_refactor.build.outcomes import OUTCOMES_FILE, read_outcomes
from codetaste.swe_refactor.dataset.layout import FOLDER


@command
def explain(run: Path, commit: str, /, *, json_: AsJson = False) -> int:
    """Print the outcome of a commit, or of each of its refactorings. Exit code 1 if none is an instance.

    Args:
        run: The folder of a run, such as runs/NAME.
        commit: The hash, or its beginning.
        json_: Print the result as JSON.

    Raises:
        ConfigError: the run has no outcomes yet, or not this commit.
    """
    path = run / FOLDER / OUTCOMES_FILE
    outcomes = read_outcomes(path)
    found = [each for each in outcomes if commit and each.commit.startswith(commit)]
    if not found:
        raise ConfigError(f"{path}: no commit {commit}; it is not in the history that the run reads")
    if json_:
        print_result(json_document({"outcomes": [asdict(each) for each in found]}))
    else:
        for each in found:
            reason = f": {each.detail}" if each.detail else ""
            print_result(printable(f"{each.commit[:12]}  step {each.step}  {each.outcome}{reason}"))
            if each.description:
                print_result(printable(f"    {each.description}"))
            if each.is_instance:
                print_result(f"    instance {each.unique_id}")
    return 0 if any(each.is_instance for each in found) else 1
