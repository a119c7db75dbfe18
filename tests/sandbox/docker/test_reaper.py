"""The next run removes what killed runs left in an engine, and nothing of live runs."""

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
from support.sandbox.docker_engine import container_labels, count_objects
from support.system.dockerd import DockerEngine

RUN_PROGRAM = Path(__file__).parents[2] / "support" / "sandbox" / "docker_run.py"


@contextmanager
def start_run(engine: DockerEngine, image: str, folder: Path, name: str) -> Iterator[subprocess.Popen[str]]:
    """Start a run with two sandboxes in a process of its own."""
    command = [sys.executable, RUN_PROGRAM, engine.socket, image, folder, name]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def read_until(process: subprocess.Popen[str], last_line: str) -> str:
    assert process.stdout is not None
    output = ""
    for line in process.stdout:
        output += line
        if line.strip() == last_line:
            return output
    raise AssertionError(f"it ended without {last_line!r}: {output}")


def test_next_run_removes_what_a_killed_run_left(
    docker_engine: DockerEngine, lean_image: str, tmp_path: Path
) -> None:
    before = count_objects(docker_engine)
    with start_run(docker_engine, lean_image, tmp_path / "live", "live") as live_run:
        read_until(live_run, "open")
        one_run = count_objects(docker_engine)
        with start_run(docker_engine, lean_image, tmp_path / "killed", "killed") as killed_run:
            read_until(killed_run, "open")
            two_runs = count_objects(docker_engine)
            killed_run.kill()
            killed_run.wait()
        assert [two_runs[kind] - one_run[kind] for kind in two_runs] == [2, 1, 4, 0]
        assert two_runs == count_objects(docker_engine), "a killed run removes nothing itself"

        with start_run(docker_engine, lean_image, tmp_path / "next", "next") as next_run:
            output = read_until(next_run, "open")
            assert (
                "removed leftovers of earlier runs from docker: 2 containers, 1 networks, 4 volumes" in output
            )
            assert container_labels(docker_engine, "killed") == []
            assert (
                len(container_labels(docker_engine, "live"))
                == len(container_labels(docker_engine, "next"))
                == 2
            )
            next_run.communicate("\n")
        live_run.communicate("\n")
    assert count_objects(docker_engine) == before


def test_container_of_unknown_owner_is_removed_after_its_deadline(
    docker_engine: DockerEngine, lean_image: str
) -> None:
    elsewhere = process_identity().replace(process_identity().split()[0], "another-boot")
    containers = {
        "over": {**make_labels("r", "j", -10_000), "codetaste.owner": elsewhere},
        "within": {**make_labels("r", "j", 1000), "codetaste.owner": elsewhere},
        "mine": make_labels("r", "j", -10_000),
        "unowned": {**make_labels("r", "j", -10_000), "codetaste.owner": ""},
    }
    before = count_objects(docker_engine)
    for name, labels in containers.items():
        body = {"Image": lean_image, "Labels": labels}
        docker_engine.call("POST", "/containers/create", params={"name": f"reaped-{name}"}, json=body)

    async def reap() -> ReapedCounts:
        async with connect_engine("docker", docker_engine.socket) as engine:
            return await remove_orphans(engine)

    try:
        assert anyio.run(reap) == ReapedCounts(containers=1)
        remaining = docker_engine.call("GET", "/containers/json", params={"all": "1"}).json()
        names = {name.strip("/") for container in remaining for name in container["Names"]}
        assert {name for name in names if name.startswith("reaped-")} == {
            "reaped-within",
            "reaped-mine",
            "reaped-unowned",
        }
    finally:
        for name in ("within", "mine", "unowned"):
            docker_engine.call("DELETE", f"/containers/reaped-{name}", params={"force": "1"})
    assert count_objects(docker_engine) == before


def test_process_identity_includes_boot_namespace_and_start() -> None:
    assert identity_alive(process_identity()) is True
    boot, namespace, pid, started = process_identity().split()
    assert identity_alive(f"{boot} {namespace} {pid} {int(started) - 1}") is False, (
        "another process had that id"
    )
    ended = subprocess.Popen(["true"])
    ended.wait()
    assert identity_alive(f"{boot} {namespace} {ended.pid} {started}") is False
    for unknown in (f"{boot} 1 {pid} {started}", f"x {namespace} {pid} {started}", "", "a b c d", "1"):
        assert identity_alive(unknown) is None
