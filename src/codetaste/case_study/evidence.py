"""Check the evidence of a study: was this command run in the agent's own sandbox, and did it print this?

What an agent says is no evidence, neither the agent that makes the study nor those that it is about. So a
quoted text must stand in the output of the command, in whole lines or parts of lines, in its order. It must
not be a text that the agent gave to this command or wrote to a file before, nor one that a studied agent
said. What is filed are the whole lines, as the command printed them.

A command that makes up its output in a roundabout way is not recognized: its text is shown to the reader.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from codetaste.case_study.material.transcript_text import STATEMENT_MARK, STATEMENTS_FILE

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from codetaste.case_study.study import Claim, CommandEvidence
    from codetaste.transcripts.commands import RecordedCommand

_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-_])")
_ELISIONS = frozenset({"", "...", "…", "[...]", "[…]"})
_PRINTER = re.compile(r"\b(?:echo|printf)\s([^;&|]*)")
_WRAPPED_WORDS = 3
_SHORT_CHARS = 8
"""A shorter line of a quote must be a whole line of the output: "0" is in every number."""
_MAX_LINE_CHARS = 1000
"""A longer line of an output is not filed; what was quoted of it is."""
_QUOTED = re.compile(r"'[^']*'|\"(?:\\.|[^\"\\])*\"", re.DOTALL)
_PROGRAMS = r"\b(?:python|perl|ruby|node|awk|(?:ba|da)?sh\s+-\w*c|eval)"
_MAY_WRITE = re.compile(rf"<<|\b(?:tee|dd|ed)\b|\bsed\s+-\S*i|{_PROGRAMS}|>(?!&|\s*/dev/null)")
"""Parts of commands that write files."""
_MAY_READ_STATEMENTS = re.compile(rf"said|[*?[$]|-\w*[rR]|\b(?:find|xargs)\b|{_PROGRAMS}")
"""Parts of commands that read what the studied agents said, by its name or by a pattern."""


@dataclass(frozen=True, slots=True)
class EvidenceRecord:
    """What evidence is looked up in: the commands of the agent's run, and what the studied agents said."""

    commands: Sequence[RecordedCommand]
    statements: str = ""


def read_statements(material: Path) -> str:
    """Return what the studied agents said, from the folder of a study. Does blocking I/O."""
    texts = [path.read_text("utf-8") for path in sorted(material.glob(f"trials/*/{STATEMENTS_FILE}"))]
    return "\n".join(
        _words(line.removeprefix(STATEMENT_MARK)) for text in texts for line in text.splitlines()
    )


def check_claims(claims: Iterable[Claim], record: EvidenceRecord) -> tuple[Claim, ...]:
    """Return the claims with the problems of their evidence."""
    return tuple(replace(each, evidence=check_evidence(each.evidence, record)) for each in claims)


def check_evidence(
    evidence: Iterable[CommandEvidence], record: EvidenceRecord
) -> tuple[CommandEvidence, ...]:
    """Return the evidence with whole lines of the outputs, or with the problem that each has."""
    return tuple(_checked(each, record) for each in evidence)


def _checked(evidence: CommandEvidence, record: EvidenceRecord) -> CommandEvidence:
    wanted = _words(evidence.command)
    quote = [line for line in map(_words, _lines(evidence.excerpt)) if line not in _ELISIONS]
    if not wanted or not quote:
        return replace(evidence, problem="it quotes no output" if wanted else "it names no command")
    run = [
        (number, each)
        for number, each in enumerate(record.commands)
        if each.of_shell and wanted in (_words(each.command), _inner_command(each.command))
    ]
    if not run:
        return replace(evidence, problem="this command was not run")
    # "0" is in many a command that prints it for another reason.
    telling = len("".join(quote)) >= _SHORT_CHARS
    given = wanted if telling else " ".join(_PRINTER.findall(wanted))
    if all(line in given for line in quote):
        return replace(evidence, problem="the command has this text itself")
    placed = [(number, each, _place(quote, _lines(each.output))) for number, each in run]
    found = [_Finding(number, each, place) for number, each, place in placed if place is not None]
    if not found:
        return replace(evidence, problem="the command did not print this")
    found = [each for each in found if not each.run.ambiguous] or found
    if problem := _origin_problem(quote, wanted, found, record, telling=telling):
        return replace(evidence, problem=problem)
    return replace(evidence, problem="", excerpt=_printed_excerpt(quote, found[0].place))


@dataclass(frozen=True, slots=True)
class _Finding:
    """A run of a command, its number, and the lines of its output that were quoted, numbered."""

    number: int
    run: RecordedCommand
    place: Sequence[tuple[int, str]]


def _origin_problem(
    quote: Sequence[str], command: str, found: Sequence[_Finding], record: EvidenceRecord, *, telling: bool
) -> str:
    """Return why what was printed proves nothing; "" if nothing is known against it."""
    if found[0].run.ambiguous:  # and so are the others
        return "the agent's program has sent two outputs of this command"
    if all(all(STATEMENT_MARK in line for _, line in each.place) for each in found):
        return "it shows only what an agent said"
    if telling and _is_planted(quote, record.commands[: found[0].number]):
        return "the agent wrote this text itself before"
    if telling and _may_be_statement(quote, command, record.statements):
        return "it may show only what an agent said"
    return ""


def _is_planted(quote: Sequence[str], earlier: Sequence[RecordedCommand]) -> bool:
    """Whether an earlier call has written all of this text to a file."""
    writing = (
        each.command
        for each in earlier
        if not each.of_shell or _MAY_WRITE.search(_QUOTED.sub("", each.command))
    )
    return any(all(line in words for line in quote) for words in map(_words, writing))


def _may_be_statement(quote: Sequence[str], command: str, statements: str) -> bool:
    """Whether the text is from what a studied agent said, without the mark of such lines."""
    plain = re.sub(r"[\"'\\]", "", command)
    return bool(_MAY_READ_STATEMENTS.search(plain)) and all(line in statements for line in quote)


def _printed_excerpt(quote: Sequence[str], place: Sequence[tuple[int, str]]) -> str:
    """Return the lines of an output that were quoted, whole, with a mark where lines between are left out."""
    shown, before = list[str](), place[0][0] - 1
    for part, (number, line) in zip(quote, place, strict=True):
        if number > before + 1:
            shown.append("[…]")
        shown.append(line if len(line) <= _MAX_LINE_CHARS else part)
        before = number
    return "\n".join(shown)


def _inner_command(command: str) -> str:
    """Return what ``bash -lc '…'`` runs, as some agents record a command; "" for another command."""
    if not command.startswith(("bash -", "sh -", "/bin/bash -", "/bin/sh -")):
        return ""
    try:
        words = shlex.split(command)
    except ValueError:
        return ""
    is_wrapped = len(words) == _WRAPPED_WORDS and words[1] in {"-c", "-lc"}
    return _words(words[2]) if is_wrapped else ""


def _place(quote: Sequence[str], output: Sequence[str]) -> list[tuple[int, str]] | None:
    """Return the lines of the output, numbered, that have the lines of the quote in order; None without."""
    places, rest = list[tuple[int, str]](), ((n, line, _words(line)) for n, line in enumerate(output))
    for wanted in quote:
        here = next(
            (
                (number, line)
                for number, line, words in rest
                if words == wanted or (len(wanted) >= _SHORT_CHARS and wanted in words)
            ),
            None,
        )
        if here is None:
            return None
        places.append(here)
    return places


def _lines(text: str) -> list[str]:
    """Return the lines of a text without escapes."""
    return _ESCAPES.sub("", text).splitlines()


def _words(text: str) -> str:
    """Return a text with single spaces between its words."""
    return " ".join(text.split())
