"""Base images are built by steps in a sandbox, known by their content, and leave nothing else."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from codetaste.cli.app import app
from codetaste.environment.base_image.check import ToolCheck, ToolState
from codetaste.environment.base_image.recipe import RecipeStep
from codetaste.environment.images.names import KEY_LABEL
from codetaste.errors import SandboxError, SandboxMissing
from codetaste.sandbox.docker.engine import DOCKER, PODMAN
from codetaste.sandbox.docker.spec import IMAGE_LABEL, OWNER_LABEL
from support.cli.invoke import codetaste
from support.environment import small_image
from support.environment.image_registry import ImageRegistry, serving
from support.sandbox.docker_engine import count_objects
from support.system.dockerd import DockerEngine

pytestmark = pytest.mark.anyio
PROGRAM = Path(small_image.__file__)


@dataclass(frozen=True, slots=True)
class Engine:
    """An engine of the tests, with the image that others are made from."""

    kind: str
    engine: DockerEngine
    base: str

    async def build(self, wanted: Any, lines: list[str] | None = None) -> Any:
        return await small_image.build(self.kind, self.engine.socket, wanted, lines)

    def image(self, name: str) -> dict[str, Any]:
        found: dict[str, Any] = self.engine.call("GET", f"/images/{name}/json").json()
        return found

    def run(self, name: str, script: str) -> str:
        with self.engine.container(name, NetworkMode="none") as container:
            code, output = container.run(["sh", "-c", script])
        assert code == 0, output
        return output

    @contextlib.contextmanager
    def image_made_of(self, name: str, what: str) -> Iterator[None]:
        """Keep an image that inherits all labels but its kind, as a setup image does."""
        target = f"codetaste/made-of-small:{what}"
        repository, _, tag = target.partition(":")
        with self.image_removed(target), self.engine.container(name) as container:
            query = {"container": container.container_id, "repo": repository, "tag": tag}
            change = {"changes": f'LABEL {IMAGE_LABEL}="{what}"'}
            self.engine.call("POST", "/commit", params={**query, **change}, json={})
            yield

    @contextlib.contextmanager
    def image_removed(self, name: str) -> Iterator[str]:
        try:
            yield name
        finally:
            with contextlib.suppress(httpx.HTTPStatusError):  # it was not built
                self.engine.call("DELETE", f"/images/{name}", params={"force": "1"})


@pytest.fixture(
    params=[
        pytest.param(DOCKER, marks=pytest.mark.system),
        pytest.param(PODMAN, marks=[pytest.mark.system, pytest.mark.slow]),
    ]
)
def engine(request: pytest.FixtureRequest) -> Engine:
    image = request.getfixturevalue({DOCKER: "lean_image", PODMAN: "podman_image"}[request.param])
    return Engine(request.param, request.getfixturevalue(f"{request.param}_engine"), image)


async def test_image_has_what_its_steps_made_and_is_not_built_twice(engine: Engine, tmp_path: Path) -> None:
    before = count_objects(engine.engine)
    lines: list[str] = []
    wanted = small_image.request(engine.base, "codetaste/small:1", tmp_path / "logs")
    with engine.image_removed(wanted.name):
        built = await engine.build(wanted, lines)
        assert any(line.startswith("files: ") for line in lines)
        assert (tmp_path / "logs" / "01-files.log").read_text() == "done\n"
        states = {tool.tool: (tool.found, tool.state) for tool in built.tools}
        assert states == {"made": ("1.2.3", ToolState.OK), "absent": ("", ToolState.MISSING)}
        assert built.differences == "absent missing"

        image = engine.image(wanted.name)
        assert image["Id"].endswith(built.ident.removeprefix("sha256:"))
        labels = image["Config"]["Labels"]
        assert (labels[IMAGE_LABEL], labels[KEY_LABEL]) == ("polyglot", built.key)
        assert not labels.get(OWNER_LABEL)
        assert {"MADE=/opt/made", "LANG=C.UTF-8"} <= set(image["Config"]["Env"])
        assert "proxy" not in json.dumps(image["Config"]["Env"]).lower()
        assert engine.run(wanted.name, "cat /opt/made/user /opt/made/word; made") == "0\nhello\n1.2.3\n"
        about = json.loads(engine.run(wanted.name, "cat /etc/codetaste/image.json"))
        assert about["key"] == built.key
        assert [tool["tool"] for tool in about["tools"]] == ["made", "absent"]
        assert engine.run(wanted.name, "find /tmp /home/agent /testbed -mindepth 1") == ""

        again = replace(wanted, name="codetaste/small:again", logs=tmp_path / "none")
        with engine.image_removed(again.name), engine.image_made_of(wanted.name, "setup"):
            found = await engine.build(again, lines)
            assert (found.ident, found.key, found.tools) == (built.ident, built.key, ())
            assert found.differences == built.differences
            assert "--rebuild" in lines[-1]
            assert not (tmp_path / "none").exists()

        recipe = replace(wanted.recipe, variables={"WORD": "other"})
        changed = await engine.build(replace(wanted, recipe=recipe))
        assert changed.key != built.key
        assert engine.run(wanted.name, "cat /opt/made/word") == "other\n"
        engine.engine.call("DELETE", f"/images/{built.ident}", params={"force": "1"})
    assert count_objects(engine.engine) == before


@pytest.mark.parametrize(
    ("step", "message"),
    [
        (
            RecipeStep("bad", "echo first; echo no such thing >&2; exit 3", 60.0),
            "ended with 3: first / no such thing",
        ),
        (RecipeStep("unset", 'echo "$NOT_THERE"', 60.0), "unbound variable"),
        (RecipeStep("slow", "echo waits; sleep 3600", 5.0), "had no end within 5s: waits"),
        (RecipeStep("breaks", "rm /usr/local/bin/made", 60.0), "made is missing"),
    ],
    ids=lambda value: value.name if isinstance(value, RecipeStep) else "",
)
async def test_failed_step_is_one_line_and_leaves_no_image(
    engine: Engine, tmp_path: Path, step: RecipeStep, message: str
) -> None:
    before = count_objects(engine.engine)
    with pytest.raises(SandboxError) as raised:
        await engine.build(small_image.request(engine.base, "codetaste/small:bad", tmp_path / "logs", step))
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)
    if step.name != "breaks":
        assert str(tmp_path / "logs" / f"03-{step.name}.log") in str(raised.value)
    assert count_objects(engine.engine) == before


async def test_optional_step_may_fail(engine: Engine, tmp_path: Path) -> None:
    lines: list[str] = []
    step = RecipeStep("extra", "exit 4", 60.0, optional=True)
    wanted = small_image.request(engine.base, "codetaste/small:optional", tmp_path / "logs", step)
    with engine.image_removed(wanted.name):
        await engine.build(wanted, lines)
    assert any("extra: " in line and "ended with 4" in line and "is optional" in line for line in lines)


async def test_steps_reach_the_allowed_hosts_alone(engine: Engine, tmp_path: Path) -> None:
    fetch = "curl -sSf --max-time 20 http://allowed.invalid:8000/v2/"
    with serving(ImageRegistry()) as server:
        steps = [
            RecipeStep("allowed", f"{fetch} | grep -x '{{}}'", 60.0, network=True),
            RecipeStep("other", f"! {fetch.replace('allowed', 'other')}", 60.0, network=True),
            RecipeStep("without", f"! {fetch}", 60.0),
        ]
        wanted = small_image.request(engine.base, "codetaste/small:network", tmp_path / "logs", *steps)
        with engine.image_removed(wanted.name):
            await engine.build(replace(wanted, allow=(f"allowed.invalid:8000={server.host}",)))
    logs = {path.name: path.read_text() for path in (tmp_path / "logs").iterdir()}
    assert logs["03-allowed.log"] == "{}\n"
    assert "allowed.invalid" not in logs["04-other.log"]
    assert "403" in logs["04-other.log"]
    assert "resolve host" in logs["05-without.log"]


async def test_image_to_build_on_must_exist(engine: Engine, tmp_path: Path) -> None:
    with pytest.raises(SandboxMissing, match="codetaste/none:1"):
        await engine.build(small_image.request("codetaste/none:1", "codetaste/small:1", tmp_path / "logs"))


async def test_killed_build_leaves_nothing_after_the_next_start(engine: Engine, tmp_path: Path) -> None:
    before, folders = count_objects(engine.engine), temporary_folders()
    log = tmp_path / "logs" / "03-endless.log"
    command = [engine.kind, engine.engine.socket, engine.base, "codetaste/small:killed", tmp_path / "logs"]
    command = [sys.executable, PROGRAM, *command]
    with subprocess.Popen(command, start_new_session=True) as build:  # noqa: ASYNC220 - it is to be killed
        try:
            wait_for_log(build, log)
        finally:
            build.kill()
    assert count_objects(engine.engine) != before
    lines: list[str] = []
    wanted = small_image.request(engine.base, "codetaste/small:next", tmp_path / "next")
    with engine.image_removed(wanted.name):
        await engine.build(wanted, lines)
    assert f"removed leftovers of earlier runs from {engine.kind}: 1 containers" in lines[0]
    assert count_objects(engine.engine) == before
    assert temporary_folders() == folders


def wait_for_log(build: subprocess.Popen[bytes], log: Path) -> None:
    while not log.exists() or log.read_text() != "waits\n":
        assert build.poll() is None
        time.sleep(0.1)


def temporary_folders() -> set[Path]:
    return set(Path(tempfile.gettempdir()).glob("codetaste-image-*"))


def test_tools_of_an_image_are_checked_without_building_it(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    checks = (ToolCheck("git", "git --version | cut -d' ' -f3", "2"), ToolCheck("rust", "rustc --version"))
    monkeypatch.setattr("codetaste.environment.base_image.check.polyglot_checks", lambda: checks)
    arguments = ["image", "check", engine.base, "--engine", engine.kind, "--socket", engine.engine.socket]
    problems = codetaste(capsys, *arguments, code=1)
    assert "git: ok" in problems
    assert "rust: missing" in problems
    with pytest.raises(SystemExit) as ended:
        app([*map(str, arguments), "--json"])
    assert ended.value.code == 1
    document = json.loads(capsys.readouterr().out)
    assert not document["sound"]
    assert [(tool["tool"], tool["state"]) for tool in document["tools"]] == [
        ("git", "ok"),
        ("rust", "missing"),
    ]
