"""The whole polyglot image, made of Debian: the commands of its page, and builds that need a registry."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest

from codetaste.environment.registries import find_registries, sandbox_archives
from codetaste.sandbox.base import CommandLimits, Privileges, SandboxSpec
from codetaste.sandbox.ca_bundle import find_bundle
from codetaste.sandbox.docker.engine import connect_engine
from codetaste.sandbox.docker.provider import open_docker_sandboxes
from codetaste.sandbox.egress import open_allowlist_egress
from support.cli.documented_commands import read_commands
from support.system.dockerd import DockerEngine

CHECKOUT = Path(__file__).resolve().parents[2]
IMAGE = "codetaste/polyglot:debian"
POM = """
<project>
  <modelVersion>4.0.0</modelVersion><groupId>a</groupId><artifactId>b</artifactId><version>1</version>
  <properties>
    <maven.compiler.source>17</maven.compiler.source><maven.compiler.target>17</maven.compiler.target>
  </properties>
  <dependencies><dependency>
    <groupId>junit</groupId><artifactId>junit</artifactId><version>4.13.2</version>
  </dependency></dependencies>
</project>
"""
TEST = "import org.junit.Test; public class ATest { @Test public void nothing() {} }"
SCRIPTS = {
    "pip": "python -m venv own; own/bin/pip install -q six==1.16.0; own/bin/python -c 'import six'",
    "uv": "uv venv -q own; uv pip install -q -p own six==1.16.0; own/bin/python -c 'import six'",
    "npm": "npm init -y >/dev/null; npm install --silent is-number@7.0.0; node -e 'require(\"is-number\")'",
    "nvm": '. "$NVM_DIR/nvm.sh"; nvm install 18 >/dev/null; node --version | grep ^v18; npm --version',
    "go": "go mod init a 2>/dev/null; go get github.com/google/uuid@v1.6.0 2>/dev/null",
    "maven": f"mkdir -p src/test/java; echo '{POM}' >pom.xml; echo '{TEST}' >src/test/java/ATest.java; "
    "mvn -q -B test",
    "sudo": "sudo apt-get -qq update; sudo apt-get -qq install -y hello >/dev/null; hello",
}
"""What a user of the image does with each registry."""


@pytest.mark.slow
@pytest.mark.timeout(3 * 3600)
def test_image_is_built_and_checked_as_its_page_says_and_reaches_every_registry(
    docker_engine: DockerEngine, require: Callable[..., None], tmp_path: Path
) -> None:
    require("mmdebstrap")
    env = {**os.environ, "DOCKER_HOST": docker_engine.host, "XDG_CACHE_HOME": str(tmp_path)}
    program = [sys.executable, "-m", "codetaste"]
    commands = read_commands(CHECKOUT / "docs/guide/images.md", "sh polyglot")
    assert len(commands) == 2
    for command in commands:
        argv = [*program, *command.text.split()[1:]]
        done = subprocess.run(argv, env=env, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{command.text}\n{done.stdout}\n{done.stderr[-3000:]}"
    assert "node" in done.stdout
    assert "22.12.0" in done.stdout
    assert anyio.run(failures, docker_engine, tmp_path) == {}
    docker_engine.call("DELETE", f"/images/{IMAGE}", params={"force": "1"})


async def failures(docker_engine: DockerEngine, folder: Path) -> dict[str, str]:
    """Run the scripts as the user, with the registries of this host and nothing else."""
    registries = await find_registries()
    found: dict[str, str] = {}
    async with (
        connect_engine(socket=docker_engine.socket) as engine,
        open_docker_sandboxes(
            engine,
            run="test",
            image=IMAGE,
            folder=folder / "sandboxes",
            bundle=find_bundle("auto"),
            warn=print,
        ) as sandboxes,
    ):
        async with sandboxes.open(SandboxSpec("test", privileges=Privileges.SYSTEM)) as sandbox:
            hosts = [*registries.hosts, *await sandbox_archives(sandbox)]
        async with (
            open_allowlist_egress(hosts) as egress,
            sandboxes.open(
                SandboxSpec("test", egress=egress, env=registries.variables, privileges=Privileges.SUDO)
            ) as sandbox,
        ):
            for name, script in SCRIPTS.items():
                command = ["bash", "-euo", "pipefail", "-c", f'cd "$(mktemp -d)"\n{script}']
                done = await sandbox.run(command, limits=CommandLimits(wall_s=1200.0))
                if done.exit_code != 0:
                    found[name] = (done.stdout + done.stderr).decode(errors="replace")[-2000:]
    return found
