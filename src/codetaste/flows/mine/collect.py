"""Commits of the sources of a mining run, as files of records."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from anyio import from_thread, to_thread

from codetaste.core.hashing import json_digest
from codetaste.core.text import plural
from codetaste.errors import ConfigError
from codetaste.flows.mine.context import clones_folder
from codetaste.flows.mine.sources import open_clones
from codetaste.mining.archive.coverage import HourState, coverage_of
from codetaste.mining.archive.extract import extract_hours
from codetaste.mining.archive.hour import find_hour_files
from codetaste.mining.clones.clone import find_clones, open_clone
from codetaste.mining.clones.commits import read_commits
from codetaste.mining.clones.diffs import find_diff
from codetaste.mining.clones.pairs import read_pairs
from codetaste.mining.commit import CommitRecord
from codetaste.mining.github.answer import ApiOutcome
from codetaste.mining.github.client import open_github
from codetaste.mining.github.completion import complete_records, repository_stars
from codetaste.mining.github.config import read_token, web_host
from codetaste.mining.prefilter.diff import CommitDiff
from codetaste.mining.ranking.rank import write_incomplete_records
from codetaste.mining.ranking.record_file import read_records, write_records
from codetaste.source.release_history import PackageRelease, release_history

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from collections.abc import Set as AbstractSet

    from codetaste.flows.mine.context import MiningContext
    from codetaste.flows.mine.plan import MiningRunConfig, PackageConfig
    from codetaste.mining.clones.clone import Clone
    from codetaste.mining.clones.problem import CommitProblem

_SHOWN_PROBLEMS = 20
_UNANSWERED = frozenset({ApiOutcome.UNAVAILABLE, ApiOutcome.LIMITED})


@dataclass(slots=True)
class Collection:
    """The files of records of a mining run, and one line for each thing that was noted."""

    files: list[Path] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    problems: int = 0
    unanswered: int = 0
    """Commits of which a server that did not answer may know more."""

    def report(self, problem: CommitProblem) -> None:
        """Note a commit that cannot be read."""
        self.add_problems([str(problem)])

    def add_problems(self, lines: Iterable[str]) -> None:
        """Note what cannot be read; only the first lines are shown."""
        for line in lines:
            self.problems += 1
            if self.problems <= _SHOWN_PROBLEMS:
                self.notes.append(line)


async def collect_records(
    run: MiningRunConfig, context: MiningContext, note: Callable[[str], None]
) -> Collection:
    """Write the records of all sources that are no tables to files in the folder of the mining run.

    Raises:
        ConfigError: a source cannot be used, or GitHub refuses the token.
        SourceError: a clone, a release or an archive cannot be read.
        StorageFull: no space left.
        ToolMissing: git is not installed.
    """
    found, folder = Collection(), context.folder(run)
    opened, problems = await open_clones(run, context)
    found.add_problems(problems)
    stars = await _clone_stars([clone for clone, _ in opened], run, context, found)
    for clone, path in opened:
        await to_thread.run_sync(_link, folder, clone.repository, path)
        await to_thread.run_sync(_write_clone, clone, folder, found, stars.get(clone.repository))
    names = {clone.repository.lower() for clone, _ in opened}
    for package in run.packages:
        path = await _package_clone(package, context)
        clone = await open_clone(path, f"{package.package}/{package.package}")
        await to_thread.run_sync(_link, folder, clone.repository, path)
        await to_thread.run_sync(_write_clone, clone, folder, found)
    if context.config.repos is not None:
        await to_thread.run_sync(_link_all, context.path(context.config.repos), folder, names)
    for path in run.pairs:
        await _write_pairs(context.path(path), run, context, found)
    if run.archive is not None:
        await _write_archive(run, context, found)
    if found.problems > _SHOWN_PROBLEMS:
        found.notes.append(f"… and {plural(found.problems - _SHOWN_PROBLEMS, 'further problem')} of commits")
    for line in found.notes:
        note(line)
    return found


def _link(folder: Path, repository: str, path: Path) -> None:
    """Link a clone to ``OWNER/REPO``, where commits are looked for later."""
    link = clones_folder(folder) / repository
    link.parent.mkdir(parents=True, exist_ok=True)
    link.unlink(missing_ok=True)
    link.symlink_to(path.absolute())


def _link_all(repos: Path, folder: Path, linked: AbstractSet[str]) -> None:
    """Link the clones of a folder, without those that are linked already; their names have small letters."""
    for name, path in find_clones(repos).items():
        if name.lower() not in linked:
            _link(folder, name, path)


async def _clone_stars(
    clones: Sequence[Clone], run: MiningRunConfig, context: MiningContext, found: Collection
) -> dict[str, int]:
    """Return the stars of the clones whose repositories the GitHub of the config may have."""
    hosts = {"", web_host(context.config.github)}
    return await _ask_stars([each.repository for each in clones if each.host in hosts], run, context, found)


async def _ask_stars(
    names: Sequence[str], run: MiningRunConfig, context: MiningContext, found: Collection
) -> dict[str, int]:
    """Return the stars of repositories by GitHub's API; none without a token or the section of GitHub."""
    if not names or not context.asks_github(run) or not read_token(context.config.github):
        return {}
    async with open_github(context.config.github, context.answers, found.notes.append) as client:
        stars = await repository_stars(names, client)
    unknown = len(set(names)) - len(stars)
    if unknown:
        found.notes.append(
            f"GitHub does not tell the stars of {plural(unknown, 'repository', 'repositories')}"
        )
    return stars


def _write_clone(clone: Clone, folder: Path, found: Collection, stars: int | None = None) -> None:
    file = folder / "records" / "clones" / f"{clone.repository}.jsonl"
    commits = read_commits(clone, found.report, check=from_thread.check_cancelled, lines=False)
    write_records(file, commits if stars is None else (replace(each, stars=stars) for each in commits))
    found.files.append(file)


async def _package_clone(package: PackageConfig, context: MiningContext) -> Path:
    releases = [PackageRelease(each.version, each.sha256, each.message) for each in package.releases]
    return await release_history(package.package, releases, context.cache)


async def _write_pairs(path: Path, run: MiningRunConfig, context: MiningContext, found: Collection) -> None:
    """Write the pairs of a CSV file, with what their repositories say of them."""
    try:
        content = await to_thread.run_sync(path.read_bytes)
    except OSError as error:
        raise ConfigError(f"mine.runs {run.name}: {path}: {error.strerror}") from error
    pairs = read_pairs(content, path.name)
    found.notes += pairs.problems
    records: list[CommitRecord] = []
    for record in pairs.records:
        if record.text:
            records.append(record)
            continue
        diff = await find_diff(record, context.places(run))
        if isinstance(diff, CommitDiff):
            records.append(diff.record)
        else:
            found.unanswered += diff.reason.temporary
            found.add_problems([f"{record.name}: {diff.reason}: {diff.detail}"])
    names = [each.repository for each in records if each.stars is None]
    stars = await _ask_stars(names, run, context, found)
    records = [
        each if each.stars is not None else replace(each, stars=stars.get(each.repository))
        for each in records
    ]
    file = context.folder(run) / "records" / f"pairs-{path.stem}-{json_digest(str(path))[:8]}.jsonl"
    await to_thread.run_sync(write_records, file, records)
    found.files.append(file)


async def _write_archive(run: MiningRunConfig, context: MiningContext, found: Collection) -> None:
    """Extract the hours, and complete what they lack through GitHub's API."""
    config = run.archive
    assert config is not None  # noqa: S101 - the caller looked
    names = [str(context.path(Path(name))) for name in config.hours]
    hours = await to_thread.run_sync(find_hour_files, names)
    if not hours:
        raise ConfigError(f"mine.runs {run.name}: archive.hours names no hour file")
    folder = context.path(config.folder) if config.folder else context.folder(run) / "hours"
    summaries = await extract_hours(hours, folder, processes=config.processes)
    coverage = coverage_of(summaries, config.first_hour, config.last_hour)
    found.notes += [span.describe() for span in coverage.spans() if span.state is not HourState.COMPLETE]
    found.notes += [line for summary in summaries for line in summary.fault_lines()]
    files = [summary.records for summary in summaries]
    found.files += files
    if any(summary.without_hash for summary in summaries):
        found.files.append(await _complete(files, run, context, found))


async def _complete(
    files: Sequence[Path], run: MiningRunConfig, context: MiningContext, found: Collection
) -> Path:
    """Write a file of the records that lack their hash, completed; without a token they stay as they are."""
    folder, outcomes, made = context.folder(run) / "records", Counter[str](), list[CommitRecord]()
    incomplete, completed = folder / "incomplete.jsonl", folder / "completed.jsonl"
    await to_thread.run_sync(partial(folder.mkdir, parents=True, exist_ok=True))
    await write_incomplete_records(files, incomplete, context.ranking, context.folder(run) / "spill")
    wanted = await to_thread.run_sync(lambda: list(read_records(incomplete)))
    async with open_github(context.config.github, context.answers, found.notes.append) as client:
        async for each in complete_records(wanted, client):
            outcomes[each.outcome.value] += 1
            found.unanswered += each.outcome in _UNANSWERED
            made.append(each.record)
    await to_thread.run_sync(write_records, completed, made)
    counts = ", ".join(f"{count:,} {outcome}" for outcome, count in sorted(outcomes.items()))
    found.notes.append(f"records of the archive completed through GitHub: {counts}")
    return completed
