"""Sandboxes in Docker: requests to the engine, its failures, restarts and missing images."""

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
from support.sandbox.docker_engine import count_objects, record_requests
from support.sandbox.providers import get_members, make_archive, open_docker, sh
from support.system.dockerd import DockerEngine

pytestmark = pytest.mark.anyio
SPEC = SandboxSpec("test/job")


async def wait_for_end(sandbox: Sandbox) -> SandboxEnd | None:
    with anyio.fail_after(60):
        while sandbox.end is None:  # noqa: ASYNC110 (there is no event)
            await anyio.sleep(0.05)
    return sandbox.end


async def test_agent_run_takes_three_extra_engine_calls(
    docker_engine: DockerEngine, lean_image: str, tmp_path: Path
) -> None:
    path = tmp_path / "sock"
    with record_requests(docker_engine.socket, path) as requests:
        async with open_docker(path, lean_image, tmp_path / "sandboxes") as provider:
            async with provider.open(SPEC):
                pass  # the first sandbox inspects the engine and the image
            requests.clear()
            async with provider.open(SPEC) as sandbox:
                await sandbox.put(make_archive(("testbed/a", b"1")))
                for number in range(20):
                    await sh(sandbox, f"echo {number} >>a; head -c 100000 /dev/zero")
                await sandbox.stop()
                assert len((await get_members(sandbox, "/testbed"))["testbed/a"][1]) > 20
            calls = [line for line in requests if "containers/json?" not in line]
    # One call for all sandboxes of a run watches their disk usage; it is not counted.
    assert [call.split("?")[0].rsplit("/", 1)[-1].split("-")[0] for call in calls] == [
        *("create", "start", "archive", "kill", "archive", "codetaste"),
    ]
    assert calls[-1].startswith("DELETE ")
    assert "v=1" in calls[-1]


async def test_docker_container_killed_or_removed_has_end_reason(
    docker_provider: DockerSandboxProvider, docker_engine: DockerEngine
) -> None:
    for call, path, reason in (("POST", "/kill", "killed"), ("DELETE", "?force=1&v=1", "removed")):
        async with docker_provider.open(SPEC) as sandbox:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(expect_end, sandbox, reason)
                await sh(sandbox, "echo before >before")
                name = getattr(sandbox, "name")  # noqa: B009 - only a container has a name
                await anyio.to_thread.run_sync(docker_engine.call, call, f"/containers/{name}{path}")
            assert reason in str(await wait_for_end(sandbox))
            if reason == "killed":
                assert (await get_members(sandbox, "/testbed/before"))["before"][1] == b"before\n"


async def expect_end(sandbox: Sandbox, reason: str) -> None:
    with pytest.raises(SandboxError, match=f"the sandbox ended: .*{reason}"):
        await sh(sandbox, "sleep 90", wall_s=100)


async def test_engine_restart_ends_sandboxes_but_files_stay_readable(
    docker_engine: DockerEngine, lean_image: str, tmp_path: Path
) -> None:
    before = count_objects(docker_engine)
    async with open_docker(docker_engine.socket, lean_image, tmp_path / "sandboxes") as provider:
        async with provider.open(SPEC) as sandbox:
            await sh(sandbox, "echo before >before")
            docker_engine.daemon.kill()
            # Commands do not need the engine.
            assert (await sh(sandbox, "cat before")).stdout == b"before\n"
            with pytest.raises(SandboxError, match="does not answer; check that the engine is running"):
                async with provider.open(SPEC):
                    pass
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(expect_end, sandbox, "(engine|killed)")
                await anyio.sleep(0.1)
                docker_engine.daemon.start()  # in this thread: the daemon ends with the thread
            assert await wait_for_end(sandbox)
            assert (await get_members(sandbox, "/testbed/before"))["before"][1] == b"before\n"
        async with provider.open(SPEC) as sandbox:
            assert (await sh(sandbox, "echo again")).stdout == b"again\n"
    assert count_objects(docker_engine) == before


async def test_missing_image_error_suggests_building_it(
    docker_provider: DockerSandboxProvider,
) -> None:
    with pytest.raises(SandboxMissing, match=r"codetaste/nothing:1.*codetaste image build --lean") as raised:
        async with docker_provider.open(replace(SPEC, image="codetaste/nothing:1")):
            pass
    assert raised.value.cause is Cause.TOOL_MISSING
    assert "\n" not in str(raised.value)


async def test_docker_unsuitable_image_error_names_what_is_missing(
    docker_provider: DockerSandboxProvider, docker_engine: DockerEngine
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
            async with docker_provider.open(replace(SPEC, image="codetaste-empty:latest")):
                pass
    finally:
        await docker_provider.close()
        docker_engine.call("DELETE", "/images/codetaste-empty:latest")


async def test_docker_job_cancelled_during_create_leaves_no_container(
    docker_provider: DockerSandboxProvider, docker_engine: DockerEngine
) -> None:
    before = count_objects(docker_engine)
    for after_s in (0.0, 0.02, 0.05, 0.1, 0.2, 0.3):
        with anyio.move_on_after(after_s):
            async with docker_provider.open(SPEC) as sandbox:
                await sh(sandbox, "sleep 60")
        after = count_objects(docker_engine)
        assert {**after, "images": 0} == {**before, "images": 0}  # the first sandbox may derive an image


async def test_error_of_an_archive_stream_is_raised(
    docker_provider: DockerSandboxProvider,
) -> None:
    async def failing_stream() -> AsyncIterator[bytes]:
        yield make_archive(("testbed/a", b"1" * 2000))[:1024]
        raise LookupError("where is it")

    async with docker_provider.open(SPEC) as sandbox:
        with pytest.raises(LookupError, match="where is it"):
            await sandbox.put(failing_stream())
        assert (await sh(sandbox, "echo alive")).stdout == b"alive\n"


async def test_large_file_is_not_buffered_in_memory(docker_provider: DockerSandboxProvider) -> None:
    import resource

    async with docker_provider.open(SPEC) as sandbox:
        await sh(sandbox, "head -c 400000000 /dev/zero >large")
        memory_before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        size = 0
        async with sandbox.get("/testbed/large") as chunks:
            async for chunk in chunks:
                size += len(chunk)
        assert size > 400_000_000
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory_before < 100_000, "KiB"


async def test_auto_selects_engine_with_image_else_bubblewrap_with_reason(
    docker_engine: DockerEngine, lean_image: str, tmp_path: Path
) -> None:
    async def open_kind(config: SandboxConfig) -> tuple[str, str]:
        messages: list[str] = []
        async with open_sandboxes(config, tmp_path / "out", "run", messages.append) as provider:
            return provider.kind, " ".join(messages)

    auto = SandboxConfig(socket=docker_engine.socket)
    assert (await open_kind(auto))[0] == "docker"
    for config, message in (
        (auto.model_copy(update={"image": "codetaste/nothing:1"}), "codetaste/nothing:1"),
        (
            auto.model_copy(update={"socket": tmp_path / "nothing.sock"}),
            "nothing.sock (as named)",
        ),
    ):
        kind, messages = await open_kind(config)
        assert kind == "bubblewrap"
        assert message in messages
        with pytest.raises(SandboxMissing, match="nothing"):
            await open_kind(config.model_copy(update={"engine": "docker"}))
    assert (await open_kind(SandboxConfig(engine="local")))[0] == "bubblewrap"
    with pytest.raises(SandboxMissing, match="is docker's"):
        await open_kind(auto.model_copy(update={"engine": "podman"}))


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("tcp://127.0.0.1:2375", "DOCKER_HOST is not a socket of this host"),
        ("nonsense", "DOCKER_HOST is not a socket of this host"),
        (f"unix:///{'long' * 100}", "does not exist"),
    ],
)
async def test_docker_invalid_engine_address_is_reported(
    address: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCKER_HOST", address)
    with pytest.raises(SandboxMissing, match=message):
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
    bundle.write_text("certificates\n")
    async with (
        connect_engine("docker", docker_engine.socket) as engine,
        open_docker_sandboxes(
            engine, run="ca", image=lean_image, folder=tmp_path / "b", bundle=bundle, warn=print
        ) as provider,
    ):
        for egress, trusted in (
            (Egress(), b""),
            (Egress(env={"HTTPS_PROXY": "http://127.0.0.1:1"}), b"certificates\n"),
        ):
            async with provider.open(replace(SPEC, egress=egress)) as sandbox:
                result = await sh(
                    sandbox, 'cat "$SSL_CERT_FILE" "$PIP_CERT" | sort -u; touch "$SSL_CERT_FILE"'
                )
                assert result.stdout == trusted
