"""``kill -9`` in each phase of building and testing, then the same command: nothing is paid twice or left."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx

from support.environment.tested_benchmark import COUNTS, make_environment_workspace, written_environment
from support.flows.tiny_benchmark import Workspace, assert_no_finished_job_ran_twice, kill
from support.system.dockerd import DockerEngine

LEARNED = '[[tracks]]\ntrack = "open"\n[evaluate]\ntests = true\nbaseline_runs = 2\n'


@dataclass(frozen=True)
class Phase:
    """What an engine does in a phase: an action on a container of a job, or on an image.

    ``number`` counts how often a process makes it do so, from 1.
    """

    action: str
    job: str = ""
    image: str = ""
    number: int = 1

    def has(self, event: dict[str, Any]) -> bool:
        attributes = event["Actor"].get("Attributes") or {}
        job, image = attributes.get("codetaste.job", ""), attributes.get("name", "")
        return event["Action"] == self.action and job.startswith(self.job) and self.image in image


PHASES = (
    # Round 1 of the agent, whose scripts fail a gate. It begins again after each kill.
    Phase("create", "environment/"),
    Phase("extract-to-dir", "environment/"),
    Phase("tag", image="-round-1"),
    Phase("commit", "environment/"),
    Phase("start", "environment/", number=2),  # the first gate
    # Round 2.
    Phase("start", "environment/", number=2),
    Phase("tag", image="-round-2"),
    Phase("start", "environment/", number=2),  # the gates on R∘X*
    Phase("start", "environment/", number=2),  # those on R
    # The runtime image.
    Phase("start", "image/"),
    Phase("tag", image="__runtime:draft"),
    Phase("commit", "image/"),
    Phase("tag", image="__runtime:latest"),
    Phase("start", "image/"),  # the test run without a network
    # A trial, the baseline and the test run of the trial.
    Phase("start", "infer/"),
    Phase("start", "tests/"),
    Phase("destroy", "tests/"),
    Phase("start", "tests/a/"),
)


@contextmanager
def events(engine: DockerEngine) -> Iterator[Iterator[dict[str, Any]]]:
    """Give what happens in the engine from now on, as it happens."""
    transport = httpx.HTTPTransport(uds=str(engine.socket))
    with (
        httpx.Client(transport=transport, base_url="http://docker", timeout=250) as client,
        client.stream("GET", "/events") as answer,
    ):
        yield map(json.loads, answer.iter_lines())


def kill_in(phase: Phase, made: Workspace, engine: DockerEngine) -> None:
    """Run the command and kill it as soon as the phase begins."""
    with events(engine) as happening:
        process, left = made.start("--json"), phase.number
        while left:
            left -= phase.has(next(happening))
            if process.poll() is not None:
                raise AssertionError(f"{phase} was not seen:\n{process.communicate()}")
        kill(process)


def objects_of(engine: DockerEngine) -> dict[str, set[str]]:
    """Return the ids of all that the engine has: all images, and what is labelled as codetaste's."""
    filters = {"filters": json.dumps({"label": ["codetaste.owner"]})}
    containers = engine.call("GET", "/containers/json", params={"all": "1"}).json()
    volumes = engine.call("GET", "/volumes", params=filters).json()["Volumes"] or []
    return {
        "containers": {one["Id"] for one in containers},
        "networks": {one["Id"] for one in engine.call("GET", "/networks", params=filters).json()},
        "volumes": {one["Name"] for one in volumes},
        "images": {one["Id"] for one in engine.call("GET", "/images/json").json()},
    }


def test_killed_in_each_phase_nothing_is_paid_twice_and_nothing_is_left(
    tmp_path: Path, docker_engine: DockerEngine, lean_image: str
) -> None:
    sandbox = f'engine = "docker"\nsocket = "{docker_engine.socket}"\nmax = 4\n'
    made = make_environment_workspace(tmp_path, sandbox, lean_image, "learner", scripts=False, text=LEARNED)
    before = objects_of(docker_engine)
    with TemporaryDirectory() as scratch:  # a short path, as sockets are in it
        made.env["TMPDIR"] = scratch
        for phase in PHASES:
            kill_in(phase, made, docker_engine)
        done = made.run("--json")
        assert list(Path(scratch).iterdir()) == []
    metadata, details = written_environment(made)
    assert (metadata["base_metrics"], details["level"], details["attempts"]) == (COUNTS, "offline", 2)
    scores = {path.parents[1].name: json.loads(path.read_text()) for path in made.out.rglob("scores.json")}
    assert {agent: each["passed"] for agent, each in scores.items()} == dict.fromkeys(
        ("a", "golden_agent", "null_agent"), True
    ), done.out
    calls = Counter(line["call"] for line in made.ledger("m"))
    assert set(calls.values()) == {1}, calls
    journal = made.journal()
    assert_no_finished_job_ran_twice(journal)
    # What the scripts of a round are is written down whenever the round is replayed, which costs nothing.
    effects = Counter(
        (line["key"], line["name"])
        for line in journal
        if line["event"] == "effect" and not line["name"].endswith("/scripts")
    )
    assert set(effects.values()) == {1}, effects
    after = objects_of(docker_engine)
    final = {details[image]["id"] for image in ("setup_image", "runtime_image")}
    assert after["images"] - before["images"] == final
    assert {kind for kind in after if after[kind] - before[kind]} == {"images"}
