"""``codetaste evaluate`` as it is typed."""

from __future__ import annotations

from pathlib import Path  # noqa: TC003 - cyclopts reads the annotations
from typing import Annotated

import anyio
from cyclopts import Parameter

from codetaste.command import guarded
from codetaste.evaluation.exclusions import Exclusions


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
    """Score one patch: IFR and precision by the rules, PASS from recorded test results.

    Exit code 1 if it has no score: it is no patch, does not apply, or a scan is partial.

    Args:
        benchmark: A folder in the published layout, or "quickstart".
        repos: A folder of clones OWNER/REPO; otherwise the instance's own origin is used.
        instance: The instance's id, or a glob that fits just one.
        patch: A file, or "golden" for the human's patch, "null" for none.
        tests: What the test run of the patched code printed; its last line of JSON counts. Otherwise an
            earlier evaluation beside the patch is asked.
        out: Where results are written; default evaluation/ beside a prediction.diff, NAME-evaluation/ beside
            another file, and nowhere for golden and null.
        exclusions: Which files do not count for precision: those that the published harness leaves out, or
            none.
        json_: Say it as JSON.
    """
    from codetaste.commands import scoring  # noqa: PLC0415 - only here

    order = scoring.Order(benchmark, repos, instance, patch, tests, out, exclusions, json_)
    return guarded(lambda: anyio.run(scoring.score_patch, order), as_json=json_)
