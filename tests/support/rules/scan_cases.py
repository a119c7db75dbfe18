"""Rules, trees and scans for tests."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

import anyio

from codetaste.rules.engine.install import RuleEngine
from codetaste.rules.engine.opengrep import OpenGrep, RuleEngineLimits
from codetaste.rules.rule import Rule, make_rule
from codetaste.rules.scan.full import FullScanner
from codetaste.rules.scan.model import ScanResult

MakeTree = Callable[[Mapping[str, str | bytes]], Path]


def rule(name: str, *, languages: tuple[str, ...] = ("python",), **body: object) -> Rule:
    """Return a rule; underscores in ``body``'s keys become hyphens."""
    keys = {key.replace("_", "-"): value for key, value in body.items()}
    return make_rule({"id": name, "message": "m", "severity": "INFO", "languages": list(languages), **keys})


def scan(
    engine: RuleEngine,
    rules: list[Rule],
    tree: Path,
    *,
    ignore: str = "",
    limits: RuleEngineLimits | None = None,
) -> ScanResult:
    """Scan a tree in a synchronous test."""

    async def main() -> ScanResult:
        return await FullScanner(OpenGrep(engine, limits=limits), ignore).scan(rules, tree)

    return anyio.run(main)


def git(tree: Path, *words: str) -> None:
    """Run git in a tree."""
    config = ["-c", "user.name=n", "-c", "user.email=e@example.org"]
    subprocess.run(["git", *config, *words], cwd=tree, check=True, capture_output=True)
