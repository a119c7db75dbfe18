"""A local clone: its git directory, the name of its repository, and where its history is cut off."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from anyio import to_thread

from codetaste.benchmark.instances_csv import is_path_name
from codetaste.errors import SourceError
from codetaste.source.git import run_git
from codetaste.source.origin import URL_PATTERN
from codetaste.source.repository import open_repository

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_REMOTE_URL = r"^remote\..*\.url$"
_HOST = re.compile(r"(?:[A-Za-z][A-Za-z0-9+.-]*://)?(?:[^@/\s]*@)?(?P<host>[^:/@\s]+)")
_DIGITS = re.compile(r"[0-9a-f]{4,64}")
_PARTIAL = r"^(extensions\.partialclone|remote\..*\.promisor)$"


@dataclass(frozen=True, slots=True)
class Clone:
    """A clone on this machine, bare or not.

    Attributes:
        git_dir: its git directory; of a linked work tree that of the main one.
        repository: ``OWNER/REPO``.
        label: its place in messages.
        host: of the URL of its remote, such as "github.com"; "" if it has no remote on a server.
        shallow: the commits whose parents were not fetched.
        partial: contents of files may be missing.
    """

    git_dir: Path
    repository: str
    label: str
    host: str = ""
    shallow: frozenset[str] = frozenset()
    partial: bool = False

    @property
    def hint(self) -> str:
        """What brings missing objects; it ends a message."""
        if self.shallow:
            return f"git -C {self.label} fetch --unshallow"
        return f"git -C {self.label} fetch --refetch --no-filter (git 2.36 or later)"


async def open_clone(path: Path, repository: str | None = None) -> Clone:
    """Open the clone at ``path``.

    Args:
        path: a clone, bare or not, or a link to one.
        repository: its name, if it is known better than by its remote.

    Raises:
        SourceError: ``path`` is no clone, or it does not tell the name of its repository.
        ToolMissing: git is not installed.
    """
    opened = await open_repository(path)
    urls = await _remote_urls(opened.git_dir)
    places = (await to_thread.run_sync(path.absolute), await to_thread.run_sync(path.resolve))
    name = (
        repository
        or next((name for url in urls if (name := repository_name(url)) is not None), None)
        or next(filter(None, map(_name_by_folder, places)), None)
    )
    if name is None:
        raise SourceError(
            f"{path}: no remote and no folder names its repository; "
            "add a remote (git remote add origin URL), or put the clone at OWNER/REPO"
        )
    partial = await run_git("config", "--get-regexp", _PARTIAL, git_dir=opened.git_dir)
    common = await run_git("rev-parse", "--git-common-dir", git_dir=opened.git_dir)
    git_dir = opened.git_dir / os.fsdecode(common.output.removesuffix(b"\n")) if common.ok else opened.git_dir
    git_dir = await to_thread.run_sync(git_dir.resolve)
    shallow = await to_thread.run_sync(_shallow_commits, git_dir)
    host = _host(urls[0]) if urls else ""
    return Clone(git_dir, name, opened.label, host, shallow, partial=bool(partial.output.strip()))


async def expand_hash(clone: Clone, digits: str) -> str | None:
    """Return the full hash of the commit whose hash begins with ``digits``; None unless there is just one.

    Raises:
        ToolMissing: git is not installed.
    """
    if _DIGITS.fullmatch(digits) is None:
        return None
    found = await run_git("rev-parse", "--verify", "--quiet", f"{digits}^{{commit}}", git_dir=clone.git_dir)
    return found.output.decode().strip() if found.ok else None


def is_clone(path: Path) -> bool:
    """Return whether there is a clone at ``path``, bare or not. Blocking."""
    return (path / ".git").exists() or (path / "HEAD").is_file()


def find_clones(folder: Path) -> Mapping[str, Path]:
    """Return the clones ``OWNER/REPO`` or ``OWNER/REPO.git`` in ``folder`` by name, sorted. Blocking.

    Folders whose names no instance can have, such as one with a space, are passed over.

    Raises:
        SourceError: ``folder`` cannot be read.
    """
    found: dict[str, Path] = {}
    try:
        for owner in sorted(path for path in folder.iterdir() if path.is_dir()):
            for path in sorted(owner.iterdir()):
                name = path.name.removesuffix(".git")
                if is_path_name(owner.name) and is_path_name(name) and is_clone(path):
                    found.setdefault(f"{owner.name}/{name}", path)
    except OSError as error:
        raise SourceError(f"{folder}: cannot be read: {error.strerror}") from error
    return found


def find_clone(folder: Path, repository: str) -> Path | None:
    """Return the clone of ``OWNER/REPO`` in ``folder``, None if there is none. Blocking."""
    paths = (folder / repository, folder / f"{repository}.git")
    return next(filter(is_clone, paths), None)


def repository_name(url: str) -> str | None:
    """Return ``OWNER/REPO`` of a clone's URL or path, None if its end is no such name."""
    without_host = re.sub(r"^[A-Za-z][A-Za-z0-9+.-]*://[^/]*|^[^/:\s]+@[^/:\s]+:", "/", url.strip())
    parts = without_host.rstrip("/").removesuffix(".git").rstrip("/").split("/")
    owner, repo = parts[-2:] if len(parts) > 1 else ("", "")
    return f"{owner}/{repo}" if is_path_name(owner) and is_path_name(repo) else None


async def _remote_urls(git_dir: Path) -> list[str]:
    """Return the URLs of the remotes, that of ``origin`` first; paths are left out."""
    listed = await run_git("config", "--null", "--get-regexp", _REMOTE_URL, git_dir=git_dir)
    remotes = [
        entry.partition("\n") for entry in listed.output.decode("utf-8", "replace").split("\0") if entry
    ]
    remotes.sort(key=lambda remote: (remote[0] != "remote.origin.url", remote[0]))
    return [url for _, _, url in remotes if URL_PATTERN.match(url) and not url.startswith("file:")]


def _host(url: str) -> str:
    """Return the host of ``https://HOST/…`` or ``user@HOST:…`` in lower case, without its port."""
    found = _HOST.match(url.strip())
    return found["host"].lower() if found else ""


def _name_by_folder(place: Path) -> str | None:
    return repository_name(str(place.parent if place.name == ".git" else place))


def _shallow_commits(git_dir: Path) -> frozenset[str]:
    with suppress(OSError):
        return frozenset((git_dir / "shallow").read_text("ascii", "replace").split())
    return frozenset()
