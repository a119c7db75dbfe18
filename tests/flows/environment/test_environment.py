"""Environments from a config to test runs, in containers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from support.environment.tested_benchmark import (
    agent_tables,
    make_tested_benchmark,
    make_tested_workspace,
)
from support.flows.tiny_benchmark import Workspace
from support.system.dockerd import DockerEngine

ENVIRONMENT = '[environment]\nimage = "{image}"\nregistries = false\n'
COUNTS = {"passed": 12, "failed": 0, "skipped": 1, "total": 13, "error": None}


@pytest.fixture
def sandbox(docker_engine: DockerEngine) -> str:
    return f'engine = "docker"\nsocket = "{docker_engine.socket}"\nmax = 4\n'


def workspace(folder: Path, sandbox: str, image: str, script: str = "", **more: Any) -> Workspace:
    bench, _ = make_tested_benchmark(folder / "made", scripts=more.get("scripts", True))
    environment = ENVIRONMENT.format(image=image)
    agent = f'agent = "a"\nrounds = {more.get("rounds", 2)}\n' if script and more.get("setup", True) else ""
    tables = agent_tables(script) if script else ""
    text = f"{tables}\n{environment}{agent}\n{more.get('text', '')}"
    return make_tested_workspace(folder / "work", bench, folder / "cache", sandbox, text)


def environment_of(made: Workspace) -> tuple[dict[str, Any], dict[str, Any]]:
    folder = next((made.out / "environment" / "instance_images").glob("*/*/*"))
    names = ("instance_metadata.json", "environment.json")
    metadata, details = (json.loads((folder / name).read_text()) for name in names)
    return metadata, details


def test_scripts_of_the_benchmark_become_an_image_and_test_runs(
    tmp_path: Path, sandbox: str, lean_image: str
) -> None:
    made = workspace(
        tmp_path, sandbox, lean_image, text="[evaluate]\ntests = true\nbaseline_runs = 2\n", scripts=True
    )
    done = made.run("--json")
    assert done.code == 0, done.err
    metadata, details = environment_of(made)
    assert (metadata["golden_metrics"], metadata["base_metrics"]) == (COUNTS, COUNTS)
    assert (details["level"], details["privileges"]) == ("offline", "none")
    for agent in ("golden_agent", "null_agent"):
        folder = next((made.out / "outputs/pseudo_agents/direct").glob(f"*/*/*/{agent}"))
        scores = json.loads((folder / "evaluation/scores.json").read_text())
        assert scores["passed"] is True, scores
        assert scores["baseline"]["runs"] == 4


@pytest.mark.parametrize(
    ("script", "rounds", "level"), [("builder", 1, "offline"), ("learner", 2, "offline")]
)
def test_setup_agent_makes_an_environment(
    tmp_path: Path, sandbox: str, lean_image: str, script: str, rounds: int
) -> None:
    made = workspace(tmp_path, sandbox, lean_image, script, scripts=False)
    done = made.run("--json")
    assert done.code == 0, done.err
    metadata, details = environment_of(made)
    assert metadata["base_metrics"] == COUNTS
    assert (details["level"], details["attempts"], details["built_by"]) == ("offline", rounds, "a")
    assert float(details["cost_usd"]) > 0


@pytest.mark.parametrize(
    ("script", "message"),
    [("hopeless", "3 tests; at least 10 are needed"), ("idle", "setup_system.sh: missing")],
)
def test_agent_without_success_ends_with_the_failed_gate(
    tmp_path: Path, sandbox: str, lean_image: str, script: str, message: str
) -> None:
    made = workspace(tmp_path, sandbox, lean_image, script, scripts=False)
    done = made.run("--json")
    assert done.code == 1
    assert message in done.out
