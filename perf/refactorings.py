"""Commits a minute that the service of RefactoringMiner mines, beside RefactoringMiner's own command line.

Both go through the same commits without merges, the command line by ``-bc``; the detections must be equal.
The clone is made up: 60 Java classes whose methods are renamed, extracted and changed. Or it is one that
exists; then its newest 500 commits are read. It needs the jars (``codetaste java install``). ::

    python perf/refactorings.py [--commits 500] [--clone PATH]
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import sys
import tempfile
import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
from measure import Report, arguments, interleaved, machine, measured, ratio, versions
from repositories import git, import_history

from codetaste.core.concurrency import gather
from codetaste.core.paths import cache_dir
from codetaste.errors import JavaError
from codetaste.java.artifacts.store import FOLDER as JARS
from codetaste.refactorings.config import RefactoringMinerConfig
from codetaste.refactorings.service import (
    RefactoringService,
    refactoring_miner,
    refactoring_service,
    repository_folder,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from measure import Use

    from codetaste.refactorings.model import CodeRange, Detection

LEAST_RATIO = 2.0
_HUNG_S = 5.0
_CLASSES, _METHODS, _STATEMENTS = 60, 12, 14
_WORDS = ("total", "order", "price", "cart", "stock", "user", "count", "index", "value", "result")


def make_history(folder: Path, commits: int) -> None:
    """Make a bare clone with so many commits."""
    import_history(folder, b"".join(_stream(commits)))


def _stream(commits: int) -> Iterator[bytes]:
    chance = random.Random(16)
    classes = {
        f"Shop{number}": {f"method{each}": _statements(chance) for each in range(_METHODS)}
        for number in range(_CLASSES)
    }
    for number in range(commits + 1):
        head = b"commit refs/heads/made\ncommitter A <a@b> %d +0000\ndata 6\nchange\n"
        yield head % (1_600_000_000 + number * 600)
        for name in chance.sample(sorted(classes), chance.randint(1, 4)) if number else sorted(classes):
            if number:
                _change(classes[name], chance, number)
            content = _java(name, classes[name]).encode()
            yield f"M 100644 inline src/p/{name}.java\ndata {len(content)}\n".encode() + content + b"\n"
        yield b"\n"


def _change(methods: dict[str, list[str]], chance: random.Random, number: int) -> None:
    """Extract a method, rename one, or change a statement."""
    name, kind = chance.choice(sorted(methods)), chance.random()
    body = methods[name]
    if kind < 0.3 and len(body) > 6:
        methods[f"{name}Part{number}"] = body[2:6]
        methods[name] = [*body[:2], f"{name}Part{number}({chance.choice(_WORDS)});", *body[6:]]
    elif kind < 0.5:
        methods[f"{chance.choice(_WORDS)}{number}"] = methods.pop(name)
    else:
        body[chance.randrange(len(body))] = _statements(chance)[0]


def _statements(chance: random.Random) -> list[str]:
    lines = []
    for _ in range(_STATEMENTS):
        target, call, argument = (chance.choice(_WORDS) for _ in range(3))
        lines.append(f"this.{target} = {call}.with({argument}, {chance.randrange(999)});")
    return lines


def _java(name: str, methods: Mapping[str, Sequence[str]]) -> str:
    bodies = (
        f"  void {method}(Object {_WORDS[0]}) {{\n{''.join(f'    {line}{chr(10)}' for line in body)}  }}\n"
        for method, body in methods.items()
    )
    return f"package p;\n\nclass {name} {{\n{''.join(bodies)}}}\n"


def newest(clone: Path, commits: int) -> tuple[str, str, list[str]]:
    """Return the ends of the range, and its commits without merges."""
    listed = git(clone, "rev-list", "--no-merges", f"--max-count={commits}", "HEAD").decode().split()
    start = git(clone, "rev-parse", f"{listed[-1]}^").decode().strip()
    names = git(clone, "rev-list", "--no-merges", f"{start}..{listed[0]}").decode().split()
    return start, listed[0], names


def _cache(folder: Path) -> Path:
    """Return a cache that has the installed jars and no answers."""
    folder.mkdir(exist_ok=True)
    (folder / JARS).symlink_to(cache_dir(lambda _: None) / JARS)
    return folder


async def mine(clone: Path, names: Sequence[str]) -> dict[str, Any]:
    """Return the refactorings of all commits, and the commits without an answer."""
    failed: dict[str, str] = {}

    async def detect(service: RefactoringService, git_dir: Path, name: str) -> Detection | None:
        try:
            return await service.detect_commit(git_dir, name, purity=False)
        except JavaError as error:
            failed[name] = str(error)
            return None

    with tempfile.TemporaryDirectory() as folder:
        git_dir, cache = await repository_folder(clone), _cache(Path(folder))
        async with refactoring_service(RefactoringMinerConfig(), cache) as service:
            found = await gather([partial(detect, service, git_dir, name) for name in names])
    detections = {each.commit: _plain(each) for each in found if each is not None}
    return {"detections": detections, "failed": failed}


async def hung_request(clone: Path, names: Sequence[str]) -> tuple[float, float]:
    """Return how long a request that hangs takes, and how long the next one, which needs a new JVM."""
    with tempfile.TemporaryDirectory() as folder:
        git_dir, cache = await repository_folder(clone), _cache(Path(folder))
        hanging = cache / "hanging"
        git(cache, "clone", "--quiet", "--bare", "--shared", git_dir, hanging)
        os.mkfifo(hanging / "shallow")  # opening it waits for a writer
        async with refactoring_service(RefactoringMinerConfig(workers=1), cache) as service:
            await service.detect_commit(git_dir, names[0])
            started = time.perf_counter()
            with contextlib.suppress(JavaError):
                await replace(service, time_limit_s=_HUNG_S).detect_commit(hanging, names[1])
            hung_s = time.perf_counter() - started
            await service.detect_commit(git_dir, names[1])
            return hung_s, time.perf_counter() - started - hung_s


def _plain(detection: Detection) -> list[Any]:
    def places(ranges: Sequence[CodeRange]) -> list[Any]:
        return [[each.path, each.start_line, each.end_line, each.code_element] for each in ranges]

    return [
        [each.type, each.description, places(each.left), places(each.right)]
        for each in detection.refactorings
    ]


def peer_detections(path: Path) -> dict[str, list[Any]]:
    """Return the detections in the file of RefactoringMiner's command line."""

    def places(ranges: Sequence[dict[str, Any]]) -> list[Any]:
        return [[each[key] for key in ("filePath", "startLine", "endLine", "codeElement")] for each in ranges]

    return {
        commit["sha1"]: [
            [each["type"], each["description"], *(places(each[f"{side}SideLocations"]) for side in _SIDES)]
            for each in commit["refactorings"]
        ]
        for commit in json.loads(path.read_text("utf-8"))["commits"]
    }


_SIDES = ("left", "right")


def main() -> int:
    parser = arguments(__doc__, 1)
    parser.add_argument("--commits", type=int, default=500, help="commits that are mined (default 500)")
    parser.add_argument("--clone", type=Path, help="a clone that is mined; without it, one is made")
    parser.add_argument("--work", action="store_true", help="print the detections of one round as JSON")
    chosen = parser.parse_args()
    if chosen.work:
        print(json.dumps(anyio.run(mine, chosen.clone, newest(chosen.clone, chosen.commits)[2])))
        return 0
    with tempfile.TemporaryDirectory() as folder:
        clone = (chosen.clone or Path(folder, "shop")).absolute()
        if chosen.clone is None:
            make_history(clone, chosen.commits + 1)
        start, end, names = newest(clone, chosen.commits)
        program = anyio.run(refactoring_miner, RefactoringMinerConfig(), cache_dir(lambda _: None))
        jars, output = os.pathsep.join(map(str, program.class_path)), Path(folder, "peer.json")
        java = [program.jdk.java, "-cp", jars, "org.refactoringminer.RefactoringMiner"]

        def peer() -> Use:
            return measured([*java, "-bc", clone, start, end, "-json", output], cwd=Path(folder))

        ours = partial(
            measured,
            [sys.executable, __file__, "--work", "--clone", clone, "--commits", str(chosen.commits)],
        )
        uses = interleaved({"ours": ours, "peer": peer}, chosen.rounds)
        hung_s, next_s = anyio.run(hung_request, clone, names)
        figures, theirs = [json.loads(use.output) for use in uses["ours"]], peer_detections(output)
    ours_found = figures[-1]["detections"]
    differing = [name for name in names if ours_found.get(name) != theirs.get(name)]
    about = (
        machine()
        | versions(sys.executable, "codetaste")
        | {"commits": len(names), "jdk": program.jdk.version}
    )
    report = Report(f"mining {chosen.clone or 'a made clone'} beside RefactoringMiner's command line", about)
    walls = {name: [use.wall_s for use in each] for name, each in uses.items()}
    report.add("commits a minute, service", [len(names) * 60 / each for each in walls["ours"]], "")
    report.add("commits a minute, command line", [len(names) * 60 / each for each in walls["peer"]], "")
    report.add("ratio of them", ratio(walls["peer"], walls["ours"]), "", least=LEAST_RATIO)
    for name, each in uses.items():
        report.add(f"CPU, {name}", [use.cpu_s for use in each], " s")
        report.add(f"peak memory of a process, {name}", [use.rss / 1e6 for use in each], " MB")
    report.add("refactorings", [sum(map(len, ours_found.values()))], "")
    report.add("commits with other detections", [len(differing)], "", most=0)
    report.add("commits without an answer", [len(figures[-1]["failed"])], "")
    report.add(f"a hung request with a limit of {_HUNG_S:g} s, wall", [hung_s], " s")
    report.add("the next one, which starts a JVM, wall", [next_s], " s")
    for name in differing[:5]:
        print(f"differs: {name}", file=sys.stderr)
    return report.end(as_json=chosen.json)


if __name__ == "__main__":
    sys.exit(main())
