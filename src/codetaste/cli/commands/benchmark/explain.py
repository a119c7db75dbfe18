"""``codetaste mine explain``: what each filter of the funnel says of one commit, and why."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from anyio import to_thread
from cyclopts import Parameter

from codetaste.benchmark.layout import CANDIDATE_SCORES_FILE
from codetaste.cli.options import AsJson
from codetaste.console.command import command
from codetaste.console.json import json_document
from codetaste.console.streams import notify, print_result, result_stream, width_of
from codetaste.core.paths import cache_dir
from codetaste.errors import ConfigError, SourceError
from codetaste.flows.mine.context import clones_folder, mining_folder, ranked_file, read_population
from codetaste.mining.clones.clone import find_clone, open_clone, repository_name
from codetaste.mining.clones.explain import Population, explain_commit
from codetaste.mining.clones.resolve import CommitPlaces
from codetaste.mining.commit import CommitRecord
from codetaste.mining.filter_result import FilterResult, Stage
from codetaste.mining.keywords.count import find_keywords, keyword_results
from codetaste.mining.keywords.sets import DEFAULT_FILE, load_keyword_sets
from codetaste.mining.prefilter.prefilter import PrefilterLimits
from codetaste.mining.ranking.config import RankingConfig
from codetaste.mining.ranking.record_file import read_records
from codetaste.mining.ranking.result import size_results
from codetaste.report.render.text import render_text
from codetaste.report.table import Column, Row, Table
from codetaste.run.config import read_config, runs_folder
from codetaste.source.repository import validate_commit_hash

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from codetaste.flows.mine.plan import MineConfig
    from codetaste.mining.keywords.sets import KeywordSets


@command
async def explain(
    repository: str,
    commit: str,
    /,
    *,
    clone: Path | None = None,
    repos: Path | None = None,
    config: Path | None = None,
    stars: Annotated[int | None, Parameter(show_default=False)] = None,
    json_: AsJson = False,
) -> int:
    """Show what each filter says of one commit, also those behind one that drops it.

    Args:
        repository: OWNER/REPO.
        commit: The full hash of the golden commit.
        clone: Its clone.
        repos: A folder of clones OWNER/REPO. Without a clone the commit is fetched.
        config: A config with [mine], for its limits; if it was run, also for the outliers and scores of its
            commits.
        stars: Stars of the repository; unknown without it.
        json_: Print the result as JSON.

    Returns:
        The exit code, 1 if a filter drops the commit.

    Raises:
        ConfigError: the hash is no full hash, or the config or the clone cannot be used.
        SourceError: the clone is none.
    """
    if repository_name(f"/{repository}") != repository:
        raise ConfigError(f"{repository!r} is not OWNER/REPO, of letters, digits, '-', '_' and '.'")
    try:
        validate_commit_hash(commit)
    except SourceError as error:
        raise ConfigError(str(error)) from error
    section, folder = _read_section(config)
    sets = await to_thread.run_sync(load_keyword_sets, _keywords(section, config))
    ranking = RankingConfig() if section is None else section.ranking
    limits = (
        PrefilterLimits() if section is None else PrefilterLimits(section.code_edits, section.prefiltered)
    )
    cache = await to_thread.run_sync(cache_dir, notify)
    places = CommitPlaces(repos, cache if section is None or section.fetch else None)
    if clone is not None:
        opened = await open_clone(clone, repository)
        places = CommitPlaces(await to_thread.run_sync(_clone_folder, opened.git_dir, repository, cache))
    elif repos is None and section is not None and folder is not None:
        linked = await to_thread.run_sync(_linked_clones, section, folder, repository)
        places = CommitPlaces(linked, places.cache)

    def stage_1(record: CommitRecord) -> list[FilterResult]:
        return [*size_results(record, ranking), *_keyword_results(record, sets)]

    record = CommitRecord(repository, commit, stars=stars)
    population, scores = await to_thread.run_sync(_read_run, section, folder, record)
    later_than = None if section is None else section.later_than
    results = await explain_commit(record, places, stage_1, limits, population, later_than)
    if json_:
        print_result(json_document({"repository": repository, "commit": commit} | _to_json(results, scores)))
    else:
        print_result(_render(record, results, scores))
    return 0 if all(each.passed for each in results) else 1


def _read_section(config: Path | None) -> tuple[MineConfig | None, Path | None]:
    if config is None:
        return None, None
    read = read_config(config)
    if read.mine is None:
        raise ConfigError(f"{config}: it has no section [mine]")
    return read.mine, runs_folder(config, read.run.out) / read.run.name


def _keywords(section: MineConfig | None, config: Path | None) -> Path:
    if section is None or section.keywords is None or config is None:
        return DEFAULT_FILE
    return config.parent / section.keywords.expanduser()


def _linked_clones(section: MineConfig, folder: Path, repository: str) -> Path | None:
    """Return the folder of the clones of the first mining run that reads one of ``repository``."""
    places = (clones_folder(mining_folder(folder, run.name)) for run in section.runs)
    return next((each for each in places if find_clone(each, repository) is not None), None)


def _clone_folder(git_dir: Path, repository: str, cache: Path) -> Path:
    """Return a folder in which the clone is at ``OWNER/REPO``."""
    link = cache / "explained" / repository
    link.parent.mkdir(parents=True, exist_ok=True)
    link.unlink(missing_ok=True)
    link.symlink_to(git_dir.absolute())
    return cache / "explained"


def _keyword_results(record: CommitRecord, sets: KeywordSets) -> Iterator[FilterResult]:
    """Yield the conditions on keywords, with the words that were found."""
    matches = find_keywords(record.text, sets)
    for name, words in asdict(matches).items():
        shown = ", ".join(words) or "–"
        yield FilterResult(Stage.KEYWORDS, f"words of {name}", passed=True, value=shown, bound="")
    yield from keyword_results(matches.counts)


def _read_run(
    section: MineConfig | None, folder: Path | None, record: CommitRecord
) -> tuple[Population, dict[str, Any]]:
    """Return the bounds of outliers and the scores of the commit in the runs of a config that was run.

    They are of the run that has scored the commit, else of one in which it passed stage 1, else of the last.
    """
    population, ranked = Population(), False
    for run in section.runs if section is not None and folder is not None else ():
        place = mining_folder(folder, run.name) if folder is not None else Path()
        found = read_population(place) or Population()
        if scores := _read_scores(place, record):
            return found, scores
        if not ranked:
            population, ranked = found, _has_passed_stage_1(place, record)
    return population, {}


def _read_scores(place: Path, record: CommitRecord) -> dict[str, Any]:
    """Return the scores of a commit in the folder of a mining run; {} if it was not scored there."""
    try:
        lines = (place / CANDIDATE_SCORES_FILE).read_text("utf-8").splitlines()
    except FileNotFoundError:
        return {}
    for line in map(json.loads, lines):
        if (line["repository"], line["golden"]) == (record.repository, record.golden):
            return dict(line)
    return {}


def _has_passed_stage_1(place: Path, record: CommitRecord) -> bool:
    file = ranked_file(place)
    return file.is_file() and any(
        (each.repository, each.golden) == (record.repository, record.golden) for each in read_records(file)
    )


def _to_json(results: Sequence[FilterResult], scores: dict[str, Any]) -> dict[str, Any]:
    return {"filters": [asdict(each) for each in results], "scores": scores or None}


def _render(record: CommitRecord, results: Sequence[FilterResult], scores: dict[str, Any]) -> str:
    columns = (
        Column("filter", "Filter"),
        Column("value", "Value"),
        Column("bound", "Required"),
        Column("passed", "Result"),
    )
    rows = [
        Row((each.filter, each.value, each.bound, "passed" if each.passed else each.reason), each.stage.value)
        for each in results
    ]
    rows.extend(
        Row((name, f"{scores[name]:.4f}", "", ""), Stage.SCORING.value)
        for name in ("message_score", "diff_score", "total_score")
        if scores.get(name) is not None
    )
    if scores:
        chosen = "a candidate" if scores["candidate"] else "no candidate"
        rows.append(Row(("choice", chosen, "", ""), Stage.SCORING.value))
    table = Table("explain", f"filters at {record.name}", columns, tuple(rows), section="stage")
    return render_text(table, width_of(result_stream()))
