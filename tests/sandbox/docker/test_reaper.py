"""What a killed run has left in an engine is gone when the next one starts; what a living one has stays."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import anyio

from codetaste.core.processes import identity_alive, process_identity
from codetaste.sandbox.docker.engine import connect_engine
from codetaste.sandbox.docker.reaper import ReapedCounts, remove_orphans
from codetaste.sandbox.docker.spec import make_labels
from support.sandbox.docker_engine import census, ours
from support.system.dockerd import DockerEngine

RUN = Path(__file__).parents[2] / "support" / "sandbox" / "docker_run.py"


@contextmanager
def run(engine: DockerEngine, image: str, folder: Path, name: str) -> Iterator[subprocess.Popen[str]]:
    """A run with two open boxes, in a process of its own."""
    command = [sys.executable, RUN, engine.socket, image, folder, name]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def said_until(process: subprocess.Popen[str], word: str) -> str:
    assert process.stdout is not None
    said = ""
    for line in process.stdout:
        said += line
        if line.strip() == word:
            return said
    raise AssertionError(f"it ended without {word!r}: {said}")


def test_a_run_that_was_killed_leaves_nothing_once_another_has_started(
    docker_engine: DockerEngine, lean_image: str, tmp_path: Path
) -> None:
    before = census(docker_engine)
    with run(docker_engine, lean_image, tmp_path / "living", "living") as living:
        said_until(living, "open")
        one = census(docker_engine)
        with run(docker_engine, lean_image, tmp_path / "killed", "killed") as killed:
            said_until(killed, "open")
            both = census(docker_engine)
            killed.kill()
            killed.wait()
        assert [both[kind] - one[kind] for kind in both] == [2, 1, 4, 0]
        assert both == census(docker_engine), "a killed run can remove nothing"

        with run(docker_engine, lean_image, tmp_path / "next", "next") as following:
            told = said_until(following, "open")
            assert (
                "removed leftovers of earlier runs from docker: 2 containers, 1 networks, 4 volumes" in told
            )
            assert ours(docker_engine, "killed") == []
            assert len(ours(docker_engine, "living")) == len(ours(docker_engine, "next")) == 2
            following.communicate("\n")
        living.communicate("\n")
    assert census(docker_engine) == before


def test_of_who_cannot_be_known_the_deadline_decides(docker_engine: DockerEngine, lean_image: str) -> None:
    elsewhere = process_identity().replace(process_identity().split()[0], "another-boot")
    made = {
        "over": {**make_labels("r", "j", -10_000), "codetaste.owner": elsewhere},
        "within": {**make_labels("r", "j", 1000), "codetaste.owner": elsewhere},
        "mine": make_labels("r", "j", -10_000),
        "nobodys": {**make_labels("r", "j", -10_000), "codetaste.owner": ""},
    }
    before = census(docker_engine)
    for name, told in made.items():
        body = {"Image": lean_image, "Labels": told}
        docker_engine.call("POST", "/containers/create", params={"name": f"reaped-{name}"}, json=body)

    async def reaping() -> ReapedCounts:
        async with connect_engine("docker", docker_engine.socket) as engine:
            return await remove_orphans(engine)

    try:
        assert anyio.run(reaping) == ReapedCounts(containers=1)
        left = docker_engine.call("GET", "/containers/json", params={"all": "1"}).json()
        names = {name.strip("/") for one in left for name in one["Names"]}
        assert {name for name in names if name.startswith("reaped-")} == {
            "reaped-within",
            "reaped-mine",
            "reaped-nobodys",
        }
    finally:
        for name in ("within", "mine", "nobodys"):
            docker_engine.call("DELETE", f"/containers/reaped-{name}", params={"force": "1"})
    assert census(docker_engine) == before


def test_a_process_is_known_by_more_than_its_number() -> None:
    assert identity_alive(process_identity()) is True
    boot, namespace, pid, started = process_identity().split()
    assert identity_alive(f"{boot} {namespace} {pid} {int(started) - 1}") is False, "another had that number"
    ended = subprocess.Popen(["true"])
    ended.wait()
    assert identity_alive(f"{boot} {namespace} {ended.pid} {started}") is False
    for unknown in (f"{boot} 1 {pid} {started}", f"x {namespace} {pid} {started}", "", "a b c d", "1"):
        assert identity_alive(unknown) is None
