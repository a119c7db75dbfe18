"""Errors of javac in the output of a build, and their kinds. Texts are those of JDK 8 to 25, in English."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

MAX_OUTPUT: Final = 1024**2
"""Characters of an output that are looked at: javac stops at 100 errors."""


class CompilerErrorKind(StrEnum):
    """What an error says of the code, the most basic first."""

    SYNTAX = "syntax"
    MISSING_SYMBOL = "missing symbol"
    TYPES = "types"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class CompilerError:
    """One error: the file as it was printed, the line, and the first line of the message."""

    path: str
    line: int
    message: str

    @property
    def kind(self) -> CompilerErrorKind:
        """What it says of the code."""
        return kind_of_message(self.message)


_ERROR = re.compile(
    # By javac and Gradle, by Maven.
    r"^(?P<path>[^\s:\[][^:\n]{0,500}\.java):(?P<line>\d{1,9}): error: (?P<message>[^\r\n]{1,500})"
    r"|^\[ERROR\] (?P<path2>[^\n]{1,500}?\.java):\[(?P<line2>\d{1,9}),\d{1,9}\] (?:error: )?"
    r"(?P<message2>[^\r\n]{1,500})",
    re.MULTILINE,
)
_KINDS: Final = (
    (
        CompilerErrorKind.MISSING_SYMBOL,
        re.compile(
            r"cannot find symbol|package \S+ does not exist|cannot access |package \S+ is not visible"
            r"|static import only from classes and interfaces|module not found"
        ),
    ),
    (
        CompilerErrorKind.TYPES,
        re.compile(
            r"incompatible |.* cannot be applied to |no suitable (?:method|constructor)|bad operand type"
            r"|incomparable types|inconvertible types|.* cannot be dereferenced$|unexpected type"
            r"|array required, but|bad return type|possible loss of precision|reference to \S+ is ambiguous"
            r"|wrong number of type arguments|.* does not take parameters$|type argument .* bounds?"
            r"|cannot infer |cannot inherit from|invalid (?:method|constructor) reference"
        ),
    ),
    (
        CompilerErrorKind.SYNTAX,
        re.compile(
            r".* expected(?: here| instead)?$|illegal (?:start of|character|escape|underscore|text block)"
            r"|not a statement|reached end of file|unclosed |empty character literal|orphaned "
            r"|'\w+' without '|variable declaration not allowed here|array dimension missing"
            r"|invalid method declaration|missing method body|malformed |repeated modifier"
            r"|integer number too large|as of release \d+, |.* (?:is|are) a preview feature"
            r"|.* (?:is|are) not supported in -source |compact source file does not have main method"
            r"|invalid use of a restricted identifier"
        ),
    ),
)
"""By the beginning of the message; the first that fits."""


def read_compiler_errors(output: str) -> list[CompilerError]:
    """Return the errors in an output of javac, Maven or Gradle, each once; warnings are left out."""
    found = (
        CompilerError(
            match["path"] or match["path2"],
            int(match["line"] or match["line2"]),
            (match["message"] or match["message2"]).strip(),
        )
        for match in _ERROR.finditer(output[:MAX_OUTPUT])
    )
    return list(dict.fromkeys(found))


def kind_of_message(message: str) -> CompilerErrorKind:
    """Return the kind of a message, of which only the first line is needed."""
    return next((kind for kind, mark in _KINDS if mark.match(message)), CompilerErrorKind.OTHER)
