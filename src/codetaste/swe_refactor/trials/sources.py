"""What trials read of the instances' projects: files before the commit, and their build."""

from __future__ import annotations

import tempfile
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import anyio

from codetaste.errors import ConfigError, SourceError
from codetaste.mining.clones.clone import open_clone
from codetaste.source.git import run_git
from codetaste.source.repository import Repository
from codetaste.swe_refactor.answers.edit.git_tree import GitTree
from codetaste.swe_refactor.score.base_build import build_base

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from codetaste.swe_refactor.dataset.instance import RefactoringInstance
    from codetaste.swe_refactor.score.base_build import BaseBuild
    from codetaste.swe_refactor.verify.settings import VerifyContext

_SHOWN = 5


@dataclass(frozen=True, slots=True)
class InstanceSource:
    """Where an instance is from.

    Attributes:
        project: ``OWNER/REPO``.
        repository: the clone.
        base_commit: the commit before that of the instance, a full hash.
        tree: its files.
    """

    project: str
    repository: Repository
    base_commit: str
    tree: GitTree


async def find_sources(
    instances: Iterable[RefactoringInstance], clones: Sequence[Path]
) -> dict[str, InstanceSource]:
    """Return the source of each instance by its unique id: the first clone that has its commit and parent.

    Raises:
        ConfigError: no clone has the commit of an instance, or its parent.
        SourceError: a path is no clone.
    """
    opened = [await open_clone(path) for path in clones]
    by_commit = defaultdict[str, list[str]](list)
    for each in instances:
        by_commit[each.commit_id].append(each.unique_id)
    found: dict[str, InstanceSource] = {}
    for clone in opened:
        bases = await _parents(clone.git_dir, [name for name in by_commit if name not in found])
        for commit, base in bases.items():
            repository = Repository(clone.git_dir, clone.label)
            found[commit] = InstanceSource(clone.repository, repository, base, GitTree(clone.git_dir, base))
    if missing := [commit for commit in by_commit if commit not in found]:
        more = f" and {len(missing) - _SHOWN} more" if len(missing) > _SHOWN else ""
        raise ConfigError(
            "swe_refactor.repositories: no clone has the commit "
            f"{', '.join(name[:12] for name in missing[:_SHOWN])}{more} and its parent; name the clone of "
            "each project, with its whole history"
        )
    return {name: found[commit] for commit, names in by_commit.items() for name in names}


async def _parents(git_dir: Path, commits: Sequence[str]) -> dict[str, str]:
    """Return the first parent of each commit that is there with it."""
    if not commits:
        return {}
    with tempfile.TemporaryFile() as wanted:
        wanted.write("".join(f"{name}^1\n{name}\n" for name in commits).encode())
        wanted.seek(0)
        done = await run_git("cat-file", "--batch-check", git_dir=git_dir, stdin=wanted)
    lines = done.output.decode("utf-8", "replace").splitlines()
    if not done.ok or len(lines) != 2 * len(commits):
        raise SourceError(f"{git_dir}: commits cannot be read: {done.stderr}")
    return {
        name: parent.split(" ")[0]
        for name, parent, own in zip(commits, lines[::2], lines[1::2], strict=True)
        if parent.split(" ")[1:2] == ["commit"] and own.split(" ")[1:2] == ["commit"]
    }


@dataclass(frozen=True, slots=True)
class BaseBuilds:
    """The builds of the files before, each opened once for all trials of an instance.

    Attributes:
        sources: where instances are from, by unique id.
        contexts: what builds of a project share, by its name.
        store: folder for built trees and results, which may be shared by runs.
    """

    sources: Mapping[str, InstanceSource]
    contexts: Mapping[str, VerifyContext]
    store: Path
    _opened: dict[str, BaseBuild] = field(default_factory=dict)
    _locks: defaultdict[str, anyio.Lock] = field(default_factory=lambda: defaultdict(anyio.Lock))

    async def open(self, instance: RefactoringInstance) -> BaseBuild:
        """Return the build of the files before an instance's commit.

        Raises:
            BaseFails: they cannot be built, or tested.
            SourceError: the commit cannot be read.
            SandboxError: no sandbox can be opened, or the engine failed.
            StorageFull: no space left.
        """
        name = instance.unique_id
        async with self._locks[name]:
            if name not in self._opened:
                source = self.sources[name]
                self._opened[name] = await build_base(
                    self.contexts[source.project],
                    source.repository,
                    source.base_commit,
                    instance,
                    self.store,
                )
            return self._opened[name]
