"""Workspaces for trials on the tiny benchmark, in bubblewrap sandboxes, and readers of their outputs."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from support.flows import tiny_benchmark
from support.flows.tiny_benchmark import TinyBenchmark, Workspace

MODELS = Path(__file__).parent / "trial_models.py"
DIRECT = ("open/direct",)
ALL = ("instructed/direct", "open/direct", "open/plan", "open/multiplan")


def model_table(name: str, script: str, price: str = tiny_benchmark.PRICE, more: str = "") -> str:
    table = (
        f'[[models]]\nid = "{name}"\nprovider = "scripted"\nmodel = "{MODELS}:{script}"\nprice = {price}\n'
    )
    return f"{table}{more}\n"


def agent_table(name: str, model: str, more: str = "", harness: str = "codetaste") -> str:
    return f'[[agents]]\nid = "{name}"\nharness = "{harness}"\nmodel = "{model}"\n{more}\n'


def track_table(name: str, more: str = "") -> str:
    track, mode = name.split("/")
    judge = 'judge = "judge"\n' if mode == "multiplan" else ""
    return f'[[tracks]]\ntrack = "{track}"\nmode = "{mode}"\n{judge}{more}\n'


def make_trial_workspace(
    folder: Path,
    alpha: TinyBenchmark,
    tracks: Sequence[str] = DIRECT,
    *,
    coder: str = "coder",
    judge: str = "judge",
    judge_model: str = "",
    agent: str = "budget_usd = 2.0\ntime_limit = '5m'",
    track: str = "",
    run: str = "budget_usd = 20.0",
    more: str = "",
) -> Workspace:
    """Create a workspace with the agent "a" on ``tracks``, with the scripts ``coder`` and ``judge``."""
    text = "\n".join(
        [
            f'[run]\nname = "r"\n{run}',
            f'[benchmark]\npath = "{alpha.bench.root}"\nrepos = "{alpha.bench.repos}"',
            '[sandbox]\nengine = "bubblewrap"\nmax = 4',
            model_table("m", coder),
            *([model_table("judge", judge, more=judge_model)] if "open/multiplan" in tracks else []),
            agent_table("a", "m", agent),
            *(track_table(name, track) for name in tracks),
            more,
        ]
    )
    folder.mkdir(parents=True, exist_ok=True)
    config = folder / "config.toml"
    config.write_text(text)
    return Workspace(folder, alpha.cache, config)


def output_folder(
    workspace: Workspace, alpha: TinyBenchmark, track: str = "open/direct", agent: str = "a"
) -> Path:
    return workspace.out / "outputs" / track / alpha.row.path / agent


def read_metadata(folder: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((folder / "inference_metadata.json").read_text())
    return document


def published_cost(folder: Path) -> float:
    """The cost of a trial as the published analysis computes it: from the files of all its steps."""
    names = ("inference_metadata.json", "plan_metadata.json", "multiplan_generation_metadata.json")
    costs = [
        json.loads((folder / name).read_text())["cost_usd"] for name in names if (folder / name).exists()
    ]
    judged = folder / "multiplan_metadata.json"
    costs += [json.loads(judged.read_text())["judge_cost_usd"]] if judged.exists() else []
    return sum(cost for cost in costs if cost >= 0)


def apply_prediction(alpha: TinyBenchmark, folder: Path, into: Path) -> dict[str, str]:
    """Apply the prediction in ``folder`` to R with git; return the text of every file."""
    clone = alpha.bench.repos / "tiny" / alpha.row.repo
    tiny_benchmark.git(clone, "worktree", "prune")
    subprocess.run(["git", "clone", "--quiet", str(clone), str(into)], check=True, capture_output=True)
    tiny_benchmark.git(into, "checkout", "--quiet", alpha.row.base)
    patch = folder / "prediction.diff"
    if patch.stat().st_size:
        tiny_benchmark.git(into, "apply", "--index", str(patch.absolute()))
    files = tiny_benchmark.git(into, "ls-files").splitlines()
    return {name: (into / name).read_text() for name in files}


def read_products(workspace: Workspace) -> dict[str, bytes]:
    """The content of every file below outputs/, without times and logs, which differ from run to run."""
    root = workspace.out / "outputs"
    found = {}
    for path in sorted(root.rglob("*")):
        if path.name.endswith("metadata.json") or path.name == "evaluation_result.json":
            found[str(path.relative_to(root))] = json.dumps(
                _without_times(json.loads(path.read_text()))
            ).encode()
        elif path.is_file():
            if path.name in {"inference.out", "plan.out", "multiplan.out"}:
                found[str(path.relative_to(root))] = b"a log"
                continue
            found[str(path.relative_to(root))] = path.read_bytes()
    return found


TIMES = {"start_time", "finish_time", "evaluation_timestamp", "judge_latency_seconds"}


def _without_times(document: Any) -> Any:
    if isinstance(document, dict):
        return {key: _without_times(value) for key, value in document.items() if key not in TIMES}
    return [_without_times(item) for item in document] if isinstance(document, list) else document
