"""``codetaste image`` against the tests' own container engine."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support.system.dockerd import DockerEngine

NAME = "codetaste/mine:1"
Command = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def image(docker_engine: DockerEngine, lean_image: str, tmp_path: Path) -> Command:
    env = {"DOCKER_HOST": docker_engine.host, "HOME": str(tmp_path), "PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}

    def run(*args: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "codetaste", "image", *args]
        return subprocess.run(command, env=env, capture_output=True, text=True, check=False)

    return run


def json_of(done: subprocess.CompletedProcess[str]) -> Any:
    assert done.returncode == 0, done.stderr
    document: dict[str, Any] = json.loads(done.stdout)
    assert document.pop("json_format") == 1
    return document


def test_image_is_built_from_a_folder_listed_and_removed(
    image: Command, lean_image: str, tmp_path: Path
) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "Dockerfile").write_text(f"FROM {lean_image}\nCOPY note /note\n")
    (folder / "note").write_text("hello\n")
    built = json_of(image("build", "--dockerfile", str(folder), "--name", NAME, "--json"))
    assert built.keys() == {"name", "id", "seconds"}
    listed = {one["name"]: one for one in json_of(image("list", "--json"))["images"]}
    assert {lean_image, NAME} <= listed.keys()
    assert listed[NAME].keys() == {"name", "id", "what", "bytes", "created"}
    assert listed[NAME]["id"] == built["id"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.000Z", listed[NAME]["created"])
    assert NAME in image("list").stdout
    assert json_of(image("rm", NAME, "--json")) == {"removed": NAME}
    assert NAME not in image("list").stdout


def test_failed_build_or_removal_is_one_line(image: Command, lean_image: str, tmp_path: Path) -> None:
    (tmp_path / "Dockerfile").write_text(f"FROM {lean_image}\nCOPY missing /missing\n")
    for args, code, message in [
        (("build", "--dockerfile", str(tmp_path), "--name", NAME), 1, "missing"),
        (("build", "--dockerfile", str(tmp_path / "nowhere"), "--name", NAME), 2, "nowhere"),
        (("build", "--dockerfile", str(tmp_path)), 2, "--name"),
        (("build", "--lean", "--name", "Not A Name"), 2, "Not A Name"),
        (("rm", "codetaste/never:1"), 2, "not an image that codetaste built"),
    ]:
        done = image(*args)
        assert (done.returncode, done.stdout) == (code, ""), (args, done.stderr)
        assert message in done.stderr.splitlines()[-1]
        assert "Traceback" not in done.stderr
