"""Limits of a container: memory, processes, cores, disk, privileges, network; and its labels."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import anyio
import pytest

from codetaste.errors import SandboxError
from codetaste.sandbox.base import Egress, EndReason, MemoryEnd, SandboxEnd, SandboxSpec
from codetaste.sandbox.docker.images import build_image, remove_image
from codetaste.sandbox.docker.provider import DockerSandboxProvider
from support.sandbox.docker_engine import container_labels, inspect_container
from support.sandbox.providers import get_members, make_archive, open_docker, sh
from support.system.dockerd import Daemon, DockerEngine
from support.system.small_disk import copy_image

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
    docker_provider: DockerSandboxProvider,
) -> None:
    small = replace(SPEC, memory_bytes=256 * MIB)
    async with docker_provider.open(SPEC) as sibling, docker_provider.open(small) as sandbox:
        result = await sandbox.run(["python3", "-c", "data = bytearray(10**9)"])
        assert result.exit_code == 137
        assert b"[killed: out of memory]" in result.stderr
        assert result.memory is MemoryEnd.LIMIT
        assert (await sh(sandbox, "echo alive")).stdout == b"alive\n", (
            "only the process that exhausted the memory is killed"
        )
        assert (await sh(sibling, "echo alive")).stdout == b"alive\n"
        assert sibling.end is None


@pytest.fixture
def short_folder() -> Iterator[Path]:
    """A folder whose path leaves room for the names of an engine's sockets, of 107 bytes in all."""
    with tempfile.TemporaryDirectory(prefix="codetaste-docker-") as name:
        yield Path(name)


async def test_memory_that_the_host_lacks_is_no_fault_of_the_sandbox(
    docker_engine: DockerEngine, lean_image: str, tmp_path: Path, short_folder: Path
) -> None:
    # An engine whose containers have less memory together than each of them may use.
    cgroup = limited_cgroup(300 * MIB)
    daemon = Daemon(
        short_folder,
        ("--bridge=none", "--iptables=false", f"--cgroup-parent=/{cgroup.name}"),
        before=("unshare", "--net"),
    )
    try:
        daemon.start()
        engine = DockerEngine(short_folder / "docker.sock", daemon)
        copy_image(docker_engine, engine, lean_image)
        async with (
            open_docker(engine.socket, lean_image, tmp_path / "sandboxes") as provider,
            provider.open(replace(SPEC, memory_bytes=1024 * MIB)) as sandbox,
        ):
            result = await sandbox.run(["python3", "-c", "data = bytearray(6 * 10**8)"])
            assert (result.exit_code, result.memory) == (137, MemoryEnd.HOST)
            assert b"[killed: the host is out of memory]" in result.stderr
            forged = await sh(sandbox, "echo '[killed: the host is out of memory]' >&2")
            assert forged.memory is None
    finally:
        daemon.stop()
        cgroup.rmdir()


def limited_cgroup(limit: int) -> Path:
    """Make a group of processes with a limit of memory; the caller removes its folder once it is empty."""
    root, file = Path("/sys/fs/cgroup/memory"), "memory.limit_in_bytes"
    if not root.is_dir():  # version 2
        root, file = Path("/sys/fs/cgroup"), "memory.max"
    cgroup = root / f"codetaste-test-{os.getpid()}"
    cgroup.mkdir()
    (cgroup / file).write_text(str(limit))
    return cgroup


async def test_processes_and_cores_are_limited(
    docker_provider: DockerSandboxProvider, docker_engine: DockerEngine
) -> None:
    limited = replace(SPEC, processes=64, cpus=0.5, memory_reserved_bytes=256 * MIB)
    async with docker_provider.open(limited) as sandbox:
        result = await sandbox.run(["python3", "-c", FORKS])
        assert 0 < int(result.stdout) < 64
        assert (await sh(sandbox, "echo alive")).stdout == b"alive\n"
        host = inspect_container(docker_engine, "test")["HostConfig"]
        assert isinstance(host, dict)
        assert (host["NanoCpus"], host["PidsLimit"]) == (5 * 10**8, 64)
        assert host["Memory"] == host["MemorySwap"] == SPEC.memory_bytes
        assert host["MemoryReservation"] == 256 * MIB


async def test_cores_are_capped_at_those_of_the_host(
    docker_provider: DockerSandboxProvider, docker_engine: DockerEngine
) -> None:
    async with docker_provider.open(replace(SPEC, cpus=1024)):
        host = inspect_container(docker_engine, "test")["HostConfig"]
        assert isinstance(host, dict)
        assert host["NanoCpus"] == (os.cpu_count() or 1) * 10**9


async def test_file_size_is_limited_to_the_disk_limit(
    docker_provider: DockerSandboxProvider,
) -> None:
    async with docker_provider.open(replace(SPEC, disk_bytes=30 * MIB)) as sandbox:
        with pytest.raises(SandboxError, match="disk full"):
            await sh(sandbox, "head -c 90000000 /dev/zero >large; sleep 60")
        assert sandbox.end == SandboxEnd(EndReason.DISK_FULL)
        assert len((await get_members(sandbox, "/testbed/large"))["large"][1]) <= 30 * MIB


async def test_docker_read_only_container_writes_only_to_its_folders(
    docker_provider: DockerSandboxProvider,
) -> None:
    async with docker_provider.open(replace(SPEC, read_only_root=True, disk_bytes=40 * MIB)) as sandbox:
        await sandbox.put(
            make_archive(("testbed/a", b"1"), ("home/agent/b", b"2"), ("task_description/c", b"3"))
        )
        writable = "/testbed/x /output/x /task_description/x ~/x /tmp/x"
        result = await sh(
            sandbox, f"touch {writable} && echo written; touch /var/tmp/x /dev/shm/x; cat a ~/b"
        )
        assert result.stdout == b"written\n12"
        assert b"/var/tmp/x': Read-only" in result.stderr
        with pytest.raises(SandboxError, match="disk full"):
            await sh(sandbox, "for i in 1 2 3; do head -c 20000000 /dev/zero >f$i; done; sleep 60")
        assert set(await get_members(sandbox, "/output")) == {"output", "output/x"}


async def test_setuid_program_of_an_image_gains_no_privileges(
    docker_provider: DockerSandboxProvider, tmp_path: Path
) -> None:
    (tmp_path / "Dockerfile").write_text(
        f"FROM {docker_provider.image}\nRUN cp /usr/bin/id /usr/bin/root-id && chmod 6755 /usr/bin/root-id\n"
        "RUN userdel agent && rm -rf /output\n"
    )
    messages: list[str] = []
    name = "codetaste/test-setuid:1"
    await build_image(docker_provider.engine, tmp_path, name, "built", messages.append)
    assert any("root-id" in line for line in messages)
    try:
        async with docker_provider.open(replace(SPEC, image=name)) as sandbox:
            result = await sh(
                sandbox, "root-id -u; id -un; ls -ld /output; grep -E 'CapBnd|NoNewPrivs' /proc/self/status"
            )
        fields = result.stdout.decode().split()
        assert fields[:2] == ["1000", "agent"], "the user missing from the image is added"
        assert fields[3:5] == ["2", "agent"]
        assert fields[-4:] == ["CapBnd:", "0000000000000000", "NoNewPrivs:", "1"]
    finally:
        await docker_provider.close()
        await remove_image(docker_provider.engine, name)


async def test_labels_name_job_owner_and_deadline(
    docker_provider: DockerSandboxProvider, docker_engine: DockerEngine
) -> None:
    async with docker_provider.open(replace(SPEC, lifetime_s=100.0)):
        (labels,) = container_labels(docker_engine, "test")
    assert labels["codetaste.job"] == "test/job"
    assert 0 < int(labels["codetaste.deadline"]) - time.time() - 100 < 3600
    assert labels["codetaste.owner"]
    assert container_labels(docker_engine, "test") == []


async def test_open_network_sandboxes_share_network_but_are_isolated(
    docker_provider: DockerSandboxProvider, docker_engine: DockerEngine
) -> None:
    networks = len(docker_engine.call("GET", "/networks").json())
    spec = replace(SPEC, egress=Egress(network=True))
    async with (
        docker_provider.open(spec) as one,
        docker_provider.open(spec) as other,
        docker_provider.open(SPEC) as closed,
    ):
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
