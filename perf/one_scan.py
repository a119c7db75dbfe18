"""Scan trees with rule files as a job of a run does; print the matches and the CPU time as JSON.

For ``scans.py``. The argument is JSON: ``scans`` (pairs of rule files and a tree), ``ignore`` (a file) and
``cache`` (a folder).
"""

from __future__ import annotations

import json
import resource
import sys
from functools import partial
from pathlib import Path
from typing import Any

import anyio

from codetaste.core.concurrency import gather
from codetaste.rules.config import RulesConfig
from codetaste.rules.rule import Rule, parse_rules
from codetaste.run.services import open_scanner


def read(files: list[str]) -> list[tuple[str, Rule]]:
    return [
        (f"{Path(file).stem} {rule.id}", rule)
        for file in files
        for rule in parse_rules(Path(file).read_bytes(), source=file)
    ]


async def scan(task: dict[str, Any], ignore: str) -> dict[str, Any]:
    scanner, _ = await open_scanner(RulesConfig(cache=Path(task["cache"])), ignore, sys.exit)
    before_s = used_s()
    names, calls = [], []
    for files, tree in task["scans"]:
        named = read(files)
        rules = [Rule(f"r{number}", rule.languages, rule.body) for number, (_, rule) in enumerate(named)]
        names.append((Path(tree).name[5:], {f"r{number}": name for number, (name, _) in enumerate(named)}))
        calls.append(partial(scanner.scan, rules, Path(tree)))
    found = [
        f"{side} {ids[match.rule_id]} {match.path} {match.start_line}-{match.end_line}"
        for (side, ids), scan in zip(names, await gather(calls), strict=True)
        for match in scan.matches
    ]
    return {"cpu_s": used_s() - before_s, "found": found}


def used_s() -> float:
    each = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(use.ru_utime + use.ru_stime for use in each)


if __name__ == "__main__":
    task = json.loads(sys.argv[1])
    print(json.dumps(anyio.run(scan, task, Path(task["ignore"]).read_text())))
