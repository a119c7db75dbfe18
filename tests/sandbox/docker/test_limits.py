"""What a container holds: memory, processes, cores, disk, privileges; and what it is labelled with."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from pathlib import Path

import anyio
import pytest

from codetaste.errors import SandboxError
from codetaste.sandbox.base import Egress, EndReason, SandboxEnd, SandboxSpec
from codetaste.sandbox.docker.images import build_image, remove_image
from codetaste.sandbox.docker.provider import DockerSandboxProvider, commit_sandbox
from support.sandbox.docker_engine import config_of, ours
from support.sandbox.providers import archive, fetched, sh
from support.system.dockerd import DockerEngine

pytestmark = pytest.mark.anyio
MIB = 1024**2
SPEC = SandboxSpec("test/job")
FORKS = """
import os, time
made = 0
try:
    for made in range(200):
        if os.fork() == 0:
            time.sleep(60)
except BlockingIOError:
    print(made)
"""


async def test_docker_out_of_memory_is_reported_and_others_continue(
    containers: DockerSandboxProvider,
) -> None:
    small = replace(SPEC, memory_bytes=256 * MIB)
    async with containers.open(SPEC) as sibling, containers.open(small) as box:
        done = await box.run(["python3", "-c", "held = bytearray(10**9)"])
        assert done.exit_code == 137
        assert b"[killed: out of memory]" in done.stderr
        assert (await sh(box, "echo alive")).stdout == b"alive\n", "only what used it up is killed"
        assert (await sh(sibling, "echo alive")).stdout == b"alive\n"
        assert sibling.end is None


async def test_processes_and_cores_are_bounded(
    containers: DockerSandboxProvider, docker_engine: DockerEngine
) -> None:
    async with containers.open(replace(SPEC, processes=64, cpus=0.5)) as box:
        done = await box.run(["python3", "-c", FORKS])
        assert 0 < int(done.stdout) < 64
        assert (await sh(box, "echo alive")).stdout == b"alive\n"
        host = config_of(docker_engine, "test")["HostConfig"]
        assert isinstance(host, dict)
        assert (host["NanoCpus"], host["PidsLimit"]) == (5 * 10**8, 64)
        assert host["Memory"] == host["MemorySwap"] == SPEC.memory_bytes


async def test_more_cores_than_there_are_are_all_of_them(
    containers: DockerSandboxProvider, docker_engine: DockerEngine
) -> None:
    async with containers.open(replace(SPEC, cpus=1024)):
        host = config_of(docker_engine, "test")["HostConfig"]
        assert isinstance(host, dict)
        assert host["NanoCpus"] == (os.cpu_count() or 1) * 10**9


async def test_a_file_as_large_as_everything_may_be_is_cut_off_at_once(
    containers: DockerSandboxProvider,
) -> None:
    async with containers.open(replace(SPEC, disk_bytes=30 * MIB)) as box:
        with pytest.raises(SandboxError, match="disk full"):
            await sh(box, "head -c 90000000 /dev/zero >large; sleep 60")
        assert box.end == SandboxEnd(EndReason.DISK_FULL)
        assert len((await fetched(box, "/testbed/large"))["large"][1]) <= 30 * MIB


async def test_docker_read_only_container_writes_only_to_its_folders(
    containers: DockerSandboxProvider,
) -> None:
    async with containers.open(replace(SPEC, read_only_root=True, disk_bytes=40 * MIB)) as box:
        await box.put(archive(("testbed/a", b"1"), ("home/agent/b", b"2"), ("task_description/c", b"3")))
        places = "/testbed/x /output/x /task_description/x ~/x /tmp/x"
        done = await sh(box, f"touch {places} && echo written; touch /var/tmp/x /dev/shm/x; cat a ~/b")
        assert done.stdout == b"written\n12"
        assert b"/var/tmp/x': Read-only" in done.stderr
        with pytest.raises(SandboxError, match="disk full"):
            await sh(box, "for i in 1 2 3; do head -c 20000000 /dev/zero >f$i; done; sleep 60")
        assert set(await fetched(box, "/output")) == {"output", "output/x"}


async def test_a_setuid_program_of_an_image_gives_nothing(
    containers: DockerSandboxProvider, tmp_path: Path
) -> None:
    (tmp_path / "Dockerfile").write_text(
        f"FROM {containers.image}\nRUN cp /usr/bin/id /usr/bin/root-id && chmod 6755 /usr/bin/root-id\n"
        "RUN userdel agent && rm -rf /output\n"
    )
    told: list[str] = []
    name = "codetaste/test-setuid:1"
    await build_image(containers.engine, tmp_path, name, "built", told.append)
    assert any("root-id" in line for line in told)
    try:
        async with containers.open(replace(SPEC, image=name)) as box:
            done = await sh(
                box, "root-id -u; id -un; ls -ld /output; grep -E 'CapBnd|NoNewPrivs' /proc/self/status"
            )
        words = done.stdout.decode().split()
        assert words[:2] == ["1000", "agent"], "and the user that the image lacks is there again"
        assert words[3:5] == ["2", "agent"]
        assert words[-4:] == ["CapBnd:", "0000000000000000", "NoNewPrivs:", "1"]
    finally:
        await containers.close()
        await remove_image(containers.engine, name)


async def test_who_a_container_belongs_to_and_how_long_is_on_it(
    containers: DockerSandboxProvider, docker_engine: DockerEngine
) -> None:
    async with containers.open(replace(SPEC, lifetime_s=100.0)):
        (labels,) = ours(docker_engine, "test")
    assert labels["codetaste.job"] == "test/job"
    assert 0 < int(labels["codetaste.deadline"]) - time.time() - 100 < 3600
    assert labels["codetaste.owner"]
    assert ours(docker_engine, "test") == []


async def test_open_network_sandboxes_share_network_but_are_isolated(
    containers: DockerSandboxProvider, docker_engine: DockerEngine
) -> None:
    networks = len(docker_engine.call("GET", "/networks").json())
    spec = replace(SPEC, egress=Egress(network=True))
    async with containers.open(spec) as one, containers.open(spec) as other, containers.open(SPEC) as closed:
        assert len(docker_engine.call("GET", "/networks").json()) == networks + 1
        address = (await sh(one, "hostname -I")).stdout.decode().strip()
        assert address
        assert (await sh(closed, "hostname -I")).stdout.strip() == b""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(sh, one, "exec python3 -m http.server 8000")
            reach = f"curl -s -m 2 http://{address}:8000/ >/dev/null && echo reached"
            await sh(one, f"until {reach}; do sleep 0.1; done")
            assert (await sh(other, reach)).stdout == b""
            tasks.cancel_scope.cancel()


async def test_docker_commit_creates_image_without_container_labels(
    containers: DockerSandboxProvider, docker_engine: DockerEngine
) -> None:
    name = "codetaste/test-kept:1"
    async with containers.open(SPEC) as box:
        await sh(box, "echo built >/testbed/built")
        ident = await commit_sandbox(box, name)
    try:
        told = docker_engine.call("GET", f"/images/{name}/json").json()
        assert told["Id"] == ident
        assert not told["Config"]["Entrypoint"]
        assert told["Config"]["Labels"]["codetaste.owner"] == ""
        async with containers.open(replace(SPEC, image=name)) as box:
            assert (await sh(box, "cat built")).stdout == b"built\n"
    finally:
        await containers.close()
        await remove_image(containers.engine, name)
