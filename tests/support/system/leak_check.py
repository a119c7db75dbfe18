"""What a test may leave behind of what it started, counted before and after: nothing.

Only what is this test's own is counted, for others work on the same machine: what descends from this process
or carries the test's mark, what lies in its folder, and what one container engine of the tests has.
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
"""An engine removes what it was told to remove a moment later."""


@dataclass
class Leaks:
    """What is counted.

    ``folder`` is where temporary files of the test go; ``env`` are variables that mark processes as its own.
    """

    folder: Path
    env: dict[str, str] = field(default_factory=lambda: {MARK: secrets.token_hex(8)})
    engine: dockerd.DockerEngine | None = None
    before: dict[str, set[str]] = field(default_factory=dict)

    def watch(self, engine: dockerd.DockerEngine) -> None:
        """Count what ``engine`` has, too."""
        self.engine = engine
        self.before = self.counted()

    def counted(self) -> dict[str, set[str]]:
        """All there is, by kind."""
        places = [str(self.folder), *([str(self.engine.socket.parent)] if self.engine else [])]
        found = {
            "processes": self._processes(places[1:]),
            "mounts": {
                line for line in _lines("/proc/self/mountinfo") if any(place in line for place in places)
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

    def left(self) -> dict[str, set[str]]:
        """What is there that was not before."""
        now = self.counted()
        return {kind: more for kind in now if (more := now[kind] - self.before.get(kind, set()))}

    def _processes(self, engine: list[str]) -> set[str]:
        mark = f"{MARK}={self.env[MARK]}"
        ours, grown = set(), {str(os.getpid())}
        found = dict(_processes())
        for pid, (_, words, variables) in found.items():
            if mark in variables or any(place in words and "containerd-shim" in words for place in engine):
                ours.add(pid)
        while grown:
            ours |= grown
            grown = {pid for pid, (parent, *_) in found.items() if parent in ours} - ours
        return {f"{pid} {found[pid][1]}" for pid in ours & found.keys()}


@pytest.fixture
def nothing_left(monkeypatch: pytest.MonkeyPatch) -> Iterator[Leaks]:
    """Fail when a test leaves anything: give ``env`` to its boxes, and ``watch`` the engine that it uses."""
    folder = Path(tempfile.mkdtemp(prefix="ct-"))  # short, for sockets' paths are
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    leaks = Leaks(folder)
    leaks.before = leaks.counted()
    try:
        yield leaks
        deadline = time.monotonic() + _SETTLE_S
        while (left := leaks.left()) and time.monotonic() < deadline:
            time.sleep(0.1)
        assert not left, f"left behind: {left}"
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _lines(path: str) -> list[str]:
    return Path(path).read_text(errors="replace").splitlines()


def _processes() -> Iterator[tuple[str, tuple[str, str, str]]]:
    """Every living process: its number; its parent's, its command line, its variables."""
    for path in Path("/proc").iterdir():
        if path.name.isdigit():
            with suppress(OSError):
                state, parent = (path / "stat").read_text(errors="replace").rpartition(")")[2].split()[:2]
                words = (path / "cmdline").read_text(errors="replace").replace("\0", " ")
                if state not in "ZX":
                    yield path.name, (parent, words, _variables(path))


def _variables(process: Path) -> str:
    try:
        return (process / "environ").read_text(errors="replace")
    except OSError:
        return ""  # somebody else's


def _groups() -> Iterator[str]:
    for above in ("", "*/", "*/*/"):
        yield from map(str, Path("/sys/fs/cgroup").glob(f"{above}codetaste-{os.getpid()}-*"))


def _open_files(folder: str) -> Iterator[str]:
    for path in Path("/proc/self/fd").iterdir():
        with suppress(OSError):
            target = os.readlink(path)  # noqa: PTH115 - what is no path, too
            if target.startswith(folder):
                yield target
