"""Clones made by the tests from a description of their history, and what git itself says of them."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from support.source.repositories import ENVIRONMENT, GitRepository

START = 1_700_000_000


@dataclass(frozen=True)
class MadeCommit:
    """A commit to make: ``parents`` are indices of earlier ones, ``files`` has None for a deleted file."""

    files: Mapping[bytes, bytes | None]
    parents: Sequence[int] = ()
    message: bytes = b"change"
    encoding: bytes = b""
    submodules: Mapping[bytes, str] = field(default_factory=dict)
    date: bytes = b""


@dataclass(frozen=True)
class MadeClone:
    """A clone and the hashes of its commits, in the order in which they were made."""

    path: Path
    commits: tuple[str, ...]

    @property
    def repository(self) -> GitRepository:
        return GitRepository(self.path)

    def first_parent(self, commit: str) -> str:
        return self.repository.git("rev-parse", f"{commit}^1")

    def lose(self, digits: str) -> None:
        """Delete one object; packs are unpacked first."""
        for pack in list((self.path / "objects" / "pack").glob("*.pack")):
            content = pack.read_bytes()
            for file in pack.parent.glob(f"{pack.stem}.*"):
                file.unlink()
            self.repository.git("unpack-objects", "-q", stdin=content)
        (self.path / "objects" / digits[:2] / digits[2:]).unlink()

    def numstat(self, base: str, golden: str) -> dict[bytes, tuple[int, int]]:
        """Return added and removed lines by path, as ``git diff --numstat`` prints them."""
        done = subprocess.run(
            ["git", "-C", str(self.path), "diff", "--numstat", "-z", "-M50%", base, golden],
            capture_output=True,
            check=True,
            env=ENVIRONMENT,
        )
        tokens = iter(done.stdout.split(b"\0")[:-1])
        found = {}
        for token in tokens:
            added, removed, path = token.split(b"\t", 2)
            if not path:
                next(tokens)
                path = next(tokens)
            found[path] = (int(added.replace(b"-", b"0")), int(removed.replace(b"-", b"0")))
        return found


def make_clone(
    path: Path,
    commits: Sequence[MadeCommit],
    refs: Mapping[str, int] | None = None,
    object_format: str = "sha1",
) -> MadeClone:
    """Make a bare clone; without ``refs`` each commit without children gets a branch."""
    path.mkdir(parents=True)
    repository = GitRepository(path)
    repository.git("init", "--quiet", "--bare", "--initial-branch=main", f"--object-format={object_format}")
    stream = b"".join(_commit(index, commit) for index, commit in enumerate(commits))
    parents = {parent for commit in commits for parent in commit.parents}
    tips = refs or {f"refs/heads/b{index}": index for index in range(len(commits)) if index not in parents}
    for name, index in tips.items():
        stream += b"reset %s\nfrom :%d\n\n" % (name.encode(), index + 1)
    marks = path / "marks"
    repository.git("fast-import", "--quiet", "--force", f"--export-marks={marks}", stdin=stream)
    repository.git("update-ref", "-d", "refs/made/all")
    if tips:
        repository.git("symbolic-ref", "HEAD", next(iter(tips)))
    by_mark = dict(line.split() for line in marks.read_text().splitlines()) if commits else {}
    return MadeClone(path, tuple(by_mark[f":{index + 1}"] for index in range(len(commits))))


def _commit(index: int, commit: MadeCommit) -> bytes:
    when = commit.date or b"%d +0000" % (START + 60 * index)
    lines = b"commit refs/made/all\nmark :%d\nauthor A <a@b> %s\ncommitter A <a@b> %s\n" % (
        index + 1,
        when,
        when,
    )
    if commit.encoding:
        lines += b"encoding %s\n" % commit.encoding
    lines += b"data %d\n%s\n" % (len(commit.message), commit.message)
    if commit.parents:
        first, *others = commit.parents
        lines += b"from :%d\n" % (first + 1) + b"".join(b"merge :%d\n" % (other + 1) for other in others)
    else:
        lines += b"deleteall\n"
    for path, content in commit.files.items():
        name = b'"' + path.replace(b"\\", b"\\\\").replace(b'"', b'\\"').replace(b"\n", b"\\n") + b'"'
        if content is None:
            lines += b"D %s\n" % name
        else:
            lines += b"M 100644 inline %s\ndata %d\n%s\n" % (name, len(content), content)
    for path, link in commit.submodules.items():
        lines += b"M 160000 %s %s\n" % (link.encode(), path)
    return (b"reset refs/made/all\n" if not commit.parents else b"") + lines + b"\n"
