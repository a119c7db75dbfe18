"""The jobs of a mining run: collect and rank commits, read their diffs, then score what is left.

The first two are done once. The third costs nothing and is repeated by each session, because it adds the jobs
that score; their replies are taken from the journal.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from anyio import to_thread

from codetaste.core.files import write_atomically
from codetaste.core.hashing import json_digest
from codetaste.core.text import plural
from codetaste.errors import ConfigError, SourceError
from codetaste.flows.mine.collect import collect_records
from codetaste.flows.mine.context import (
    MiningTask,
    funnel_file,
    prefiltered_file,
    ranked_file,
    task_of,
    write_population,
)
from codetaste.flows.mine.scoring.context import selection_keys
from codetaste.flows.mine.scoring.jobs import scoring_handlers, scoring_jobs
from codetaste.flows.mine.scoring.select import MAX_REFUSED, MAX_REFUSED_SHARE
from codetaste.flows.mine.sources import source_digests
from codetaste.mining.clones.diffs import find_diff, find_diffs
from codetaste.mining.filter_result import Stage
from codetaste.mining.funnel import Funnel, funnel_from_json, funnel_to_json
from codetaste.mining.prefilter.diff import CommitDiff
from codetaste.mining.prefilter.stage import run_stage_2
from codetaste.mining.prefilter.unreachable import Unreachable
from codetaste.mining.ranking.bigquery.rank import rank_in_bigquery
from codetaste.mining.ranking.rank import rank_activity_data, rank_record_files
from codetaste.mining.ranking.record_file import read_records, write_records
from codetaste.orchestration.job import Job
from codetaste.orchestration.shortfall import Shortfall

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from codetaste.flows.mine.context import MiningContext
    from codetaste.flows.mine.plan import MiningRunConfig
    from codetaste.mining.clones.resolve import CommitPlaces
    from codetaste.mining.commit import CommitRecord
    from codetaste.mining.ranking.result import Ranking
    from codetaste.orchestration.budget.cost import BudgetPath
    from codetaste.orchestration.job import Handler, JobContext, Outcome
    from codetaste.orchestration.journal.journal import Json
    from codetaste.orchestration.session import Session

COLLECT, PREFILTER, SCORE = "mine.collect", "mine.prefilter", "mine.score"
"""The kinds of the jobs."""
_VERSION = 2
"""Increment it when a change of stages 1 and 2 changes which commits they take."""


async def add_mining(session: Session, context: MiningContext, budget: BudgetPath) -> None:
    """Add the jobs of all mining runs of the config to a session, and what runs them.

    Raises:
        ConfigError: a source or the file of keywords cannot be used.
    """
    session.add_handlers(mining_handlers(context, budget))
    tasks = [MiningTask(run) for run in context.config.runs]
    # The jobs that add others add them anew in each session; scores are taken from the journal.
    session.repeat(key for each in tasks for key in (each.score_key, *selection_keys(each.run.name)))
    for task in tasks:
        session.add(*await _jobs(task, context, budget))


def mining_handlers(context: MiningContext, budget: BudgetPath) -> dict[str, Handler]:
    """Return what runs the jobs of mining, by kind."""
    return {
        COLLECT: lambda job, run: _collect(task_of(job).run, context, run),
        PREFILTER: lambda job, run: _prefilter(task_of(job).run, context, run),
        SCORE: lambda job, _run: _score(task_of(job).run, context, budget),
        **scoring_handlers(context.scoring, context.add),
    }


async def _jobs(task: MiningTask, context: MiningContext, budget: BudgetPath) -> list[Job]:
    config, keywords = context.config, await to_thread.run_sync(context.keyword_sets)
    patterns = [getattr(keywords, name).pattern for name in ("strong_plus", "weak_plus")]
    patterns += [getattr(keywords, name).pattern for name in ("strong_minus", "weak_minus")]
    decides = [_VERSION, json.loads(task.run.model_dump_json()), json.loads(config.ranking.model_dump_json())]
    collect = json_digest([*decides, patterns, await source_digests(task.run, context)])
    later = None if config.later_than is None else config.later_than.isoformat()
    stage_2 = json_digest([collect, config.code_edits, config.prefiltered, later, config.fetch])
    name = task.run.name
    return [
        Job(
            task.collect_key,
            COLLECT,
            budget,
            fingerprint=collect,
            parameters=task,
            resources={"cpu": 1},
            title=f"{name}: commits",
            group="commits",
            costs_nothing=True,
        ),
        Job(
            task.prefilter_key,
            PREFILTER,
            budget,
            fingerprint=stage_2,
            parameters=task,
            needs=(task.collect_key,),
            resources={"cpu": 1},
            title=f"{name}: diffs",
            group="diffs",
            costs_nothing=True,
        ),
        Job(
            task.score_key,
            SCORE,
            budget,
            fingerprint=stage_2,
            parameters=task,
            needs=(task.prefilter_key,),
            title=f"{name}: scores",
            group="scores",
            costs_nothing=True,
        ),
    ]


async def _collect(run: MiningRunConfig, context: MiningContext, job: JobContext) -> Json:
    """Stage 1. The result is how many commits there are after it; they are in a file."""
    found = await collect_records(run, context, job.note)
    ranking = await _rank(run, found.files, context)
    folder = context.folder(run)
    await to_thread.run_sync(write_records, ranked_file(folder), [each.record for each in ranking.commits])
    await _write_funnel(folder, Funnel(ranking.rows))
    if found.unanswered:
        job.fall_short(_no_answer(found.unanswered))
    return {"commits": len(ranking.commits), "problems": found.problems}


def _no_answer(commits: int) -> Shortfall:
    """Return why a job without all answers of a server is done again by the next session."""
    return Shortfall("no answer", f"no answer about {plural(commits, 'commit')}: run again", transient=True)


async def _rank(run: MiningRunConfig, files: list[Path], context: MiningContext) -> Ranking:
    sets = await to_thread.run_sync(context.keyword_sets)
    config, spill = context.ranking, context.folder(run) / "spill"
    if run.bigquery is not None:
        found = await rank_in_bigquery(
            sets, config, run.bigquery, spill, lambda estimate: context.ask(estimate.describe())
        )
        if found is None:
            raise ConfigError("the price of the query was not accepted")
        return found
    if run.activity is None:
        return await rank_record_files(files, sets, config, spill)
    commits = [context.path(path) for path in run.activity.commits]
    licences = [context.path(path) for path in run.activity.licences]
    return await rank_activity_data(commits, licences, sets, config, spill)


async def _prefilter(run: MiningRunConfig, context: MiningContext, job: JobContext) -> Json:
    """Stage 2. The result is how many commits there are after it; they are in a file.

    Raises:
        SourceError: so many commits got no answer of their server that the choice would be left to chance.
    """
    folder = context.folder(run)
    records = await to_thread.run_sync(lambda: list(read_records(ranked_file(folder))))
    funnel = await _read_funnel(folder, {Stage.PREFILTER, Stage.SCORING})
    diffs = await find_diffs(records, context.places(run))
    silent = [each for each in diffs if isinstance(each, Unreachable) and each.reason.temporary]
    if silent and (
        len(silent) == len(diffs) or len(silent) > max(MAX_REFUSED, MAX_REFUSED_SHARE * len(diffs))
    ):
        raise SourceError(
            f"{plural(len(silent), 'commit')} of {len(diffs):,} got no answer, so none is chosen; the first: "
            f"{silent[0].detail}; run again to try them"
        )
    found, rows = await to_thread.run_sync(run_stage_2, diffs, context.limits, context.config.later_than)
    funnel.add_rows(rows)
    unreachable = [each for each in diffs if not isinstance(each, CommitDiff)]
    for lost in unreachable:
        job.note(f"{lost.record.name}: {lost.reason}: {lost.detail}")
    await to_thread.run_sync(
        write_records, prefiltered_file(folder), [_resolved(diff) for diff in found.selected]
    )
    await to_thread.run_sync(write_population, folder, found.bounds, found.lowest_ratio)
    await _write_funnel(folder, funnel)
    if silent:
        job.fall_short(_no_answer(len(silent)))
    return {"commits": len(found.selected), "unreachable": len(unreachable)}


def _resolved(diff: CommitDiff) -> CommitRecord:
    """Return the record with the commits that its diff is of."""
    return replace(diff.record, base=diff.base, golden=diff.golden)


async def _score(run: MiningRunConfig, context: MiningContext, budget: BudgetPath) -> Json:
    """Add the jobs that score what stage 2 took."""
    records = await to_thread.run_sync(lambda: list(read_records(prefiltered_file(context.folder(run)))))
    context.add(*scoring_jobs(run.name, records, context.scoring, budget))
    return len(records)


async def load_diff(record: CommitRecord, places: Iterable[CommitPlaces]) -> CommitDiff:
    """Return the diff of a commit in one of the places.

    Raises:
        SourceError: none of them has it.
        ToolMissing: git is not installed.
        StorageFull: no space left in the cache.
    """
    detail = "there is no clone"
    for each in places:
        diff = await find_diff(record, each)
        if isinstance(diff, CommitDiff):
            return diff
        detail = diff.detail
    raise SourceError(f"{record.name}: {detail}")


async def add_scoring_rows(folder: Path, outcome: Outcome) -> None:
    """Complete the funnel of a mining run with the rows of stage 3, from the job that chose candidates."""
    funnel = await _read_funnel(folder, {Stage.SCORING})
    value: Any = outcome.value
    funnel.add_rows(funnel_from_json(value["funnel"]))
    await _write_funnel(folder, funnel)


async def _write_funnel(folder: Path, funnel: Funnel) -> None:
    text = json.dumps(funnel_to_json(funnel.rows), indent=1) + "\n"
    await to_thread.run_sync(write_atomically, funnel_file(folder), text.encode())


async def _read_funnel(folder: Path, without: set[Stage]) -> Funnel:
    """Read the funnel of the stages before; those in ``without`` are counted anew."""
    data = json.loads(await to_thread.run_sync(funnel_file(folder).read_bytes))
    return Funnel(row for row in funnel_from_json(data) if row.stage not in without)
