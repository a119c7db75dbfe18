"""Jobs as JSON, and a process that runs them: ``jobs_as_json.py (limits JOBS FOLDER | run JOBS CONFIG)``."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import anyio
import pytest
from pydantic import TypeAdapter

from codetaste.benchmark.instance import Instance
from codetaste.flows.discover.plan import DiscoveryPass
from codetaste.flows.evaluate.plan import EvaluationTask
from codetaste.flows.infer.plan import Step, TrackConfig, Trial
from codetaste.harness.config import AgentConfig
from codetaste.orchestration.budget.cost import Cost
from codetaste.orchestration.job import Job, JobContext
from codetaste.orchestration.scheduler.resume import limits_to_json
from codetaste.orchestration.session import Session, open_session
from codetaste.run.execute import execute_run
from codetaste.run.plan import RunOptions, plan_run
from codetaste.run.signals import StopRequest

TESTS = Path(__file__).parents[2]
PARAMETERS: Mapping[str, type] = {
    "sources": Instance,
    "discover": DiscoveryPass,
    "agents.install": str,
    "infer.plan": Step,
    "infer.judge": Step,
    "infer.execute": Step,
    "evaluate": EvaluationTask,
}
TOO_MUCH = Cost(Decimal(1000))

NAMES = {each.__name__: each for each in (AgentConfig, Cost, Instance, Mapping, Step, TrackConfig, Trial)}
"""The types in the fields of jobs and of their parameters."""


def make_adapter(kind: type) -> TypeAdapter[Any]:
    found: TypeAdapter[Any] = TypeAdapter(kind)
    found.rebuild(_types_namespace=NAMES)
    return found


ADAPTERS = {each: make_adapter(each) for each in (Job, *PARAMETERS.values())}


def write_jobs(path: Path, jobs: Sequence[Job]) -> None:
    path.write_bytes(b"\n".join(ADAPTERS[Job].dump_json(job) for job in jobs))


def read_jobs(path: Path) -> list[Job]:
    return [read_job(line) for line in path.read_bytes().split(b"\n")]


def read_job(text: bytes) -> Job:
    job = ADAPTERS[Job].validate_json(text)
    parameters = ADAPTERS[PARAMETERS[job.kind]].validate_json(json.dumps(job.parameters))
    return replace(job, parameters=parameters)


class Stopped(Exception):
    pass


def execute(config: Path) -> Any:
    """Run ``config`` in this process."""

    async def run() -> Any:
        return await execute_run(plan_run(config), RunOptions(), StopRequest())

    return anyio.run(run)


def write_made_jobs(config: Path, into: Path) -> dict[str, Any]:
    """Write the jobs that ``config`` makes; return the limits of the budget nodes that they have here."""
    nodes: dict[str, Any] = {}

    async def stop(session: Session) -> Any:
        write_jobs(into, session.scheduler._added)
        session.scheduler._register()
        nodes.update(node_limits(session))
        raise Stopped

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Session, "run", stop)
        try:
            execute(config)
        except* Stopped:
            pass
    return nodes


def node_limits(session: Session) -> dict[str, Any]:
    """The limits of all budget nodes but the run's own, by path."""
    return {
        " ".join(node.path): [*limits_to_json(node.limits)] for node in session.budget.walk() if node.path
    }


async def run_with_stand_ins(jobs: Sequence[Job], folder: Path) -> dict[str, Any]:
    """Run ``jobs`` with handlers that do nothing; discovery wants more money than it may spend."""

    nodes: dict[str, Any] = {}

    async def nothing(job: Job, context: JobContext) -> Any:
        if not nodes:  # before a job leaves something to another
            nodes.update(node_limits(session))
        if job.kind == "discover":
            await context.hold(TOO_MUCH)
        return job.title

    async with open_session(folder, capacities={"sandbox": 4, "cpu": 64}) as session:
        session.add_handlers(dict.fromkeys(PARAMETERS, nothing))
        outcomes = await session.run(jobs)
        ends = {key: [each.status.value, each.error] for key, each in outcomes.items()}
        return {"nodes": nodes, "ends": ends}


def run_read_jobs(jobs: Sequence[Job], config: Path) -> dict[str, Any]:
    """Run ``config`` with ``jobs`` in place of the jobs that it makes here, which must be equal."""
    add = Session.add

    def add_read(session: Session, *made: Job) -> None:
        assert list(made) == list(jobs)
        add(session, *jobs)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Session, "add", add_read)
        summary = execute(config)
    return {"unusable": [line.outcome.key for line in summary.lines if not line.outcome.usable]}


def in_second_process(command: str, jobs: Path, path: Path) -> Any:
    """Run this file in a process of its own; return what it prints."""
    program = [sys.executable, __file__, command, str(jobs), str(path)]
    environment = {**os.environ, "PYTHONPATH": str(TESTS)}
    done = subprocess.run(program, capture_output=True, text=True, env=environment, timeout=250, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


if __name__ == "__main__":
    read, where = read_jobs(Path(sys.argv[2])), Path(sys.argv[3])
    if sys.argv[1] == "run":
        print(json.dumps(run_read_jobs(read, where)))  # noqa: T201
    else:
        print(json.dumps(anyio.run(run_with_stand_ins, read, where)))  # noqa: T201
