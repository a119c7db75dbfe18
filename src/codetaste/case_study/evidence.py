"""Check the evidence of a study: was this command run in the agent's own sandbox, and did it print this?

What an agent says is no evidence, neither the agent that makes the study nor those that it is about. So a
quoted text must stand in the output of the command, in whole lines or parts of lines, in its order; and not
in a line that shows only what one of the studied agents said.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import replace
from typing import TYPE_CHECKING

from codetaste.case_study.material.transcript_text import STATEMENT_MARK

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from codetaste.case_study.study import Claim, CommandEvidence
    from codetaste.transcripts.commands import RecordedCommand

_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-_])")
_ELISIONS = frozenset({"", "...", "…", "[...]", "[…]"})
_PRINTERS = ("echo ", "printf ")
_WRAPPED_WORDS = 3
_SHORT_CHARS = 8
"""A shorter line of a quote must be a whole line of the output: "0" is in every number."""


def check_claims(claims: Iterable[Claim], commands: Sequence[RecordedCommand]) -> tuple[Claim, ...]:
    """Return the claims with the problems of their evidence."""
    return tuple(replace(each, evidence=check_evidence(each.evidence, commands)) for each in claims)


def check_evidence(
    evidence: Iterable[CommandEvidence], commands: Sequence[RecordedCommand]
) -> tuple[CommandEvidence, ...]:
    """Return the evidence, each with the problem that it has; ``commands`` are those of the agent's runs."""
    return tuple(replace(each, problem=find_problem(each, commands)) for each in evidence)


def find_problem(evidence: CommandEvidence, commands: Sequence[RecordedCommand]) -> str:
    """Return why the evidence proves nothing; "" if it was verified."""
    wanted = _words(evidence.command)
    quote = [line for line in _lines(evidence.excerpt) if line not in _ELISIONS]
    if not wanted or not quote:
        return "it names no command" if not wanted else "it quotes no output"
    run = [each for each in commands if wanted in (_words(each.command), _inner_command(each.command))]
    if not run:
        return "this command was not run"
    # "0" is in many a command that prints it for another reason.
    telling = len("".join(quote)) >= _SHORT_CHARS or wanted.startswith(_PRINTERS)
    if telling and all(line in wanted for line in quote):
        return "the command has this text itself"
    found = [_place(quote, _lines(each.output)) for each in run]
    if not any(found):
        return "the command did not print this"
    if all(place is None or all(STATEMENT_MARK in line for line in place) for place in found):
        return "it shows only what an agent said"
    return ""


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


def _place(quote: Sequence[str], output: Sequence[str]) -> list[str] | None:
    """Return the lines of the output that have the lines of the quote, in their order; None without them."""
    places, rest = list[str](), iter(output)
    for line in quote:
        here = next(
            (each for each in rest if each == line or (len(line) >= _SHORT_CHARS and line in each)), None
        )
        if here is None:
            return None
        places.append(here)
    return places


def _lines(text: str) -> list[str]:
    """Return the lines of a text without escapes, each with single spaces between its words."""
    return [_words(line) for line in _ESCAPES.sub("", text).splitlines()]


def _words(text: str) -> str:
    return " ".join(text.split())
