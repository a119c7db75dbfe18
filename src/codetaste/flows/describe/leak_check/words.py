"""Words of texts and identifiers, and the vocabulary of a code base: the words of its prose."""

from __future__ import annotations

import os
import re
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from codetaste.core.files import read_regular_file
from codetaste.source.tree.walk import walk_tree

if TYPE_CHECKING:
    from collections.abc import Iterator

_DOCUMENT_SUFFIXES = frozenset({".adoc", ".markdown", ".md", ".mdx", ".rst", ".txt"})
_NO_DOCUMENT = re.compile(r"^CMakeLists|requirements|constraints|-lock\b", re.IGNORECASE)
"""Lists for tools that end like documents."""
_MAX_FILES, _MAX_FILE_BYTES, _MAX_BYTES = 500, 1024**2, 8 * 1024**2
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[^\W\d_]+")


def is_prose(path: str) -> bool:
    """Whether a file is a document for people, by its name."""
    name = PurePosixPath(path)
    if not name.suffix:
        return name.name.isupper()  # README, PKG-INFO
    return name.suffix.lower() in _DOCUMENT_SUFFIXES and not _NO_DOCUMENT.search(name.name)


def words_of(text: str) -> Iterator[str]:
    """Yield the words of a text or an identifier in lower case: of ``fetchAll_items`` fetch, all, items."""
    return (match[0].lower() for match in _WORD.finditer(text))


def join_name(name: str) -> str:
    """Return a name in lower case without separators: of ``ongoing-Stubbing`` ``ongoingstubbing``."""
    return re.sub(r"[\W_]+", "", name).lower()


def read_vocabulary(tree: Path) -> frozenset[str]:
    """Return the lower-case words of the documents in the folder ``tree``; blocking.

    The documents nearest to the root are read, 500 files or 8 MiB at most.

    Raises:
        OSError: the folder cannot be read.
    """
    documents = sorted(
        (
            path
            for path, entry in walk_tree(os.fsencode(tree))
            if is_prose(os.fsdecode(path)) and entry.is_file()
        ),
        key=lambda path: (path.count(b"/"), path),
    )
    words, read = set[str](), 0
    for path in documents[:_MAX_FILES]:
        try:
            content = read_regular_file(tree / os.fsdecode(path), _MAX_FILE_BYTES)
        except OSError:  # larger than any that people read
            continue
        words.update(words_of(content.decode("utf-8", "replace")))
        read += len(content)
        if read > _MAX_BYTES:
            break
    return frozenset(words)
