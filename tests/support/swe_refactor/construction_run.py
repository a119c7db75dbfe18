"""Constructions with the real tools: their folders, commands that are killed, and what came out."""

from __future__ import annotations

import csv
import os
import re
import shutil
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from codetaste.swe_refactor.dataset.format import read_instances
from codetaste.swe_refactor.dataset.instance import RefactoringInstance
from support.flows import tiny_benchmark
from support.flows.growing_journal import GrowingJournal
from support.flows.tiny_benchmark import CommandResult, Workspace
from support.refactorings.java_tools import tools_in
from support.swe_refactor.shop_history import ShopHistory

Journal = list[dict[str, Any]]
_COMMAND = ("swe-refactor", "build", "config.toml", "--json")
_CONFIG = """\
[run]
name = "shop"
[swe_refactor.build]
repositories = ["{clone}"]
commits = "{commits}"
jdks = 1
jdt_time_limit = "1h"
compile_time_limit = "1h"
test_time_limit = "1h"
[swe_refactor.build.refactoring_miner]
time_limit = "1h"
[sandbox]
engine = "bubblewrap"
memory = "2GiB"
max = 1
"""
_LONG_S = 1700.0


@dataclass(frozen=True)
class ConstructionRun:
    """A run in a folder of its own, with a cache of its own."""

    workspace: Workspace

    @property
    def folder(self) -> Path:
        return self.workspace.out / "swe_refactor"

    @property
    def project(self) -> Path:
        """The folder with the dependencies of the project, and for a while with trees."""
        return self.folder / "verify" / "example" / "shop"

    @property
    def sandboxes(self) -> Path:
        return self.workspace.out / ".sandboxes"

    def build(self, *options: str) -> CommandResult:
        return self.workspace.cli(*_COMMAND, *options, timeout_s=_LONG_S)

    def kill_when(self, reached: Callable[[Journal], bool]) -> set[str]:
        """Start the command, kill it when ``reached``; return the keys of the jobs that were under way."""
        process = self.workspace.start_cli(*_COMMAND)
        deadline = time.monotonic() + _LONG_S
        journal = GrowingJournal(self.workspace.out / "journal.jsonl")
        while not reached(journal.read()):
            assert process.poll() is None, process.communicate()
            assert time.monotonic() < deadline
            time.sleep(0.01)
        tiny_benchmark.kill(process)
        return _under_way(self.workspace.journal())

    def stop_when(self, reached: Callable[[Journal], bool]) -> int | None:
        """Start the command, interrupt it when ``reached``, and return its exit code."""
        process = self.workspace.start_cli(*_COMMAND)
        deadline = time.monotonic() + _LONG_S
        journal = GrowingJournal(self.workspace.out / "journal.jsonl")
        while not reached(journal.read()) and process.poll() is None:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=_LONG_S)
        return process.returncode

    def take_dependencies(self, other: ConstructionRun) -> None:
        """Take what another run has fetched; this one must have begun, and must not run."""
        shutil.copytree(other.project / "dependencies", self.project / "dependencies", dirs_exist_ok=True)

    def instances(self) -> list[RefactoringInstance]:
        return list(read_instances(self.folder / "instances.json"))

    def table(self, name: str) -> list[tuple[str, str, str]]:
        """Return row, column and value of each cell of a table that the run wrote."""
        with (self.folder / f"{name}.csv").open(newline="") as file:
            return [(each["row"], each["column"], each["value"]) for each in csv.DictReader(file)]


def make_run(folder: Path, history: ShopHistory, commits: str = "HEAD") -> ConstructionRun:
    """Make a folder with a config and the installed Java tools."""
    cache = tools_in(folder / "cache" / "codetaste", "refactoring-miner-3.1.4").parent
    config = folder / "config.toml"
    config.write_text(_CONFIG.format(clone=history.repository.path, commits=commits))
    return ConstructionRun(Workspace(folder, cache, config, name="shop"))


def keys(journal: Journal, event: str) -> list[str]:
    """Return the keys of the lines with ``event``, but those of the jobs that each session repeats."""
    lines = [line["key"] for line in journal if line["event"] == event]
    return [key for key in lines if not key.startswith("candidates/")]


def count(journal: Journal, event: str, kind: str) -> int:
    """Count the lines with ``event`` of jobs of a kind: "detect", "enrich", "verify"."""
    return sum(line["event"] == event and line["key"].startswith(f"{kind}/") for line in journal)


def count_sessions(journal: Journal) -> int:
    """Count the sessions that have begun."""
    return sum(line["event"] == "session" for line in journal)


def _under_way(journal: Journal) -> set[str]:
    found: set[str] = set()
    for line in journal:
        if line["event"] == "started":
            found.add(line["key"])
        elif line["event"] == "ended":
            found.discard(line["key"])
    return found


def without_times(instance: RefactoringInstance) -> dict[str, Any]:
    """Return the document of an instance without the durations of its enrichment and verification."""
    own = dict(instance.own)
    counts = {**own["context"]["counts"], "seconds": 0}
    verification = {name: value for name, value in own["verification"].items() if not name.endswith("_s")}
    for side in ("before", "after"):
        verification[side] = {**verification[side], "tool_s": 0}
    own |= {"verification": verification, "context": {**own["context"], "counts": counts}}
    return {**instance.document, "codetaste": own}


def oldest_jdk() -> int:
    """Return the oldest release of Java of which this machine has a compiler where builds find it."""
    releases = []
    for folder in (Path("/usr/lib/jvm"), Path("/opt/jdk")):
        for home in folder.glob("*"):
            if os.access(home / "bin" / "javac", os.X_OK):
                text = (home / "release").read_text()
                releases += [int(found[1]) for found in re.finditer(r'JAVA_VERSION="(?:1\.)?(\d+)', text)]
    return min(releases)


def make_broken_jdk(home: Path) -> Path:
    """Make a JDK that says its release, and starts nothing."""
    (home / "bin").mkdir(parents=True)
    for name in ("java", "javac"):
        program = home / "bin" / name
        program.write_text("""#!/bin/sh
[ "$1" != -version ] || { echo 'openjdk version "99"' >&2; exit 0; }
exit 7
""")
        program.chmod(0o755)
    return home
