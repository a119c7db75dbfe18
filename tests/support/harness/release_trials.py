"""Whole trials of releases and models: each has a provider on the loopback with a bill of its own.

``python release_trials.py CACHE`` runs all of them and prints a table.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from codetaste.harness.adapter import load_adapter
from support.flows.cli_agent_runs import Config, trial_folder
from support.flows.tiny_benchmark import PRICE, Bench
from support.flows.trial_runs import agent_table, read_metadata
from support.harness.coding_models import edit_steps, shell_step
from support.harness.coding_provider import serve_plan
from support.llm.provider.exchange import Handler
from support.llm.provider.server import Server, cut, reply, serving, status, text

BUDGETS_USD = {"endless": Decimal("1.5")}
"""Of one trial; others have five US dollars."""
_KEY = "CODETASTE_RELEASE_TRIALS_KEY"
_HALF = text("Half of a reply that breaks off here. ")


def _refuse() -> Handler:
    return reply(text("I cannot help with that."), stop="refusal")


def _limited() -> Handler:
    return status(429, retry_after="0")


ENDINGS: dict[str, Callable[[], Handler]] = {
    "whole": lambda: serve_plan(_steps),
    "cut once": lambda: serve_plan(_steps, {2: [cut(_HALF, after=6)]}),
    "429 twice": lambda: serve_plan(_steps, {2: [_limited(), _limited()]}),
    "refusal": lambda: serve_plan(_steps, {2: [_refuse() for _ in range(20)]}),
    "endless": lambda: serve_plan(lambda tools: [*_steps(tools), *[shell_step(tools, "git log")] * 1000]),
}
"""How a model ends a trial; one that is not endless makes four tool calls."""


def _steps(tools: set[str]) -> list[tuple[str, dict[str, object]]]:
    return [*edit_steps(tools), shell_step(tools, "git status --short")]


@dataclass(frozen=True)
class ReleaseTrial:
    """A trial, and what came of it.

    Attributes:
        harness: the agent.
        version: its release.
        model: the model's name.
        model_ends: a key of ``ENDINGS``.
        ending: of the trial's job.
        turns: the turns that the gateway counted.
        patched: whether the patch has both edits.
        billed_usd: the provider's bill.
        settled_usd: the known cost.
        unknown_usd: the cost of calls whose usage is unknown.
        message: why it did not end well.
    """

    harness: str
    version: str
    model: str
    model_ends: str
    ending: str = ""
    turns: int = 0
    patched: bool = False
    billed_usd: Decimal = Decimal(0)
    settled_usd: Decimal = Decimal(0)
    unknown_usd: Decimal = Decimal(0)
    message: str = ""

    @property
    def name(self) -> str:
        """The id of the agent and its model."""
        return f"{self.harness}-{self.version}-{self.model}-{self.model_ends}".replace(" ", "-").replace(
            ".", "-"
        )

    def __str__(self) -> str:
        cells = (
            f"{self.harness} {self.version}",
            *(
                self.model,
                self.model_ends,
                self.ending,
                str(self.turns),
                "both edits" if self.patched else "not",
            ),
            *(f"{usd.normalize():f}" for usd in (self.billed_usd, self.settled_usd, self.unknown_usd)),
        )
        return f"| {' | '.join(cells)} |"


MODELS = {
    "claude-code": ("claude-sonnet-4-5", "claude-sonnet-5-5"),
    "codex": ("gpt-5.1-codex", "gpt-6.2-sol"),
    "qwen-code": ("qwen3-coder-plus", "qwen4-coder"),
}
"""An old and a current model for each agent."""


def all_trials(endings: Iterable[str] = ENDINGS) -> list[ReleaseTrial]:
    """Return the trials of each agent's oldest and newest tested release, with an old and a current model."""
    trials = []
    for harness, models in MODELS.items():
        versions = load_adapter(harness, Path()).manifest.versions
        trials += [
            ReleaseTrial(harness, version, model, ending)
            for version in (versions[0], versions[-1])
            for model in models
            for ending in endings
        ]
    return trials


def run_trials(trials: Sequence[ReleaseTrial], folder: Path, cache: Path) -> list[ReleaseTrial]:
    """Run all trials in one run; return them with what came of them."""
    bench = Bench(folder / "bench")
    row = bench.add("releases", {"hello.py": "print('old')\n"}, {"hello.py": "print('new')\n"})
    descriptions = bench.root / "assets/descriptions" / row.path
    (descriptions / "description.md").write_text("Make the greeting new, and add a file.\n")
    config = Config(bench, 'engine = "bubblewrap"\nmax = 2', "concurrency = 2")
    with ExitStack() as stack:
        servers = {}
        for trial in trials:
            servers[trial.name] = server = stack.enter_context(serving())
            server.default = ENDINGS[trial.model_ends]()
            config.tables += [_model_table(trial, server), _agent_table(trial)]
        config.track("instructed/direct")
        workspace = config.make_workspace(folder / "run", cache)
        workspace.env[_KEY] = "sk-dummy"
        done = workspace.run("--json", timeout_s=3600.0)
        jobs = {job["key"].split("/")[1]: job for job in done.json["jobs"] if job["key"].startswith("infer/")}
        return [
            _with_result(
                trial,
                trial_folder(workspace, row, "instructed/direct", trial.name),
                servers[trial.name],
                jobs[trial.name],
            )
            for trial in trials
        ]


def _model_table(trial: ReleaseTrial, server: Server) -> str:
    protocol = load_adapter(trial.harness, Path()).protocol
    address = server.url if protocol == "anthropic" else f"{server.url}/v1"
    return (
        f'[[models]]\nid = "{trial.name}"\nprovider = "{protocol}"\nmodel = "{trial.model}"\n'
        f'base_url = "{address}"\napi_key_env = "{_KEY}"\nprice = {PRICE}\n'
    )


def _agent_table(trial: ReleaseTrial) -> str:
    budget_usd = BUDGETS_USD.get(trial.model_ends, 5)
    more = f'version = "{trial.version}"\nbudget_usd = {budget_usd}\ntime_limit = "20m"'
    return agent_table(trial.name, trial.name, more, trial.harness)


def _with_result(trial: ReleaseTrial, folder: Path, server: Server, job: dict[str, Any]) -> ReleaseTrial:
    patch, ended = folder / "prediction.diff", (folder / "inference_metadata.json").is_file()
    found = patch.read_text() if patch.is_file() else ""
    return replace(
        trial,
        ending=job["ending"],
        turns=read_metadata(folder)["additional"]["turns"] if ended else 0,
        patched="+print('new')" in found and "+a file that was not there" in found,
        billed_usd=server.billed_usd,
        settled_usd=Decimal(job["money"]["settled_usd"]),
        unknown_usd=Decimal(job["money"]["unknown_usd"]),
        message=job["reason"] or "",
    )


def format_trials(trials: Iterable[ReleaseTrial]) -> str:
    """Format trials as a table in Markdown."""
    head = "| release | model | its replies | ending | turns | patch | billed | settled | unknown |"
    return "\n".join([head, f"|{' --- |' * 9}", *map(str, trials)])


if __name__ == "__main__":
    with TemporaryDirectory() as scratch:
        chosen = [each for each in all_trials() if all(word in each.name for word in sys.argv[2:])]
        sys.stdout.write(format_trials(run_trials(chosen, Path(scratch), Path(sys.argv[1]))) + "\n")
