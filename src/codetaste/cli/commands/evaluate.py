"""Arguments of ``codetaste evaluate``."""

from __future__ import annotations

from pathlib import Path  # noqa: TC003 - cyclopts reads the annotations
from typing import Annotated

import anyio
from cyclopts import Parameter

from codetaste.console import run_command
from codetaste.evaluation.changed_lines import Exclusions


def evaluate(
    *,
    benchmark: str = "quickstart",
    repos: Path | None = None,
    instance: str,
    patch: str,
    tests: Path | None = None,
    out: Path | None = None,
    exclusions: Exclusions = Exclusions.PUBLISHED,
    json_: Annotated[bool, Parameter(name="--json", negative=())] = False,
) -> int:
    """Evaluate one patch: IFR and precision from the rules, PASS from recorded test results.

    Exit code 1 if it has no score: it is not a valid patch, does not apply, or a scan is partial.

    Args:
        benchmark: A folder in the published layout, or "quickstart".
        repos: A folder of clones OWNER/REPO; otherwise the instance's own origin is used.
        instance: The instance's id, or a glob that matches exactly one.
        patch: A file, or "golden" for the human's patch, "null" for an empty patch.
        tests: A file with the output of the test run of the patched code, whose last line of JSON is used;
            default the test results of an earlier evaluation next to the patch.
        out: Folder of the results; default evaluation/ next to a prediction.diff, NAME-evaluation/ next to
            another file, and none for golden and null.
        exclusions: Which files do not count for precision: those that the published harness excludes, or
            none.
        json_: Print the result as JSON.
    """
    from codetaste.cli.commands import scoring  # noqa: PLC0415 - only here

    arguments = scoring.EvaluateArguments(benchmark, repos, instance, patch, tests, out, exclusions, json_)
    return run_command(lambda: anyio.run(scoring.score_patch, arguments), as_json=json_)
