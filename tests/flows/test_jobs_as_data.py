"""Jobs as data: jobs of every kind are run by another process, which has only their JSON."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import pytest

from codetaste.errors import ConfigError
from codetaste.orchestration.budget.cost import BudgetLimits, NamedLimits
from codetaste.orchestration.job import Job, JobContext
from codetaste.orchestration.session import open_session
from flows.infer.test_gateway import MANIFEST, PROGRAM
from support.flows import discovery_models
from support.flows.jobs_as_json import PARAMETERS, in_second_process, read_jobs, write_made_jobs
from support.flows.tiny_benchmark import PRICE, TinyBenchmark, Workspace
from support.flows.trial_runs import ALL, agent_table, make_trial_workspace, model_table, read_products


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
        agent_table("cli", "shell", 'budget_usd = 3.0\ntime_limit = "4m"', harness="prog"),
        f"[[models]]\n{finder}\n",
        '[discover]\nmodels = ["finder"]\nbudget_usd = 1.5\n',
        '[evaluate]\nrules = "discover/finder"\n',
    )
    return make_trial_workspace(folder, alpha, ALL, more="\n".join(tables))


@pytest.fixture
def workspace(
    tmp_path: Path, alpha: TinyBenchmark, require: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> Workspace:
    require("bwrap")
    require("python3", ok=Path("/usr/bin/python3").exists(), reason="no python3 for agents in sandboxes")
    made = make_full_workspace(tmp_path / "made", alpha)
    monkeypatch.setenv("XDG_CACHE_HOME", str(made.cache))
    monkeypatch.chdir(made.folder)
    return made


def test_jobs_have_the_same_limits_in_another_process(
    tmp_path: Path, alpha: TinyBenchmark, workspace: Workspace
) -> None:
    nodes = write_made_jobs(workspace.config, tmp_path / "jobs")
    jobs = read_jobs(tmp_path / "jobs")
    assert {job.kind for job in jobs} == set(PARAMETERS)

    shared = f"finder/{alpha.row.id}"
    assert nodes["discover " + shared] == ["1.5", None, None, 10800.0]
    passes = [job for job in jobs if job.kind == "discover"]
    assert {job.leaves_to for job in passes} == {job.key for job in passes}
    for job in passes:
        assert nodes[f"discover {shared} {job.key}"] == ["0.75", None, None, 5400.0]
    trials = {job.budget[-1].name: job.parameters.trial.agent.id for job in jobs if "infer.e" in job.kind}
    for name, agent in trials.items():
        limits = ["2.0", None, None, 300.0] if agent == "a" else ["3.0", None, None, 240.0]
        assert nodes[f"infer {name}"] == limits
    plans = [job for job in jobs if job.kind == "infer.plan"]
    assert plans
    for job in plans:
        assert nodes[f"infer {job.budget[-1].name} {job.key}"] == [None, None, None, 1800.0]

    second = in_second_process("limits", tmp_path / "jobs", tmp_path / "second")
    assert second["nodes"] == nodes
    ends = second["ends"]
    assert {ends[job.key][0] for job in jobs if job.kind in {"sources", "infer.plan"}} == {"done"}
    for job in jobs:
        if job.kind == "discover":
            assert ends[job.key][0] == "budget_exceeded"
            assert ends[job.key][1].startswith(f"budget of discover/{shared}")
            assert ": at least $1000 requested, $" in ends[job.key][1]


@pytest.mark.heavy
def test_jobs_have_the_same_results_in_another_process(
    tmp_path: Path, alpha: TinyBenchmark, workspace: Workspace
) -> None:
    write_made_jobs(workspace.config, tmp_path / "jobs")
    assert in_second_process("run", tmp_path / "jobs", workspace.config) == {"unusable": []}

    plain = make_full_workspace(tmp_path / "plain", alpha)
    result = plain.run("--json")
    assert result.code == 1, result.err
    assert read_products(workspace) == read_products(plain)
    again = workspace.run("--json")
    assert {job["resumed"] for job in again.json["jobs"]} == {True}
    assert again.json["money"]["settled_usd"] == result.json["money"]["settled_usd"]


@pytest.mark.anyio
async def test_job_with_other_limits_for_a_node_is_refused(tmp_path: Path) -> None:
    def make(key: str, usd: int) -> Job:
        return Job(key, "work", (NamedLimits("trial", BudgetLimits(usd=Decimal(usd))),), "1")

    async def work(job: Job, _context: JobContext) -> str:
        if job.key == "a":
            await session.set_limits(BudgetLimits(usd=Decimal(9)))
            session.add(make("b", 1))
            with pytest.raises(ConfigError, match="budget trial: two different limits"):
                session.add(make("c", 2))
        return job.key

    async with open_session(tmp_path, BudgetLimits(usd=Decimal(5))) as session:
        session.add_handlers({"work": work})
        assert {*await session.run([make("a", 1)])} == {"a", "b"}
        assert session.budget.find(("trial",)).limits == BudgetLimits(usd=Decimal(1))


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
