"""No mount of ours can be led elsewhere by links that an untrusted program made.

Bubblewrap follows links on the way to what it mounts, and on the way to a missing mount point that it makes
(CVE-2026-87766: onto the host). So neither may lie below a folder whose content an untrusted program chose.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import pytest

from codetaste.harness.install import build
from codetaste.harness.install.store import InstalledAgent
from codetaste.sandbox.base import Egress, PortForward, SandboxSpec
from codetaste.sandbox.containment.engine import ContainmentEngine
from codetaste.sandbox.local.sandbox import bubblewrap_provider
from codetaste.sandbox.local.shell import read_only_shell
from support.harness.adapters import make_adapter, make_published_adapter

pytestmark = pytest.mark.anyio

RECORDER = """#!/bin/sh
record=$(mktemp {folder}/XXXXXX)
if [ "$1" = --args ]; then cat "/proc/self/fd/$2" >"$record"; else printf '%s\\0' "$@" >"$record"; fi
exec {bubblewrap} "$@"
"""
ARGUMENTS = {
    **dict.fromkeys(("--die-with-parent", "--new-session", "--as-pid-1", "--clearenv", "--share-net"), 0),
    **dict.fromkeys(("--hostname", "--cap-drop", "--cap-add", "--seccomp", "--perms", "--size"), 1),
    **dict.fromkeys(("--chdir", "--uid", "--gid", "--json-status-fd", "--sync-fd"), 1),
    "--setenv": 2,
}
"""The number of arguments of options that name no path of the sandbox's file system."""
TARGETS = ("--dir", "--tmpfs", "--proc", "--dev", "--remount-ro")
SOURCES_AND_TARGETS = ("--bind", "--ro-bind", "--ro-bind-try", "--dev-bind", "--file", "--symlink")


@dataclass(frozen=True)
class Mounts:
    """What the options of one bubblewrap do with paths: (option, source or "", target) each."""

    options: tuple[tuple[str, str, str], ...]

    def violations(self, untrusted: tuple[str, ...] = ()) -> list[str]:
        """Return the paths below a writable mount, or below a mount of one of the folders ``untrusted``."""
        hostile = [
            (source, target)
            for option, source, target in self.options
            if option == "--bind" or ("bind" in option and source in untrusted)
        ]
        return [
            f"{option} {source} {target}"
            for (option, source, target), (folder, place) in itertools.product(self.options, hostile)
            if PurePosixPath(place) in PurePosixPath(target).parents
            or ("bind" in option and folder not in untrusted and Path(folder) in Path(source).parents)
        ]


def parse_mounts(arguments: list[str]) -> Mounts:
    found, rest = [], iter(arguments)
    for option in rest:
        if option == "--":
            break
        if option in TARGETS:
            found.append((option, "", next(rest)))
        elif option in SOURCES_AND_TARGETS:
            found.append((option, next(rest), next(rest)))
        elif not option.startswith("--unshare-"):
            for _ in range(ARGUMENTS[option]):
                next(rest)
    return Mounts(tuple(found))


@dataclass(frozen=True)
class Recorder:
    """A bubblewrap that records its options."""

    engine: ContainmentEngine
    folder: Path

    def mounts(self) -> list[Mounts]:
        """Return what the bubblewraps mounted that were started, the first one first."""
        records = sorted(self.folder.iterdir(), key=lambda path: path.stat().st_mtime_ns)
        return [parse_mounts(path.read_text().split("\0")[:-1]) for path in records]


@pytest.fixture
def recorder(tmp_path: Path, bubblewrap: Path) -> Recorder:
    folder, program = tmp_path / "records", tmp_path / "bwrap"
    folder.mkdir()
    program.write_text(RECORDER.format(folder=folder, bubblewrap=bubblewrap))
    program.chmod(0o755)
    return Recorder(ContainmentEngine("bubblewrap", program), folder)


def test_paths_below_writable_or_untrusted_folders_are_found() -> None:
    mounts = parse_mounts(
        [
            *(
                "--unshare-all",
                "--setenv",
                "A",
                "--bind",
                "--bind",
                "/host/a",
                "/a",
                "--ro-bind",
                "/host/r",
                "/r",
            ),
            *(
                "--dir",
                "/ab",
                "--dir",
                "/a/b",
                "--symlink",
                "/a/x",
                "/r/x",
                "--ro-bind",
                "/host/a/file",
                "/file",
            ),
            *("--", "--dir", "/a/c"),
        ]
    )
    assert mounts.violations() == ["--dir  /a/b", "--ro-bind /host/a/file /file"]
    assert "--symlink /a/x /r/x" in mounts.violations(("/host/r",))


async def test_mounts_of_the_rule_agents_shell(recorder: Recorder, tmp_path: Path) -> None:
    tree, tool = tmp_path / "tree", tmp_path / "tool"
    tree.mkdir()
    tool.write_text("#!/bin/sh\n")
    tool.chmod(0o755)
    shell = read_only_shell(tree, tools={"rg": tool}, engine=recorder.engine)
    assert (await shell.run(["rg"])).exit_code == 0
    (mounts,) = recorder.mounts()
    assert ("--ro-bind", str(tree), "/testbed") in mounts.options
    assert mounts.violations((str(tree),)) == []


async def test_mounts_of_an_agents_installation_and_sandbox(
    recorder: Recorder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(build, "_bubblewrap", lambda: recorder.engine.program)
    script = 'ln -sf /etc/hostname "$TMPDIR/passwd"; ln -sf /etc/hostname "$CODETASTE_TREE/passwd"\n'
    agents: list[InstalledAgent] = [
        await build.install_agent(adapter, None, tmp_path / "cache", pytest.fail)
        for adapter in (
            make_adapter(tmp_path / "mine", install=script),
            make_published_adapter(tmp_path / "theirs", run_agent="true\n", setup=script),
        )
    ]
    installations = recorder.mounts()
    assert len(installations) >= len(agents) + 1, "an install script and a check of the version"
    for mounts in installations:
        assert any(option == "--bind" for option, _, _ in mounts.options)
        assert mounts.violations() == []

    socket = tmp_path / "forwarded" / "socket"
    socket.parent.mkdir()
    spec = SandboxSpec(
        "test",
        mounts=tuple({mount.target: mount for agent in agents for mount in agent.mounts}.values()),
        egress=Egress((PortForward(8080, socket),), network=True),
    )
    provider = bubblewrap_provider(tmp_path / "sandboxes", engine=recorder.engine)
    async with provider.open(spec):
        pass
    mounts = recorder.mounts()[-1]
    assert {target for option, _, target in mounts.options if option == "--bind"} >= {"/testbed", "/tmp"}
    assert {mount.target for mount in spec.mounts} <= {target for _, _, target in mounts.options}
    assert mounts.violations(tuple(str(agent.tree) for agent in agents)) == []
