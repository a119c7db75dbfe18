"""A run's folder with products, made by hand: descriptions, rules by two models, an environment."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from support.environment.tested_benchmark import CHANGED, MODULES, write_scripts
from support.flows.discovery_models import NEW, OLD, rule, yaml
from support.flows.tiny_benchmark import Bench, Row

COUNTS = {"passed": 12, "failed": 0, "skipped": 1, "total": 13}
HEADER = "owner,repo,commit_hash,golden_commit_hash,combined_score,category,language\n"
OTHER_OLD = [rule("all-old", "fetch_old")]


@dataclass(frozen=True)
class ProductRun:
    """The run ``folder``, which read ``bench`` (of which only the repositories and the table are there)."""

    bench: Bench
    folder: Path

    def describe(self, *rows: Row, text: str = "Rename fetch_old.\n", category: str = "rename") -> None:
        root = self.folder / "describe"
        write_table(root, rows or self.bench.rows, category)
        for row in rows or self.bench.rows:
            for name in ("description.md", "open_description.md"):
                write(root / "assets/descriptions" / row.path / name, text)

    def discover(self, model: str = "m", reductive: list[dict[str, Any]] = OLD, ignore: str = "") -> None:
        root = self.folder / "discover" / model
        write_table(root, self.bench.rows)
        for row in self.bench.rows:
            folder = root / "assets/rules" / row.path
            write(folder / "rules_positive.yml", with_counts(NEW))
            write(folder / "rules_negative.yml", with_counts(reductive))
            write(root / "assets/descriptions" / row.path / "description.md", "As the run read it.\n")
        if ignore:
            write(root / "assets/default.semgrepignore", ignore)

    def prove(self, row: Row, *, proven: bool = True) -> Path:
        """Write an environment, and return its folder."""
        folder = self.folder / "environment/instance_images" / row.path
        write_scripts(folder / "scripts")
        write(folder / "instance_metadata.json", json.dumps(environment_metadata(row, proven=proven)))
        return folder

    def merge_products(self, root: Path) -> None:
        """Make the benchmark ``root`` of all products."""
        for name in ("discover/m", "describe", "environment"):
            if (self.folder / name).is_dir():
                shutil.copytree(self.folder / name, root, dirs_exist_ok=True)


def environment_metadata(row: Row, *, proven: bool = True) -> dict[str, Any]:
    """The published metadata of an environment."""
    return {
        "owner": "tiny",
        "repo": row.repo,
        "base_hash": row.base,
        "golden_hash": row.golden,
        "golden_metrics": COUNTS if proven else None,
        "base_metrics": COUNTS if proven else None,
        "runtime_image": f"localhost/benchmark/{row.id}__runtime",
        "has_execution_environment": proven,
        "reason_no_execution_environment": "" if proven else "too few tests",
    }


def with_counts(rules: list[dict[str, Any]]) -> str:
    return yaml(*({**each, "metadata": {"nr_refactored_patterns": 1}} for each in rules))


def write_table(root: Path, rows: list[Row] | tuple[Row, ...], category: str = "rename") -> None:
    lines = [f"tiny,{row.repo},{row.base},{row.golden},,{category},python\n" for row in rows]
    write(root / "instances.csv", HEADER + "".join(lines))


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def make_product_run(folder: Path, *repos: str) -> ProductRun:
    """Make a run with no products yet; each of ``repos`` is a repository with a row in its benchmark."""
    bench = Bench(folder / "made")
    for repo in repos or ("alpha",):
        row = bench.add(repo, MODULES, CHANGED)
        for path in (bench.root / "assets/descriptions" / row.path).iterdir():
            path.unlink()
    run = folder / "runs/r"
    section = {"path": str(bench.root), "repos": str(bench.repos)}
    write(run / "config.json", json.dumps({"benchmark": section}))
    write(run / "journal.jsonl", "")
    return ProductRun(bench, run)
