"""Cuts a diff to a number of characters, so that every file stays visible.

The policy, which depends on the diff and the number alone:

1. A diff that fits is unchanged.
2. Otherwise each file is one line with its name and its counts of added and removed lines, followed by hunks.
3. What these lines leave of the characters is shared between the files: each has the same share, and what a
   file does not need goes to the others. If shares would be too small to show a change, fewer files have
   one, spread evenly over the diff.
4. A file whose hunks exceed its share shows as many as there is room for, spread evenly over the file, with
   the room shared between them in the same way. A hunk that exceeds its room ends after a whole line. What is
   left out is counted.
5. If the lines of all files do not fit, those of the first files stand, and a last line sums up the others.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from typing import TYPE_CHECKING

from codetaste.core.text import plural

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

MIN_CHARS = 1000
"""A diff is not cut to fewer characters."""
_MIN_SHARE = 300
"""As many files, and as many hunks of a file, are shown as have so much room."""
_MAX_LINE_CHARS = 300
"""A longer line of a diff that is cut ends with an ellipsis."""
_MAX_NAME_CHARS = 200
_FILE = re.compile(r"^(?=diff --git )", re.MULTILINE)
_HUNK = re.compile(r"^(?=@@ )", re.MULTILINE)
_PAIR = re.compile(r'("?)a/(?P<name>.*)\1 \1b/(?P=name)\1')
_LINE = re.compile(r"[^\n]*\n|[^\n]+")
_KINDS = {
    "new file mode": "new",
    "deleted file mode": "deleted",
    "Binary files": "binary",
    "GIT binary": "binary",
}


@dataclass(frozen=True, slots=True)
class _File:
    title: str
    added: int
    removed: int
    hunks: tuple[str, ...]

    @property
    def chars(self) -> int:
        return sum(map(len, self.hunks))


def cut_diff(diff: str, chars: int) -> str:
    """Return ``diff``, git's with or without context, in at most ``chars`` characters.

    Raises:
        ValueError: ``chars`` is less than ``MIN_CHARS``.
    """
    if chars < MIN_CHARS:
        raise ValueError(f"a diff is not cut to less than {MIN_CHARS} characters, such as {chars}")
    if len(diff) <= chars:
        return diff
    files = [_read_file(part) for part in _FILE.split(diff) if part.startswith("diff --git ")]
    notice = f"[This diff of {len(diff):,} characters and {plural(len(files), 'file')} is cut.]\n"
    room = chars - len(notice)
    if not files:
        return notice + _cut_lines(_shorten_lines(diff), room)
    left = room - sum(len(file.title) for file in files)
    if left < 0:
        return notice + _titles_alone(files, room)
    bodies = _fill([(file.chars, partial(_cut_hunks, file)) for file in files], left)
    return notice + "".join(file.title + body for file, body in zip(files, bodies, strict=True))


def share(needs: Sequence[int], room: int) -> list[int]:
    """Share ``room`` between ``needs``: each gets what it needs, or the same as all others that need more.

    No share exceeds its need, and their sum does not exceed ``room``.
    """
    shares, left = [0] * len(needs), room
    for place, index in enumerate(sorted(range(len(needs)), key=lambda each: needs[each])):
        shares[index] = min(needs[index], left // (len(needs) - place))
        left -= shares[index]
    return shares


def _fill(parts: Sequence[tuple[int, Callable[[int], str]]], room: int) -> list[str]:
    """Return the texts of parts, together in at most ``room`` characters.

    Args:
        parts: the length of each, and what returns its text in at most so many characters.
        room: characters.
    """
    filled = [at for at, (chars, _) in enumerate(parts) if chars]
    count = min(len(filled), max(1, room // _MIN_SHARE))
    if sum(chars for chars, _ in parts) > room:
        filled = [filled[at * len(filled) // count] for at in range(count)]
    texts, unused = [""] * len(parts), 0
    for at, each in zip(filled, share([parts[at][0] for at in filled], room), strict=True):
        texts[at] = parts[at][1](each + unused)
        unused += each - len(texts[at])
    return texts


def _read_file(text: str) -> _File:
    header, *hunks = _HUNK.split(text)
    lines = [line for hunk in hunks for line in hunk.split("\n")[1:]]
    added = sum(line.startswith("+") for line in lines)
    removed = sum(line.startswith("-") for line in lines)
    kinds = [name for start, name in _KINDS.items() if re.search(f"^{start}", header, re.MULTILINE)]
    facts = ", ".join([*kinds, f"+{added} -{removed}"])
    return _File(f"## {_name(header)} ({facts})\n", added, removed, tuple(map(_shorten_lines, hunks)))


def _name(header: str) -> str:
    """Return the file's name as its header has it, or both names if it was moved."""
    found = dict(re.findall(r"^(rename from|rename to|---|\+\+\+) (.*)$", header, re.MULTILINE))
    if "rename to" in found:
        name = f"{found.get('rename from', '')} -> {found['rename to']}"
    else:
        names = [found[sign] for sign in ("+++", "---") if found.get(sign, "/dev/null") != "/dev/null"]
        pair = header.partition("\n")[0].removeprefix("diff --git ")
        equal = _PAIR.fullmatch(pair)
        name = names[0].rstrip("\t") if names else equal["name"] if equal else pair
        name = re.sub(r'^("?)[ab]/', r"\1", name)
    return name if len(name) <= _MAX_NAME_CHARS else f"…{name[1 - _MAX_NAME_CHARS :]}"


def _shorten_lines(text: str) -> str:
    cut = f"{{{_MAX_LINE_CHARS - 1}}}"
    return re.sub(rf"^(.{cut})..+$", r"\1…", text, flags=re.MULTILINE)


def _titles_alone(files: Sequence[_File], room: int) -> str:
    """Return the titles of the first files, and one line about all others."""

    def sum_up(others: Sequence[_File]) -> str:
        added, removed = sum(file.added for file in others), sum(file.removed for file in others)
        return f"[{plural(len(others), 'more file')}: +{added} -{removed}]\n"

    left = room - len(sum_up(files))
    number = sum(end <= left for end in accumulate(len(file.title) for file in files))
    return "".join(file.title for file in files[:number]) + sum_up(files[number:])


def _cut_hunks(file: _File, room: int) -> str:
    """Return the hunks of a file in at most ``room`` characters, and a note about those that are missing."""
    if file.chars <= room:
        return "".join(file.hunks)
    left = room - len(_left_out(len(file.hunks), "hunk"))
    texts = _fill([(len(hunk), partial(_cut_lines, hunk)) for hunk in file.hunks], left)
    missing = texts.count("")
    if missing == len(texts):
        return ""
    return "".join(texts) + (_left_out(missing, "hunk") if missing else "")


def _cut_lines(text: str, room: int) -> str:
    """Return the first lines of ``text`` in ``room`` characters at most, and a note about the others.

    It is empty if there is no room for two lines: that of the hunk, and a changed one.
    """
    if len(text) <= room:
        return text
    lines = _LINE.findall(text)
    left = room - len(_left_out(len(lines), "line"))
    shown = sum(end <= left for end in accumulate(map(len, lines)))
    return "".join(lines[:shown]) + _left_out(len(lines) - shown, "line") if shown > 1 else ""


def _left_out(count: int, what: str) -> str:
    return f"[{plural(count, what)} left out]\n"
