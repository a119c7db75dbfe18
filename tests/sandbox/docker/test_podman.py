"""Boxes in Podman's containers: what a container engine is asked beyond what any box promises.

All that any box promises is tried with Podman too, by the slow variants of those tests (``-k podman``). What
is different: it follows a link that an archive is asked of (put right here); it cannot be asked for a
read-only root; boxes with an open network reach other containers; and the end of a box takes one call more.
Here it runs as root. Tried by hand without root (4.3, subordinate ids, version 1 of cgroups): boxes open, run
and end commands and give their files back, but memory, processes and cores are not bounded, which a run says.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import anyio
import pytest

from codetaste.errors import SandboxError, SandboxMissing
from codetaste.sandbox.base import Egress, EndReason, Sandbox, SandboxEnd, SandboxSpec
from codetaste.sandbox.docker.engine import DOCKER, PODMAN, connect_engine
from codetaste.sandbox.docker.images import build_image, remove_image
from codetaste.sandbox.docker.provider import DockerSandboxProvider, commit_sandbox
from support.sandbox.docker_engine import census, ours
from support.sandbox.providers import archive, fetched, in_docker, sh
from support.system.dockerd import DockerEngine

pytestmark = [pytest.mark.anyio, pytest.mark.slow]
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


@pytest.fixture
async def containers(
    podman_engine: DockerEngine, podman_image: str, tmp_path: Path, anyio_backend: str
) -> AsyncIterator[DockerSandboxProvider]:
    """What opens boxes in the tests' Podman; at the end nothing of them may be left in it."""
    before = census(podman_engine)
    async with in_docker(podman_engine.socket, podman_image, tmp_path / "boxes", kind=PODMAN) as opened:
        yield opened
    assert census(podman_engine) == before


async def until_ended(box: Sandbox) -> SandboxEnd | None:
    with anyio.fail_after(60):
        while box.end is None:  # noqa: ASYNC110 (all that a box says of it)
            await anyio.sleep(0.05)
    return box.end


async def test_what_answers_is_known_as_podman(podman_engine: DockerEngine) -> None:
    async with connect_engine(socket=podman_engine.socket) as engine:
        assert engine.kind == PODMAN
        assert await engine.describe_storage()
    with pytest.raises(SandboxMissing, match="is podman's"):
        async with connect_engine(DOCKER, podman_engine.socket):
            pass


async def test_memory_processes_and_privileges_are_bounded(containers: DockerSandboxProvider) -> None:
    small = replace(SPEC, memory_bytes=256 * MIB, processes=64, cpus=0.5)
    async with containers.open(SPEC) as sibling, containers.open(small) as box:
        assert 0 < int((await box.run(["python3", "-c", FORKS])).stdout) < 64
        done = await box.run(["python3", "-c", "held = bytearray(10**9)"])
        assert done.exit_code == 137
        assert b"[killed: out of memory]" in done.stderr
        assert (await sh(sibling, "echo alive")).stdout == b"alive\n"
        done = await sh(box, "grep -E '^(CapBnd|CapEff|NoNewPrivs|Seccomp):' /proc/self/status")
        nothing = "0000000000000000"
        assert done.stdout.decode().split()[1::2] == [nothing, nothing, "1", "2"]


async def test_a_file_as_large_as_everything_may_be_is_cut_off_at_once(
    containers: DockerSandboxProvider,
) -> None:
    async with containers.open(replace(SPEC, disk_bytes=30 * MIB)) as box:
        with pytest.raises(SandboxError, match="disk full"):
            await sh(box, "head -c 90000000 /dev/zero >large; sleep 60")
        assert await until_ended(box) == SandboxEnd(EndReason.DISK_FULL)
        assert len((await fetched(box, "/testbed/large"))["large"][1]) <= 30 * MIB


async def test_podman_container_killed_or_removed_has_end_reason(
    containers: DockerSandboxProvider, podman_engine: DockerEngine
) -> None:
    for call, path, named in (("POST", "/kill", "killed"), ("DELETE", "?force=1&v=1", "removed")):
        async with containers.open(SPEC) as box:
            await sh(box, "echo before >before")
            name = getattr(box, "name")  # noqa: B009 - a container's, which a Box has not
            await anyio.to_thread.run_sync(podman_engine.call, call, f"/containers/{name}{path}")
            assert named in str(await until_ended(box))
            if named == "killed":
                assert (await fetched(box, "/testbed/before"))["before"][1] == b"before\n"


async def test_podman_labels_name_owner_and_network_is_removed(
    containers: DockerSandboxProvider, podman_engine: DockerEngine
) -> None:
    async with containers.open(replace(SPEC, egress=Egress(network=True))) as box:
        assert (await sh(box, "hostname -I")).stdout.strip()
        (labels,) = ours(podman_engine, "test")
        assert labels["codetaste.job"] == "test/job"
        assert labels["codetaste.owner"]
    assert ours(podman_engine, "test") == []


async def test_podman_commit_and_dockerfile_build_create_images(
    containers: DockerSandboxProvider, podman_engine: DockerEngine, tmp_path: Path
) -> None:
    async with containers.open(SPEC) as box:
        await sh(box, "echo built >/testbed/built")
        await commit_sandbox(box, "codetaste/test-kept:1")
    (tmp_path / "Dockerfile").write_text("FROM codetaste/test-kept:1\nRUN rm -r /output && userdel agent\n")
    told: list[str] = []
    await build_image(containers.engine, tmp_path, "codetaste/test-built:1", "built", told.append)
    try:
        async with containers.open(replace(SPEC, image="codetaste/test-built:1")) as box:
            done = await sh(box, "cat built; id -un; ls -ld /output")
        assert done.stdout.split()[:2] == [b"built", b"agent"], "and what the image lacks is there again"
    finally:
        await containers.close()
        for name in ("codetaste/test-built:1", "codetaste/test-kept:1"):
            await remove_image(containers.engine, name)


async def test_a_link_in_the_place_of_a_folder_is_not_followed(containers: DockerSandboxProvider) -> None:
    async with containers.open(SPEC) as box:
        await box.put(archive(("testbed/a", b"1")))
        await sh(box, "ln -s /etc /output/plans")
        await box.stop()
        found = await fetched(box, "/output/plans")
        assert set(found) == {"plans"}
        assert found["plans"][0].issym()


async def test_a_read_only_root_is_refused_with_what_to_do_instead(containers: DockerSandboxProvider) -> None:
    with pytest.raises(SandboxMissing, match=r"read-only root.*use docker"):
        async with containers.open(replace(SPEC, read_only_root=True)):
            pass
