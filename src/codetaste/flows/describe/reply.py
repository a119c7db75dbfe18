"""What a model must answer, read strictly: a description in four sections, and one short sentence.

A reply that is not of that form is not repaired; its problems are returned to the model.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

SECTIONS = ("Title", "Summary", "Why", "Changes")
"""The sections of an instructed description, in their order (CodeTaste §3.2, Figure 13)."""
MAX_TITLE_CHARS = 150
MAX_DESCRIPTION_CHARS = 12_000
_MIN_SENTENCE_CHARS = 8
_SHOWN_CHARS = 60

_FENCE = re.compile(r"\A```\w*\n(.*)\n```\s*\Z", re.DOTALL)
_HEADING = re.compile(
    r"^#[ \t]+(.+?)[ \t#]*$(?:\n[-=]{3,}[ \t]*$)?|^(?P<name>[^\s#>*+-].*)\n(?:=+|-{3,})[ \t]*$", re.MULTILINE
)
_CODE_BLOCK = re.compile(r"^(```+|~~~+).*?^\1[`~]*[ \t]*$|^(?:```+|~~~+).*", re.MULTILINE | re.DOTALL)
_SENTENCE_END = re.compile(r"[.!?][\"')]*\s+\S")


@dataclass(frozen=True, slots=True)
class ReadReply:
    """A reply that was read: the text if it is of the required form, else what is wrong with it."""

    text: str = ""
    problems: tuple[str, ...] = ()


def read_description(reply: str) -> ReadReply:
    """Read an instructed description; its text has the published form, each section under a ``#`` heading."""
    body = _unwrapped(reply)
    if not body:
        return ReadReply(problems=("the reply is empty",))
    headings = _headings(body)
    problems = [*_heading_problems(body, headings)]
    sections = {name.lower(): text for name, text in _sections(body, headings)}
    problems += [
        f"the section {name} is empty"
        for name in SECTIONS
        if name.lower() in sections and not sections[name.lower()]
    ]
    title = sections.get("title", "")
    if "\n" in title:
        problems.append("the title has more than one line")
    elif len(title) > MAX_TITLE_CHARS:
        problems.append(f"the title has {len(title)} characters, at most {MAX_TITLE_CHARS} are allowed")
    if len(body) > MAX_DESCRIPTION_CHARS:
        problems.append(f"it has {len(body):,} characters, at most {MAX_DESCRIPTION_CHARS:,} are allowed")
    if problems:
        return ReadReply(problems=tuple(problems))
    return ReadReply("\n\n".join(f"# {name}\n\n{sections[name.lower()]}" for name in SECTIONS) + "\n")


def read_sentence(reply: str, max_chars: int) -> ReadReply:
    """Read an open description: one sentence in one line of at most ``max_chars`` characters."""
    body = _unwrapped(reply)
    if len(body) > 1 and body[0] == body[-1] and body[0] in "\"'":
        body = body[1:-1].strip()
    lines = [line for line in body.splitlines() if line.strip()]
    if not lines:
        return ReadReply(problems=("the reply is empty",))
    if len(lines) > 1:
        return ReadReply(problems=(f"it has {len(lines)} lines, one sentence in one line is wanted",))
    problems = []
    if _SENTENCE_END.search(body):
        problems.append("it has more than one sentence")
    if re.match(r"[-*+>#]\s|\d+[.)]\s|\*\*|[A-Za-z ]{1,30}:\s", body):
        problems.append(
            f'it begins with "{body[:_SHOWN_CHARS]}": the sentence alone is wanted, in plain text'
        )
    if len(body) > max_chars:
        problems.append(f"it has {len(body)} characters, at most {max_chars} are allowed")
    if len(body) < _MIN_SENTENCE_CHARS or " " not in body:
        problems.append("it is no sentence")
    return ReadReply(problems=tuple(problems)) if problems else ReadReply(f"{body}\n")


def _unwrapped(reply: str) -> str:
    """Return a reply without the code fence around all of it."""
    body = reply.strip()
    fenced = _FENCE.match(body)
    return fenced[1].strip() if fenced and "\n```" not in fenced[1] else body


def _headings(body: str) -> list[tuple[str, int, int]]:
    """Return name, start and end of each heading of the first level, outside code."""
    code = [match.span() for match in _CODE_BLOCK.finditer(body)]
    return [
        ((match[1] or match["name"]).strip().rstrip(":"), match.start(), match.end())
        for match in _HEADING.finditer(body)
        if not any(start <= match.start() < end for start, end in code)
    ]


def _heading_problems(body: str, headings: list[tuple[str, int, int]]) -> list[str]:
    names = [name.lower() for name, _, _ in headings]
    wanted = [name.lower() for name in SECTIONS]
    problems = [f"the section {name} is missing" for name in SECTIONS if name.lower() not in names]
    problems += [
        f"the section {name} is there {names.count(name.lower())} times"
        for name in SECTIONS
        if names.count(name.lower()) > 1
    ]
    problems += [
        f'"{name[:_SHOWN_CHARS]}" is no section' for name, _, _ in headings if name.lower() not in wanted
    ]
    if not problems and names != wanted:
        problems.append(f"the sections are not in the order {', '.join(SECTIONS)}")
    if headings and body[: headings[0][1]].strip():
        problems.append("there is text before the first section")
    return problems


def _sections(body: str, headings: list[tuple[str, int, int]]) -> list[tuple[str, str]]:
    ends = [*(start for _, start, _ in headings), len(body)][1:]
    return [(name, body[at:end].strip()) for (name, _, at), end in zip(headings, ends, strict=True)]
