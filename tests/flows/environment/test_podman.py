"""The environment flow on Podman: existing scripts, gates, the runtime image, test runs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.environment.tested_benchmark import COUNTS, make_environment_workspace, written_environment
from support.system.dockerd import DockerEngine

pytestmark = pytest.mark.slow  # .ci/run brings no Podman
TESTS = "[evaluate]\ntests = true\nbaseline_runs = 2\n"


def test_scripts_become_an_image_and_test_runs_on_podman(
    tmp_path: Path, podman_engine: DockerEngine, podman_image: str
) -> None:
    sandbox = f'engine = "podman"\nsocket = "{podman_engine.socket}"\nmax = 4\n'
    made = make_environment_workspace(tmp_path, sandbox, podman_image, text=TESTS)
    done = made.run("--json")
    assert done.code == 0, done.err
    metadata, details = written_environment(made)
    assert (metadata["golden_metrics"], metadata["base_metrics"]) == (COUNTS, COUNTS)
    assert (details["level"], details["privileges"]) == ("offline", "none")
    for agent in ("golden_agent", "null_agent"):
        path = next((made.out / "outputs/pseudo_agents/direct").glob(f"*/*/*/{agent}/evaluation/scores.json"))
        scores = json.loads(path.read_text())
        assert (scores["passed"], scores["baseline"]["runs"]) == (True, 4), scores
