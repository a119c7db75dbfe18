"""Wall time and CPU of Eclipse JDT's enrichment: the index of a source tree, then one target after the other.

The sources are those of a clone, such as that of commons-io; without it they are made up: 250 classes with 22
methods each that call each other. Targets are of CPU time, as a busy machine takes any wall time. ::

    python perf/java_enrichment.py [--clone PATH] [--commit HEAD] [--folder src/main]
"""

from __future__ import annotations

import json
import os
import random
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import anyio
from anyio import to_thread
from measure import Report, arguments, machine, measured, versions

from codetaste.core.paths import cache_dir
from codetaste.java.artifacts.artifact_set import load_artifact_set
from codetaste.java.artifacts.store import install_artifacts
from codetaste.java.jdt.model import MethodTarget, TargetOutcome
from codetaste.java.jdt.service import ARTIFACT_SET, open_jdt
from codetaste.source.repository import open_repository
from codetaste.swe_refactor.enrich.sources import export_java_files

MAX_INDEX_S = 15.0
MAX_TARGET_S = 0.5
_CLASSES, _METHODS, _TARGETS = 250, 22, 20


def make_sources(folder: Path) -> None:
    """Write classes of 50 packages; each method calls another one of its class, and one of another class."""
    chosen = random.Random(7)
    for number in range(_CLASSES):
        path = folder / f"src/main/java/p{number % 50}/C{number}.java"
        path.parent.mkdir(parents=True, exist_ok=True)
        methods = []
        for index in range(_METHODS):
            other = chosen.randrange(_CLASSES)
            call = f"p{other % 50}.C{other}.m{chosen.randrange(_METHODS)}(a)"
            own = f"m{(index + 1) % _METHODS}(a)" if index % 2 else "String.valueOf(a).length()"
            methods.append(f"  public static int m{index}(int a) {{ return {call} + {own}; }}")
        body = "\n".join(methods)
        path.write_text(f"package p{number % 50};\n\npublic class C{number} {{\n{body}\n}}\n")


async def export(clone: Path, commit: str, folder: str, into: Path) -> None:
    """Write the Java files of one folder of a commit."""
    await export_java_files(await open_repository(clone), commit, into / "all")
    await to_thread.run_sync(shutil.copytree, into / "all" / folder, into / "sources")


def children_cpu_s() -> float:
    """Return the CPU time so far of this process and of the JVM that it has started, seconds."""
    ticks = 0
    for task in Path("/proc/self/task").iterdir():
        for child in (task / "children").read_text().split():
            fields = Path("/proc", child, "stat").read_text().rpartition(")")[2].split()
            ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK") + time.process_time()


async def enrich(root: Path) -> dict[str, Any]:
    """Index the sources and ask for targets; return times in seconds, and counts."""
    cache = await to_thread.run_sync(cache_dir, sys.exit)
    await install_artifacts(load_artifact_set(ARTIFACT_SET), cache)
    started = time.perf_counter()
    async with open_jdt(cache) as jdt:
        tree = await jdt.enrich(root, [])
        files = [path for path in tree.structure.java_files if not path.endswith("-info.java")]
        texts = {path: await anyio.Path(root, path).read_text("utf-8") for path in files}
        parsed = await jdt.parse(texts)
        methods = [(one.path, each) for one in parsed.types for each in one.methods if each.body]
        chosen = random.Random(1).sample(methods, _TARGETS)
        targets = [MethodTarget(path, one.start_line, one.end_line, one.name) for path, one in chosen]
        ready_s = time.perf_counter() - started
        walls, cpus, found = [], [], []
        for target in targets:
            began, cpu = time.perf_counter(), children_cpu_s()
            found += (await jdt.enrich(root, [target])).targets
            walls.append(time.perf_counter() - began)
            cpus.append(children_cpu_s() - cpu)
    wrong = [each for each in found if each.outcome is not TargetOutcome.FOUND]
    counts = found[0].counts
    if wrong or counts is None:
        sys.exit(f"not found: {wrong[:3]}")
    figures = {
        "start_s": ready_s,
        "index_s": walls[0],
        "index_cpu_s": cpus[0],
        "target_s": max(walls[1:]),
        "target_cpu_s": max(cpus[1:]),
    }
    sizes = {"files": counts.files, "calls": counts.calls, "resolved": counts.resolved_calls}
    return {**figures, "counts": sizes}


def main() -> int:
    parser = arguments(__doc__, 3)
    parser.add_argument("--clone", type=Path, help="a clone with the sources; without it they are made")
    parser.add_argument("--commit", default="HEAD", help="its commit (default HEAD)")
    parser.add_argument("--folder", default="src/main", help="their folder (default src/main)")
    parser.add_argument("--work", type=Path, help="print the figures of one round over this folder as JSON")
    chosen = parser.parse_args()
    if chosen.work:
        print(json.dumps(anyio.run(enrich, chosen.work)))
        return 0
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder, "sources")
        if chosen.clone:
            anyio.run(export, chosen.clone, chosen.commit, chosen.folder, Path(folder))
        else:
            make_sources(root)
        uses = [measured([sys.executable, __file__, "--work", root]) for _ in range(chosen.rounds)]
    figures = [json.loads(use.output) for use in uses]
    about = machine() | versions(sys.executable, "codetaste") | figures[0]["counts"]
    report = Report(f"enrichment of {chosen.clone or 'made sources'} with Eclipse JDT", about)
    times = {name: [each[name] for each in figures] for name in figures[0] if name != "counts"}
    report.add("index and one target, CPU", times["index_cpu_s"], " s", most=MAX_INDEX_S)
    report.add("index and one target, wall", times["index_s"], " s")
    report.add("the slowest of 19 further targets, CPU", times["target_cpu_s"], " s", most=MAX_TARGET_S)
    report.add("the slowest of 19 further targets, wall", times["target_s"], " s")
    report.add("before that: start of the JVM, parsing all texts, wall", times["start_s"], " s")
    report.add("CPU of everything", [use.cpu_s for use in uses], " s")
    report.add("peak memory", [use.rss / 1e6 for use in uses], " MB")
    return report.end(as_json=chosen.json)


if __name__ == "__main__":
    sys.exit(main())
