"""``codetaste import`` as it is typed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import anyio
from cyclopts import Parameter

from codetaste.command import guarded


def import_(
    outputs: Path,
    /,
    *,
    name: str,
    out: Path = Path("runs"),
    benchmark: str = "",
    repos: Path | None = None,
    score: Annotated[bool, Parameter(negative=())] = False,
    json_: Annotated[bool, Parameter(name="--json", negative=())] = False,
) -> int:
    """Take published outputs over as a run, so that they are reported beside runs of codetaste.

    What is wrong in single folders is named and counted; everything else is taken.

    Args:
        outputs: An outputs folder in the published layout, or an archive of it (zip or tar, in one piece).
        name: What to call the run; it becomes runs/NAME.
        out: Where runs are.
        benchmark: The benchmark, a folder in the published layout: others' instances are left out.
        repos: A folder of clones OWNER/REPO, for --score.
        score: Score the predictions that have no evaluation.
        json_: Say it as JSON.
    """
    from codetaste.commands import importing  # noqa: PLC0415 - only here

    order = importing.Order(outputs, name, out, benchmark, repos, score, json_)
    return guarded(lambda: anyio.run(importing.import_published, order), as_json=json_)
