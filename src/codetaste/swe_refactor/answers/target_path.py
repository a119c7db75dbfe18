"""The path of the target file in an answer: one Java file inside of the repository."""

from __future__ import annotations

import re

from codetaste.core.text import printable
from codetaste.source.tree.writer import is_git_name
from codetaste.swe_refactor.answers.problem import AnswerFault
from codetaste.swe_refactor.answers.problem import AnswerProblemKind as Kind

_MAX_CHARS = 500


def parse_target_path(text: str) -> str:
    """Return the path relative to the repository; quotes and a leading ``./`` are dropped.

    Raises:
        AnswerFault: it is no path of a Java file, or leads outside.
    """
    path = text.strip().strip("`'\"*").strip().removeprefix("./")
    shown = printable(path, 80)
    if not path:
        raise AnswerFault(Kind.BAD_PATH, "The part target_file_path is empty.")
    if len(path) > _MAX_CHARS or "\n" in path or not path.isprintable():
        raise AnswerFault(Kind.BAD_PATH, f"The part target_file_path must be one path alone, not: {shown}")
    parts = path.split("/")
    if path.startswith(("/", "~", "\\")) or re.match(r"[A-Za-z]:", path) or "://" in path:
        raise AnswerFault(Kind.OUTSIDE, f"The path {shown} is not relative to the repository.")
    if ".." in re.split(r"[/\\]", path):
        raise AnswerFault(Kind.OUTSIDE, f"The path {shown} leads out of its folder.")
    if any(is_git_name(part.encode("utf-8", "replace")) for part in parts):
        raise AnswerFault(Kind.OUTSIDE, f"The path {shown} leads into git's own files.")
    if not path.endswith(".java") or "\\" in path or {"", "."} & set(parts):
        raise AnswerFault(
            Kind.BAD_PATH, f"The path {shown} is not that of a Java file, with / between folders."
        )
    return path
