"""Test runs and runtime images: what codetaste adds to the scripts of an environment; beside `docker run`.

A made-up repository and its scripts, in an engine of the script's own unless one is named:

- a test run: the whole job beside a bare `docker run` of the same image with the same scripts,
- a runtime image: the whole job beside the same scripts run by hand as often (the setup, then all of them),
- a baseline: five runs on each side as codetaste makes them, beside ten bare runs one after the other
  (half as many rounds; it needs two free cores),
- a box (the sandbox of a container) from an image of 5 GB beside one from the lean image.

    python perf/environments.py [--rounds 5] [--socket /var/run/docker.sock]
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

import anyio
from measure import Report, arguments, machine, ratio, versions

from codetaste.sandbox.base import CommandLimits, Privileges, SandboxSpec
from codetaste.sandbox.docker.bootstrap.lean_image import LEAN_IMAGE, build_lean_image
from codetaste.sandbox.docker.engine import connect_engine
from codetaste.sandbox.docker.provider import commit_sandbox, open_docker_sandboxes

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from support.environment.tested_benchmark import CHANGED, MODULES, make_tested_workspace, write_scripts
from support.flows.tiny_benchmark import Bench, git
from support.system.dockerd import running_engine

if TYPE_CHECKING:
    from support.flows.tiny_benchmark import Row, Workspace

CPU_S = 6
"""CPU seconds of the tests of a baseline."""
RUNS = 5
"""Baseline runs on each side."""
BURN = """
import time, unittest

class Burn(unittest.TestCase):
    def test_burn(self):
        while time.process_time() < %d:
            pass
"""
INSTALL = """#!/bin/bash
# Round %s. Dependencies: 2,000 files, 200 MB.
[ -e ~/packages ] || python3 -c '
import os, pathlib
for number in range(2000):
    path = pathlib.Path.home() / "packages" / str(number // 100) / f"{number}.bin"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(os.urandom(100_000))
'
"""
LARGE, LARGE_GB = "codetaste/perf-large:1", 5
FILL = (
    f"mkdir /opt/large && cd /opt/large && "
    f"for i in $(seq {LARGE_GB * 1000}); do head -c 1000000 /dev/zero >$i || exit 1; done"
)
SETUP = "git clean -xdffq && /scripts/setup_system.sh && source /scripts/setup_shell.sh"
TESTS = "/scripts/setup_system.sh && source /scripts/setup_shell.sh && /scripts/run_tests"
CONFIG = """
[environment]
image = "{image}"
registries = false
[evaluate]
tests = true
baseline_runs = {runs}
"""


class Instance:
    """An instance of a made-up benchmark, run by codetaste and by hand."""

    def __init__(self, folder: Path, socket: Path, files: dict[str, str]) -> None:
        self._folder, self._socket, self._bench = folder, socket, Bench(folder / "made")
        self.row: Row = self._bench.add("tested", {**MODULES, **files}, {**CHANGED, **files})
        self.scripts = self._bench.root / "instance_images" / self.row.path / "scripts"
        write_scripts(self.scripts)
        clone = self._bench.repos / "tiny" / "tested"
        self.golden = git(clone, "diff", self.row.base, self.row.golden).encode() + b"\n"

    def run(self, name: str, runs: int, concurrency: int) -> dict[str, tuple[float, float]]:
        """Run codetaste and return when each job began and ended, in seconds since 1970."""
        made: Workspace = make_tested_workspace(
            self._folder / name,
            self._bench,
            self._folder / "cache",
            f'engine = "docker"\nsocket = "{self._socket}"\n',
            CONFIG.format(image=LEAN_IMAGE, runs=runs),
        )
        done = made.run("--json", "--set", f"run.concurrency={concurrency}", timeout_s=3600)
        if done.code:
            sys.exit(f"{done.out}\n{done.err}")
        times = {"started": dict[str, float](), "ended": dict[str, float]()}
        for line in made.journal():
            if line["event"] in times:
                times[line["event"]][line["key"]] = line["t"]
        return {key: (times["started"][key], end) for key, end in times["ended"].items()}

    def by_hand(self, script: str, image: str = "", *, golden: bool = False) -> float:
        """Return the seconds of a bare ``docker run`` of the runtime image or another one."""
        image = image or f"localhost/benchmark/tiny__tested-{self.row.base[:8]}__runtime"
        apply = "git apply && " if golden else ""
        command = ["docker", "--host", f"unix://{self._socket}", "run", "--rm", "--interactive"]
        command += ["--network", "none", image, "/bin/bash", "-c", apply + script]
        began = time.perf_counter()
        subprocess.run(command, input=self.golden if golden else b"", stdout=subprocess.DEVNULL, check=True)
        return time.perf_counter() - began


def took(times: dict[str, tuple[float, float]], kind: str) -> list[float]:
    """Return the seconds of the jobs whose key begins with ``kind``."""
    return [end - began for key, (began, end) in times.items() if key.startswith(kind)]


def measure_runs(folder: Path, socket: Path, rounds: int, report: Report) -> None:
    """Measure single test runs and runtime images, each round with scripts that no image was made of."""
    instance = Instance(folder, socket, {})
    runs, bare_runs, images, bare_images = [], [], [], []
    for number in range(-1, rounds):
        (instance.scripts / "setup_system.sh").write_text(INSTALL % time.time())
        times = instance.run(f"run{number}", 1, 1)
        # In the image of the setup the scripts find nothing installed, as in the job.
        by_hand = [instance.by_hand(TESTS, golden=golden) for golden in (True, False)]
        clean = instance.by_hand(f"rm -r ~/packages && {SETUP}")
        if number < 0:
            continue  # the first round warms up
        runs.append(median(took(times, "tests/")))
        bare_runs.append(median(by_hand))
        images.append(took(times, "image/")[0])
        bare_images.append(clean + by_hand[1])
    report.add("a test run, wall", runs, " s")
    report.add("… by docker run", bare_runs, " s")
    report.add("… added by codetaste", [a - b for a, b in zip(runs, bare_runs, strict=True)], " s", most=2)
    report.add("a runtime image, wall", images, " s")
    report.add("… its scripts by docker run", bare_images, " s")
    added = [a - b for a, b in zip(images, bare_images, strict=True)]
    report.add("… added by codetaste", added, " s", most=15)


def measure_baselines(folder: Path, socket: Path, rounds: int, report: Report) -> None:
    """Measure the baseline of an instance."""
    instance = Instance(folder, socket, {"tests/test_burn.py": BURN % CPU_S})
    ours, by_hand = [], []
    for number in range(rounds):
        times = instance.run(f"run{number}", RUNS, 64)
        runs = [one for key, one in times.items() if key.startswith(("tests/base/", "tests/golden/"))]
        assert len(runs) == 2 * RUNS
        ours.append(max(end for _, end in runs) - min(began for began, _ in runs))
        by_hand.append(
            sum(instance.by_hand(TESTS, golden=golden) for golden in (True, False) for _ in range(RUNS))
        )
    report.add(f"{2 * RUNS} baseline runs of {CPU_S} s, wall", ours, " s")
    report.add("… one after the other by docker run", by_hand, " s")
    report.add("… codetaste / by docker run", ratio(ours, by_hand), " ×", most=0.6)


async def measure_boxes(folder: Path, socket: Path, rounds: int) -> dict[str, list[float]]:
    """Return the milliseconds that it takes to open a box, by image."""
    opened: dict[str, list[float]] = {LEAN_IMAGE: [], LARGE: []}
    async with connect_engine("docker", socket) as engine:
        opening = open_docker_sandboxes(
            engine, run="perf", image=LEAN_IMAGE, folder=folder, bundle=None, warn=print
        )
        async with opening as provider:
            async with provider.open(SandboxSpec("perf", privileges=Privileges.SYSTEM)) as sandbox:
                done = await sandbox.run(["/bin/sh", "-c", FILL], root=True, limits=CommandLimits(wall_s=600))
                assert done.exit_code == 0, done
                await commit_sandbox(sandbox, LARGE, "perf")
            for number in range(-1, 4 * rounds):
                for image in [*opened] if number % 2 else reversed([*opened]):
                    began = time.perf_counter()
                    async with provider.open(SandboxSpec("perf", image=image)):
                        if number >= 0:
                            opened[image].append(1000 * (time.perf_counter() - began))
        await engine.client.images.delete(LARGE)
    return opened


async def build_image(socket: Path) -> None:
    async with connect_engine("docker", socket) as engine:
        await build_lean_image(engine, LEAN_IMAGE, lambda _: None)


def main() -> int:
    parser = arguments(__doc__, 3)
    parser.add_argument(
        "--socket", type=Path, help="of an engine with the lean image; default: an own engine"
    )
    chosen, about = parser.parse_args(), machine()
    report = Report("test runs and runtime images", {**about, **versions(sys.executable, "codetaste")})
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        folder, socket = Path(name), chosen.socket
        if socket is None:
            socket = stack.enter_context(running_engine()).socket
            anyio.run(build_image, socket)
        measure_runs(folder / "runs", socket, chosen.rounds, report)
        measure_baselines(folder / "baselines", socket, (chosen.rounds + 1) // 2, report)
        opened = anyio.run(partial(measure_boxes, folder / "boxes", socket, chosen.rounds))
    for image, values in opened.items():
        report.add(f"a box from {image}, from nothing to ready", values, " ms")
    lean, large = opened.values()
    boxes = ratio(large, lean)
    report.add(f"… {LARGE_GB} GB / lean", boxes, " ×", most=1.2, least=0.8)
    return report.end(as_json=chosen.json)


if __name__ == "__main__":
    sys.exit(main())
