"""Check that a test leaves no processes, mounts, sockets, files or containers.

Only the test's own are counted, as other programs run on the same host: descendants of this process,
processes with the test's mark, files in its folder, and the objects of one container engine of the tests.
"""

from __future__ import annotations

import os
import secrets
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from support.system import dockerd

MARK = "CODETASTE_TEST_MARK"
_SETTLE_S = 20.0
"""An engine removes objects with a delay."""


@dataclass
class Leaks:
    """The resources of a test, counted before it and after it.

    ``folder`` has the temporary files of the test; the variables ``env`` mark processes as its own.
    """

    folder: Path
    env: dict[str, str] = field(default_factory=lambda: {MARK: secrets.token_hex(8)})
    engine: dockerd.DockerEngine | None = None
    before: dict[str, set[str]] = field(default_factory=dict)

    def watch(self, engine: dockerd.DockerEngine) -> None:
        """Count the objects of ``engine``, too."""
        self.engine = engine
        self.before = self.count()

    def count(self) -> dict[str, set[str]]:
        """Return all resources, by kind."""
        folders = [str(self.folder), *([str(self.engine.socket.parent)] if self.engine else [])]
        found = {
            "processes": self._processes(folders[1:]),
            "mounts": {
                line for line in _lines("/proc/self/mountinfo") if any(folder in line for folder in folders)
            },
            "sockets": {line.split()[-1] for line in _lines("/proc/net/unix") if str(self.folder) in line},
            "open files": set(_open_files(str(self.folder))),
            "groups": set(_groups()),
            "temporary files": {path.name for path in self.folder.iterdir()},
        }
        if self.engine:
            listed = self.engine.call("GET", "/containers/json", params={"all": "1"}).json()
            found["containers"] = {str(one["Names"]) for one in listed}
            found["networks"] = {one["Name"] for one in self.engine.call("GET", "/networks").json()}
            volumes = self.engine.call("GET", "/volumes").json()["Volumes"]
            found["volumes"] = {one["Name"] for one in volumes or []}
        return found

    def find_leaks(self) -> dict[str, set[str]]:
        """Return the resources that did not exist before the test."""
        now = self.count()
        return {kind: added for kind in now if (added := now[kind] - self.before.get(kind, set()))}

    def _processes(self, engine: list[str]) -> set[str]:
        mark = f"{MARK}={self.env[MARK]}"
        owned, added = set(), {str(os.getpid())}
        found = dict(_processes())
        for pid, (_, command_line, variables) in found.items():
            if mark in variables or any(
                folder in command_line and "containerd-shim" in command_line for folder in engine
            ):
                owned.add(pid)
        while added:
            owned |= added
            added = {pid for pid, (parent, *_) in found.items() if parent in owned} - owned
        return {f"{pid} {found[pid][1]}" for pid in owned & found.keys()}


@pytest.fixture
def nothing_left(monkeypatch: pytest.MonkeyPatch) -> Iterator[Leaks]:
    """Fail if a test leaves anything; pass ``env`` to its sandboxes, and ``watch`` its engine."""
    folder = Path(tempfile.mkdtemp(prefix="ct-"))  # short, as the path of a socket must be
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    leaks = Leaks(folder)
    leaks.before = leaks.count()
    try:
        yield leaks
        deadline = time.monotonic() + _SETTLE_S
        while (leaked := leaks.find_leaks()) and time.monotonic() < deadline:
            time.sleep(0.1)
        assert not leaked, f"left behind: {leaked}"
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _lines(path: str) -> list[str]:
    return Path(path).read_text(errors="replace").splitlines()


def _processes() -> Iterator[tuple[str, tuple[str, str, str]]]:
    """Yield each live process: its id; its parent's id, its command line, its variables."""
    for path in Path("/proc").iterdir():
        if path.name.isdigit():
            with suppress(OSError):
                state, parent = (path / "stat").read_text(errors="replace").rpartition(")")[2].split()[:2]
                command_line = (path / "cmdline").read_text(errors="replace").replace("\0", " ")
                if state not in "ZX":
                    yield path.name, (parent, command_line, _variables(path))


def _variables(process: Path) -> str:
    try:
        return (process / "environ").read_text(errors="replace")
    except OSError:
        return ""  # another user's process


def _groups() -> Iterator[str]:
    for prefix in ("", "*/", "*/*/"):
        yield from map(str, Path("/sys/fs/cgroup").glob(f"{prefix}codetaste-{os.getpid()}-*"))


def _open_files(folder: str) -> Iterator[str]:
    for path in Path("/proc/self/fd").iterdir():
        with suppress(OSError):
            target = os.readlink(path)  # noqa: PTH115 - targets that are not paths, too
            if target.startswith(folder):
                yield target
