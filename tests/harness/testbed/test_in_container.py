"""The repository of an environment's setup in a container where the agent has sudo."""

from __future__ import annotations

from pathlib import Path

import pytest

from codetaste.harness.testbed.testbed import testbed_archive
from codetaste.sandbox.base import Privileges, SandboxSpec
from support.harness.folder_sandbox import make_testbed, write_files
from support.sandbox.providers import open_docker, sh
from support.system.dockerd import DockerEngine

pytestmark = pytest.mark.anyio


async def test_repository_of_two_commits_is_clean_in_a_container(
    docker_engine: DockerEngine, lean_image: str, tmp_path: Path
) -> None:
    base = write_files(tmp_path / "R", {"a.py": b"before\n", "old.py": b"", "same": b"same\n"})
    golden = write_files(tmp_path / "golden", {"a.py": b"after\n", "new.py": b"", "same": b"same\n"})
    testbed = await make_testbed(base, tmp_path / "cache", golden)
    async with (
        open_docker(docker_engine.socket, lean_image, tmp_path / "sandboxes") as provider,
        provider.open(SandboxSpec("test", privileges=Privileges.SUDO)) as sandbox,
    ):
        await sandbox.put(testbed_archive(testbed, {}))
        for command, output in (
            ("git log --format='%s %an'", ["head codetaste", "base codetaste"]),
            ("git rev-parse HEAD", [testbed.commit]),
            ("git show HEAD~1:a.py && cat a.py", ["before", "after"]),
            ("git status --porcelain --ignored", []),
            ("git diff --no-renames --name-status HEAD~1", ["M\ta.py", "A\tnew.py", "D\told.py"]),
            ("git clean -xdff && git stash list && git remote && git reflog", []),
            ("git checkout -q HEAD~1 && git status --porcelain && ls", ["a.py", "old.py", "same"]),
            ("stat -c '%u:%g' . .git a.py | sort -u", ["1000:1000"]),
        ):
            result = await sh(sandbox, command)
            assert (result.stdout.decode().splitlines(), result.exit_code) == (output, 0), command
