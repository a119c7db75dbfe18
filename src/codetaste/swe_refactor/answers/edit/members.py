"""Edits of a type: a member replaced, removed, or added at its end."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from codetaste.swe_refactor.answers.edit.indent import fit_indent

if TYPE_CHECKING:
    from collections.abc import Sequence

    from codetaste.swe_refactor.answers.edit.source_file import SourceFile
    from codetaste.swe_refactor.answers.java.syntax import SourceMember, SourceType


def replace_member(file: SourceFile, old: SourceMember, text: str, more: Sequence[str]) -> None:
    """Replace a member, and put more members behind it. It keeps its Javadoc if ``text`` has none."""
    start = old.start if text.lstrip().startswith("/**") else old.code_start
    indent = file.indent_at(old.start)
    fitted = [fit_indent(each, indent) for each in (text, *more)]
    file.replace(start, old.end, f"\n\n{indent}".join(fitted))


def remove_member(file: SourceFile, old: SourceMember) -> None:
    """Remove a member with its Javadoc, its lines if nothing else is on them, and a blank line beside."""
    data, start, end = file.unit.data, file.line_start(old.start), old.end
    tail = re.compile(rb"[ \t]*(\r\n|\r|\n|$)").match(data, end)
    if data[start : old.start].strip() or tail is None:
        file.replace(old.start, old.end, "")
        return
    end = tail.end()
    previous = file.line_start(start - len(_line_end_before(data, start)))
    after = re.compile(rb"[ \t]*(?:\r\n|\r|\n)").match(data, end)
    if previous < start and not data[previous:start].strip():
        start = previous
    elif after:
        end = after.end()
    file.replace(start, end, "")


def add_members(file: SourceFile, owner: SourceType, texts: Sequence[str]) -> None:
    """Add members at the end of a type."""
    data = file.unit.data
    inside: list[SourceMember | SourceType] = [*owner.members, *owner.types]
    outer = file.indent_at(owner.code_start)
    own = [each for each in inside if file.line_start(each.start) != file.line_start(owner.code_start)]
    indent = file.indent_at(own[-1].start) if own else outer + ("\t" if "\t" in outer else "    ")
    at = max([owner.body_start, *(each.end for each in inside)])
    # Comments behind the last member stay before what is added.
    rest = data[at : owner.body_end]
    at += len(rest.rstrip())
    text = "".join(f"\n\n{indent}{fit_indent(each, indent)}" for each in texts)
    if not inside and not rest.strip():
        text = text.removeprefix("\n")
    if owner.open_constants:
        text = (f"\n{indent};" if b"//" in rest else ";") + text
    closing_line = b"\n" in data[at : owner.body_end] or b"\r" in data[at : owner.body_end]
    if closing_line:
        file.replace(at, at, text)
    else:  # the brace is on the line of the last member
        file.replace(at, owner.body_end, f"{text}\n{outer}")


def _line_end_before(data: bytes, at: int) -> bytes:
    return next((each for each in (b"\r\n", b"\n", b"\r") if data[:at].endswith(each)), b"")
