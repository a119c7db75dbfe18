"""Run commands on a pseudo-terminal of a given size, and read the screens that it shows."""

from __future__ import annotations

import fcntl
import os
import pty
import struct
import subprocess
import termios
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pyte

TIMEOUT_S = 120


@dataclass
class TerminalOutput:
    """All bytes that a terminal received, and the screens that it showed."""

    code: int = 0
    raw: bytes = b""
    screens: list[list[str]] = field(default_factory=list)

    def ever_shown(self, text: str) -> bool:
        return any(text in line for screen in self.screens for line in screen)

    @property
    def last(self) -> str:
        return "\n".join(self.screens[-1])


@dataclass(frozen=True)
class TerminalSize:
    """Columns and lines of a terminal."""

    columns: int = 110
    lines: int = 30


DEFAULT_SIZE = TerminalSize()


def run_on_terminal(
    command: Sequence[str],
    folder: Path,
    env: Mapping[str, str],
    *,
    size: TerminalSize = DEFAULT_SIZE,
    typed: str = "",
    until: Callable[[TerminalOutput, int], None] | None = None,
    answers: Sequence[str] = (),
) -> TerminalOutput:
    """Run ``command`` in ``folder`` on a pseudo-terminal.

    ``typed`` is on the screen before the command starts. ``until`` is called after each read, with the
    process id. A question, which ends with "? ", and a prompt, which ends with ": ", get the next one of
    ``answers``; a question for yes or no is answered with no.
    """
    main, sub = pty.openpty()
    fcntl.ioctl(sub, termios.TIOCSWINSZ, struct.pack("HHHH", size.lines, size.columns, 0, 0))
    process = subprocess.Popen(
        command, cwd=folder, env=dict(env), stdin=sub, stdout=sub, stderr=sub, start_new_session=True
    )
    os.close(sub)
    screen = pyte.Screen(max(1, size.columns), size.lines)
    stream = pyte.ByteStream(screen)
    stream.feed(typed.encode())
    terminal, replies = TerminalOutput(), list(answers)
    deadline = time.monotonic() + TIMEOUT_S
    while time.monotonic() < deadline:
        try:
            data = os.read(main, 65536)
        except OSError:
            break
        if not data:
            break
        terminal.raw += data
        stream.feed(data)
        shown = [line.rstrip() for line in screen.display]
        if not terminal.screens or terminal.screens[-1] != shown:
            terminal.screens.append(shown)
        if until is not None:
            until(terminal, process.pid)
        if replies and data.endswith((b"? ", b": ")):
            os.write(main, f"{replies.pop(0)}\n".encode())
        elif data.endswith(b"[y/N] "):
            os.write(main, b"n\n")
    os.close(main)
    terminal.code = process.wait(TIMEOUT_S)
    return terminal
