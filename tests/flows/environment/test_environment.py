"""Environments from a config to test runs, in containers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from codetaste.environment.base_image.recipe import BASES, polyglot_image
from support.environment.tested_benchmark import (
    CHANGED,
    COUNTS,
    MODULES,
    make_environment_workspace,
    make_tested_benchmark,
    make_tested_workspace,
    written_environment,
)
from support.flows.tiny_benchmark import Bench, Workspace, commit
from support.system.dockerd import DockerEngine


@pytest.fixture
def sandbox(docker_engine: DockerEngine) -> str:
    return f'engine = "docker"\nsocket = "{docker_engine.socket}"\nmax = 4\n'


def image_names(engine: DockerEngine) -> set[str]:
    return {name for each in engine.call("GET", "/images/json").json() for name in each["RepoTags"] or ()}


def test_scripts_of_the_benchmark_become_an_image_and_test_runs(
    tmp_path: Path, sandbox: str, lean_image: str
) -> None:
    made = make_environment_workspace(
        tmp_path, sandbox, lean_image, text="[evaluate]\ntests = true\nbaseline_runs = 2\n", scripts=True
    )
    done = made.run("--json")
    assert done.code == 0, done.err
    metadata, details = written_environment(made)
    assert (metadata["golden_metrics"], metadata["base_metrics"]) == (COUNTS, COUNTS)
    assert (details["level"], details["privileges"]) == ("offline", "none")
    assert [gate["passed"] for gate in details["gates"]] == [True] * 8
    assert {run["side"] for run in details["runs"]} == {"golden", "base"}
    for agent in ("golden_agent", "null_agent"):
        folder = next((made.out / "outputs/pseudo_agents/direct").glob(f"*/*/*/{agent}"))
        scores = json.loads((folder / "evaluation/scores.json").read_text())
        assert scores["passed"] is True, scores
        assert scores["baseline"]["runs"] == 4
    started = started_jobs(made)
    again = made.run("--json")
    assert (again.code, started_jobs(made)) == (0, started), again.err


def started_jobs(made: Workspace) -> list[str]:
    lines = map(json.loads, (made.out / "journal.jsonl").read_text().splitlines())
    return [line["key"] for line in lines if line["event"] == "started"]


def test_without_the_section_existing_scripts_are_used_as_they_are(
    tmp_path: Path, sandbox: str, lean_image: str, docker_engine: DockerEngine
) -> None:
    bench, _ = make_tested_benchmark(tmp_path / "made")
    polyglot = polyglot_image(BASES[0])
    repository, tag = polyglot.split(":")
    docker_engine.call("POST", f"/images/{lean_image}/tag", params={"repo": repository, "tag": tag})
    text = "[evaluate]\ntests = true\nbaseline_runs = 1\n"
    made = make_tested_workspace(tmp_path / "work", bench, tmp_path / "cache", sandbox, text)
    try:
        done = made.run("--json")
    finally:
        docker_engine.call("DELETE", f"/images/{polyglot}")
    assert done.code == 0, done.err
    assert {key.partition("/")[0] for key in started_jobs(made)} == {"sources", "image", "tests", "evaluate"}


def test_trial_whose_plan_used_its_budget_is_tested_as_unchanged_code(
    tmp_path: Path, sandbox: str, lean_image: str
) -> None:
    tracks = TRIALS.replace('"open"\n', '"open"\nmode = "plan"\n')
    made = make_environment_workspace(tmp_path, sandbox, lean_image, "endless", setup=False, text=tracks)
    config = made.config.read_text()
    made.config.write_text(
        config.replace("budget_usd = 2.0", "budget_usd = 0.05\nmax_turns = 60\nmax_output_tokens = 1024")
    )
    made.run("--json")
    trial = next((made.out / "outputs/open/plan").glob("*/*/*/a"))
    assert (trial / "prediction.diff").read_bytes() == b""
    scores = json.loads((trial / "evaluation/scores.json").read_text())
    assert (scores["passed"], scores["tests"]["passed"]) == (True, 12)


@pytest.mark.parametrize(("script", "rounds"), [("builder", 1), ("learner", 2)])
def test_setup_agent_makes_an_environment(
    tmp_path: Path, sandbox: str, lean_image: str, script: str, rounds: int
) -> None:
    made = make_environment_workspace(tmp_path, sandbox, lean_image, script, scripts=False)
    done = made.run("--json")
    assert done.code == 0, done.err
    metadata, details = written_environment(made)
    assert metadata["base_metrics"] == COUNTS
    assert (details["level"], details["attempts"], details["built_by"]) == ("offline", rounds, "a")
    assert float(details["cost_usd"]) > 0


@pytest.mark.parametrize(
    ("script", "message", "logs_of_gates"),
    [("hopeless", "3 tests; at least 10 are needed", 1), ("idle", "setup_system.sh: missing", 0)],
)
def test_agent_without_success_ends_with_the_failed_gate(
    tmp_path: Path, sandbox: str, lean_image: str, script: str, message: str, logs_of_gates: int
) -> None:
    made = make_environment_workspace(tmp_path, sandbox, lean_image, script, scripts=False)
    done = made.run("--json")
    assert done.code == 1
    assert message in done.out
    logs = [path.read_text() for path in (made.out / "logs/environment").glob("*.gates.log")]
    assert len([log for log in logs if message in log and "The end of the log" in log]) == logs_of_gates
    report = made.cli("report", str(made.out), "--table", "failed-environments", "--format", "csv")
    assert report.code == 0, report.err
    assert message in report.out


TRIALS = '[[tracks]]\ntrack = "open"\n[evaluate]\ntests = true\nbaseline_runs = 1\n'


@pytest.mark.parametrize(
    ("script", "passed", "counts"), [("coder", True, (12, 0)), ("breaker", False, (6, 6))]
)
def test_trial_works_in_the_environment_and_its_patch_is_tested(
    tmp_path: Path, sandbox: str, lean_image: str, script: str, passed: bool, counts: tuple[int, int]
) -> None:
    made = make_environment_workspace(tmp_path, sandbox, lean_image, script, setup=False, text=TRIALS)
    made.run("--json")
    trial = next((made.out / "outputs/open/direct").glob("*/*/*/a"))
    scores = json.loads((trial / "evaluation/scores.json").read_text())
    assert scores["passed"] is passed
    assert (scores["tests"]["passed"], scores["tests"]["failed"]) == counts
    assert scores["test_run"]["reported_tests"] == 13
    metadata = json.loads((trial / "inference_metadata.json").read_text())
    assert metadata["additional"]["image"] == f"localhost/benchmark/{made_id(made)}__runtime"
    patch = (trial / "prediction.diff").read_text()
    assert "installed" not in patch
    assert "junit.xml" not in patch
    if script == "coder":
        answers = [
            block["content"]
            for line in next((made.out / "transcripts").rglob("*.jsonl")).read_text().splitlines()[1:]
            for block in json.loads(line)["content"]
            if block["type"] == "result"
        ]
        # The tests run, with the variables of setup_shell.sh, which had been sourced before.
        result, seed, *_ = answers[0].splitlines()
        assert (json.loads(result)["passed"], seed) == (12, "0")


def made_id(made: Workspace) -> str:
    folder = next((made.out / "environment/instance_images").glob("*/*/*"))
    owner, repo, digits = folder.parts[-3:]
    return f"{owner}__{repo}-{digits}"


def test_image_of_equal_inputs_is_not_built_again(tmp_path: Path, sandbox: str, lean_image: str) -> None:
    first = make_environment_workspace(tmp_path / "first", sandbox, lean_image)
    again = make_environment_workspace(tmp_path / "again", sandbox, lean_image)
    assert (first.run().code, again.run().code) == (0, 0)
    images = [written_environment(made)[1]["runtime_image"] for made in (first, again)]
    assert images[0]["id"] == images[1]["id"]
    assert images[0]["key"] == images[1]["key"]


def test_environment_without_a_container_engine_is_refused(tmp_path: Path, lean_image: str) -> None:
    made = make_environment_workspace(tmp_path, 'engine = "bubblewrap"\n', lean_image)
    done = made.run()
    assert done.code == 2
    assert "execution environments are container images" in done.err


def test_commands_prove_and_build_by_hand(
    tmp_path: Path, docker_engine: DockerEngine, lean_image: str
) -> None:
    bench, row = make_tested_benchmark(tmp_path / "made")
    made = make_tested_workspace(tmp_path / "work", bench, tmp_path / "cache", "", "")
    options = ["--benchmark", str(bench.root), "--repos", str(bench.repos), "--image", lean_image]
    options += ["--socket", str(docker_engine.socket), "--no-registries"]
    name = f"localhost/benchmark/{row.id}__runtime:latest"
    if name in image_names(docker_engine):
        docker_engine.call("DELETE", f"/images/{name}")
    checked = made.cli("environment", "check", *options)
    assert checked.code == 0, checked.err
    assert "12 of 13 tests pass on R, by benchmark" in checked.out
    assert name not in image_names(docker_engine)
    built = made.cli("environment", "build", *options)
    assert built.code == 0, built.err
    assert name in image_names(docker_engine)
    folder = tmp_path / "work/runs/environment-bench/environment/instance_images" / row.path
    assert json.loads((folder / "environment.json").read_text())["level"] == "offline"


def test_published_image_is_used_as_it_is(
    tmp_path: Path, sandbox: str, lean_image: str, docker_engine: DockerEngine
) -> None:
    text = "[evaluate]\ntests = true\nbaseline_runs = 1\n"
    first = make_environment_workspace(tmp_path / "first", sandbox, lean_image)
    assert first.run().code == 0
    name = f"localhost/benchmark/{made_id(first)}__runtime"
    archive = tmp_path / "image.tar"
    with docker_engine.container(name) as container:
        archive.write_bytes(docker_engine.call("GET", f"/containers/{container.container_id}/export").content)
    docker_engine.call("DELETE", f"/images/{name}", params={"force": "1"})
    docker_engine.import_image(archive, name)  # without labels, as others make it
    imported = docker_engine.call("GET", f"/images/{name}/json").json()["Id"]
    try:
        bench, _ = make_tested_benchmark(tmp_path / "made")
        made = make_tested_workspace(tmp_path / "work", bench, tmp_path / "cache", sandbox, text)
        done = made.run("--json")
    finally:
        docker_engine.call("DELETE", f"/images/{name}", params={"force": "1"})
    assert done.code == 0, done.err
    (value,) = (
        line["value"]
        for line in map(json.loads, (made.out / "journal.jsonl").read_text().splitlines())
        if line["event"] == "ended" and line["key"].startswith("image/")
    )
    assert (value["image"], value["image_id"], value["level"]) == (name, imported, "offline")
    for agent in ("golden_agent", "null_agent"):
        folder = next((made.out / "outputs/pseudo_agents/direct").glob(f"*/*/*/{agent}"))
        assert json.loads((folder / "evaluation/scores.json").read_text())["passed"] is True


def test_environment_of_the_same_repository_is_tried_before_the_agent(
    tmp_path: Path, sandbox: str, lean_image: str
) -> None:
    made = make_environment_workspace(tmp_path, sandbox, lean_image, "builder", scripts=False)
    bench, clone = Bench(tmp_path / "made"), tmp_path / "made/clones/tiny/tested"
    instances = (bench.root / "instances.csv").read_text().splitlines()
    base, golden = (commit(clone, {**files, "README": "later\n"}) for files in (MODULES, CHANGED))
    (bench.root / "instances.csv").write_text(
        "\n".join([*instances, f"tiny,tested,{base},{golden},,rename,python"]) + "\n"
    )
    done = made.run("--json")
    assert done.code == 0, done.err
    records = [
        json.loads(path.read_text())
        for path in (made.out / "environment/instance_images").glob("*/*/*/environment.json")
    ]
    assert sorted(record["builder"] for record in records) == ["agent", "neighbour"]
    assert sorted(float(record["cost_usd"]) > 0 for record in records) == [False, True]


def test_image_that_the_engine_lost_is_built_again(
    tmp_path: Path, sandbox: str, lean_image: str, docker_engine: DockerEngine
) -> None:
    text = "[evaluate]\ntests = true\nbaseline_runs = 1\n"
    made = make_environment_workspace(tmp_path, sandbox, lean_image, text=text)
    assert made.run().code == 0
    started = len(started_jobs(made))
    image = written_environment(made)[1]["runtime_image"]
    docker_engine.call("DELETE", f"/images/{image['id']}", params={"force": "1"})
    again = made.run("--set", "evaluate.baseline_runs=2")
    assert again.code == 0, again.err
    assert f"image/{made_id(made)}" in started_jobs(made)[started:]
    for agent in ("golden_agent", "null_agent"):
        folder = next((made.out / "outputs/pseudo_agents/direct").glob(f"*/*/*/{agent}"))
        scores = json.loads((folder / "evaluation/scores.json").read_text())
        assert (scores["passed"], scores["baseline"]["runs"]) == (True, 4)
