"""The whole Java image: the commands of its page."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from codetaste.environment.base_image.recipe import JAVA_IMAGE
from support.cli.documented_commands import read_commands
from support.system.dockerd import DockerEngine

CHECKOUT = Path(__file__).resolve().parents[2]


@pytest.mark.slow
@pytest.mark.system
@pytest.mark.timeout(3600)
def test_image_is_built_and_checked_as_its_page_says(
    docker_engine: DockerEngine, require: Callable[..., None], tmp_path: Path
) -> None:
    require("mmdebstrap")
    env = {**os.environ, "DOCKER_HOST": docker_engine.host, "XDG_CACHE_HOME": str(tmp_path)}
    commands = read_commands(CHECKOUT / "docs/guide/images.md", "sh java-image")
    assert len(commands) == 2
    for command in commands:
        argv = [sys.executable, "-m", "codetaste", *command.text.split()[1:]]
        done = subprocess.run(argv, env=env, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{command.text}\n{done.stdout}\n{done.stderr[-3000:]}"
    assert "jdk 8" in done.stdout
    assert "differs" not in done.stdout
    docker_engine.call("DELETE", f"/images/{JAVA_IMAGE}", params={"force": "1"})
