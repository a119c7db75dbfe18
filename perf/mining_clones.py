"""Wall time and memory of stages 1 and 2 over 10,000 commits of a clone, and of explaining one commit.

The clone is made up: 600 files, merges, renames; one commit in fifty changes 50 to 300 files, and says that
it refactors. Or it is one that exists; then its newest 10,000 commits are read. ::

    python perf/mining_clones.py [--commits 10000] [--clone PATH]
"""

from __future__ import annotations

import json
import random
import sys
import tempfile
import time
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
from anyio import to_thread
from measure import Report, arguments, machine, measured, versions
from repositories import import_history

from codetaste.mining.clones.clone import open_clone
from codetaste.mining.clones.commits import read_commits
from codetaste.mining.clones.diffs import find_diffs
from codetaste.mining.clones.explain import Population, explain_commit
from codetaste.mining.clones.resolve import CommitPlaces
from codetaste.mining.commit import CommitRecord
from codetaste.mining.duplicates import find_duplicates
from codetaste.mining.keywords.count import count_keywords, keyword_results
from codetaste.mining.keywords.sets import load_keyword_sets
from codetaste.mining.prefilter.prefilter import prefilter
from codetaste.mining.ranking.config import RankingConfig
from codetaste.mining.ranking.result import size_results

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from codetaste.mining.filter_result import FilterResult

MAX_S = 60.0
MAX_EXPLAIN_S = 1.0
_FILES, _LINES = 600, 120
_NAME = "made/shop"
_WORDS = ("total", "order", "price", "cart", "stock", "user", "count", "index", "value", "result")


def make_history(folder: Path, commits: int) -> None:
    """Make a bare clone with so many commits."""
    import_history(folder, b"".join(_stream(commits)))


def _stream(commits: int) -> Iterator[bytes]:
    chance = random.Random(15)
    files = {f"pack{n % 20}/module{n}.py": [_line(chance) for _ in range(_LINES)] for n in range(_FILES)}
    for number in range(commits + 1):
        large = number % 50 == 49
        message = "refactor: Restructure and deduplicate modules" if large else f"change {number}"
        head = b"commit refs/heads/made\nmark :%d\ncommitter A <a@b> %d +0000\ndata %d\n%s\n"
        yield head % (number + 1, 1_600_000_000 + number * 600, len(message), message.encode())
        if number > 10 and number % 10 == 0:
            yield b"merge :%d\n" % (number - 3)
        changed = chance.sample(sorted(files), chance.randint(50, 300) if large else chance.randint(1, 5))
        for path in sorted(files) if number == 0 else changed:
            lines = files.pop(path)
            place = chance.randrange(len(lines))
            lines[place : place + chance.randint(0, 6)] = [_line(chance) for _ in range(chance.randint(0, 6))]
            lines = lines or [_line(chance)]
            if number and chance.random() < 0.03:
                yield f"D {path}\n".encode()
                path = f"pack{chance.randrange(20)}/module{number}x{len(files)}.py"  # noqa: PLW2901 - moved
            files[path] = lines
            content = "".join(lines).encode()
            yield f"M 100644 inline {path}\ndata {len(content)}\n".encode() + content + b"\n"
        yield b"\n"


def _line(chance: random.Random) -> str:
    target, call = chance.choice(_WORDS), chance.choice(_WORDS)
    return f"    {target}{chance.randrange(99)} = {call}({chance.randrange(999)})\n"


def _stage_1(record: CommitRecord) -> Sequence[FilterResult]:
    counts = count_keywords(record.text, load_keyword_sets())
    return [*size_results(record, RankingConfig()), *keyword_results(counts)]


def _link(path: Path, link: Path) -> None:
    link.parent.mkdir()
    link.symlink_to(path)


async def mine(path: Path, commits: int) -> dict[str, Any]:
    """Take the newest commits of a clone through both stages; return times in seconds, and counts."""
    started = time.perf_counter()
    clone = await open_clone(path, _NAME)
    problems = 0

    def report(_: object) -> None:
        nonlocal problems
        problems += 1

    def read() -> tuple[int, list[CommitRecord]]:
        records = list(islice(read_commits(clone, report, lines=False), commits))
        return len(records), [each for each in records if all(result.passed for result in _stage_1(each))]

    with tempfile.TemporaryDirectory() as folder:
        places = CommitPlaces(Path(folder))
        await to_thread.run_sync(_link, path, Path(folder, _NAME))
        count, ranked = await to_thread.run_sync(read)
        read_s = time.perf_counter() - started
        found = prefilter(await find_diffs(ranked, places))
        unique = find_duplicates(found.selected).unique
        all_s = time.perf_counter() - started
        started = time.perf_counter()
        if unique:
            record = CommitRecord(_NAME, unique[0].golden)
            population = Population(found.bounds, found.lowest_ratio)
            results = await explain_commit(record, places, _stage_1, None, population)
            assert all(result.passed for result in results), results
        explain_s = time.perf_counter() - started
    counts = {"commits": count, "stage 1": len(ranked), "stage 2": len(found.selected), "unique": len(unique)}
    return {"read_s": read_s, "all_s": all_s, "explain_s": explain_s, "problems": problems, "counts": counts}


def main() -> int:
    parser = arguments(__doc__, 3)
    parser.add_argument("--commits", type=int, default=10_000, help="commits that are read (default 10,000)")
    parser.add_argument("--clone", type=Path, help="a clone that is read; without it, one is made")
    parser.add_argument("--work", action="store_true", help="print the figures of one round as JSON")
    chosen = parser.parse_args()
    if chosen.work:
        print(json.dumps(anyio.run(mine, chosen.clone.absolute(), chosen.commits)))
        return 0
    with tempfile.TemporaryDirectory() as folder:
        clone = chosen.clone or Path(folder, "shop")
        if chosen.clone is None:
            make_history(clone, chosen.commits)
        options = ("--work", "--clone", clone.absolute(), "--commits", str(chosen.commits))
        command = [sys.executable, __file__, *options]
        uses = [measured(command) for _ in range(chosen.rounds)]
    figures = [json.loads(use.output) for use in uses]
    about = machine() | versions(sys.executable, "codetaste") | figures[0]["counts"]
    report = Report(f"mining the commits of {chosen.clone or 'a made clone'}", about)
    times = {name: [each[name] for each in figures] for name in ("all_s", "read_s", "explain_s")}
    report.add("stages 1 and 2, wall", times["all_s"], " s", most=MAX_S)
    report.add("of that reading the commits and stage 1", times["read_s"], " s")
    report.add("CPU with git", [use.cpu_s for use in uses], " s")
    report.add("peak memory", [use.rss / 1e6 for use in uses], " MB")
    report.add("explaining one commit, wall", times["explain_s"], " s", most=MAX_EXPLAIN_S)
    report.add("problems of commits", [each["problems"] for each in figures], "")
    return report.end(as_json=chosen.json)


if __name__ == "__main__":
    sys.exit(main())
