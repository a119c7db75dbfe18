"""The scripted model of ``describe.toml``: it writes descriptions from what the prompts show, and errs once.

Its first open description names a file of the golden patch. It is told so, and leaves the name out.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from codetaste.llm.messages import Request

INSTRUCTED = """\
# Title

Make the implementation modules private and drop Python 2

# Summary

The modules that hold the implementation get a leading underscore, and the branches for Python 2 go.

# Why

- Private names make clear what may change without notice.
- Branches for two interpreters make a small code base hard to read.

# Changes

{changes}
"""


def reply(request: Request) -> str:
    """Return the description that is asked for."""
    prompt = request.messages[0].text
    tries = sum(message.role == "assistant" for message in request.messages)
    if "<diff>" in prompt:
        return INSTRUCTED.format(changes="\n".join(changes(prompt)))
    if tries == 0:
        return "Move callers.py and its like out of sight"
    return (
        "Clean up legacy code" if "rejected by a reviewer" in prompt else "Separate public from internal code"
    )


def changes(prompt: str) -> list[str]:
    """Return a line for each file of the diff, whose header is git's or a line of a diff that was cut."""
    files = re.findall(r"^(?:\+\+\+ b/|## )(src/[\w./-]+)", prompt, re.MULTILINE)
    return [f"- Update `{name}`." for name in dict.fromkeys(files)] or ["- Update the package."]
