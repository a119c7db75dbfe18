"""CPU time of scoring a prediction with cached answers for R, beside the published way.

The published way scans the patched tree twice with the stock opengrep, once for each rule file. Ours is
``codetaste evaluate`` from its start to its end: the patch is applied, what it changed is scanned, every file
of the published layout is written. The prediction is a part of the golden patch that touches 50 files.
A time counts only if its SARIF results equal those of the stock engine, in the same order. ::

    python perf/score.py --benchmark codetaste100 --repos clones

gqlgen has 856 files, so ``--more`` duplicates some of them, until the tree has over a thousand.
"""

from __future__ import annotations

import csv
import json
import re
import shlex
import shutil
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from measure import Report, Use, arguments, interleaved, measured, ratio, versions
from repositories import git
from scans import FLAGS, SIGNS, stock

FILES = 50
PREDICTIONS = 3
"""Different predictions that one process scores."""
LEAST = {"R cached": 20.0, "all cached": None}
LEAST_IN_A_RUN = 20.0
ROW = ("owner", "repo", "commit_hash", "golden_commit_hash", "combined_score", "category", "language")


@dataclass(frozen=True, slots=True)
class Task:
    """A prepared instance.

    Attributes:
        name: for the report.
        instance: the instance id.
        options: of our commands, for the benchmark and the clones.
        rules: both rule files.
        predictions: patches.
        patched: for each prediction, a work tree with R and the patch, for the stock engine.
    """

    name: str
    instance: str
    options: tuple[str, ...]
    rules: tuple[Path, ...]
    predictions: tuple[Path, ...]
    patched: tuple[Path, ...]


def prepare(row: dict[str, str], benchmark: Path, repos: Path, place: Path, more: int) -> Task:
    """Make a benchmark of one instance, whose R has ``more`` duplicated files, and predictions for it."""
    name, old = f"{row['owner']}/{row['repo']}", row["commit_hash"]
    clone = place / "repos" / name
    clone.parent.mkdir(parents=True)
    git(place, "clone", "-q", "--shared", "--no-checkout", repos / name, clone)
    git(clone, "checkout", "-q", old)
    patch = git(
        clone, "-c", "core.quotePath=false", "diff", "--full-index", "-M", old, row["golden_commit_hash"]
    )
    files = git(clone, "ls-files").decode().splitlines()
    for file in [each for each in files if each.endswith(".go")][:more]:
        copy = clone / "twice" / file
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(clone / file, copy)
    if more:
        git(clone, "add", "-A")
        git(clone, "-c", "user.name=perf", "-c", "user.email=perf@localhost", "commit", "-qm", "more files")
    new = git(clone, "rev-parse", "HEAD").decode().strip()
    folder = place / "benchmark"
    rules = folder / "assets/rules" / name / new[:8]
    shutil.copytree(benchmark / "assets/rules" / name / old[:8], rules)
    shutil.copy(benchmark / "assets/default.semgrepignore", folder / "assets")
    table = [{**row, "commit_hash": new}]
    with (folder / "instances.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, ROW, extrasaction="ignore")
        writer.writeheader()
        writer.writerows(table)
    predictions = tuple(_parts(patch, place))
    count = len(git(clone, "ls-files").splitlines())
    number = sum(text.read_text().count("nr_legacy_patterns") for text in rules.iterdir())
    return Task(
        f"{row['repo']}, {count:,} files, {number} rules, {FILES} changed",
        f"{row['owner']}__{row['repo']}-{new[:8]}".lower(),
        ("--benchmark", str(folder), "--repos", str(place / "repos")),
        tuple(rules / f"rules_{sign}.yml" for sign in SIGNS),
        predictions,
        tuple(_patched(clone, new, each, benchmark) for each in predictions),
    )


def _parts(patch: bytes, place: Path) -> list[Path]:
    """Write patches of ``FILES`` files each, spread over ``patch``; they overlap, and no two are the same."""
    files = re.split(rb"(?m)^(?=diff --git )", patch)[1:]
    found = []
    for number in range(PREDICTIONS):
        chosen = sorted({(at * len(files) // FILES + number) % len(files) for at in range(FILES)})
        found.append(place / f"prediction-{number}.diff")
        found[-1].write_bytes(b"".join(files[at] for at in chosen))
    return found


def _patched(clone: Path, commit: str, patch: Path, benchmark: Path) -> Path:
    """Make a work tree of R and the patch, as the published harness scans it."""
    tree = patch.with_suffix(".tree")
    git(clone, "worktree", "add", "-q", "--detach", tree, commit)
    git(tree, "apply", "--index", patch)
    shutil.copy(benchmark / "assets/default.semgrepignore", tree / ".semgrepignore")
    return tree


def results(sarif: bytes) -> list[tuple[Any, ...]]:
    """Return the results of a SARIF file, in its order."""
    found = []
    for result in json.loads(sarif)["runs"][0]["results"]:
        place = result["locations"][0]["physicalLocation"]
        region = place["region"]
        ends = (region[key] for key in ("startLine", "startColumn", "endLine", "endColumn"))
        found.append((result["ruleId"].rpartition(".")[2], unquote(place["artifactLocation"]["uri"]), *ends))
    return found


class Sides:
    """All ways of scoring; all must find what the first one finds."""

    def __init__(self, task: Task, place: Path) -> None:
        self._task, self._place = task, place
        self._cache, self._out, self._saved = place / "cache", place / "out", place / "saved"
        self._found: dict[tuple[int, str], list[tuple[Any, ...]]] = {}
        self._program = Path(sys.executable).parent / "codetaste"
        home = {"XDG_CACHE_HOME": str(self._cache), "HOME": str(place)}
        self._env = home

    def scan_base(self) -> None:
        """Scan R, as for the first prediction of an instance, and save the cache."""
        measured([self._program, "evaluate", *self._options("null")], env=self._env, codes=(0, 1))
        shutil.copytree(self._cache / "codetaste" / "matches", self._saved)

    def restore_cache(self) -> None:
        """Restore the cache that has only R's answers."""
        shutil.rmtree(self._cache / "codetaste" / "matches")
        shutil.copytree(self._saved, self._cache / "codetaste" / "matches")

    def score_one(self, *, cached: bool) -> Use:
        """Score one prediction with our command."""
        if not cached:
            self.restore_cache()
        shutil.rmtree(self._out, ignore_errors=True)
        words = [*self._options(str(self._task.predictions[0])), "--out", str(self._out)]
        use = measured([self._program, "evaluate", *words], env=self._env)
        self._check(0, self._out)
        return use

    def score_all(self) -> Use:
        """Score all predictions in one process, one after the other."""
        self.restore_cache()
        shutil.rmtree(self._out, ignore_errors=True)
        task = {"options": self._task.options, "instance": self._task.instance, "out": str(self._out)}
        task |= {"patches": [str(each) for each in self._task.predictions]}
        script = Path(__file__).with_name("many_scores.py")
        use = measured([sys.executable, script, json.dumps(task)], env=self._env)
        for number in range(len(self._task.predictions)):
            self._check(number, self._out / str(number))
        return use

    def scan_with_stock(self, number: int = 0) -> Use:
        """Scan a patched tree twice with the stock engine."""
        out, tree = self._place / "stock", self._task.patched[number]
        out.mkdir(exist_ok=True)
        lines = [
            f"{shlex.quote(str(stock()))} scan {shlex.join(FLAGS)} --config {shlex.quote(str(rules))} . "
            f"> {shlex.quote(str(out / rules.stem))}.sarif"
            for rules in self._task.rules
        ]
        use = measured(["sh", "-ec", "\n".join(lines)], cwd=tree)
        self._check(number, out)
        return use

    def _options(self, patch: str) -> list[str]:
        return [*self._task.options, "--instance", self._task.instance, "--patch", patch]

    def _check(self, number: int, folder: Path) -> None:
        for sign in SIGNS:
            found = results((folder / f"rules_{sign}.sarif").read_bytes())
            if found != self._found.setdefault((number, sign), found):
                first = self._found[number, sign]
                odd = sorted(set(first) ^ set(found))[:5]
                sys.exit(
                    f"{folder}: rules_{sign}.sarif differs: {len(first)} and {len(found)} results, {odd}"
                )

    @property
    def matches(self) -> int:
        """The number of results of the first prediction."""
        return sum(len(found) for (number, _), found in self._found.items() if number == 0)


def score(task: Task, place: Path, rounds: int, report: Report, *, bound: bool) -> None:
    """Add the figures of one instance; ``bound``: the targets apply to it."""
    sides = Sides(task, place)
    sides.scan_base()
    uses = interleaved(
        {
            "R cached": lambda: sides.score_one(cached=False),
            "all cached": lambda: sides.score_one(cached=True),
            "in a run": sides.score_all,
            "stock": sides.scan_with_stock,
        },
        rounds,
    )
    for number in range(1, len(task.predictions)):
        sides.scan_with_stock(number)  # only to compare the results
    name = f"{task.name}, {sides.matches} results"
    stock_s = [use.cpu_s for use in uses["stock"]]
    report.add(f"{name}: two scans by stock, CPU", stock_s, " s")
    for side in ("R cached", "all cached"):
        cpu_s = [use.cpu_s for use in uses[side]]
        report.add(f"{name}: {side}, CPU", cpu_s, " s")
        report.add(f"{name}: {side}, wall", [use.wall_s for use in uses[side]], " s")
        least = LEAST[side] if bound else None
        report.add(f"{name}: stock / {side}", ratio(stock_s, cpu_s), " ×", least=least)
    each_s = [json.loads(use.output)["cpu_s"] / len(task.predictions) for use in uses["in a run"]]
    report.add(f"{name}: one of {PREDICTIONS} in a process, CPU", each_s, " s")
    least = LEAST_IN_A_RUN if bound else None
    report.add(f"{name}: stock / one of {PREDICTIONS}", ratio(stock_s, each_s), " ×", least=least)


def main() -> int:
    parser = arguments(__doc__, 3)
    parser.add_argument("--benchmark", type=Path, required=True, help="a folder in the published layout")
    parser.add_argument("--repos", type=Path, required=True, help="clones OWNER/REPO")
    parser.add_argument("--only", nargs="*", default=["gqlgen"], help="repositories, such as aws-cli")
    parser.add_argument("--more", type=int, default=200, help="number of gqlgen's files to duplicate")
    chosen = parser.parse_args()
    report = Report("scoring a prediction")
    report.about |= {"opengrep": versions(sys.executable, "tackbox-opengrep")["tackbox-opengrep"]}
    benchmark, repos = chosen.benchmark.absolute(), chosen.repos.absolute()
    for row in csv.DictReader((benchmark / "instances.csv").read_text().splitlines()):
        if row["repo"] in chosen.only:
            with tempfile.TemporaryDirectory() as scratch:
                more = chosen.more if row["repo"] == "gqlgen" else 0
                task = prepare(row, benchmark, repos, Path(scratch), more)
                score(task, Path(scratch), chosen.rounds, report, bound=row["repo"] == "gqlgen")
    return report.end(as_json=chosen.json)


if __name__ == "__main__":
    sys.exit(main())
