"""Indentation: the text of a member fitted to the place where it goes."""

from __future__ import annotations

import re
from os.path import commonprefix

_TAB = " " * 4
"""What becomes a tab."""


def fit_indent(text: str, indent: str) -> str:
    """Return a member with ``indent`` before all lines but the first, whose own indentation is dropped.

    The other lines lose what all of them have in common, so that they keep their places to each other; that
    leaves text blocks as they are. Spaces become tabs where ``indent`` has tabs.
    """
    first, *rest = text.strip().split("\n")
    common = commonprefix([line[: _blank(line)] for line in rest if line.strip()])  # noqa: RUF071 - no paths
    tabs = "\t" in indent
    fitted = [_tabs(line[len(common) :]) if tabs else line[len(common) :] for line in rest]
    return "\n".join([first, *(f"{indent}{line}" if line.strip() else "" for line in fitted)])


def _blank(line: str) -> int:
    return len(line) - len(line.lstrip(" \t"))


def _tabs(line: str) -> str:
    blank = re.match(f"(?:{_TAB})*", line)
    count = blank.end() if blank else 0
    return "\t" * (count // len(_TAB)) + line[count:]
