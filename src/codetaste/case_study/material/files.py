"""Files of a study's material: copies of untrusted files and texts, of bounded size."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from codetaste.core.files import open_regular_file

if TYPE_CHECKING:
    from pathlib import Path

MAX_FILE_BYTES = 8 * 1024**2
"""Of one file; what is longer is cut in the middle."""


def copy_file(path: Path, to: Path, root: str) -> None:
    """Copy a file that is there and in the folder ``root``, a real path; cut it if it is too long."""
    if not is_inside(path, root):
        return
    try:
        with open_regular_file(path) as file:
            size = os.fstat(file.fileno()).st_size
            if size <= MAX_FILE_BYTES:
                content = file.read(MAX_FILE_BYTES)
            else:
                half = MAX_FILE_BYTES // 2
                content = file.read(half)
                file.seek(size - half)
                content += _left_out(size - 2 * half) + file.read(half)
    except OSError:
        return
    to.parent.mkdir(parents=True, exist_ok=True)
    to.write_bytes(content)


def write_text(path: Path, text: str) -> None:
    """Write a text, cut if it is too long."""
    path.write_bytes(cut_bytes(text.encode("utf-8", "replace")))


def cut_bytes(content: bytes) -> bytes:
    """Return ``content``, without its middle if it is too long."""
    if len(content) <= MAX_FILE_BYTES:
        return content
    half = MAX_FILE_BYTES // 2
    return content[:half] + _left_out(len(content) - 2 * half) + content[-half:]


def is_inside(path: Path, root: str) -> bool:
    """Whether ``path`` is in the folder ``root``, a real path, when links are followed."""
    return os.path.commonpath((os.path.realpath(path), root)) == root


def _left_out(count: int) -> bytes:
    return f"\n[{count:,} bytes are left out]\n".encode()
