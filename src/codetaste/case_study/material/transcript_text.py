"""The conversation of a trial as two texts: commands with what they printed, and what was said.

Only the first is evidence (CodeTaste Figure 19), so each line of the second begins with a mark.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from codetaste.core.text import one_line
from codetaste.transcripts.commands import printed_text, shell_command
from codetaste.transcripts.event import EventKind
from codetaste.transcripts.read import read_events

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path
    from typing import TextIO

    from codetaste.transcripts.event import RecordedConversation, TranscriptEvent
    from codetaste.transcripts.timeline.journal_reader import JournalReader

STATEMENT_MARK = "[said]"
"""Begins each line that shows what an agent said: no evidence for what it did."""
COMMANDS_FILE, STATEMENTS_FILE = "commands.txt", "said.txt"
MAX_PIECE_CHARS = 16_000
"""Of one command, output or statement; what is longer is cut in the middle."""
MAX_FILE_CHARS = 4_000_000
"""Of one file; the middle of a longer conversation is left out and counted."""
_SPEAKERS = {EventKind.USER: "user", EventKind.TEXT: "assistant", EventKind.REASONING: "assistant, thinking"}


def write_conversations(
    conversations: Iterable[RecordedConversation], folder: Path, journal: JournalReader | None = None
) -> None:
    """Write conversations, in their order, as two files in ``folder``. Does blocking I/O.

    Args:
        conversations: those of a trial.
        folder: where to.
        journal: of the run, polled; it has what no transcript has.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with (
        (folder / COMMANDS_FILE).open("w", encoding="utf-8") as commands,
        (folder / STATEMENTS_FILE).open("w", encoding="utf-8") as statements,
    ):
        acts, texts = _LimitedFile(commands), _LimitedFile(statements)
        for conversation in conversations:
            head = f"==== {conversation.name.rpartition('/')[2]} ====\n\n"
            acts.write(head)
            texts.write(head)
            for event in read_events(conversation, journal):
                _write_event(event, acts, texts)
        acts.finish()
        texts.finish()


def _write_event(event: TranscriptEvent, acts: _LimitedFile, texts: _LimitedFile) -> None:
    match event.kind:
        case EventKind.CALL:
            command = shell_command(event)
            what = f"$ {command}" if command else f"tool {event.tool} {event.text}"
            acts.write(f"#{event.number} {_cut(what)}\n")
        case EventKind.RESULT:
            acts.write(f"{_cut(printed_text(event.text))}\n\n")
        case kind if kind in _SPEAKERS:
            lines = "\n".join(f"{STATEMENT_MARK} {line}" for line in _cut(event.text).splitlines())
            by = f"{_SPEAKERS[kind]} {event.agent}".rstrip()
            texts.write(f"{STATEMENT_MARK} #{event.number} by {by}:\n{lines}\n\n")
        case EventKind.ERROR | EventKind.PROBLEM:
            texts.write(f"{STATEMENT_MARK} #{event.number} of the record: {one_line(event.text)}\n\n")


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


def _cut(text: str) -> str:
    """Return ``text``, without its middle if it is longer than ``MAX_PIECE_CHARS``."""
    if len(text) <= MAX_PIECE_CHARS:
        return text
    half = MAX_PIECE_CHARS // 2
    return f"{text[:half]}\n[{len(text) - 2 * half:,} characters are left out]\n{text[-half:]}"
