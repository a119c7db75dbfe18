"""Sandboxes in Docker on a full disk, and with disk quotas.

Quotas are tested with btrfs, because overlay2 needs XFS quotas, which not every kernel has. A btrfs quota
includes the size of the image.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from codetaste.errors import SandboxError
from codetaste.sandbox.base import SandboxSpec
from support.sandbox.docker_engine import count_objects
from support.sandbox.providers import get_members, make_archive, open_docker, sh
from support.system.dockerd import DockerEngine
from support.system.small_disk import SmallEngine, copy_image, small_engine

pytestmark = [pytest.mark.anyio, pytest.mark.slow, pytest.mark.timeout(600)]
MIB = 1024**2
SPEC = SandboxSpec("test/job")


@pytest.fixture(params=["overlay2", "btrfs"])
def small(
    request: pytest.FixtureRequest,
    docker_engine: DockerEngine,
    lean_image: str,
    require: Callable[..., None],
) -> Iterator[SmallEngine]:
    """An engine with the lean image on its own small disk, with quotas on btrfs."""
    steps = {
        "overlay2": (["mkfs.ext4", "-q"],),
        "btrfs": (["mkfs.btrfs", "-q"], ["btrfs", "quota", "enable"]),
    }[request.param]
    require(steps[0][0])
    require("loop devices", ok=os.path.exists("/dev/loop-control"))  # noqa: PTH110
    with small_engine(request.param, 2048 * MIB, *steps) as engine:
        copy_image(docker_engine, engine.engine, lean_image)
        yield engine


@pytest.mark.parametrize("small", ["overlay2"], indirect=True)
async def test_docker_full_disk_is_reported_and_written_files_remain(
    small: SmallEngine, lean_image: str, tmp_path: Path
) -> None:
    before = count_objects(small.engine)
    small.fill_disk(60 * MIB)
    async with open_docker(small.engine.socket, lean_image, tmp_path / "sandboxes") as provider:
        async with provider.open(SPEC) as sibling:
            await sh(sibling, "echo mine >mine")
            async with provider.open(SPEC) as sandbox:
                result = await sh(sandbox, "echo first >first; cat /dev/zero >large")
                assert result.exit_code == 1
                assert b"No space left on device" in result.stderr
                # Commands that write nothing still work, including their standard input.
                assert (await sibling.run(["cat", "mine", "-"], stdin=b"more\n")).stdout == b"mine\nmore\n"
                assert (await sibling.run(["seq", "9999"])).exit_code == 0
                for attempt in (
                    provider.open(SPEC).__aenter__,
                    lambda: sibling.put(make_archive(("testbed/a", b"1" * MIB))),
                ):
                    with pytest.raises(SandboxError, match=r"disk is full.*; free some space"):
                        await attempt()
                await sandbox.stop()
                small.free_disk()  # the engine itself needs a little to read the files of a stopped container
                assert (await get_members(sandbox, "/testbed/first"))["first"][1] == b"first\n"
            assert (await sh(sibling, "echo again >>mine && cat mine")).stdout == b"mine\nagain\n"
            assert sibling.end is sandbox.end is None
        async with provider.open(SPEC) as sandbox:
            assert (await sh(sandbox, "echo space is free >again && cat again")).stdout == b"space is free\n"
    assert count_objects(small.engine) == before


@pytest.mark.parametrize("small", ["btrfs"], indirect=True)
async def test_docker_engine_quota_limits_container_disk(
    small: SmallEngine, lean_image: str, tmp_path: Path
) -> None:
    bounded = replace(SPEC, disk_bytes=400 * MIB)
    async with (
        open_docker(small.engine.socket, lean_image, tmp_path / "sandboxes") as provider,
        provider.open(bounded) as sandbox,
        provider.open(SPEC) as sibling,
    ):
        assert provider.engine.quota
        script = "echo first >first; for i in 1 2 3 4 5 6 7 8 9; do head -c 40000000 /dev/urandom >f$i; done"
        result = await sh(sandbox, script)
        assert result.exit_code != 0
        assert b"Disk quota exceeded" in result.stderr
        assert (await sh(sibling, "head -c 90000000 /dev/urandom >f && echo well")).stdout == b"well\n"
        await sandbox.stop()
        found = await get_members(sandbox, "/testbed")
        assert found["testbed/first"][1] == b"first\n"
        assert sum(len(content) for _, content in found.values()) < 400 * MIB
        assert sandbox.end is None
