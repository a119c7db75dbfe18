"""A part of an answer that is Java: members, or a class with members in it."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from codetaste.core.text import printable
from codetaste.swe_refactor.answers.java.syntax import all_types, normal_code, parse_java
from codetaste.swe_refactor.answers.problem import AnswerFault
from codetaste.swe_refactor.answers.problem import AnswerProblemKind as Kind

if TYPE_CHECKING:
    from codetaste.swe_refactor.answers.answer_format import PartName
    from codetaste.swe_refactor.answers.java.syntax import SourceImport, SourceMember, SourceType, SourceUnit

_WRAPPER = (b"class C {\n", b"\n}")
_HTML = re.compile(r"\s*(<!doctype\b|<(html|head|body|div|pre|code|p|span|h\d)\b[^>]*>)", re.IGNORECASE)
_OTHER_LANGUAGE = re.compile(
    r"^\s*(def \w+\(.*\).*:|(?:async )?function\b.*\{|(?:fun|func|fn) \w+\(|#include\b"
    r"|from \w+ import|(?:const|let|var) \w+ = (?:async )?\(|\[PYTHON\]|<\?php)",
    re.MULTILINE,
)
_STATEMENT = re.compile(rb"(?:return|throw|new|assert|else|yield|await)\b")
_ELISION = re.compile(
    r"//[ \t]*(?:\.\.\.|…)[^\n]*|/\*\s*(?:\.\.\.|…).*?\*/"
    r"|//[ \t]*(?:the )?(?:rest of|remaining|existing|original)[^\n]*"
    r"\b(?:code|logic|implementation|methods?|class|body)\b[^\n]*",
    re.IGNORECASE | re.DOTALL,
)
"""Comments with which models leave out code."""


@dataclass(frozen=True, slots=True)
class CodePart:
    """Java of an answer.

    Attributes:
        unit: the text by its syntax. Bare members are in a class of no meaning.
        package: the package that it declares, or "".
        imports: its imports.
        owner: the class that the answer wraps around the members; None for bare members.
        members: the members; of a class those in it.
        types: the types beside the members.
    """

    unit: SourceUnit
    package: str
    imports: tuple[SourceImport, ...]
    owner: SourceType | None
    members: tuple[SourceMember, ...]
    types: tuple[SourceType, ...]

    @property
    def methods(self) -> tuple[SourceMember, ...]:
        """All methods, those of inner types too."""
        inside = (self.owner,) if self.owner else self.types
        found = [each.members for each in all_types(inside)]
        return tuple(
            each
            for members in (() if self.owner else self.members, *found)
            for each in members
            if each.is_method
        )


def parse_code(name: PartName, text: str, base: str) -> CodePart:
    """Return a part that must be Java with a method; ``base`` is the file before.

    Raises:
        AnswerFault: it is something else.
    """
    data = text.encode()
    if not normal_code(data).strip():
        raise AnswerFault(Kind.NO_CODE, f"The part {name} has no code.")
    if _HTML.match(text):
        raise AnswerFault(Kind.HTML, f"The part {name} is HTML, not Java.")
    unit = _parse(name, data)
    if unit.types and not unit.other and unit.error_at is None:
        part = _class_part(name, unit)
    else:
        part = _bare_part(name, unit)
    # The parser takes the call in "return sum();" for a method that returns a type of the name return.
    statements = [each for each in part.methods if _STATEMENT.match(part.unit.data, each.code_start)]
    if not part.methods or statements:
        raise AnswerFault(Kind.NO_METHOD, f"The part {name} has no method.")
    _check_methods(name, part, base)
    return part


def _class_part(name: PartName, unit: SourceUnit) -> CodePart:
    if len(unit.types) > 1:
        names = " and ".join(each.name for each in unit.types[:2])
        raise AnswerFault(Kind.TWO_CLASSES, f"The part {name} has several classes, {names}; it must be one.")
    owner = unit.types[0]
    return CodePart(unit, unit.package, unit.imports, owner, owner.members, owner.types)


def _bare_part(name: PartName, whole: SourceUnit) -> CodePart:
    """Read members that no class is around, with imports before them."""
    begin = max([whole.package_end, *(each.end for each in whole.imports)], default=0)
    head, tail = _WRAPPER
    unit = _parse(name, head + whole.data[begin:] + tail)
    if unit.error_at is not None:
        line = whole.line_of(begin) + unit.line_of(unit.error_at) - 2
        raise _syntax_fault(name, whole, line)
    if len(unit.types) != 1 or unit.other or unit.types[0].end != len(unit.data):
        raise AnswerFault(Kind.UNBALANCED, f"The part {name} closes a brace that it does not open.")
    owner = unit.types[0]
    return CodePart(unit, whole.package, whole.imports, None, owner.members, owner.types)


def _parse(name: PartName, data: bytes) -> SourceUnit:
    unit = parse_java(data)
    if unit is None:
        raise AnswerFault(
            Kind.TOO_COMPLEX, f"The part {name} takes too long to be read: it must be plain Java."
        )
    return unit


def _syntax_fault(name: PartName, whole: SourceUnit, line: int) -> AnswerFault:
    text = whole.data.decode()
    if _OTHER_LANGUAGE.search(text):
        return AnswerFault(Kind.OTHER_LANGUAGE, f"The part {name} is not Java.")
    counts = Counter(normal_code(whole.data).split(b" "))
    for opened, closed in ((b"{", b"}"), (b"(", b")"), (b"[", b"]")):
        if counts[opened] != counts[closed]:
            pair = (opened + closed).decode()
            return AnswerFault(
                Kind.UNBALANCED,
                f"The part {name} opens {counts[opened]} and closes {counts[closed]} of {pair}.",
            )
    if whole.error_at is None:  # statements without a method around them
        return AnswerFault(Kind.NO_METHOD, f"The part {name} has no method.")
    lines = text.split("\n")
    shown = printable(lines[min(max(line, 1), len(lines)) - 1].strip(), 80)
    return AnswerFault(Kind.SYNTAX_ERROR, f"The part {name} is no valid Java near its line {line}: {shown}")


def _check_methods(name: PartName, part: CodePart, base: str) -> None:
    counts = Counter(each.signature for each in part.members if each.is_method)
    twice = [signature for signature, count in counts.items() if count > 1]
    if twice:
        raise AnswerFault(Kind.DUPLICATE, f"The part {name} has the method {twice[0]} twice.")
    for each in part.methods:
        for comment in _ELISION.findall(part.unit.text(each.code_start, each.end)):
            if comment.strip() not in base:
                raise AnswerFault(
                    Kind.ELIDED,
                    f"The part {name} leaves out code of the method {each.name}; it must be whole.",
                )
