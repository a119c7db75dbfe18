"""The commands of the pages: each line of a fence marked ``sh`` is one.

Tests run them. Those that take minutes are in fences marked ``sh slow``, and ``.ci/full`` runs them;
those that need a container engine are in fences marked ``sh docker``, those that need the published data
and clones in ``sh data``.
``python3 tests/support/cli/documented_commands.py README.md 1`` prints the first, for scripts that follow the
page; ``docs/performance.md slow`` prints all slow ones.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from pathlib import Path

FENCE = "```"


@dataclass(frozen=True, slots=True)
class Command:
    """One line to run; ``line`` counts from 1 in ``page``, which shows the lines ``shown`` of its output."""

    page: str
    line: int
    text: str
    shown: tuple[str, ...] = ()


def read_commands(page: Path, fence: str = "sh") -> list[Command]:
    """Return the commands of a Markdown page in order; comment lines are left out.

    A fence marked ``text`` shows lines that the last command before it prints.
    """
    found: list[Command] = []
    language: str | None = None
    for number, line in enumerate(page.read_text("utf-8").splitlines(), 1):
        text = line.strip()
        if text.startswith(FENCE):
            language = None if language is not None else text.removeprefix(FENCE)
        elif language == fence and text and not text.startswith("#"):
            found.append(Command(page.name, number, text))
        elif language == "text" and text and found:
            found[-1] = replace(found[-1], shown=(*found[-1].shown, text))
    return found


def split_command(command: str) -> list[str]:
    """Split a one-line command at each ``&&``."""
    return [piece.strip() for piece in command.split(" && ")]


if __name__ == "__main__":
    page, which = Path(sys.argv[1]), sys.argv[2]
    chosen = (
        read_commands(page, "sh slow")
        if which == "slow"
        else read_commands(page)[int(which) - 1 : int(which)]
    )
    sys.stdout.writelines(command.text + "\n" for command in chosen)
