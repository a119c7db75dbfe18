"""Real projects end to end: an agent sets their environments up, gates prove them, test runs judge patches.

Projects and toolchains come from the registries and archives that this host uses.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from codetaste.benchmark.instance import Instance
from codetaste.benchmark.layout import Track, description_path, environment_folder
from support.environment import setup_models
from support.environment.archives import fetch
from support.environment.benchmark import make_benchmark
from support.environment.projects import PROJECTS, Project
from support.environment.sudo_image import build_sudo_image
from support.environment.tested_benchmark import make_tested_workspace
from support.flows.tiny_benchmark import PRICE, Bench, Workspace
from support.system.dockerd import DockerEngine

MODELS = Path(setup_models.__file__)
CHEAP = {"python", "go"}
"""The languages whose tools are installed in seconds."""
AGENT = """\
[[models]]
id = "{name}"
provider = "scripted"
model = "{models}:{function}"
price = {price}
[[agents]]
id = "{name}"
harness = "codetaste"
model = "{name}"
budget_usd = 5.0
time_limit = "30m"
"""
RUN = """\
[environment]
agent = "setup"
image = "{image}"
rounds = 1
[[tracks]]
track = "open"
agents = ["breaker"]
[evaluate]
tests = true
baseline_runs = 2
"""


@pytest.fixture(scope="module")
def base_image(docker_engine: DockerEngine, lean_image: str, tmp_path_factory: pytest.TempPathFactory) -> str:
    return build_sudo_image(docker_engine.socket, lean_image, tmp_path_factory.mktemp("image"))


@pytest.mark.timeout(3600)
@pytest.mark.parametrize(
    "language",
    [
        pytest.param(language, marks=[] if language in CHEAP else pytest.mark.slow)
        for language in sorted(PROJECTS)
    ],
)
def test_environment_is_set_up_proven_and_judges_patches(
    tmp_path: Path, docker_engine: DockerEngine, base_image: str, language: str
) -> None:
    project = PROJECTS[language]
    instance, made = make_workspace(tmp_path, project, docker_engine, base_image)
    done = made.run("--json", timeout_s=3000)
    assert done.code == 0, done.err

    folder = environment_folder(made.out / "environment", instance)
    metadata, details = (
        json.loads((folder / name).read_text()) for name in ("instance_metadata.json", "environment.json")
    )
    assert counts_of(metadata["base_metrics"]) == project.base_counts.as_json
    assert counts_of(metadata["golden_metrics"]) == project.golden_counts.as_json
    assert (details["level"], details["built_by"], details["attempts"]) == ("offline", "setup", 1)
    assert [gate["passed"] for gate in details["gates"]] == [True] * 8
    assert {(run["side"], run["problem"]) for run in details["runs"]} == {("golden", ""), ("base", "")}

    golden = scores_of(made, "pseudo_agents/direct/*/*/*/golden_agent")
    assert golden["passed"] is True, golden
    assert counts_of(golden["tests"]) == project.golden_counts.as_json
    null = scores_of(made, "pseudo_agents/direct/*/*/*/null_agent")
    assert null["passed"] is True, null
    assert counts_of(null["tests"]) == project.base_counts.as_json
    broken = scores_of(made, "open/direct/*/*/*/breaker")
    assert broken["passed"] is False, broken
    assert broken["tests"]["failed"] > 0
    for scores in (golden, null, broken):
        assert scores["test_run"]["reported_tests"] == scores["tests"]["total"]
    assert compact(json.dumps(project.base_counts.as_json)) in compact(answers(made))


def make_workspace(
    folder: Path, project: Project, engine: DockerEngine, image: str
) -> tuple[Instance, Workspace]:
    bench = Bench(folder / "made")
    trees = fetch(project, folder / "fetched")
    instance = make_benchmark(bench.root, project, trees, bench.repos / project.repo)
    description = description_path(bench.root, instance, Track.OPEN)
    description.parent.mkdir(parents=True, exist_ok=True)
    description.write_text("Make this code cleaner.\n")
    agents = "".join(
        AGENT.format(name=name, models=MODELS, function=function, price=PRICE)
        for name, function in (("setup", "succeeds"), ("breaker", "breaks"))
    )
    sandbox = f'engine = "docker"\nsocket = "{engine.socket}"\nmax = 2\n'
    more = f"{agents}{RUN.format(image=image)}"
    return instance, make_tested_workspace(folder / "work", bench, folder / "cache", sandbox, more)


def counts_of(tests: dict[str, Any]) -> dict[str, Any]:
    return {name: tests[name] for name in ("passed", "failed", "skipped", "total")}


def scores_of(made: Workspace, pattern: str) -> dict[str, Any]:
    folder = next((made.out / "outputs").glob(pattern))
    scores: dict[str, Any] = json.loads((folder / "evaluation/scores.json").read_text())
    return scores


def answers(made: Workspace) -> str:
    """What the tools answered the agents."""
    return "\n".join(
        block["content"]
        for path in (made.out / "transcripts").rglob("*.jsonl")
        for line in path.read_text().splitlines()[1:]
        for block in json.loads(line)["content"]
        if block["type"] == "result"
    )


def compact(text: str) -> str:
    return text.replace(" ", "")
