"""Arguments of ``codetaste import``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import anyio
from cyclopts import Parameter

from codetaste.console import run_command


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
    """Import published outputs as a run, to report them together with runs of codetaste.

    Problems in single folders are listed and counted; everything else is imported.

    Args:
        outputs: An outputs folder in the published layout, or an archive of it (zip or tar, in one piece).
        name: Name of the run; it becomes runs/NAME.
        out: Folder of all runs.
        benchmark: The benchmark, a folder in the published layout; instances not in it are left out.
        repos: A folder of clones OWNER/REPO, for --score.
        score: Evaluate the predictions that have no evaluation.
        json_: Print the result as JSON.
    """
    from codetaste.cli.commands import importing  # noqa: PLC0415 - only here

    arguments = importing.ImportArguments(outputs, name, out, benchmark, repos, score, json_)
    return run_command(lambda: anyio.run(importing.import_published_outputs, arguments), as_json=json_)
