"""Programs that prompts and agents' scripts name are in every sandbox alike."""

from __future__ import annotations

import shutil

import pytest

from codetaste.sandbox.base import Sandbox

pytestmark = pytest.mark.anyio

PROGRAMS = (
    *("rg", "python", "python3", "git", "bash", "find", "grep", "sed", "awk", "head", "tail", "sort", "wc"),
    *("diff", "tar", "xargs"),
)
ONLY_OF_IMAGE_OR_HOST = ("jq", "patch")
"""In the lean image; a bubblewrap sandbox has them if the host does."""


async def missing(sandbox: Sandbox, programs: tuple[str, ...]) -> list[str]:
    script = 'for each; do command -v "$each" >/dev/null || echo "$each"; done'
    result = await sandbox.run(["bash", "-c", script, "bash", *programs])
    assert result.exit_code == 0, result.stderr
    return result.stdout.decode().split()


async def test_named_programs_are_in_every_sandbox(sandbox: Sandbox) -> None:
    assert await missing(sandbox, PROGRAMS) == []
    of_host = sandbox.kind == "bubblewrap"
    expected = [name for name in ONLY_OF_IMAGE_OR_HOST if of_host and shutil.which(name) is None]
    assert await missing(sandbox, ONLY_OF_IMAGE_OR_HOST) == expected


async def test_rg_and_python_work_in_every_sandbox(sandbox: Sandbox) -> None:
    script = "printf 'one\\ntwo\\n' >/testbed/x; rg -n two /testbed/x; python -c 'print(6 * 7)'"
    result = await sandbox.run(["bash", "-c", script])
    assert result.stdout.decode().split() == ["2:two", "42"], result.stderr
