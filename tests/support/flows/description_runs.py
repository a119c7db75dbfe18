"""Workspaces whose runs describe the instances of a tiny benchmark."""

from __future__ import annotations

import json
from pathlib import Path

from support.flows import tiny_benchmark
from support.flows.tiny_benchmark import Bench, Row, Workspace, commit, git

MODELS = Path(__file__).parent / "description_models.py"


def undescribed_bench(folder: Path, repo: str = "beta", message: str = "Rename fetch") -> tuple[Bench, Row]:
    """Return a benchmark of one instance without descriptions; its golden commit has ``message``."""
    bench = Bench(folder)
    clone = bench.repos / "tiny" / repo
    clone.mkdir(parents=True)
    base = commit(clone, {"NAME": f"{repo}\n", **tiny_benchmark.BASE})
    commit(clone, tiny_benchmark.GOLDEN)
    git(clone, "commit", "--quiet", "--amend", "--message", message)
    row = bench.enter(Row(repo, base, git(clone, "rev-parse", "HEAD")), description=None)
    return bench, row


def write_texts(bench: Bench, row: Row, **texts: str) -> None:
    """Write descriptions of an instance; ``instructed``, ``open``, or the content of ``change``."""
    names = {"instructed": "description.md", "open": "open_description.md", "change": "change.json"}
    folder = bench.root / "assets/descriptions" / row.path
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        (folder / names[name]).write_text(text)


def describe_workspace(
    folder: Path,
    bench: Bench,
    cache: Path,
    script: str = "good",
    *,
    run: str = "budget_usd = 2.0",
    describe: str = "budget_usd = 1.0",
    more: str = "",
) -> Workspace:
    """Return a workspace with the model "m" in the section [describe]."""
    folder.mkdir(parents=True, exist_ok=True)
    config = folder / "config.toml"
    config.write_text(
        f'[run]\nname = "r"\n{run}\n[benchmark]\npath = "{bench.root}"\nrepos = "{bench.repos}"\n'
        f'[[models]]\nid = "m"\nprovider = "scripted"\nmodel = "{MODELS}:{script}"\n'
        f"price = {tiny_benchmark.PRICE}\n"
        f'[describe]\nmodel = "m"\n{describe}\n{more}\n'
    )
    return Workspace(folder, cache, config)


def description(root: Path, row: Row, name: str = "open_description.md") -> str:
    return (root / "assets/descriptions" / row.path / name).read_text()


def prompts_of(workspace: Workspace, key: str) -> list[str]:
    """Return the user messages in the transcript of a job."""
    lines = (workspace.out / "transcripts" / f"{key}.jsonl").read_text().splitlines()[1:]
    messages = [json.loads(line) for line in lines]
    return [json.dumps(message) for message in messages if message["role"] == "user"]
