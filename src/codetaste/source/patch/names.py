"""File names of a patch: unquoted, split where two share a line, and without their prefixes.

Git writes ``a/`` and ``b/`` before names, or other prefixes, or none, and a patch does not say which. If both
names of a file are equal as written, there is no prefix; if they are equal after their first part, that part
is a prefix.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from codetaste.core.text import printable_name
from codetaste.errors import PatchError
from codetaste.source.patch.hunks import line_at
from codetaste.source.patch.model import FileDiff

if TYPE_CHECKING:
    from collections.abc import Iterable

    from codetaste.source.patch.header import DiffSection

_NULL = b"/dev/null"
_NAME_BYTES = 8 * 1024
_ESCAPE = re.compile(rb'\\([abfnrtv"\\]|[0-3][0-7]{2})')
_LETTERS = {b"a": b"\a", b"b": b"\b", b"f": b"\f", b"n": b"\n", b"r": b"\r", b"t": b"\t", b"v": b"\v"}
_QUOTED = re.compile(rb'"((?:[^"\\]|\\.)*+)"')
_PREFIX_LETTERS = frozenset(b"abciow12")
"""Git's one-letter prefixes."""
_PLAIN_TIME = re.compile(rb"\s\d\d\d\d-\d\d-\d\d \d\d:\d\d:\d\d[^/]*\Z")


def strip_level(sections: Iterable[DiffSection], content: bytes) -> int:
    """Return how many leading parts of the names in ``sections`` are prefixes: 1 or 0.

    Raises:
        PatchError: some names have prefixes and some have none.
    """
    level, names = None, []
    for section in sections:
        found = 1 if section.name else _section_level(section)
        if found is None:
            names += [name for name in _line_names(section) if name]
        elif level is None:
            level = found
        elif level != found:
            raise _fault(
                section, content, "some names of the patch have prefixes (a/, b/) and some have none"
            )
    if level is not None:
        return level
    return int(all(name[0] in _PREFIX_LETTERS and name[1:2] == b"/" for name in names))


def make_file_diff(section: DiffSection, strip: int, content: bytes) -> FileDiff:
    """Return ``section`` as a FileDiff; ``strip`` leading parts of its names are prefixes.

    Raises:
        PatchError: its names contradict each other, or cannot be determined.
    """
    old, new = _names(section, strip, content)
    return FileDiff(
        old=None if section.new else os.fsdecode(old),
        new=None if section.deleted else os.fsdecode(new),
        removed_runs=tuple(section.removed),
        added_runs=tuple(section.added),
        binary=section.binary,
        renamed=section.renamed,
        copied=section.copied,
        old_mode=section.old_mode,
        new_mode=section.new_mode or (0 if section.deleted else section.old_mode),
        old_blob=section.old_blob,
        new_blob=section.new_blob,
        span=(section.start, section.end),
        declared_bytes=section.declared_bytes,
    )


def _section_level(section: DiffSection) -> int | None:
    """Return how many leading parts of its names are prefixes, None if it could be either."""
    minus, plus = _line_names(section)
    if section.source is not None and section.target is not None:
        # The names of rename and copy lines never have prefixes.
        if minus is not None:
            return int(minus != _unquoted(section.source))
        return int(section.pair != b"%s %s" % (section.source, section.target))
    if minus is not None and plus is not None:
        if minus == plus:
            return 0
        rest = _stripped(minus, 1)
        return 1 if rest is not None and rest == _stripped(plus, 1) else None
    for level in (0, 1):
        if section.git and _common(section.pair, level) is not None:
            return level
    return None


def _names(section: DiffSection, strip: int, content: bytes) -> tuple[bytes, bytes]:
    """Return the old and the new name; the same name twice unless the file is renamed or copied."""
    if section.name:
        return section.name, section.name
    if section.renamed or section.copied:
        moved = (_unquoted(section.source or b""), _unquoted(section.target or b""))
        if not all(moved):
            raise _fault(section, content, "a rename or copy without both names")
        return moved
    minus, plus = (None if name is None else _stripped(name, strip) for name in _line_names(section))
    common = _common(section.pair, strip) if section.git else None
    found = [name for name in (plus, minus, common) if name]
    if not found:
        raise _fault(section, content, "the file name cannot be determined")
    if section.git:
        if len(set(found)) > 1:
            raise _fault(section, content, "two names for one file without a rename")
        section.new |= section.minus == _NULL
        section.deleted |= section.plus == _NULL
    if minus and plus and plus.startswith(minus):
        return minus, minus  # "x" and "x.orig": git takes the shorter one
    return found[0], found[0]


def _line_names(section: DiffSection) -> tuple[bytes | None, bytes | None]:
    """Return the names of the lines ``---`` and ``+++`` with their prefixes; None for a missing one."""
    return _line_name(section.minus, git=section.git), _line_name(section.plus, git=section.git)


def _line_name(text: bytes | None, *, git: bool) -> bytes | None:
    if text is None:
        return None
    if quoted := _QUOTED.match(text):
        return _unquoted(quoted[0])
    name, tab, _ = text.partition(b"\t")  # git writes a TAB after a name with blanks, other programs a time
    if not (git or tab) and len(name) < _NAME_BYTES:
        name = _PLAIN_TIME.sub(b"", name).rstrip()
    return None if name == _NULL else name


def _common(pair: bytes, strip: int) -> bytes | None:
    """Return the name that both halves of the line ``diff --git`` share, None if they share none."""
    if not (pair.startswith(b'"') or pair.endswith(b'"')):
        return _repeated(pair) if strip else _twice(pair)
    if quoted := _QUOTED.match(pair):
        left, right = _unquoted(quoted[0]), _unquoted(pair[quoted.end() + 1 :])
    else:
        left, _, rest = pair.partition(b' "')
        right = _unquoted(b'"' + rest)
    name = _stripped(left, strip)
    return name if name and name == _stripped(right, strip) else None


def _twice(pair: bytes) -> bytes | None:
    """Return NAME if ``pair`` is "NAME NAME"."""
    half = len(pair) // 2
    return pair[:half] if half and pair == b"%b %b" % (pair[:half], pair[:half]) else None


def _repeated(pair: bytes) -> bytes | None:
    """Return NAME if ``pair`` is "x/NAME y/NAME", without a slash in x and y; all may have blanks."""
    tail = pair[pair.find(b"/") + 1 :]
    # More than half of the tail precedes y's slash, and y has no other slash.
    slash = tail.find(b"/", (len(tail) + 1) // 2)
    name = tail[slash + 1 :]
    if slash < 0 or not name or not tail.startswith(name + b" ") or b"/" in tail[len(name) + 1 : slash]:
        return None
    return name


def _unquoted(name: bytes) -> bytes:
    quoted = _QUOTED.fullmatch(name)
    return _ESCAPE.sub(_unescaped, quoted[1]) if quoted else name


def _unescaped(escape: re.Match[bytes]) -> bytes:
    code = escape[1]
    return bytes([int(code, 8)]) if len(code) == 3 else _LETTERS.get(code, code)  # noqa: PLR2004 - octal


def _stripped(name: bytes, strip: int) -> bytes | None:
    if not strip:
        return name
    _, slash, rest = name.partition(b"/")
    return rest if slash else None


def _fault(section: DiffSection, content: bytes, what: str) -> PatchError:
    line = line_at(content, section.start)
    end = content.find(b"\n", section.start)
    return PatchError(f"line {line}: {what}: {printable_name(content[section.start : end])}", line=line)
