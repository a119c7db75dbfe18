"""A commit object of git: parents, date and message, whatever its encoding."""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone

MAX_MESSAGE_BYTES = 1 << 20
"""A longer message is cut."""
_WHEN = re.compile(rb"> (-?\d{1,15}) ([+-])(\d{2})(\d{2})\s*\Z")
_NO_CHARACTER_SETS = frozenset(
    {"idna", "mbcs", "oem", "punycode", "raw-unicode-escape", "undefined", "unicode-escape", "utf-7"}
)
"""Text codecs of Python that are no encoding of a message."""


@dataclass(frozen=True, slots=True)
class CommitObject:
    """What a commit says of itself.

    Attributes:
        parents: hashes of its parents; of a merge the first is what it was merged into.
        date: when it was committed, with its time zone; None if the commit has no valid date.
        message: its text without newlines at the end, always valid Unicode.
        decoded: False if some bytes of the message are no characters of its encoding.
    """

    parents: tuple[str, ...]
    date: datetime | None
    message: str
    decoded: bool


def parse_commit(content: bytes) -> CommitObject:
    """Parse a commit object; what it lacks or has wrong is left out."""
    head, _, body = content.partition(b"\n\n")
    parents: list[str] = []
    encoding, date = "utf-8", None
    for line in head.split(b"\n"):
        key, _, value = line.partition(b" ")
        if key == b"parent":
            parents.append(value.decode("ascii", "replace"))
        elif key == b"committer":
            date = _parse_date(value)
        elif key == b"encoding":
            encoding = value.decode("ascii", "replace").strip()
    message, decoded = _decode(body[:MAX_MESSAGE_BYTES].partition(b"\0")[0], encoding)
    return CommitObject(tuple(parents), date, message.rstrip("\r\n"), decoded)


def _parse_date(identity: bytes) -> datetime | None:
    """Return the date at the end of a line such as ``A <a@b> 1700000000 +0100``."""
    found = _WHEN.search(identity)
    if found is None:
        return None
    offset = timedelta(hours=int(found[3]), minutes=int(found[4])) * (-1 if found[2] == b"-" else 1)
    try:
        zone = timezone(offset) if offset else UTC
        return datetime.fromtimestamp(int(found[1]), zone)
    except (ValueError, OverflowError, OSError):
        return None


def _decode(body: bytes, encoding: str) -> tuple[str, bool]:
    """Return the text, and whether all of its bytes were characters of ``encoding``, or else of UTF-8."""
    for name in (encoding, "utf-8"):
        try:
            codec = codecs.lookup(name)
            if codec.name in _NO_CHARACTER_SETS:
                continue
            text = body.decode(name)
            text.encode()  # some encodings have lone surrogates
        except (LookupError, ValueError):
            continue
        return text, True
    return body.decode("utf-8", "replace"), False
