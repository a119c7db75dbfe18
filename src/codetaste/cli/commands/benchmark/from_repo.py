"""``codetaste benchmark from-repo``: make instances of the history of a local clone, without a config."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter
from pydantic import ValidationError

from codetaste.assembly.local_history import LocalHistory, read_local_history
from codetaste.benchmark.create import NewInstance, create_instance
from codetaste.cli.options import AsJson
from codetaste.console.command import command
from codetaste.console.json import json_document
from codetaste.console.streams import notify, print_result, result_stream, width_of
from codetaste.core.section import validation_messages
from codetaste.core.text import plural
from codetaste.errors import ConfigError, SourceError
from codetaste.mining.clones.clone import Clone, expand_hash, open_clone, repository_name
from codetaste.mining.funnel import funnel_to_json
from codetaste.mining.prefilter.prefilter import PrefilterLimits
from codetaste.mining.ranking.config import RankingConfig
from codetaste.report.render.text import render_text
from codetaste.report.tables.funnel import funnel_table
from codetaste.run.config import Config
from codetaste.run.mined.report import assemble_and_report
from codetaste.run.plan import RunOptions

MESSAGE = "message"
"""The description of an instance is the message of its commit."""


@command
async def from_repo(  # noqa: PLR0913 - its options
    path: Path,
    /,
    *,
    commit: Annotated[tuple[str, ...], Parameter(negative=())] = (),
    describe_with: str = MESSAGE,
    to: Path = Path("benchmark"),
    name: str | None = None,
    count: int = 5,
    min_files: int = 45,
    budget_usd: float = 5.0,
    json_: AsJson = False,
) -> int:
    """Make instances of the refactorings in the history of a clone.

    With a model the commits are scored, described and given rules in the run ``runs/from-FOLDER``, which the
    same command continues; its rules are checked. Without one the description is the commit's message, and
    rules are for a later run.

    Args:
        path: The clone. It is only read, and must stay where it is.
        commit: Only these commits, without any filter; may be given several times.
        describe_with: "message", or PROVIDER:MODEL of a model that scores, describes and finds rules, such
            as anthropic:claude-haiku-5-5.
        to: The folder of the benchmark; it is created. With a model it is in the run.
        name: OWNER/REPO; default by the remote or the folders of the clone.
        count: How many instances are made.
        min_files: Fewest changed files of a commit.
        budget_usd: US dollars for all calls of the model.
        json_: Print the result as JSON.

    Returns:
        The exit code, 1 if there is no instance.

    Raises:
        ConfigError: the clone, a commit or the model cannot be used.
        SourceError: the clone cannot be read.
        StorageFull: no space left.
        ToolMissing: git is not installed.
    """
    _check_numbers(count, min_files)
    clone = await _open(path, name)
    if describe_with != MESSAGE:
        if commit:
            raise ConfigError("--commit: with a model write a config with [mine] and pairs, a CSV of commits")
        config = _config(path, describe_with, count, min_files, budget_usd)
        return await assemble_and_report(config, Path("codetaste.toml"), RunOptions(as_json=json_))
    history = LocalHistory((), (), ())
    if commit:
        commits = [await _full_hash(clone, each) for each in commit]
    else:
        ranking = RankingConfig(min_stars=0, min_files=min_files)
        history = await read_local_history(clone, ranking, PrefilterLimits(keep=count))
        commits = [diff.golden for diff in history.selected]
    made, problems = [], [str(problem) for problem in history.problems]
    for golden in commits:
        wanted = NewInstance(path, f"{golden}^", golden, clone.repository)
        try:
            made.append((await create_instance(to, wanted)).id)
        except ConfigError as error:
            problems += [f"{golden[:10]}: {problem}" for problem in error.problems]
    for problem in problems:
        notify(problem)
    if json_:
        found: dict[str, Any] = {"instances": made, "folder": str(to), "problems": problems}
        print_result(json_document({**found, "funnel": funnel_to_json(history.funnel)}))
        return 0 if made else 1
    if history.funnel:
        print_result(render_text(funnel_table(history.funnel), width_of(result_stream())))
    print_result("\n".join([*made, f"{plural(len(made), 'instance')} in {to}"]))
    return 0 if made else 1


def _check_numbers(count: int, min_files: int) -> None:
    if count < 1:
        raise ConfigError(f"--count {count}: at least 1 is needed")
    if min_files < 0:
        raise ConfigError(f"--min-files {min_files}: it cannot be negative")


async def _open(path: Path, name: str | None) -> Clone:
    if name is not None and repository_name(f"/{name}") != name:
        raise ConfigError(f"--name {name}: write OWNER/REPO, of letters, digits, '-', '_' and '.'")
    try:
        return await open_clone(path, name)
    except SourceError as error:
        raise ConfigError(str(error)) from error


async def _full_hash(clone: Clone, digits: str) -> str:
    found = await expand_hash(clone, digits)
    if found is None:
        raise ConfigError(f"--commit {digits}: {clone.label} has no such commit, or several")
    return found


def _config(path: Path, model: str, count: int, min_files: int, budget_usd: float) -> Config:
    """Return the config that mines a clone with one model."""
    provider, separator, name = model.partition(":")
    if not separator or not name:
        raise ConfigError(f'--describe-with {model}: write "message", or PROVIDER:MODEL')
    raw: dict[str, Any] = {
        "run": {"name": f"from-{path.resolve().name.removesuffix('.git')}", "budget_usd": budget_usd},
        "models": [{"id": "model", "provider": provider, "model": name}],
        "mine": {
            "runs": [{"name": "clone", "clones": [str(path.absolute())]}],
            "ranking": {"min_stars": 0, "min_files": min_files},
            "scoring": {"model": "model"},
            "instances": count,
        },
        "describe": {"model": "model"},
        "discover": {"models": ["model"]},
    }
    try:
        return Config.model_validate(raw)
    except ValidationError as error:
        raise ConfigError(*validation_messages(error, raw, Config)) from None
