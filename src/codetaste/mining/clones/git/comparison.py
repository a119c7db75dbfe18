"""Compare commits of a clone in an empty repository that has nothing of the clone but its objects.

Which files git takes for binary is decided by attributes: those in ``info/attributes`` of the clone, and
those in its index or work tree, which are of another commit. Here neither they nor the clone's configuration
count.
"""

from __future__ import annotations

import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING

from codetaste.mining.clones.git.stream import SILENCE_S, open_git_stream
from codetaste.source.scratch_repository import make_scratch_repository

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from codetaste.mining.clones.git.stream import GitStream

_SHA256_DIGITS = 64


@contextmanager
def open_comparison(
    git_dir: Path,
    args: Sequence[str],
    hash_digits: int,
    *,
    stdin: IO[bytes] | None = None,
    check: Callable[[], None] = lambda: None,
    silence_s: float = SILENCE_S,
) -> Iterator[GitStream]:
    """Run ``git diff-tree`` on objects of the repository ``git_dir``; see ``open_git_stream``.

    Args:
        git_dir: the repository; of a linked work tree that of the main one, which has the objects.
        args: the git command and its arguments.
        hash_digits: 40 or 64, the length of the repository's hashes.
        stdin: a file that git reads from its current position.
        check: see ``GitStream``.
        silence_s: see ``GitStream``.

    Raises:
        ToolMissing: git is not installed.
    """
    env = {"GIT_OBJECT_DIRECTORY": str(git_dir / "objects")}
    with tempfile.TemporaryDirectory(prefix="codetaste-compare-") as folder:
        empty = make_scratch_repository(Path(folder), silence_s, sha256=hash_digits == _SHA256_DIGITS)
        with open_git_stream(
            empty.git_dir, args, stdin=stdin, check=check, silence_s=silence_s, env=env
        ) as stream:
            yield stream
