"""``codetaste image`` as it is typed, against an engine of the tests' own."""

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
Typed = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def image(docker_engine: DockerEngine, lean_image: str, tmp_path: Path) -> Typed:
    env = {"DOCKER_HOST": docker_engine.host, "HOME": str(tmp_path), "PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}

    def typed(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "codetaste", "image", *words]
        return subprocess.run(command, env=env, capture_output=True, text=True, check=False)

    return typed


def answer(done: subprocess.CompletedProcess[str]) -> Any:
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_an_image_is_built_of_a_folder_listed_and_removed(
    image: Typed, lean_image: str, tmp_path: Path
) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "Dockerfile").write_text(f"FROM {lean_image}\nCOPY said /said\n")
    (folder / "said").write_text("hello\n")
    built = answer(image("build", "--dockerfile", str(folder), "--name", NAME, "--json"))
    assert built.keys() == {"name", "id", "seconds"}
    listed = {one["name"]: one for one in answer(image("list", "--json"))}
    assert {lean_image, NAME} <= listed.keys()
    assert listed[NAME].keys() == {"name", "id", "what", "bytes", "created"}
    assert listed[NAME]["id"] == built["id"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.000Z", listed[NAME]["created"])
    assert NAME in image("list").stdout
    assert answer(image("rm", NAME, "--json")) == {"removed": NAME}
    assert NAME not in image("list").stdout


def test_what_cannot_be_built_or_removed_is_one_line(image: Typed, lean_image: str, tmp_path: Path) -> None:
    (tmp_path / "Dockerfile").write_text(f"FROM {lean_image}\nCOPY missing /missing\n")
    for words, code, said in [
        (("build", "--dockerfile", str(tmp_path), "--name", NAME), 1, "missing"),
        (("build", "--dockerfile", str(tmp_path / "nowhere"), "--name", NAME), 2, "nowhere"),
        (("build", "--dockerfile", str(tmp_path)), 2, "--name"),
        (("build", "--lean", "--name", "Not A Name"), 2, "Not A Name"),
        (("rm", "codetaste/never:1"), 2, "not an image that codetaste built"),
    ]:
        done = image(*words)
        assert (done.returncode, done.stdout) == (code, ""), (words, done.stderr)
        assert said in done.stderr.splitlines()[-1]
        assert "Traceback" not in done.stderr
