"""Incremental scans of the published instances, compared with full scans and the stock engine."""

from __future__ import annotations

import csv
import json
import shutil
import subprocess
from collections import Counter
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import unquote

import anyio
import pytest

from codetaste.rules.cache.keys import engine_cache_name
from codetaste.rules.cache.scanner import IncrementalScanner
from codetaste.rules.cache.store import MatchStore
from codetaste.rules.engine.install import RuleEngine
from codetaste.rules.engine.opengrep import OpenGrep
from codetaste.rules.rule import Rule, parse_rules
from codetaste.rules.scan.full import FullScanner
from codetaste.rules.scan.model import ScanResult
from support.rules.scan_cases import git

Found = Counter[tuple[str, str, int, int]]
SIGNS = ("positive", "negative")


def stock(rules: Path, work: Path) -> Found:
    """Return the matches of the wheel's engine, called as published."""
    spec = find_spec("tackbox_opengrep")
    if spec is None or not spec.submodule_search_locations:
        pytest.skip("the wheel tackbox-opengrep is not installed")
    program = Path(next(iter(spec.submodule_search_locations))) / "bin" / "opengrep"
    flags = ["--timeout-threshold", "0", "--timeout", "0", "--max-memory", "0", "--sarif", "--quiet"]
    done = subprocess.run(
        [program, "scan", *flags, "--config", rules, "."], cwd=work, capture_output=True, check=True
    )
    found: Found = Counter()
    for result in json.loads(done.stdout)["runs"][0]["results"]:
        place = result["locations"][0]["physicalLocation"]
        lines = place["region"]["startLine"], place["region"]["endLine"]
        found[(result["ruleId"].rpartition(".")[2], unquote(place["artifactLocation"]["uri"]), *lines)] += 1
    return found


def check_out(clone: Path, commit: str, work: Path, ignore: Path) -> Path:
    work.parent.mkdir(parents=True, exist_ok=True)
    git(work.parent, "clone", "-q", "--shared", "--no-checkout", str(clone), work.name)
    git(work, "checkout", "-q", commit)
    shutil.copy(ignore, work / ".semgrepignore")
    return work


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("repo", ["koajs/koa", "99designs/gqlgen", "aws/aws-cli"])
def test_incremental_scans_of_both_trees_equal_full_and_stock_scans(
    engine: RuleEngine, published_data: Path, clones: Path, tmp_path: Path, repo: str
) -> None:
    rows = csv.DictReader((published_data / "instances.csv").read_text().splitlines())
    row = next(row for row in rows if f"{row['owner']}/{row['repo']}" == repo)
    assets = published_data / "assets"
    files = [assets / "rules" / repo / row["commit_hash"][:8] / f"rules_{sign}.yml" for sign in SIGNS]
    ignore = assets / "default.semgrepignore"
    named = [(file, each) for file in files for each in parse_rules(file.read_bytes(), source=file.name)]
    rules = [Rule(f"r{number}", each.languages, each.body) for number, (_, each) in enumerate(named)]
    grep = OpenGrep(engine)

    def incremental() -> IncrementalScanner:
        return IncrementalScanner(
            grep, MatchStore(tmp_path / "cache", engine_cache_name(engine)), ignore.read_text()
        )

    async def compare(work: Path) -> ScanResult:
        expected = await FullScanner(grep, ignore.read_text()).scan(rules, work)
        assert await incremental().scan(rules, work) == expected
        assert await incremental().scan(rules, work) == expected
        third = await FullScanner(grep, ignore.read_text()).scan(rules[::3], work)
        assert await incremental().scan(rules[::3], work) == third
        return expected

    for side in ("commit_hash", "golden_commit_hash"):
        work = check_out(clones / repo, row[side], tmp_path / side, ignore)
        scan = anyio.run(compare, work)
        for file in files:
            found: Found = Counter()
            for number, (source, each) in enumerate(named):
                for match in scan.by_rule.get(f"r{number}", []) if source == file else []:
                    found[each.id, match.path, match.start_line, match.end_line] += 1
            assert found == stock(file, work)
