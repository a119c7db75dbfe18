"""The licences of many commits: of each distinct licence file the text is read once."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

from codetaste.benchmark.facts.licences import LICENCE_FILE_NAME, UNKNOWN, recognise
from codetaste.source.git import git_command, git_environment

if TYPE_CHECKING:
    from pathlib import Path

_TIMEOUT_S = 60.0
_HASH_BYTES = {40: 20, 64: 32}


class LicenceReader:
    """Recognises licences by the files in the top folders of commits. Blocking.

    Args:
        git_dir: the repository.
    """

    def __init__(self, git_dir: Path) -> None:
        self._git_dir = git_dir
        self._by_blob: dict[str, str] = {}

    def licence(self, tree: bytes, hash_digits: int) -> str | None:
        """Return the SPDX name of the licence in a top folder, None if none is certain.

        Args:
            tree: content of the tree object.
            hash_digits: 40 or 64, the length of the repository's hashes.
        """
        for _, blob in sorted(_licence_files(tree, _HASH_BYTES[hash_digits])):
            if blob not in self._by_blob:
                self._by_blob[blob] = recognise(self._text(blob))
            if self._by_blob[blob] != UNKNOWN:
                return self._by_blob[blob]
        return None

    def _text(self, blob: str) -> str:
        command = git_command(["cat-file", "blob", blob], self._git_dir)
        try:
            done = subprocess.run(
                command,
                capture_output=True,
                env=git_environment(),
                timeout=_TIMEOUT_S,
                check=False,
                stdin=subprocess.DEVNULL,
                cwd="/",
            )
        except subprocess.TimeoutExpired:
            return ""
        return done.stdout.decode("utf-8", "replace")


def _licence_files(tree: bytes, hash_bytes: int) -> list[tuple[str, str]]:
    """Return name and object hash of the files in a tree object whose names are those of licences."""
    found, at = [], 0
    while (end := tree.find(b"\0", at)) > 0:
        mode, _, name = tree[at:end].partition(b" ")
        at = end + 1 + hash_bytes
        text = name.decode("utf-8", "replace")
        if mode.startswith(b"100") and LICENCE_FILE_NAME.match(text):
            found.append((text, tree[end + 1 : at].hex()))
    return found
