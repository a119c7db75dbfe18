"""Make an instance of a benchmark from two commits of a local repository."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from anyio import to_thread

from codetaste.benchmark.benchmark import open_benchmark
from codetaste.benchmark.instance import Instance
from codetaste.benchmark.instances_csv import (
    LANGUAGES,
    format_table,
    is_path_name,
    nearest_names_hint,
    read_table,
)
from codetaste.benchmark.layout import INSTANCES_FILE, Track, description_path
from codetaste.core.files import write_atomically
from codetaste.errors import ConfigError, SourceError
from codetaste.source.git import run_git
from codetaste.source.languages import main_language
from codetaste.source.repository import open_repository

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from codetaste.source.repository import Repository


@dataclass(frozen=True, slots=True)
class NewInstance:
    """What an instance is made of: a clone, two of its revisions, and texts.

    Attributes:
        repo: the clone, bare or not.
        base: revision of R.
        golden: revision of R∘X*.
        name: ``OWNER/REPO`` in the benchmark; "" for ``local/`` and the name of the folder.
        language: "" for the language of most changed files.
        category: any text.
        descriptions: text of the task by track; without an instructed one, the golden commit's message.
    """

    repo: Path
    base: str
    golden: str
    name: str = ""
    language: str = ""
    category: str = ""
    descriptions: Mapping[Track, str] | None = None


async def create_instance(root: Path, new: NewInstance) -> Instance:
    """Add an instance to the benchmark in the folder ``root``, which is created as needed.

    Raises:
        ConfigError: the repository, a revision, a name or the language is unusable, or the instance is there.
        SourceError: git does not end.
        StorageFull: no space left.
        ToolMissing: git is not installed.
    """
    repo = await to_thread.run_sync(new.repo.expanduser().absolute)
    try:
        clone = await open_repository(repo)
    except SourceError as error:
        raise ConfigError(f"--repo: {error}") from error
    base, golden = await _commit(clone, new.base, "--base"), await _commit(clone, new.golden, "--golden")
    changed = (await _git(clone, "diff-tree", "-r", "-z", "--name-only", base, golden)).split("\0")[:-1]
    if not changed:
        raise ConfigError(f"--base and --golden: both commits of {repo} have the same files")
    owner, name = _split_name(new.name or f"local/{_folder_name(repo)}")
    language = _check_language(new.language) if new.language else _guess_language(changed)
    extra = {"origin": str(repo)}
    instance = Instance(owner, name, base, golden, None, new.category, language, extra)
    texts = {**(new.descriptions or {})}
    if Track.INSTRUCTED not in texts:
        texts[Track.INSTRUCTED] = await _git(clone, "log", "-1", "--format=%B", golden)
        if not texts[Track.INSTRUCTED].strip():
            raise ConfigError("--golden: the message of the commit is empty: name a file, --description")
    for track, text in texts.items():
        if not text.strip():
            raise ConfigError(f"the {track} description is empty")
    await to_thread.run_sync(_write, root, instance, texts)
    return instance


def _split_name(text: str) -> tuple[str, str]:
    owner, _, repo = text.partition("/")
    if not (is_path_name(owner) and is_path_name(repo)):
        raise ConfigError(
            f"--name: {text!r} is not of the form OWNER/REPO, each of letters, digits, '-', '_' and '.'"
        )
    return owner, repo


def _check_language(text: str) -> str:
    language = text.lower()
    if language not in LANGUAGES:
        raise ConfigError(f"--language: {text!r} is unknown{nearest_names_hint(language, LANGUAGES, 1)}")
    return language


def _write(root: Path, instance: Instance, texts: Mapping[Track, str]) -> None:
    table = root / INSTANCES_FILE
    if root.exists() and not root.is_dir():
        raise ConfigError(f"--to: {root} is not a folder")
    earlier = open_benchmark(root).instances if table.exists() else ()
    if instance.id in {each.id for each in earlier}:
        raise ConfigError(
            f"{table}: {instance.id} is there already; choose another --name, or remove its line first"
        )
    content = format_table([*earlier, instance])
    # Reading it checks all of it, as every command does that opens the benchmark.
    read_table(content.encode(), str(table))
    for track, text in texts.items():
        write_atomically(description_path(root, instance, track), f"{text.strip()}\n")
    write_atomically(table, content)


async def _commit(clone: Repository, revision: str, option: str) -> str:
    """Return the full hash of ``revision``."""
    arguments = ("rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
    try:
        return (await _git(clone, *arguments)).strip()
    except ConfigError:
        raise ConfigError(f"{option}: {clone.label} has no commit {revision!r}") from None


async def _git(clone: Repository, *arguments: str) -> str:
    """Return the output of git in ``clone``."""
    done = await run_git(*arguments, git_dir=clone.git_dir)
    if not done.ok:
        raise ConfigError(f"git {arguments[0]} in {clone.label}: {done.stderr.strip() or done.exit_code}")
    return done.output.decode("utf-8", "replace")


def _folder_name(repo: Path) -> str:
    return re.sub(r"[^A-Za-z0-9_.-]+", "-", repo.name.removesuffix(".git")).strip("-.") or "repository"


def _guess_language(changed: list[str]) -> str:
    language = main_language(changed)
    if language is None:
        raise ConfigError("no changed file is in a language that is known by its suffix: name it, --language")
    return language
