"""A disk of the engine's that is full, and one with quotas.

Quotas are shown with btrfs: the kernel of a small machine may have no quotas of XFS, which overlay2 needs. Of
btrfs a quota counts what the image has as well.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from codetaste.errors import SandboxError
from codetaste.sandbox.base import SandboxSpec
from support.sandbox.docker_engine import census
from support.sandbox.providers import archive, fetched, in_docker, sh
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
    """An engine with the lean image on a disk of its own, with quotas where the disk has them."""
    steps = {
        "overlay2": (["mkfs.ext4", "-q"],),
        "btrfs": (["mkfs.btrfs", "-q"], ["btrfs", "quota", "enable"]),
    }[request.param]
    require(steps[0][0])
    require("loop devices", ok=os.path.exists("/dev/loop-control"))  # noqa: PTH110
    with small_engine(request.param, 2048 * MIB, *steps) as started:
        copy_image(docker_engine, started.engine, lean_image)
        yield started


@pytest.mark.parametrize("small", ["overlay2"], indirect=True)
async def test_docker_full_disk_is_named_and_written_files_remain(
    small: SmallEngine, lean_image: str, tmp_path: Path
) -> None:
    before = census(small.engine)
    small.leave(60 * MIB)
    async with in_docker(small.engine.socket, lean_image, tmp_path / "boxes") as boxes:
        async with boxes.open(SPEC) as sibling:
            await sh(sibling, "echo mine >mine")
            async with boxes.open(SPEC) as box:
                done = await sh(box, "echo first >first; cat /dev/zero >large")
                assert done.exit_code == 1
                assert b"No space left on device" in done.stderr
                # Whoever writes nothing goes on, and is told what to do by its standard input.
                assert (await sibling.run(["cat", "mine", "-"], stdin=b"more\n")).stdout == b"mine\nmore\n"
                assert (await sibling.run(["seq", "9999"])).exit_code == 0
                for attempt in (
                    boxes.open(SPEC).__aenter__,
                    lambda: sibling.put(archive(("testbed/a", b"1" * MIB))),
                ):
                    with pytest.raises(SandboxError, match=r"disk is full.*; free some space"):
                        await attempt()
                await box.stop()
                assert (await fetched(box, "/testbed/first"))["first"][1] == b"first\n"
            assert (await sh(sibling, "echo again >>mine && cat mine")).stdout == b"mine\nagain\n"
            assert sibling.end is box.end is None
        async with boxes.open(SPEC) as box:
            assert (await sh(box, "echo there is room >again && cat again")).stdout == b"there is room\n"
    assert census(small.engine) == before


@pytest.mark.parametrize("small", ["btrfs"], indirect=True)
async def test_docker_engine_quota_limits_container_disk(
    small: SmallEngine, lean_image: str, tmp_path: Path
) -> None:
    bounded = replace(SPEC, disk_bytes=400 * MIB)
    async with (
        in_docker(small.engine.socket, lean_image, tmp_path / "boxes") as boxes,
        boxes.open(bounded) as box,
        boxes.open(SPEC) as sibling,
    ):
        assert boxes.engine.quota
        script = "echo first >first; for i in 1 2 3 4 5 6 7 8 9; do head -c 40000000 /dev/urandom >f$i; done"
        done = await sh(box, script)
        assert done.exit_code != 0
        assert b"Disk quota exceeded" in done.stderr
        assert (await sh(sibling, "head -c 90000000 /dev/urandom >f && echo well")).stdout == b"well\n"
        await box.stop()
        found = await fetched(box, "/testbed")
        assert found["testbed/first"][1] == b"first\n"
        assert sum(len(content) for _, content in found.values()) < 400 * MIB
        assert box.end is None
