"""Remove from a sandbox what may hold code of its repository outside of ``/testbed``, before it is committed.

A file that is created and removed before a commit is in no layer. What is in a layer stays there whatever is
removed later, so a setup sandbox, which had R∘X*, has to be cleaned before its own commit.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from codetaste.environment.project import Ecosystem, ProjectNames
from codetaste.errors import SandboxError
from codetaste.sandbox.base import OUTPUT, TASK, TESTBED, CommandLimits

if TYPE_CHECKING:
    from collections.abc import Sequence

    from codetaste.sandbox.base import Sandbox

REPOSITORY_FOLDERS = (TESTBED, TASK, OUTPUT)
_SCRIPT = Path(__file__).with_name("clean.sh")
_VARIABLES = {
    Ecosystem.PYTHON: "PYTHON_NAMES",
    Ecosystem.NPM: "NPM_NAMES",
    Ecosystem.GO: "GO_MODULES",
    Ecosystem.MAVEN: "MAVEN_NAMES",
}
_EMPTY = ("sh", "-c", '[ ! -d "$1" ] || find "$1" -mindepth 1 -delete', "empty")
_CLEAN_S = 600.0
_OUTPUT_BYTES = 256 * 1024


async def clean_sandbox(
    sandbox: Sandbox,
    names: ProjectNames,
    *,
    empty: Sequence[str] = REPOSITORY_FOLDERS,
    only_traces: bool = False,
) -> str:
    """Remove what is built of the repository itself, logs, histories, transcripts and temporary files.

    What the repository depends on stays, also in caches: the scripts need it where there is no network.

    Args:
        sandbox: with privileges; nothing else runs in it.
        names: of the repository's packages, at R and R∘X*.
        empty: folders of the sandbox that are emptied.
        only_traces: remove only logs, histories and transcripts.

    Returns:
        A line for each thing that was removed.

    Raises:
        SandboxError: it failed or took longer than ten minutes, or the sandbox is gone.
    """
    env = {variable: "\n".join(sorted(names.get(kind, ()))) for kind, variable in _VARIABLES.items()}
    env["ONLY_TRACES"] = "1" if only_traces else ""
    script = ["bash", "-c", _SCRIPT.read_text("utf-8"), "clean"]
    removed = b""
    for command in (*([*_EMPTY, folder] for folder in empty), script):
        limits = CommandLimits(wall_s=_CLEAN_S, output_bytes=_OUTPUT_BYTES)
        done = await sandbox.run(command, limits=limits, env=env, workdir="/", root=True)
        removed += done.stdout
        if done.exit_code != 0:
            reason = "took too long" if done.timed_out else done.stderr.decode(errors="replace").strip()[:300]
            raise SandboxError(f"a sandbox cannot be cleaned: {command[0]}: {reason or done.exit_code}")
    return removed.decode("utf-8", "backslashreplace")
