"""Images committed from sandboxes: what they have, and drafts, which end with their process."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from codetaste.errors import ConfigError, SandboxMissing
from codetaste.sandbox.base import Egress, Mount, Privileges, SandboxSpec
from codetaste.sandbox.docker.commit import finish_image
from codetaste.sandbox.docker.engine import ContainerEngine, delete_resource
from codetaste.sandbox.docker.images import list_images
from codetaste.sandbox.docker.provider import DockerSandboxProvider, commit_sandbox
from codetaste.sandbox.docker.reaper import ReapedCounts, remove_orphans
from support.sandbox.providers import in_containers, sh

pytestmark = [pytest.mark.anyio, in_containers]
PROGRAM = Path(__file__).parents[2] / "support" / "sandbox" / "draft_images.py"
SPEC = SandboxSpec("test", privileges=Privileges.SYSTEM)
FIRST, SECOND, FINISHED = (f"codetaste/test-{name}:1" for name in ("first", "second", "finished"))
OWNER = "codetaste.owner"


@pytest.fixture
async def engine(provider: DockerSandboxProvider) -> AsyncIterator[ContainerEngine]:
    """The engine; afterwards it has none of the images of the tests, which must have a name."""
    before = await image_ids(provider.engine)
    yield provider.engine
    await provider.close()
    for name in (FINISHED, SECOND, FIRST):
        await delete_resource(provider.engine, f"images/{name}")
    assert await image_ids(provider.engine) == before


async def image_ids(engine: ContainerEngine) -> set[str]:
    return {image["Id"] for image in await engine.client.images.list(all=1)}


async def inspect(engine: ContainerEngine, name: str) -> dict[str, Any]:
    return dict((await engine.client.images.inspect(name))["Config"])


async def test_committed_image_has_its_labels_and_nothing_of_the_sandbox(
    provider: DockerSandboxProvider, engine: ContainerEngine, tmp_path: Path
) -> None:
    (tmp_path / "mounted").mkdir()
    (tmp_path / "mounted" / "file").write_text("of the host")
    spec = replace(
        SPEC,
        mounts=(Mount(tmp_path / "mounted", "/scripts"),),
        env={"TOKEN": "of-the-sandbox"},
        egress=Egress(env={"HTTPS_PROXY": "http://127.0.0.1:1"}),
    )
    labels = {"codetaste.key": "sha256:0123abc", "org.example.two": "a b = 'c', {d}"}
    env = {"PATH": "/opt/tool/bin:/usr/bin:/bin", "GREETING": "good day"}
    async with provider.open(spec) as sandbox:
        await sh(sandbox, "mkdir -p /opt/tool && echo tool >/opt/tool/file && touch /scripts-not", root=True)
        await sh(sandbox, "echo repository >/testbed/file")
        ident = await commit_sandbox(sandbox, FIRST, "setup", labels, env, instructions=["WORKDIR /testbed"])
        assert (await sh(sandbox, "echo $TOKEN; cat /scripts/file")).stdout == b"of-the-sandbox\nof the host"
    config = await inspect(engine, FIRST)
    assert ident == (await engine.client.images.inspect(FIRST))["Id"]
    found = {**labels, "codetaste.image": "setup", OWNER: ""}
    assert {name: config["Labels"][name] for name in found} == found
    variables = dict(variable.split("=", 1) for variable in config["Env"])
    assert {name: variables[name] for name in env} == env
    assert not {"TOKEN", "HTTPS_PROXY"} & set(variables)
    assert variables.get("HOME") != "/home/agent"
    assert (config["WorkingDir"], config["User"], config["Cmd"]) == ("/testbed", "root", ["/bin/sh"])
    assert not config.get("Entrypoint")
    assert not config.get("Volumes")
    history = str(await engine.client.images.history(FIRST))
    assert "of-the-sandbox" not in history
    assert "secret" not in history
    async with provider.open(replace(SPEC, image=FIRST)) as sandbox:
        result = await sh(
            sandbox, "cat file /opt/tool/file; ls -A /scripts; echo $GREETING; echo $PATH; id -u"
        )
        assert result.stdout.decode().splitlines() == [
            *("repository", "tool", "good day", "/opt/tool/bin:/usr/bin:/bin", "1000"),
        ]


@pytest.mark.parametrize(
    ("labels", "env"),
    [({"a": 'b"'}, {}), ({"a": "b\nUSER x"}, {}), ({"a b": "c"}, {}), ({}, {"PATH": "$PATH:/x"})],
)
async def test_label_that_engines_read_differently_is_refused(
    provider: DockerSandboxProvider, engine: ContainerEngine, labels: dict[str, str], env: dict[str, str]
) -> None:
    before = await image_ids(engine)
    async with provider.open(SPEC) as sandbox:
        with pytest.raises(ConfigError, match="cannot be in an image: write it without"):
            await commit_sandbox(sandbox, FIRST, "setup", labels, env)
    assert await image_ids(engine) == before


async def test_finished_image_is_its_draft_with_other_labels(
    provider: DockerSandboxProvider, engine: ContainerEngine
) -> None:
    instructions = ['ENTRYPOINT ["/bin/sh", "-e"]', "USER agent"]
    async with provider.open(SPEC) as sandbox:
        await sh(sandbox, "echo made >/testbed/made")
        await commit_sandbox(
            sandbox,
            FIRST,
            "setup",
            {"key": "1"},
            instructions=instructions,
            draft=True,
        )
    assert (await inspect(engine, FIRST))["Labels"][OWNER]
    assert FIRST not in {image.name for image in await list_images(engine)}
    assert await remove_orphans(engine) == ReapedCounts(), "its process is alive"
    await finish_image(engine, FIRST, FINISHED, {"level": "offline"})
    config = await inspect(engine, FINISHED)
    found = {"key": "1", "level": "offline", "codetaste.image": "setup", OWNER: ""}
    assert {name: config["Labels"][name] for name in found} == found
    assert (config["Entrypoint"], config["User"]) == (["/bin/sh", "-e"], "agent")
    assert FINISHED in {image.name for image in await list_images(engine)}
    with pytest.raises(SandboxMissing, match="test-first"):
        await finish_image(engine, FIRST, FINISHED)
    async with provider.open(replace(SPEC, image=FINISHED)) as sandbox:
        assert (await sh(sandbox, "cat made")).stdout == b"made\n"


@contextmanager
def killed_process(provider: DockerSandboxProvider, folder: Path, *names: str) -> Iterator[None]:
    """A process that was killed after it had committed drafts."""
    engine = provider.engine
    command = [sys.executable, PROGRAM, engine.kind, engine.socket, provider.image, folder, *names]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "committed\n"
        finally:
            process.kill()
    yield


async def test_drafts_of_a_killed_process_are_removed_and_finished_images_stay(
    provider: DockerSandboxProvider, engine: ContainerEngine, tmp_path: Path
) -> None:
    with killed_process(provider, tmp_path / "killed", FIRST, SECOND):
        # As if it had been killed when the image was finished, and its draft not yet removed.
        config = {"Image": SECOND, "Labels": {OWNER: ""}}
        container = await engine.client.containers.create(config)
        await container.commit(repository=FINISHED.partition(":")[0], tag="1", config={})
        await container.delete()
        assert await remove_orphans(engine) == ReapedCounts(containers=1, images=2)
    names = {name for image in await engine.client.images.list() for name in image["RepoTags"] or []}
    assert not {name for name in names if "test-first" in name or "test-second" in name}
    assert await remove_orphans(engine) == ReapedCounts()
    async with provider.open(replace(SPEC, image=FINISHED)) as sandbox:
        assert (await sh(sandbox, "cat made")).stdout.decode().strip() == SECOND
