"""Jobs of case studies: an agent reads the artefacts of trials, and the host checks its evidence.

A report that is not of the required form is followed by another run, while budget and time last. Every ended
run is recorded, so none is paid twice; after a crash the own loop continues with its next turn.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import anyio
from anyio import to_thread

from codetaste.benchmark.layout import FinishReason
from codetaste.case_study.agent_run import BASE, GOLDEN_TREE, STUDY, StudyRun
from codetaste.case_study.evidence import EvidenceRecord, read_statements
from codetaste.case_study.inputs import AGAIN_PROMPT, SYSTEM_PROMPT, prompt_of, study_inputs
from codetaste.case_study.material.folder import StudyMaterial
from codetaste.case_study.publish import StudyResult, check_report, file_study, study_to_json
from codetaste.case_study.reply import REPORT_FILE, ReportText, read_report
from codetaste.core.files import remove_tree
from codetaste.core.text import shorten
from codetaste.errors import BudgetExceeded, DeadlineExceeded
from codetaste.evaluation.pseudo_agents import golden_patch
from codetaste.flows.agents.install import INSTALL, install_handler, install_job
from codetaste.flows.agents.result import utc_now
from codetaste.flows.agents.run import AgentRunSpec
from codetaste.flows.inputs import InputSource, digest_of_inputs, digests_of_inputs
from codetaste.flows.sources import SOURCES, digest_parts, sources_handler, sources_job
from codetaste.orchestration.budget.cost import BudgetPath, NamedLimits
from codetaste.orchestration.job import Job
from codetaste.orchestration.journal.results import result_from_json, result_to_json
from codetaste.orchestration.shortfall import Shortfall
from codetaste.sandbox.base import OUTPUT
from codetaste.source.checkout import checkout_trees
from codetaste.source.origin import GitOrigin
from codetaste.source.patch.diff import diff_trees
from codetaste.transcripts.commands import RecordedCommand, recorded_commands
from codetaste.transcripts.conversations import conversations_of
from codetaste.transcripts.event import SourceKind
from codetaste.transcripts.read import read_events

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
    from pathlib import Path

    from codetaste.benchmark.benchmark import Benchmark
    from codetaste.case_study.plan import StudySubject, StudyTask
    from codetaste.flows.agents.run import AgentServices
    from codetaste.flows.context import ModelSet
    from codetaste.harness.adapter import Adapter
    from codetaste.llm.prompts import Prompts
    from codetaste.orchestration.job import Handler, JobContext
    from codetaste.orchestration.journal.journal import Json
    from codetaste.source.checkout import Trees
    from codetaste.source.origin import Origin
    from codetaste.swe_refactor.trials.sources import InstanceSource
    from codetaste.transcripts.timeline.journal_reader import JournalReader

STUDY_JOB = "case_study"
"""The kind of the jobs."""
_SCRATCH = ".studies"
"""The folder of a run for what sandboxes of studies have mounted; it is removed at the end."""
_MAX_COMMANDS_CHARS = 256 * 1024**2
_LIMITS = {
    FinishReason.BUDGET_EXCEEDED: (BudgetExceeded, "no money"),
    FinishReason.TIMEOUT: (DeadlineExceeded, "the time limit was reached"),
}


@dataclass(frozen=True, slots=True)
class StudyContext:
    """What all studies of a run share."""

    benchmark: Benchmark
    models: ModelSet
    prompts: Prompts
    agents: AgentServices
    adapters: Mapping[str, Adapter]
    tries: int
    clones: Mapping[str, InstanceSource]
    """Where the instances of SWE-Refactor are from, by their ids."""
    journal: JournalReader
    """That of the run with the trials, polled."""

    @property
    def source(self) -> InputSource:
        """What the inputs of studies are taken from."""
        return InputSource(self.benchmark, self.prompts, self.models.fingerprints)

    @property
    def scratch(self) -> Path:
        """The folder for artefacts that sandboxes have mounted."""
        return self.agents.out / _SCRATCH

    def origin(self, subject: StudySubject) -> Origin:
        """Return where the code before and after is from."""
        if subject.instance is not None:
            return self.benchmark.origin(subject.instance)
        source = self.clones[subject.id]
        return GitOrigin(str(source.repository.git_dir), source.base_commit, *subject.commits)

    async def golden(self, subject: StudySubject, trees: Trees) -> bytes:
        """Return the developers' change as a patch."""
        if subject.instance is not None:
            return await golden_patch(self.benchmark, subject.instance, trees, self.agents.cache)
        return await diff_trees(trees.base, trees.golden, self.agents.cache)


def study_jobs(tasks: Iterable[StudyTask], context: StudyContext, budget: BudgetPath) -> list[Job]:
    """Return the jobs of ``tasks`` and of the sources and CLI agents that they need, under ``budget``."""
    made: dict[str, Job] = {}
    for task in tasks:
        if task.subject.instance is not None:
            made.setdefault(task.sources_key, sources_job(task.subject.instance, budget))
        if install := install_job(task.install_key, task.agent.id, context.agents, budget):
            made.setdefault(install.key, install)
        made[task.key] = _study_job(task, context, budget)
    return list(made.values())


def study_handlers(context: StudyContext) -> dict[str, Handler]:
    """Return what runs the jobs of ``study_jobs``, by kind."""
    return {
        SOURCES: sources_handler(context.benchmark, context.agents.cache),
        INSTALL: install_handler(context.agents),
        STUDY_JOB: lambda job, run: _make_study(job.parameters, context, run),
    }


def _study_job(task: StudyTask, context: StudyContext, budget: BudgetPath) -> Job:
    inputs = study_inputs(task, context.source, context.agents.sandbox_config, context.adapters)
    runner = context.agents.runners[task.agent.id]
    request = runner.first_request(_prompt(task, context, ()), SYSTEM_PROMPT)
    return Job(
        task.key,
        STUDY_JOB,
        (*budget, NamedLimits(task.key, task.limits)),
        fingerprint=digest_of_inputs(inputs),
        inputs=digests_of_inputs(inputs),
        parameters=task,
        needs=task.needs,
        resources={"sandbox": 1},
        lane=task.model_label,
        title=task.title,
        group=task.group,
        min_cost=None if request is None else context.models.models[task.agent.model].min_cost(request),
        handler_limits=runner.limits,
    )


def _prompt(task: StudyTask, context: StudyContext, problems: tuple[str, ...]) -> str:
    """Return the agent's prompt; ``problems`` are those of the report that an earlier run left."""
    values = {
        "study": STUDY,
        "base": BASE,
        "golden": GOLDEN_TREE,
        "report": f"{OUTPUT}/{REPORT_FILE}",
        "trials": [each.name for each in task.trials],
        "track": task.subject.track,
        "mode": task.subject.mode,
    }
    text = context.prompts.load(prompt_of(task)).render(**values)
    if not problems:
        return text
    again = context.prompts.load(AGAIN_PROMPT).render(problems=list(problems), report=values["report"])
    return f"{text}\n\n{again}"


@dataclass(frozen=True, slots=True)
class _EndedRun:
    """One run of the agent, as the journal has it.

    Attributes:
        run: how it ended, and what it cost.
        text: digest of its report, "" if it left none.
        problem: why it left none.
        cut: whether a limit ended it before it left one.
    """

    run: Json
    text: str
    problem: str
    cut: bool


async def _make_study(task: StudyTask, context: StudyContext, job: JobContext) -> Json:
    """Run the agent until it leaves a usable report, file it, and return the job's value.

    Raises:
        SandboxError: no sandbox could be opened.
        ModelError: the provider stayed unusable after all retries.
        SourceError: the trees or the golden patch cannot be read.
        JournalError: the artefacts or the report cannot be written.
    """
    origin = context.origin(task.subject)
    trees = await checkout_trees(origin, context.agents.cache)
    report, record, cut = ReportText(), EvidenceRecord(()), False
    async with _material(task, context, trees) as material:
        for number in range(1, context.tries + 1):
            name = f"try-{number}"
            if job.is_recorded(name):
                ended = result_from_json(_EndedRun, job.recorded(name))
            else:
                prompt = _prompt(task, context, report.problems)
                setting = task.subject.track, task.subject.mode
                spec = AgentRunSpec(
                    task.agent, origin, prompt, task.model_label, name, *setting, SYSTEM_PROMPT
                )
                run = StudyRun(spec, context.agents, job, material=material, trees=trees)
                async with run:
                    await run.run_agent()
                with job.cleanup_scope():
                    ended = await _record(run, name, job)
            # An earlier run had another sandbox: its commands prove nothing of this one.
            commands = await to_thread.run_sync(_read_run_commands, context.agents.out, job, name)
            record = EvidenceRecord(commands, await to_thread.run_sync(read_statements, material))
            text = await job.load_text(ended.text) if ended.text else ""
            report, cut = read_report(text, task) if text else ReportText((ended.problem,)), ended.cut
            if not report.problems or cut:
                break
            job.note(f"try {number} of {context.tries} left no usable report: {'; '.join(report.problems)}")
    with job.cleanup_scope():
        if report.problems:
            if not cut:
                job.fall_short(Shortfall("no_report", shorten("; ".join(report.problems))))
            return result_to_json(StudyResult("", "; ".join(report.problems)))
        return await _file(task, report, record, job)


async def _record(run: StudyRun, name: str, job: JobContext) -> _EndedRun:
    """Note how a run ended, and record it, unless a limit ended it: under a higher limit it continues."""
    result, shortfall = run.result, run.result.shortfall
    cut = shortfall is not None and shortfall.by_limit and not run.text
    if result.cost_mismatch_note():
        job.note(result.cost_mismatch_note())
    text = await job.store_text(run.text) if run.text else ""
    end = "" if shortfall is None else shortfall.text
    why = f"{run.problem} ({shorten(end)})" if end else run.problem
    ended = _EndedRun(result.to_json(), text, why, cut)
    if cut and result.finish_reason in _LIMITS:
        kind, what = _LIMITS[result.finish_reason]
        why = f": {result.message}" if kind is BudgetExceeded else ""
        job.end_early(kind(f"{what} after {result.turns} turns{why}"))
    elif cut and shortfall is not None:  # its maximum of turns
        job.fall_short(shortfall)
    else:
        await job.record(name, result_to_json(ended))
    return ended


async def _file(task: StudyTask, report: ReportText, record: EvidenceRecord, job: JobContext) -> Json:
    """Check a report, file it, and return the job's value."""
    spent = job.budget.snapshot().spent.usd
    study = check_report(task, report, record, spent, utc_now())
    digest = await job.store_text(study_to_json(study))
    await to_thread.run_sync(file_study, study)
    return result_to_json(StudyResult.of(study, digest))


def _read_run_commands(out: Path, job: JobContext, name: str) -> Sequence[RecordedCommand]:
    """Return the commands of a run of the agent, of all its attempts. Does blocking I/O.

    What the agent's program prints is left aside: commands in the sandbox can print the same.
    """
    found = list[RecordedCommand]()
    for each in conversations_of(out, job.key):
        if each.part == name and each.source in {SourceKind.LOOP, SourceKind.GATEWAY}:
            found += recorded_commands(read_events(each), _MAX_COMMANDS_CHARS)
    return found


@asynccontextmanager
async def _material(task: StudyTask, context: StudyContext, trees: Trees) -> AsyncIterator[Path]:
    """Write the folder that the sandboxes of a study have mounted, and remove it at the end."""
    golden = await context.golden(task.subject, trees)
    folder = (await to_thread.run_sync(context.scratch.absolute)) / digest_parts(task.key)[:32]
    await to_thread.run_sync(remove_tree, folder)
    try:
        await to_thread.run_sync(
            StudyMaterial(task, context.benchmark, golden, context.journal).write, folder
        )
        yield folder
    finally:
        with anyio.CancelScope(shield=True):
            await to_thread.run_sync(remove_tree, folder)
