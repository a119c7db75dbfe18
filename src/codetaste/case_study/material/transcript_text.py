"""The conversation of a trial as two texts: commands with what they printed, and what was said.

Only the first is evidence (CodeTaste Figure 19), so each line of the second begins with a mark.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from codetaste.case_study.conversation import RecordedCall, RecordedResult, Statement, read_events

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path
    from typing import TextIO

    from codetaste.orchestration.journal.blobs import Blobs

STATEMENT_MARK = "[said]"
"""Begins each line that shows what an agent said: no evidence for what it did."""
COMMANDS_FILE, STATEMENTS_FILE = "commands.txt", "said.txt"
MAX_PIECE_CHARS = 16_000
"""Of one command, output or statement; what is longer is cut in the middle."""
MAX_FILE_CHARS = 4_000_000
"""Of one file; the middle of a longer conversation is left out and counted."""


def write_conversation(paths: Iterable[Path], blobs: Blobs, folder: Path) -> None:
    """Write the conversations in ``paths``, in their order, as two files in ``folder``. Does blocking I/O."""
    folder.mkdir(parents=True, exist_ok=True)
    with (
        (folder / COMMANDS_FILE).open("w", encoding="utf-8") as commands,
        (folder / STATEMENTS_FILE).open("w", encoding="utf-8") as statements,
    ):
        acts, texts = _LimitedFile(commands), _LimitedFile(statements)
        for path in paths:
            acts.write(f"==== {path.stem} ====\n\n")
            texts.write(f"==== {path.stem} ====\n\n")
            _write_events(path, blobs, acts, texts)
        acts.finish()
        texts.finish()


def _write_events(path: Path, blobs: Blobs, acts: _LimitedFile, texts: _LimitedFile) -> None:
    for number, event in enumerate(read_events(path, blobs), 1):
        match event:
            case Statement():
                lines = "\n".join(f"{STATEMENT_MARK} {line}" for line in cut(event.text).splitlines())
                texts.write(f"{STATEMENT_MARK} #{number} by {event.by}:\n{lines}\n\n")
            case RecordedCall(command=str(command)):
                acts.write(f"#{number} $ {cut(command)}\n")
            case RecordedCall():
                acts.write(f"#{number} tool {event.tool} {cut(event.arguments)}\n")
            case RecordedResult():
                acts.write(f"{cut(event.text)}\n\n")


class _LimitedFile:
    """A text file of bounded size: of a longer one the beginning and the end, and how much is left out."""

    def __init__(self, file: TextIO) -> None:
        self._file, self._left = file, MAX_FILE_CHARS // 2
        self._end: deque[str] = deque()
        self._end_chars, self._lost = 0, 0

    def write(self, text: str) -> None:
        if len(text) <= self._left:
            self._file.write(text)
            self._left -= len(text)
            return
        self._left = 0
        self._end.append(text)
        self._end_chars += len(text)
        while self._end_chars > MAX_FILE_CHARS // 2:
            dropped = len(self._end.popleft())
            self._end_chars -= dropped
            self._lost += dropped

    def finish(self) -> None:
        if self._lost:
            self._file.write(f"\n[{self._lost:,} characters are left out]\n\n")
        self._file.writelines(self._end)


def cut(text: str, limit: int = MAX_PIECE_CHARS) -> str:
    """Return ``text``, without its middle if it is longer than ``limit`` characters."""
    if len(text) <= limit:
        return text
    half = limit // 2
    return f"{text[:half]}\n[{len(text) - 2 * half:,} characters are left out]\n{text[-half:]}"
