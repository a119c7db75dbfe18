"""A trial of Harbor without containers: the agent's and the verifier's part, each in a bubblewrap sandbox.

Paths are those of the containers: /testbed, /solution, /tests, /logs. What the Dockerfiles do is done here.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tarfile
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from codetaste.rules.engine.install import RuleEngine

SOLVE = "/solution/solve.sh"
"""What Harbor's agent "oracle" runs."""
NOTHING = ":"
"""What its agent "nop" does."""
OWNER = 1000


@dataclass(frozen=True)
class Trial:
    """The rewards, None if there is no reward file, and what test.sh wrote."""

    code: int
    rewards: dict[str, float] | None
    details: dict[str, Any]
    log: str


@dataclass(frozen=True)
class HarborMachine:
    """Runs trials of exported tasks; with ``as_root`` the testbed belongs to another user than root."""

    bubblewrap: Path
    engine: RuleEngine
    scratch: Path
    as_root: bool = False
    stock: bool = False
    """Whether the engine is run as it is in a container, instead of the core that it has."""
    made: list[Path] = field(default_factory=list)

    def run(self, task: Path, act: str, *, collect: bool = True) -> Trial:
        """Let ``act``, a command, be the agent's work on ``task``; verify it."""
        place = self.scratch / f"trial{len(self.made)}"
        self.made.append(place)
        artifacts = place / "artifacts"
        artifacts.mkdir(parents=True)
        settings = tomllib.loads((task / "task.toml").read_text())
        (hook,) = settings["verifier"]["collect"]
        base = next(
            line
            for line in (task / "environment/Dockerfile").read_text().splitlines()
            if "RUN git -c" in line
        )
        steps = [base.removeprefix("RUN "), act, *([hook["command"]] if collect else [])]
        testbed = self._testbed(task, place / "agent")
        binds = {"/testbed": testbed, "/solution": task / "solution", "/logs/artifacts": artifacts}
        agent = self._sandbox(binds, {}, ["/bin/bash", "-c", "\n".join(["set -e", *steps])])
        assert agent.returncode == 0, agent.stderr
        return self._verify(task, place, artifacts)

    def _verify(self, task: Path, place: Path, artifacts: Path) -> Trial:
        logs, tests = place / "verifier", place / "tests"
        logs.mkdir()
        shutil.copytree(task / "tests", tests)
        if self.as_root:
            logs.chmod(0o777)
            subprocess.run(["chmod", "-R", "go-rwx", tests], check=True)
        cache = self.scratch / "cache"
        cache.mkdir(exist_ok=True)
        binds = {
            "/testbed": self._testbed(task, place / "fresh"),
            "/tests": tests,
            "/logs/artifacts": artifacts,
            "/logs/verifier": logs,
            "/opt/opengrep/cache": cache,
        }
        done = self._sandbox(binds, self._engine(place), ["/tests/test.sh"])
        rewards = logs / "reward.json"
        details = logs / "details.json"
        if rewards.exists():
            assert float((logs / "reward.txt").read_text()) == json.loads(rewards.read_text())["reward"]
        return Trial(
            done.returncode,
            json.loads(rewards.read_text()) if rewards.exists() else None,
            json.loads(details.read_text()) if details.exists() else {},
            done.stdout + done.stderr,
        )

    def _engine(self, place: Path) -> dict[str, Path]:
        if self.stock or not self.engine.is_core:
            return {"/opt/opengrep/opengrep": self.engine.source_file}
        wrapper = place / "opengrep"
        wrapper.write_text('#!/bin/sh\nshift\nexec /engine/opengrep-cli scan --experimental "$@"\n')
        wrapper.chmod(0o755)
        return {"/opt/opengrep/opengrep": wrapper, "/engine": self.engine.program.parent}

    def _testbed(self, task: Path, into: Path) -> Path:
        with tarfile.open(task / "environment/testbed.tar.gz") as archive:
            archive.extractall(into, filter="data")
        if self.as_root:
            subprocess.run(["chown", "-R", f"{OWNER}:{OWNER}", into], check=True)
        return into / "testbed"

    def _sandbox(
        self, binds: dict[str, Path], read_only: dict[str, Path], command: list[str]
    ) -> subprocess.CompletedProcess[str]:
        options = ["--unshare-net", "--unshare-pid", "--die-with-parent", "--new-session", "--clearenv"]
        options += ["--setenv", "PATH", "/usr/bin:/bin", "--setenv", "HOME", "/tmp"]
        options += ["--tmpfs", "/", "--proc", "/proc", "--dev", "/dev", "--perms", "1777", "--tmpfs", "/tmp"]
        if os.geteuid() == 0:
            options += ["--cap-add", "ALL"]
        for name in ("/usr", "/bin", "/sbin", "/lib", "/lib64", "/etc"):
            if Path(name).is_symlink():
                options += ["--symlink", str(Path(name).readlink()), name]
            elif Path(name).exists():
                options += ["--ro-bind", name, name]
        for target, source in binds.items():
            options += ["--bind", str(source), target]
        for target, source in read_only.items():
            options += ["--ro-bind", str(source), target]
        sandboxed = [str(self.bubblewrap), *options, "--chdir", "/testbed", "--", *command]
        return subprocess.run(sandboxed, capture_output=True, text=True, check=False)
