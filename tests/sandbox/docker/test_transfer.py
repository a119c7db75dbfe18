"""Images in files, by their digest, and in a registry, under their published names."""

from __future__ import annotations

import base64
import io
import json
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import pytest

from codetaste.sandbox.docker.engine import DOCKER, PODMAN, connect_engine
from codetaste.sandbox.docker.transfer import save_image
from support.cli.invoke import codetaste
from support.environment.image_registry import ImageRegistry, serving
from support.sandbox.docker_engine import count_objects
from support.system.dockerd import DockerEngine

NAME = "codetaste/tiny:1"
PUBLISHED = "localhost/benchmark/koajs__koa-ef467caa__runtime"


@dataclass(frozen=True, slots=True)
class TinyImage:
    """An engine with an image of one file, and how commands name the engine."""

    engine: DockerEngine
    kind: str
    capsys: pytest.CaptureFixture[str]

    def command(self, *args: str | Path, code: int = 0) -> str:
        options = ["--engine", self.kind, "--socket", self.engine.socket]
        return codetaste(self.capsys, "image", *args, *options, code=code)

    def json(self, *args: str | Path) -> Any:
        return json.loads(self.command(*args, "--json"))

    def remove(self, *names: str) -> None:
        for name in names:
            self.engine.call("DELETE", f"/images/{name}")


@pytest.fixture(
    params=[
        pytest.param(DOCKER, marks=pytest.mark.system),
        pytest.param(PODMAN, marks=[pytest.mark.system, pytest.mark.slow]),
    ]
)
def tiny(
    request: pytest.FixtureRequest, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> Iterator[TinyImage]:
    engine: DockerEngine = request.getfixturevalue(f"{request.param}_engine")
    before = count_objects(engine)
    make_image(engine, tmp_path)
    yield TinyImage(engine, request.param, capsys)
    assert count_objects(engine) == before


def make_image(engine: DockerEngine, folder: Path) -> None:
    with tarfile.open(folder / "root.tar", "w") as archive:
        member = tarfile.TarInfo("file")
        member.size = 6
        archive.addfile(member, io.BytesIO(b"hello\n"))
    repository, tag = NAME.split(":")
    engine.import_image(folder / "root.tar", repository)
    engine.call("POST", f"/images/{repository}:latest/tag", params={"repo": repository, "tag": tag})
    engine.call("DELETE", f"/images/{repository}:latest")


def test_image_is_the_same_after_its_way_through_a_file(tiny: TinyImage, tmp_path: Path) -> None:
    file = tmp_path / "new" / "image.tar"
    saved = tiny.json("save", NAME, file)
    assert saved["bytes"] == file.stat().st_size
    assert [path.name for path in file.parent.iterdir()] == [file.name]
    tiny.remove(NAME)
    for digest in ("", saved["digest"], saved["id"], saved["id"].removeprefix("sha256:")):
        loaded = tiny.json("load", file, *(("--digest", digest) if digest else ()))
        assert (loaded["id"], loaded["digest"]) == (saved["id"], saved["digest"])
        assert NAME in loaded["name"]
        tiny.remove(NAME)


def test_file_with_another_digest_is_not_loaded(tiny: TinyImage, tmp_path: Path) -> None:
    file = tmp_path / "image.tar"
    saved = tiny.json("save", NAME, file)
    tiny.remove(NAME)
    nothing = count_objects(tiny.engine)
    message = tiny.command("load", file, "--digest", f"sha256:{'0' * 64}", code=2)
    assert saved["digest"] in message
    assert saved["id"] in message
    assert "was not loaded" in message
    content = bytearray(file.read_bytes())
    place = content.index(b"hello\n")
    content[place : place + 5] = b"jello"
    file.write_bytes(content)
    assert "was not loaded" in tiny.command("load", file, "--digest", saved["digest"], code=2)
    # The id is that of the unchanged configuration; the engine finds that a layer is another one.
    tiny.command("load", file, "--digest", saved["id"], code=1)
    assert count_objects(tiny.engine) == nothing


@pytest.mark.parametrize("content", [b"", b"hello\n" * 1000, None], ids=["empty", "text", "other archive"])
def test_other_files_are_refused_in_one_line(tiny: TinyImage, tmp_path: Path, content: bytes | None) -> None:
    file = tmp_path / "file.tar"
    file.write_bytes((tmp_path / "root.tar").read_bytes() if content is None else content)
    message = tiny.command("load", file, code=2)
    assert "is not a file with one image" in message.splitlines()[-1]
    tiny.remove(NAME)


def test_missing_images_files_and_folders_are_one_line(tiny: TinyImage, tmp_path: Path) -> None:
    tiny.remove(NAME)
    assert "codetaste/tiny:1" in tiny.command("save", NAME, tmp_path / "a.tar", code=2).splitlines()[-1]
    assert list(tmp_path.glob("*a.tar*")) == []
    assert "No such file" in tiny.command("load", tmp_path / "a.tar", code=2).splitlines()[-1]
    assert "sha256" in tiny.command("load", tmp_path / "a.tar", "--digest", "abc", code=2).splitlines()[-1]
    (tmp_path / "file").touch()
    make_image(tiny.engine, tmp_path)
    assert str(tmp_path) in tiny.command("save", NAME, tmp_path / "file" / "a.tar", code=1).splitlines()[-1]
    tiny.remove(NAME)


def test_cancelled_transfers_leave_no_file(tiny: TinyImage, tmp_path: Path) -> None:
    async def cancelled() -> None:
        async with connect_engine(tiny.kind, tiny.engine.socket) as engine:
            with anyio.move_on_after(0):
                await save_image(engine, NAME, tmp_path / "image.tar")

    anyio.run(cancelled)
    assert [path.name for path in tmp_path.iterdir()] == ["root.tar"]
    tiny.remove(NAME)


@pytest.fixture
def registry() -> Iterator[ImageRegistry]:
    with serving(ImageRegistry()) as server:
        yield server


@pytest.fixture
def docker_tiny(
    docker_engine: DockerEngine,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[TinyImage]:
    """Docker alone: it takes plain HTTP from loopback."""
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    before = count_objects(docker_engine)
    make_image(docker_engine, tmp_path)
    yield TinyImage(docker_engine, DOCKER, capsys)
    assert count_objects(docker_engine) == before


def test_published_name_goes_to_a_registry_and_comes_back(
    docker_tiny: TinyImage, registry: ImageRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = docker_tiny.engine
    engine.call("POST", f"/images/{NAME}/tag", params={"repo": PUBLISHED, "tag": "latest"})
    repository = f"{registry.host}/org/codetaste"
    pushed = docker_tiny.json("push", PUBLISHED, "--repository", repository, "--tag", "v1.0.0")["pushed"]
    assert pushed == f"{repository}/koajs__koa-ef467caa__runtime:v1.0.0"
    assert registry.tags == {"org/codetaste/koajs__koa-ef467caa__runtime:v1.0.0"}
    ident = engine.call("GET", f"/images/{PUBLISHED}/json").json()["Id"]
    docker_tiny.remove(PUBLISHED, NAME)

    pulled = docker_tiny.json("pull", pushed)
    assert (pulled["name"], pulled["id"]) == (PUBLISHED, ident)
    docker_tiny.remove(PUBLISHED, pushed)
    monkeypatch.setenv("CODETASTE_IMAGE_REPOSITORY", repository)
    monkeypatch.setenv("CODETASTE_INSTANCE_IMAGE_TAG", "v1.0.0")
    for name in (PUBLISHED, "koajs__koa-ef467caa__runtime"):
        assert docker_tiny.json("pull", name)["name"] == PUBLISHED
        docker_tiny.remove(PUBLISHED)


def test_registry_gets_the_stored_login_and_no_other(
    docker_tiny: TinyImage, registry: ImageRegistry, tmp_path: Path
) -> None:
    registry.login = "user:word"
    name = f"{registry.host}/tiny:1"
    docker_tiny.engine.call(
        "POST", f"/images/{NAME}/tag", params={"repo": name.rpartition(":")[0], "tag": "1"}
    )
    config = tmp_path / "config.json"
    assert "no basic auth" in docker_tiny.command("push", name, code=1).splitlines()[-1]
    config.write_text(json.dumps({"auths": {"other.invalid": {"auth": login("user:word")}}}))
    assert "no basic auth" in docker_tiny.command("push", name, code=1).splitlines()[-1]
    config.write_text(json.dumps({"auths": {registry.host: {"auth": login("user:wrong")}}}))
    message = docker_tiny.command("push", name, code=1)
    assert "unauthorized" in message.splitlines()[-1]
    assert "wrong" not in message
    config.write_text(json.dumps({"auths": {registry.host: {}}, "credsStore": "pass"}))
    assert "docker push" in docker_tiny.command("push", name, code=2).splitlines()[-1]
    config.write_text("[")
    assert "cannot be read" in docker_tiny.command("push", name, code=2).splitlines()[-1]
    config.write_text(json.dumps({"auths": {registry.host: {"auth": login("user:word")}}}))
    docker_tiny.command("push", name)
    docker_tiny.remove(name)
    docker_tiny.command("pull", name)
    docker_tiny.remove(name, NAME)


def login(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def test_what_a_registry_lacks_is_one_line(docker_tiny: TinyImage, registry: ImageRegistry) -> None:
    for name, code, reason in [
        (f"{registry.host}/none:1", 1, "manifest"),
        ("127.0.0.1:1/none:1", 1, "connection refused"),
        (PUBLISHED, 2, "--repository"),
        ("koajs__koa-ef467caa__runtime", 2, "--repository"),
        ("Not A Name", 2, "cannot be the name"),
    ]:
        message = docker_tiny.command("pull", name, code=code)
        assert reason in message.splitlines()[-1], name
        assert "Traceback" not in message
    assert "--repository" in docker_tiny.command("push", PUBLISHED, code=2)
    docker_tiny.command("push", f"{registry.host}/none:1", code=1)
    docker_tiny.remove(NAME)
