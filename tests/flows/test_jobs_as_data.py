"""Jobs as data: every kind of job can be written as JSON and read again, and gives the same result."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest
from pydantic import TypeAdapter

from codetaste.benchmark.instance import Instance
from codetaste.errors import ConfigError
from codetaste.flows.discover.plan import DiscoveryPass
from codetaste.flows.evaluate.plan import EvaluationTask
from codetaste.flows.infer.plan import Step, TrackConfig, Trial
from codetaste.harness.config import AgentConfig
from codetaste.orchestration.budget.cost import Cost
from codetaste.orchestration.job import Job, JobContext
from codetaste.orchestration.session import Session, open_session
from codetaste.run.execute import execute_run
from codetaste.run.plan import plan_run
from codetaste.run.signals import StopRequest
from flows.infer.test_gateway import MANIFEST, PROGRAM
from support.flows import discovery_models
from support.flows.tiny_benchmark import PRICE, TinyBenchmark, Workspace
from support.flows.trial_runs import ALL, agent_table, make_trial_workspace, model_table, read_products

PARAMETERS: Mapping[str, type] = {
    "sources": Instance,
    "discover": DiscoveryPass,
    "infer.install": str,
    "infer.plan": Step,
    "infer.judge": Step,
    "infer.execute": Step,
    "evaluate": EvaluationTask,
}


NAMES = {each.__name__: each for each in (AgentConfig, Cost, Instance, Mapping, Step, TrackConfig, Trial)}
"""The types in the fields of jobs and of their parameters."""


def make_adapter(kind: type) -> TypeAdapter[Any]:
    found: TypeAdapter[Any] = TypeAdapter(kind)
    found.rebuild(_types_namespace=NAMES)
    return found


ADAPTERS = {each: make_adapter(each) for each in (Job, *PARAMETERS.values())}


def copy_job(job: Job) -> Job:
    """Write a job as JSON and read it again."""
    read = ADAPTERS[Job].validate_json(ADAPTERS[Job].dump_json(job))
    parameters = ADAPTERS[PARAMETERS[job.kind]].validate_json(json.dumps(read.parameters))
    return replace(read, parameters=parameters)


def make_full_workspace(folder: Path, alpha: TinyBenchmark) -> Workspace:
    """A config with all flows, tracks and modes, and both kinds of agents."""
    program = folder / "prog"
    program.mkdir(parents=True)
    (program / "agent.toml").write_text(MANIFEST)
    (program / "run.py").write_text(PROGRAM)
    (program / "run.py").chmod(0o755)
    finder = (
        f'id = "finder"\nprovider = "scripted"\nmodel = "{discovery_models.__file__}:reply"\nprice = {PRICE}'
    )
    tables = (
        model_table("shell", "by_shell"),
        agent_table("cli", "shell", harness="prog"),
        f"[[models]]\n{finder}\n",
        '[discover]\nmodels = ["finder"]\n',
        '[evaluate]\nrules = "discover/finder"\n',
    )
    return make_trial_workspace(folder, alpha, ALL, more="\n".join(tables))


@pytest.mark.heavy
def test_jobs_read_from_json_are_equal_and_have_equal_results(
    tmp_path: Path, alpha: TinyBenchmark, require: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    require("bwrap")
    require("python3", ok=Path("/usr/bin/python3").exists(), reason="no python3 for agents in sandboxes")
    kinds: set[str] = set()
    add = Session.add

    def add_copies(session: Session, *jobs: Job) -> None:
        copies = [copy_job(job) for job in jobs]
        assert copies == list(jobs)
        kinds.update(job.kind for job in jobs)
        add(session, *copies)

    workspace = make_full_workspace(tmp_path / "copies", alpha)
    with monkeypatch.context() as patched:
        patched.setattr(Session, "add", add_copies)
        patched.setenv("XDG_CACHE_HOME", str(workspace.cache))
        patched.chdir(workspace.folder)

        async def run() -> Any:
            return await execute_run(plan_run(workspace.config), rerun=False, stop=StopRequest())

        summary = anyio.run(run)
    assert kinds == set(PARAMETERS)
    assert [line.outcome.status for line in summary.lines if not line.outcome.usable] == []

    plain = make_full_workspace(tmp_path / "plain", alpha)
    result = plain.run("--json")
    assert result.code == 0, result.err
    assert read_products(workspace) == read_products(plain)
    again = workspace.run("--json")
    assert {job["resumed"] for job in again.json["jobs"]} == {True}
    assert again.json["money"]["settled_usd"] == result.json["money"]["settled_usd"]


@pytest.mark.anyio
async def test_job_kind_without_handler_is_refused_when_added(tmp_path: Path) -> None:
    async def nothing(_job: Job, _context: JobContext) -> None:
        return None

    async with open_session(tmp_path) as session:
        session.add_handlers({"infer.plan": nothing})
        with pytest.raises(ConfigError) as refused:
            session.add(Job("a", "infer.paln", (), "1"))
        assert await session.run() == {}
    assert refused.value.problems == ("job a: no handler for the kind 'infer.paln'; known: infer.plan",)
