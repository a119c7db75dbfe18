"""A command-line agent refactors a Maven project in containers of the Java image: with JDK 8 and with 21."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from support.swe_refactor.agent_trials import AgentSetup, answers, make_agents_run, trial_rows
from support.system.dockerd import DockerEngine

JDKS = {"1.8": "javac 1.8", "21": "javac 21"}


@pytest.mark.slow
@pytest.mark.system
@pytest.mark.timeout(5400)
def test_agent_succeeds_with_the_jdk_of_the_instance(
    docker_engine: DockerEngine, require: Callable[..., None], tmp_path: Path, agents_cache: Path
) -> None:
    require("mmdebstrap")
    env = {**os.environ, "DOCKER_HOST": docker_engine.host, "XDG_CACHE_HOME": str(tmp_path / "images")}
    build = [sys.executable, "-m", "codetaste", "image", "build", "--java"]
    subprocess.run(build, env=env, capture_output=True, check=True)
    workspace = make_agents_run(
        tmp_path,
        {"qwen": AgentSetup("qwen-code", "solve", model="qwen3-coder-plus")},
        agents_cache,
        jdks=(1.8, 21),
        sandbox=f'engine = "docker"\nsocket = "{docker_engine.socket}"\nmemory = "3GiB"',
    )
    done = workspace.run("--json", timeout_s=3000)
    assert done.code == 0, done.err
    rows, found = trial_rows(workspace), answers(workspace)
    assert {name: row["outcome"] for name, row in rows.items()} == {f"qwen {jdk}": "verified" for jdk in JDKS}
    for jdk, version in JDKS.items():
        seen = found[f"qwen {jdk}"]["details"]["run"]["message"]
        assert version in seen, seen
        assert "Tests run: 2, Failures: 0, Errors: 0" in seen
        assert "golden" not in seen
        assert rows[f"qwen {jdk}"]["score"]["tests"]["jdk"] == (8 if jdk == "1.8" else 21)
