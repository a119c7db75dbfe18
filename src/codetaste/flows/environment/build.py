"""Build one environment: existing scripts first, then those of neighbours, then a setup agent in rounds.

The gates alone decide (CodeTaste §3.3). Each round of the agent starts from the image that the round before
left, and what the gates found is the beginning of its prompt. A round and its gates are effects: after a
crash neither an agent's round nor a test run that has ended is repeated.
"""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

from anyio import to_thread

from codetaste.benchmark.layout import FinishReason
from codetaste.core.files import write_atomically
from codetaste.core.units import format_exact_usd
from codetaste.environment.images.existing import (
    added_bytes,
    find_image,
    forget_image,
    tag_setup_image,
)
from codetaste.environment.images.names import ImageStage, InstanceImage
from codetaste.environment.levels import Level
from codetaste.environment.project import dependencies_digest
from codetaste.environment.record import RecordedMetrics, RecordedRun, RunSide
from codetaste.errors import BudgetExceeded, DeadlineExceeded, SandboxError
from codetaste.evaluation.test_runs.gates import NOT_PUBLISHED, GateReport, Side, feedback, pass_gates
from codetaste.flows.agents.run import AgentRunSpec
from codetaste.flows.environment.candidates import Candidate, find_candidates
from codetaste.flows.environment.gate_sandboxes import gate_sandboxes
from codetaste.flows.environment.inputs import FEEDBACK_PROMPT, SYSTEM_PROMPT, setup_prompt
from codetaste.flows.environment.publish import publish_environment
from codetaste.flows.environment.result import EnvironmentResult, load_scripts, store_scripts
from codetaste.flows.environment.setup_run import SetupRun, scripts_effect
from codetaste.flows.environment.suites import repeat_while_faulty
from codetaste.flows.sources import digest_parts
from codetaste.orchestration.journal.journal import LOGS_FOLDER
from codetaste.orchestration.shortfall import Shortfall
from codetaste.orchestration.wait import Wait, WaitReason
from codetaste.sandbox.base import Privileges
from codetaste.source.checkout import checkout_trees

if TYPE_CHECKING:
    from collections.abc import Mapping

    from codetaste.environment.scripts import EnvironmentScripts
    from codetaste.evaluation.test_runs.test_run import TestRun
    from codetaste.flows.environment.context import EnvironmentContext
    from codetaste.flows.environment.plan import EnvironmentTask
    from codetaste.orchestration.job import JobContext
    from codetaste.orchestration.journal.journal import Json


_IDLE_LINE = re.compile(rb"\s*(?:#.*|exit 0|set [-+][a-z]+(?: pipefail)?|true|:|echo [^;&|<>`$()]*)?\s*")


def possible_privileges(scripts: EnvironmentScripts) -> tuple[Privileges, ...]:
    """Return the privileges that scripts may need, the least first.

    Without sudo and with nothing to set up in the system, root makes no difference.
    """
    idle = all(_IDLE_LINE.fullmatch(line) for line in scripts.setup_system.splitlines())
    if idle and b"sudo" not in scripts.setup_shell + scripts.run_tests:
        return (Privileges.NONE,)
    return tuple(Privileges)


@dataclass(slots=True)
class _Build:
    """The state of one environment's job."""

    task: EnvironmentTask
    context: EnvironmentContext
    job: JobContext
    best: EnvironmentResult = field(default_factory=lambda: EnvironmentResult(Level.NONE))
    last_failure: str = ""
    failures: list[str] = field(default_factory=list)

    async def prove(self, candidate: Candidate) -> GateReport:
        """Run the gates on a candidate, once.

        Raises:
            SandboxError: only the machine is to blame that they could not be run; nothing is recorded.
        """

        async def run() -> Json:
            report = await repeat_while_faulty(
                lambda: self._run_gates(candidate), _fault_of_machine, self.job, candidate.source
            )
            if fault := _fault_of_machine(report):
                raise SandboxError(f"the gates could not be run: {fault}")
            return report.to_json()

        tried = digest_parts(candidate.image, candidate.scripts.digest)
        report = GateReport.from_json(await self.job.effect(f"gates/{tried}", run))
        outcome = "passes all gates" if report.failure is None else str(report.failure)
        self.job.note(f"{candidate.source}: {outcome}")
        if report.failure is not None:
            await self._write_log(f"{candidate.source}: {feedback(report.failure)}\n")
        for each in report.waived:
            self.job.note(f"{candidate.source}: published scripts need not pass {each}")
        return report

    async def _write_log(self, failure: str) -> None:
        """Write what the scripts of all candidates printed before they failed, for people."""
        self.failures.append(failure)
        path = self.context.out / LOGS_FOLDER / f"{self.task.key}.gates.log"
        await to_thread.run_sync(write_atomically, path, "\n".join(self.failures))
        self.job.note(f"what its scripts printed at last is in {path}")

    async def _run_gates(self, candidate: Candidate) -> GateReport:
        suites, base = self.context.suites, self.context.base_image
        installed = await added_bytes(suites.sandboxes, candidate.image, base)
        with self.job.waiting(Wait(WaitReason.TESTS, candidate.source)):
            async with gate_sandboxes(self.task, candidate, self.context) as opening:
                privileges = possible_privileges(candidate.scripts)
                return await pass_gates(
                    opening,
                    suites.limits,
                    privileges=privileges,
                    installed_bytes=installed,
                    waived=NOT_PUBLISHED if candidate.published else (),
                )

    async def keep(self, candidate: Candidate, report: GateReport) -> None:
        """Take a candidate as the result if it came further than those before."""
        failure = "" if report.failure is None else str(report.failure)
        self.last_failure = "" if report.failure is None else feedback(report.failure)
        tried = self.best.tried if not self.best.source else (*self.best.tried, _tried(self.best))
        new = EnvironmentResult(
            level=report.level,
            source=candidate.source,
            setup_image=candidate.image,
            scripts=await store_scripts(candidate.scripts, self.job),
            privileges=report.privileges,
            failure=failure,
            waived_gates={each.gate.value: str(each) for each in report.waived},
            failed_gate="" if report.failure is None else report.failure.gate.value,
            counts={side.value: asdict(run.counts) for side, run in report.runs.items() if run.counts},
            runs=tuple(_recorded(side, run) for side, run in report.runs.items()),
            written_bytes=report.written_bytes,
            scripts_digest=candidate.scripts.digest,
            rounds=self.best.rounds,
        )
        if new.level >= self.best.level:
            self.best = replace(new, tried=tried)
        else:
            self.best = replace(self.best, tried=(*self.best.tried, _tried(new)))


def _fault_of_machine(report: GateReport) -> str:
    failure = report.failure
    return failure.message if failure is not None and failure.infrastructure else ""


def _recorded(side: Side, run: TestRun) -> Mapping[str, Any]:
    recorded = RecordedRun(
        side=RunSide(side.value),
        counts=run.counts and RecordedMetrics(**asdict(run.counts)),
        problem=run.message,
        exit_code=run.exit_code,
        setup_s=run.setup_s,
        duration_s=run.tests_s,
        network=True,
    )
    return recorded.model_dump(mode="json")


def _tried(result: EnvironmentResult) -> str:
    return f"{result.source}: {result.failure}"


async def build_environment(task: EnvironmentTask, context: EnvironmentContext, job: JobContext) -> Json:
    """Build the environment of an instance and return the job's value.

    Raises:
        SandboxError: no sandbox could be opened.
        ModelError: the provider stayed unusable after all retries.
    """
    build = _Build(task, context, job)
    for candidate in await find_candidates(task, context):
        await build.keep(candidate, await build.prove(candidate))
        if build.best.proven:
            break
    if not build.best.proven and task.agent is not None:
        await _run_agent(build)
    trees = await checkout_trees(context.benchmark.origin(task.instance), context.suites.cache)
    money = job.budget.snapshot()
    result = replace(
        build.best,
        dependencies=await to_thread.run_sync(dependencies_digest, trees.base),
        cost_usd=format_exact_usd(money.spent.usd),
        duration_s=money.wall_s,
    )
    if not result.proven and job.early_end is None:
        job.fall_short(Shortfall("no_environment", result.failure or "there is nothing to try"))
    if result.proven:  # environments of the same repository that are built later try it first
        await publish_environment(task, result, None, context, job.load_text)
    return result.to_json()


async def _run_agent(build: _Build) -> None:
    """Call the agent, at most as often as the config says, until its environment passes the gates."""
    context, image = build.context, build.context.base_image
    for number in range(1, context.config.rounds + 1):
        record = await _run_round(build, number, image)
        build.best = replace(build.best, rounds=(*build.best.rounds, record["run"]))
        if record["image"]:
            image = record["image"]
            scripts = await load_scripts(record["scripts"], build.job.load_text)
            assert build.task.agent is not None  # noqa: S101 - the caller checked it
            candidate = Candidate(f"agent {build.task.agent.id}", image, scripts)
            await build.keep(candidate, await build.prove(candidate))
            if build.best.proven:
                await tag_setup_image(context.suites.sandboxes, image, build.task.instance)
                await _forget_rounds(build, number)
                return
        else:
            build.last_failure = record["problem"]
            build.best = replace(build.best, failure=build.best.failure or record["problem"])
        if _limit_reached(build, record["run"]):
            return


async def _run_round(build: _Build, number: int, image: str) -> dict[str, Any]:
    """Run the agent once and return what it left; not again if its image is there, or not needed any more."""
    job, context, task, name = build.job, build.context, build.task, f"round-{number}"
    assert task.agent is not None  # noqa: S101 - the caller checked it
    recorded: Any = next(
        (job.recorded(each) for each in (name, scripts_effect(name)) if job.is_recorded(each)), None
    )
    if job.is_recorded(name) and (not recorded["image"] or _has_later_image(build, number)):
        return dict(recorded)
    if recorded and recorded["image"] and await find_image(context.suites.sandboxes, recorded["image"]):
        return dict(recorded)
    if recorded and not task.agent.uses_own_loop:
        # Its image is gone, or was never made; another run of the program would be paid again.
        return {**recorded, "image": context.base_image}
    prompt = setup_prompt(context)
    if build.last_failure and number > 1:
        prompt = context.prompts.load(FEEDBACK_PROMPT).render(failure=build.last_failure, task=prompt)
    origin = context.benchmark.origin(task.instance)
    spec = AgentRunSpec(
        task.agent, origin, prompt, task.model_label, name, mode="setup", system_prompt=SYSTEM_PROMPT
    )
    run = SetupRun(
        spec,
        context.agents,
        job,
        image=image,
        name=_image_of_round(build, number),
        suites=context.suites,
    )
    async with run:
        await run.run_agent()
    record: dict[str, Any] = {
        "run": run.result.to_json(),
        "image": run.setup_image,
        "problem": run.problem,
        "scripts": "" if run.scripts is None else await store_scripts(run.scripts, job),
    }
    await job.record(name, record)
    if record["image"]:
        await _forget_rounds(build, number - 1)
    return record


def _image_of_round(build: _Build, number: int) -> str:
    """Return the name of the image that a round leaves: no other run has it."""
    run = digest_parts(str(build.context.out.absolute()))[:8]
    return str(InstanceImage(build.task.instance.id, ImageStage.SETUP, tag=f"{run}-round-{number}"))


def _has_later_image(build: _Build, number: int) -> bool:
    """Whether a later round has left an image, from which the next one starts."""
    later = (f"round-{each}" for each in range(number + 1, build.context.config.rounds + 1))
    recorded: list[Any] = [build.job.recorded(name) for name in later if build.job.is_recorded(name)]
    return any(each["image"] for each in recorded)


async def _forget_rounds(build: _Build, last: int) -> None:
    """Remove the images of the rounds up to ``last``, which no round starts from any more."""
    for number in range(1, last + 1):
        await forget_image(build.context.suites.sandboxes, _image_of_round(build, number))


def _limit_reached(build: _Build, run: Any) -> bool:  # noqa: ANN401 - JSON
    """Whether a limit ended the round, so that there is no other; the job's end says so."""
    reason = run["finish_reason"]
    if reason == FinishReason.BUDGET_EXCEEDED:
        build.job.end_early(BudgetExceeded(f"no money after {run['turns']} turns: {run.get('message')}"))
    elif reason == FinishReason.TIMEOUT:
        build.job.end_early(DeadlineExceeded(f"the time limit was reached after {run['turns']} turns"))
    else:
        return False
    return True
