"""Memory of test runs: a figure that they are guaranteed, and one at which they are killed."""

from __future__ import annotations

import json
import os
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from support.environment.tested_benchmark import make_environment_workspace
from support.flows.tiny_benchmark import Workspace
from support.system.dockerd import DockerEngine

MIB = 1024**2
HALF = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
"""Half of this machine's memory, in bytes: more than half of what test runs may have together."""


@pytest.fixture
def sandbox(docker_engine: DockerEngine) -> str:
    return f'engine = "docker"\nsocket = "{docker_engine.socket}"\nmax = 4\n'


def tested(memory: str, reserved: str, **more: Any) -> str:
    lines = ["[evaluate]", "tests = true", "baseline_runs = 2"]
    lines += [f"test_memory = {memory}", f"test_memory_reserved = {reserved}"]
    return "\n".join([*(f"{name} = {value}" for name, value in more.items()), *lines])


def scores_of(made: Workspace, agent: str) -> dict[str, Any]:
    path = next((made.out / "outputs").rglob(f"{agent}/evaluation/scores.json"))
    scores: dict[str, Any] = json.loads(path.read_text())
    return scores


def test_patch_that_takes_too_much_memory_fails_and_both_figures_are_recorded(
    tmp_path: Path, sandbox: str, lean_image: str
) -> None:
    text = '[[tracks]]\ntrack = "open"\n' + tested('"256MiB"', '"64MiB"')
    made = make_environment_workspace(tmp_path, sandbox, lean_image, "hungry", setup=False, text=text)
    made.run("--json")
    failed, golden = scores_of(made, "a"), scores_of(made, "golden_agent")
    assert (failed["passed"], golden["passed"]) == (False, True)
    assert (failed["test_run"]["problem"], failed["test_run"]["message"]) == (
        "out_of_memory",
        "the memory limit was reached",
    )
    for scores in (failed, golden):
        assert scores["test_run"]["memory_bytes"] == 256 * MIB
        assert scores["test_run"]["memory_reserved_bytes"] == 64 * MIB


def test_suite_that_takes_too_much_memory_is_no_environment(
    tmp_path: Path, sandbox: str, lean_image: str
) -> None:
    made = make_environment_workspace(tmp_path, sandbox, lean_image, text=tested('"256MiB"', '"256MiB"'))
    (script,) = tmp_path.rglob("scripts/run_tests")
    script.write_text("#!/bin/bash\npython3 -c 'bytearray(10**9)'\n")
    done = made.run("--json")
    assert done.code == 1
    assert "the memory limit was reached" in done.out


def test_runs_that_the_machine_cannot_guarantee_memory_together_wait_for_each_other(
    tmp_path: Path, sandbox: str, lean_image: str
) -> None:
    made = make_environment_workspace(tmp_path, sandbox, lean_image, text=tested(f"{HALF}", f"{HALF}"))
    done = made.run("--json")
    assert done.code == 0, done.err
    times = [
        (line["key"], line["event"])
        for line in made.journal()
        if line["event"] in {"started", "ended"} and line["key"].startswith("tests/")
    ]
    assert len(times) == 2 * 6
    assert all(times[at][0] == times[at + 1][0] for at in range(0, len(times), 2)), times
    assert all(first[1] != second[1] for first, second in pairwise(times))


def test_memory_that_the_machine_does_not_have_is_refused(tmp_path: Path) -> None:
    text = tested('"4000GiB"', '"4000GiB"')
    made = make_environment_workspace(tmp_path, 'engine = "bubblewrap"\n', "any", text=text)
    done = made.run()
    assert done.code == 2
    (line,) = [line for line in done.err.splitlines() if "test_memory_reserved" in line]
    assert "4000.0 GiB are to be guaranteed to a test run, but this machine has " in line
