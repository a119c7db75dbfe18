"""Questions to the user whose answers are lines of standard input, and the name of who answers."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


def ask(question: str, words: Mapping[str, str] | None = None) -> str | None:
    """Return a line of standard input; None at its end.

    With ``words`` the answer is in lower case, and a whole word becomes the letter that it stands for.
    """
    sys.stderr.write(question)
    sys.stderr.flush()
    line = sys.stdin.readline()
    if not line:
        sys.stderr.write("\n")
        return None
    if not sys.stdin.isatty():
        sys.stderr.write("\n")
    text = line.strip()
    return text if words is None else words.get(text.lower(), text.lower())


def default_reviewer() -> str:
    """Return git's user.name, else $USER, else "unknown"."""
    try:
        git = subprocess.run(["git", "config", "user.name"], capture_output=True, text=True, check=False)
        name = git.stdout.strip()
    except OSError:
        name = ""
    return name or os.environ.get("USER") or "unknown"
