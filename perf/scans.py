"""CPU time of our scans with cached answers for R, beside full scans by the stock opengrep as published.

For each instance: the golden patch against the published rules (nothing cached, R cached, all cached), and a
new candidate rule in both trees. Each side is a separate process, from its start to its end; a further figure
is our scan within a running process. A time counts only if all matches are equal. ::

    python perf/scans.py --benchmark codetaste100 --repos clones
"""

from __future__ import annotations

import csv
import json
import shlex
import shutil
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

from measure import Report, Use, add_comparison, arguments, interleaved, measured, ratio, versions
from repositories import git

from codetaste.rules.rule import parse_rules

if TYPE_CHECKING:
    from collections.abc import Sequence

FLAGS = ("--timeout-threshold", "0", "--timeout", "0", "--max-memory", "0", "--sarif", "--quiet")
LEAST_SCAN = {"nothing cached": None, "R cached": 20.0, "all cached": None}
LEAST_CANDIDATE = 5.0  # within a process: `register` is called in a running run
SIGNS = ("positive", "negative")


@dataclass(frozen=True, slots=True)
class Task:
    """An instance: rule files, and R and R∘X* as plain folders for us and as work trees for the peer."""

    name: str
    rules: tuple[Path, ...]
    ignore: Path
    trees: tuple[Path, ...]
    work_trees: tuple[Path, ...]


def prepare(row: dict[str, str], benchmark: Path, repos: Path, place: Path) -> Task:
    """Check out both commits twice with git."""
    name = f"{row['owner']}/{row['repo']}"
    assets = benchmark / "assets"
    rules = tuple(assets / "rules" / name / row["commit_hash"][:8] / f"rules_{sign}.yml" for sign in SIGNS)
    checkouts: list[tuple[Path, Path]] = []
    for side in ("commit_hash", "golden_commit_hash"):
        work, tree = place / row["repo"] / f"work-{side}", place / row["repo"] / f"tree-{side}"
        git(place, "clone", "-q", "--shared", "--no-checkout", repos / name, work)
        git(work, "checkout", "-q", row[side])
        shutil.copytree(work, tree, symlinks=True, ignore=shutil.ignore_patterns(".git"))
        shutil.copy(assets / "default.semgrepignore", work / ".semgrepignore")
        checkouts.append((tree, work))
    trees, works = zip(*checkouts, strict=True)
    return Task(row["repo"], rules, assets / "default.semgrepignore", trees, works)


def stock() -> Path:
    """Return the program that the wheel installs."""
    spec = find_spec("tackbox_opengrep")
    assert spec is not None
    return Path(next(iter(spec.submodule_search_locations or ()))) / "bin" / "opengrep"


def peer(scans: Sequence[tuple[Path, Path]], out: Path) -> tuple[Use, Counter[str]]:
    """Scan work trees with rule files as published, one after the other; return the use and all results."""
    lines = [
        f"cd {shlex.quote(str(tree))} && {shlex.quote(str(stock()))} scan {shlex.join(FLAGS)} "
        f"--config {shlex.quote(str(rules))} . > {shlex.quote(str(out))}.{number}"
        for number, (rules, tree) in enumerate(scans)
    ]
    use = measured(["sh", "-ec", "\n".join(lines)])
    found: Counter[str] = Counter()
    for number, (rules, tree) in enumerate(scans):
        sarif = json.loads(Path(f"{out}.{number}").read_text("utf-8", "surrogateescape"))
        for result in sarif["runs"][0]["results"]:
            place = result["locations"][0]["physicalLocation"]
            region = place["region"]
            path = unquote(place["artifactLocation"]["uri"])
            rule = result["ruleId"].rpartition(".")[2]
            found[
                f"{tree.name[5:]} {rules.stem} {rule} {path} {region['startLine']}-{region['endLine']}"
            ] += 1
    return use, found


def ours(scans: Sequence[tuple[Sequence[Path], Path]], ignore: Path, cache: Path) -> tuple[Use, Counter[str]]:
    """Scan trees with all rules of some files in one process; its ``output`` has the CPU time of the scan."""
    task = {"scans": [[list(map(str, rules)), str(tree)] for rules, tree in scans]}
    task |= {"ignore": str(ignore), "cache": str(cache)}
    use = measured([sys.executable, Path(__file__).with_name("one_scan.py"), json.dumps(task)])
    return use, Counter(json.loads(use.output)["found"])


def check_equal(one: Counter[str], other: Counter[str]) -> None:
    if one != other:
        sys.exit(f"the results differ: {(one - other) + (other - one)}"[:2000])


def against_stock(
    report: Report,
    name: str,
    our: Sequence[Use],
    theirs: Sequence[Use],
    least: float | None = None,
    *,
    least_inside: float | None = None,
) -> None:
    """Add our CPU time, as a process and within one, and the ratio of the peer's to ours."""
    inside = [json.loads(use.output)["cpu_s"] for use in our]
    stock_s = [use.cpu_s for use in theirs]
    report.add(f"{name}: CPU", [use.cpu_s for use in our], " s")
    report.add(f"{name}: CPU within a process", inside, " s")
    report.add(f"{name}: stock / ours", ratio(stock_s, [use.cpu_s for use in our]), " ×", least=least)
    report.add(f"{name}: stock / ours within a process", ratio(stock_s, inside), " ×", least=least_inside)


def golden_patch(task: Task, place: Path, rounds: int, report: Report) -> None:
    """Measure the golden patch with all published rules."""
    base, golden = task.trees
    with_base, cache = place / "with-base", place / "cache"
    ours([(task.rules, base)], task.ignore, with_base)
    results: dict[str, Counter[str]] = {}

    def run(start: Path | None) -> Use:
        if start is not None:
            shutil.rmtree(cache, ignore_errors=True)
            shutil.copytree(start, cache) if start.exists() else None
        use, results["ours"] = ours([(task.rules, golden)], task.ignore, cache)
        check_equal(results["ours"], results.setdefault("first", results["ours"]))
        return use

    def run_peer() -> Use:
        use, found = peer([(rules, task.work_trees[1]) for rules in task.rules], place / "sarif")
        check_equal(results["ours"], found)
        return use

    sides = {
        "nothing cached": lambda: run(place / "none"),
        "R cached": lambda: run(with_base),
        "all cached": lambda: run(None),
        "stock": run_peer,
    }
    uses = interleaved(sides, rounds)
    name = f"{task.name}: golden patch, {sum(results['first'].values())} matches"
    report.add(f"{name}: stock, CPU", [use.cpu_s for use in uses["stock"]], " s")
    for each in ("nothing cached", "R cached", "all cached"):
        against_stock(report, f"{name}, {each}", uses[each], uses["stock"], LEAST_SCAN[each])


def candidate(task: Task, place: Path, rounds: int, report: Report) -> None:
    """Measure a new rule on R and R∘X*, another published one in each round."""
    every = [rule.body for file in task.rules for rule in parse_rules(file.read_bytes(), source=file.name)]
    chosen = [every[(2 * number + 1) * len(every) // (2 * rounds)] for number in range(rounds)]
    found: dict[int, Counter[str]] = {}

    def rule_file(number: int) -> Path:
        path = place / "candidate.yml"
        path.write_text(json.dumps({"rules": [chosen[number]]}))
        return path

    def check(number: int, use: Use, results: Counter[str]) -> Use:
        check_equal(results, found.setdefault(number, results))
        return use

    turns = {side: iter([*range(rounds)]) for side in ("ours", "stock")}

    def run() -> Use:
        number = next(turns["ours"])
        rules, cache = rule_file(number), place / "candidates"
        shutil.rmtree(cache, ignore_errors=True)
        return check(number, *ours([([rules], tree) for tree in task.trees], task.ignore, cache))

    def run_peer() -> Use:
        number = next(turns["stock"])
        rules = rule_file(number)
        return check(number, *peer([(rules, tree) for tree in task.work_trees], place / "sarif"))

    uses = interleaved({"ours": run, "stock": run_peer}, rounds)
    name = f"{task.name}: a new candidate"
    report.add(f"{name}: stock, CPU", [use.cpu_s for use in uses["stock"]], " s")
    against_stock(report, name, uses["ours"], uses["stock"], least_inside=LEAST_CANDIDATE)


def rules_check(benchmark: Path, repos: Path, rounds: int, report: Report) -> None:
    """Measure ``codetaste rules check`` of all instances with clones, without and with cached answers."""
    with tempfile.TemporaryDirectory() as cache:
        place = {"XDG_CACHE_HOME": cache, "HOME": cache}
        command = [
            Path(sys.executable).parent / "codetaste",
            "rules",
            "check",
            "--benchmark",
            benchmark,
            "--repos",
            repos,
        ]
        run = partial(measured, command, env=place, codes=(0, 1))
        run()  # so that trees and engine exist in both cases

        def cold() -> Use:
            shutil.rmtree(Path(cache, "codetaste", "matches"))
            return run()

        uses = interleaved({"all cached": run, "nothing cached": cold}, rounds)
        add_comparison(report, "rules check", uses)


def main() -> int:
    parser = arguments(__doc__, 3)
    parser.add_argument("--benchmark", type=Path, required=True, help="a folder in the published layout")
    parser.add_argument("--repos", type=Path, required=True, help="clones OWNER/REPO")
    parser.add_argument("--only", nargs="*", default=["gqlgen", "aws-cli"], help="repositories")
    parser.add_argument("--parts", nargs="*", default=["golden", "candidate", "check"])
    chosen = parser.parse_args()
    report = Report("incremental scans")
    report.about |= {"opengrep": versions(sys.executable, "tackbox-opengrep")["tackbox-opengrep"]}
    benchmark, repos = chosen.benchmark.absolute(), chosen.repos.absolute()
    rows = csv.DictReader((benchmark / "instances.csv").read_text().splitlines())
    for row in [row for row in rows if row["repo"] in chosen.only]:
        with tempfile.TemporaryDirectory() as scratch:
            place = Path(scratch)
            task = prepare(row, benchmark, repos, place)
            if "golden" in chosen.parts:
                golden_patch(task, place, chosen.rounds, report)
            if "candidate" in chosen.parts:
                candidate(task, place, chosen.rounds, report)
    if "check" in chosen.parts:
        rules_check(benchmark, repos, chosen.rounds, report)
    return report.end(as_json=chosen.json)


if __name__ == "__main__":
    sys.exit(main())
