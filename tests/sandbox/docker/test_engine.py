"""What an engine is asked, and what becomes of boxes when it fails, restarts, or has not what is wanted."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import anyio
import pytest

from codetaste.errors import Cause, SandboxError, SandboxMissing
from codetaste.sandbox.base import Sandbox, SandboxEnd, SandboxSpec
from codetaste.sandbox.config import SandboxConfig
from codetaste.sandbox.docker.engine import connect_engine
from codetaste.sandbox.docker.provider import DockerSandboxProvider
from codetaste.sandbox.provider import open_sandboxes, sandbox_spec
from support.sandbox.docker_engine import census, counting
from support.sandbox.providers import archive, fetched, in_docker, sh
from support.system.dockerd import DockerEngine

pytestmark = pytest.mark.anyio
SPEC = SandboxSpec("test/job")


async def until_ended(box: Sandbox) -> SandboxEnd | None:
    with anyio.fail_after(60):
        while box.end is None:  # noqa: ASYNC110 (all that a box says of it)
            await anyio.sleep(0.05)
    return box.end


async def test_agent_run_takes_three_extra_engine_calls(
    docker_engine: DockerEngine, lean_image: str, tmp_path: Path
) -> None:
    place = tmp_path / "sock"
    with counting(docker_engine.socket, place) as seen:
        async with in_docker(place, lean_image, tmp_path / "boxes") as boxes:
            async with boxes.open(SPEC):
                pass  # the first finds out what the engine and the image are like
            seen.clear()
            async with boxes.open(SPEC) as box:
                await box.put(archive(("testbed/a", b"1")))
                for number in range(20):
                    await sh(box, f"echo {number} >>a; head -c 100000 /dev/zero")
                await box.stop()
                assert len((await fetched(box, "/testbed"))["testbed/a"][1]) > 20
            calls = [line for line in seen if "containers/json?" not in line]
    # What is written is watched for all boxes of a run together: that is no call of an agent's.
    assert [call.split("?")[0].rsplit("/", 1)[-1].split("-")[0] for call in calls] == [
        *("create", "start", "archive", "kill", "archive", "codetaste"),
    ]
    assert calls[-1].startswith("DELETE ")
    assert "v=1" in calls[-1]


async def test_docker_container_killed_or_removed_has_end_reason(
    containers: DockerSandboxProvider, docker_engine: DockerEngine
) -> None:
    for call, path, named in (("POST", "/kill", "killed"), ("DELETE", "?force=1&v=1", "removed")):
        async with containers.open(SPEC) as box:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(expect_end, box, named)
                await sh(box, "echo before >before")
                name = getattr(box, "name")  # noqa: B009 - a container's, which a Box has not
                await anyio.to_thread.run_sync(docker_engine.call, call, f"/containers/{name}{path}")
            assert named in str(await until_ended(box))
            if named == "killed":
                assert (await fetched(box, "/testbed/before"))["before"][1] == b"before\n"


async def expect_end(box: Sandbox, named: str) -> None:
    with pytest.raises(SandboxError, match=f"the sandbox ended: .*{named}"):
        await sh(box, "sleep 90", wall_s=100)


async def test_engine_restart_ends_sandboxes_by_name_and_files_are_readable(
    docker_engine: DockerEngine, lean_image: str, tmp_path: Path
) -> None:
    before = census(docker_engine)
    async with in_docker(docker_engine.socket, lean_image, tmp_path / "boxes") as boxes:
        async with boxes.open(SPEC) as box:
            await sh(box, "echo before >before")
            docker_engine.daemon.kill()
            # Commands need no engine.
            assert (await sh(box, "cat before")).stdout == b"before\n"
            with pytest.raises(SandboxError, match="does not answer; check that the engine is running"):
                async with boxes.open(SPEC):
                    pass
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(expect_end, box, "(engine|killed)")
                await anyio.sleep(0.1)
                docker_engine.daemon.start()  # in this thread: it dies with the one that starts it
            assert await until_ended(box)
            assert (await fetched(box, "/testbed/before"))["before"][1] == b"before\n"
        async with boxes.open(SPEC) as box:
            assert (await sh(box, "echo again")).stdout == b"again\n"
    assert census(docker_engine) == before


async def test_an_image_that_is_not_there_is_named_with_what_to_do(containers: DockerSandboxProvider) -> None:
    with pytest.raises(SandboxMissing, match=r"codetaste/nothing:1.*codetaste image build --lean") as told:
        async with containers.open(replace(SPEC, image="codetaste/nothing:1")):
            pass
    assert told.value.cause is Cause.TOOL_MISSING
    assert "\n" not in str(told.value)


async def test_docker_unsuitable_image_error_names_what_is_missing(
    containers: DockerSandboxProvider, docker_engine: DockerEngine
) -> None:
    import io
    import tarfile

    empty = io.BytesIO()
    with tarfile.open(fileobj=empty, mode="w") as tar:
        tar.addfile(tarfile.TarInfo("nothing"))
    params = {"fromSrc": "-", "repo": "codetaste-empty", "tag": "latest"}
    docker_engine.call("POST", "/images/create", params=params, content=empty.getvalue())
    try:
        with pytest.raises(SandboxError, match="/bin/sh"):
            async with containers.open(replace(SPEC, image="codetaste-empty:latest")):
                pass
    finally:
        await containers.close()
        docker_engine.call("DELETE", "/images/codetaste-empty:latest")


async def test_docker_job_cancelled_during_create_leaves_no_container(
    containers: DockerSandboxProvider, docker_engine: DockerEngine
) -> None:
    before = census(docker_engine)
    for after_s in (0.0, 0.02, 0.05, 0.1, 0.2, 0.3):
        with anyio.move_on_after(after_s):
            async with containers.open(SPEC) as box:
                await sh(box, "sleep 60")
        left = census(docker_engine)
        assert {**left, "images": 0} == {**before, "images": 0}  # what an image lacks is added once for a run


async def test_what_feeds_an_archive_may_fail_and_its_own_error_comes_out(
    containers: DockerSandboxProvider,
) -> None:
    async def failing() -> AsyncIterator[bytes]:
        yield archive(("testbed/a", b"1" * 2000))[:1024]
        raise LookupError("where is it")

    async with containers.open(SPEC) as box:
        with pytest.raises(LookupError, match="where is it"):
            await box.put(failing())
        assert (await sh(box, "echo alive")).stdout == b"alive\n"


async def test_a_large_file_is_read_at_the_readers_pace(containers: DockerSandboxProvider) -> None:
    import resource

    async with containers.open(SPEC) as box:
        await sh(box, "head -c 400000000 /dev/zero >large")
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        size = 0
        async with box.get("/testbed/large") as chunks:
            async for chunk in chunks:
                size += len(chunk)
        assert size > 400_000_000
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - most < 100_000, "KiB"


async def test_auto_selects_engine_with_image_else_bubblewrap_with_reason(
    docker_engine: DockerEngine, lean_image: str, tmp_path: Path
) -> None:
    async def kind(config: SandboxConfig) -> tuple[str, str]:
        said: list[str] = []
        async with open_sandboxes(config, tmp_path / "out", "run", said.append) as boxes:
            return boxes.kind, " ".join(said)

    auto = SandboxConfig(socket=docker_engine.socket)
    assert (await kind(auto))[0] == "docker"
    for config, why in (
        (auto.model_copy(update={"image": "codetaste/nothing:1"}), "codetaste/nothing:1"),
        (
            auto.model_copy(update={"socket": tmp_path / "nothing.sock"}),
            "nothing.sock (as named)",
        ),
    ):
        found, said = await kind(config)
        assert found == "bubblewrap"
        assert why in said
        with pytest.raises(SandboxMissing, match="nothing"):
            await kind(config.model_copy(update={"engine": "docker"}))
    assert (await kind(SandboxConfig(engine="local")))[0] == "bubblewrap"
    with pytest.raises(SandboxMissing, match="is docker's"):
        await kind(auto.model_copy(update={"engine": "podman"}))


@pytest.mark.parametrize(
    ("named", "why"),
    [
        ("tcp://127.0.0.1:2375", "DOCKER_HOST is not a socket of this host"),
        ("nonsense", "DOCKER_HOST is not a socket of this host"),
        (f"unix:///{'long' * 100}", "does not exist"),
    ],
)
async def test_docker_invalid_engine_address_is_reported(
    named: str, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCKER_HOST", named)
    with pytest.raises(SandboxMissing, match=why):
        async with connect_engine("podman"):
            pass


def test_docker_container_has_configured_limits() -> None:
    config = SandboxConfig(cpus=1.5, memory=2**30, processes=99, disk=2**31, image="i:1", read_only_root=True)
    spec = sandbox_spec(config, "job", lifetime_s=60.0, memory_bytes=7)
    assert (spec.cpus, spec.memory_bytes, spec.processes, spec.disk_bytes) == (1.5, 7, 99, 2**31)
    assert (spec.image, spec.read_only_root, spec.lifetime_s, spec.job) == ("i:1", True, 60.0, "job")


async def test_host_ca_is_trusted_only_with_open_network(
    docker_engine: DockerEngine, lean_image: str, tmp_path: Path
) -> None:
    from codetaste.sandbox.base import Egress
    from codetaste.sandbox.docker.provider import open_docker_sandboxes

    bundle = tmp_path / "ca.pem"
    bundle.write_text("who to trust\n")
    async with (
        connect_engine("docker", docker_engine.socket) as engine,
        open_docker_sandboxes(
            engine, run="ca", image=lean_image, folder=tmp_path / "b", bundle=bundle, warn=print
        ) as boxes,
    ):
        for egress, trusted in (
            (Egress(), b""),
            (Egress(env={"HTTPS_PROXY": "http://127.0.0.1:1"}), b"who to trust\n"),
        ):
            async with boxes.open(replace(SPEC, egress=egress)) as box:
                done = await sh(box, 'cat "$SSL_CERT_FILE" "$PIP_CERT" | sort -u; touch "$SSL_CERT_FILE"')
                assert done.stdout == trusted
