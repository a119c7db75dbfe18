"""A trial of Harbor in containers: both images of a task are built, and its parts run as Harbor runs them.

Images are built without a network, so that their base needs the rule engine at /opt/opengrep/opengrep.
"""

from __future__ import annotations

import io
import json
import tarfile
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from support.system.dockerd import DockerContainer, DockerEngine

SUBMISSION = "/logs/artifacts/submission.diff"


@dataclass(frozen=True)
class HarborContainers:
    """Runs trials of the exported task in the folder ``task`` on an engine."""

    engine: DockerEngine
    task: Path

    def build(self) -> None:
        """Build the images of the agent and of the verifier."""
        build_image(self.engine, _archive(_files(self.task / "environment")), self._name("agent"))
        build_image(self.engine, _archive(_files(self.task / "tests")), self._name("verifier"))

    def run(self, act: str, files: Mapping[str, bytes] | None = None) -> dict[str, Any]:
        """Let ``act``, a command, be the agent's work; return the content of the reward file."""
        settings = tomllib.loads((self.task / "task.toml").read_text())
        (hook,) = settings["verifier"]["collect"]
        network = {"HostConfig": {"NetworkMode": "none"}}
        with self.engine.container(self._name("agent"), **network) as agent:
            _run(agent, "mkdir -p /logs/artifacts && chmod 777 /logs/artifacts", "root")
            agent.put(_archive(files or {}), "/")
            _run(agent, act)
            _run(agent, hook["command"])
            submission = _run(agent, f"cat {SUBMISSION}").encode()
        with self.engine.container(self._name("verifier"), **network) as verifier:
            verifier.put(_archive({SUBMISSION[1:]: submission}), "/")
            text = _run(verifier, "/tests/test.sh >&2; cat /logs/verifier/reward.json", "root")
        found: dict[str, Any] = json.loads(text.splitlines()[-1])
        return found

    def solution(self) -> dict[str, bytes]:
        """The files of the golden patch, as Harbor's agent "oracle" gets them."""
        return {f"solution/{name}": content for name, content in _files(self.task / "solution").items()}

    def _name(self, part: str) -> str:
        return f"harbor-test-{part}:latest"


def build_image(engine: DockerEngine, context: bytes, name: str) -> None:
    """Build an image from the archive of a folder with a Dockerfile."""
    done = engine.call(
        "POST",
        "/build",
        params={"t": name, "networkmode": "none", "rm": "1"},
        content=context,
        headers={"Content-Type": "application/x-tar"},
        timeout_s=300,
    )
    assert '"errorDetail"' not in done.text, done.text


def _run(container: DockerContainer, command: str, user: str = "") -> str:
    code, text = container.run(["/bin/bash", "-c", command], user=user, workdir="/testbed")
    assert code == 0, text
    return text


def _files(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()
    }


def _archive(files: Mapping[str, bytes]) -> bytes:
    """Return a tar archive of files that root owns and everybody can execute."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(content), 0o755
            archive.addfile(entry, io.BytesIO(content))
    return buffer.getvalue()


def engine_context(base: str, engine: Path) -> bytes:
    """Return the context of an image that has the rule engine of this machine in addition."""
    lines = [f"FROM {base}", "USER root", "COPY opengrep /opt/opengrep/opengrep", "USER 1000:1000", ""]
    return _archive({"Dockerfile": "\n".join(lines).encode(), "opengrep": engine.read_bytes()})
