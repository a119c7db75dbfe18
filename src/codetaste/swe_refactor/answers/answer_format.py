"""The answer format of Appendix E: parts between lines of number signs, for each type of refactoring."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from codetaste.core.text import plural, replace_surrogates
from codetaste.swe_refactor.answers.problem import AnswerFault
from codetaste.swe_refactor.answers.problem import AnswerProblemKind as Kind

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

SEPARATOR = "#####"
MAX_ANSWER_CHARS = 1024**2
_SEPARATOR_LINE = re.compile(r"^[ \t]*#{5,}[ \t]*$", re.MULTILINE)
_FENCE = re.compile(r"^[ \t]*(?:`{3,}|~{3,})[ \t]*([\w+#.-]*)[ \t]*$", re.MULTILINE)
_JAVA_TAGS = {"", "java", "text", "plaintext", "txt", "code"}


class PartName(StrEnum):
    """The parts, by the names that the templates give them."""

    TARGET_FILE_PATH = "target_file_path"
    MOVED_CLASS_CODE = "moved_class_code"
    EXTRACTED_METHOD_CODE = "extracted_method_code"
    REFACTORED_METHOD_CODE = "refactored_method_code"
    REFACTORED_CLASS_CODE = "refactored_class_code"


_MOVE = (PartName.TARGET_FILE_PATH, PartName.MOVED_CLASS_CODE, PartName.REFACTORED_METHOD_CODE)
PARTS: Final[Mapping[str, tuple[PartName, ...]]] = {
    "Extract Method": (PartName.REFACTORED_METHOD_CODE,),
    "Inline Method": (PartName.REFACTORED_METHOD_CODE,),
    "Move Method": _MOVE,
    "Move And Rename Method": _MOVE,
    "Move And Inline Method": (PartName.TARGET_FILE_PATH, PartName.REFACTORED_CLASS_CODE),
    "Extract And Move Method": (
        PartName.TARGET_FILE_PATH,
        PartName.EXTRACTED_METHOD_CODE,
        PartName.REFACTORED_METHOD_CODE,
    ),
}
"""The parts of an answer by the type of the refactoring."""


def format_answer(parts: Sequence[str]) -> str:
    """Return an answer with ``parts``, as a model should write it."""
    return "\n".join([SEPARATOR, *(f"{part.strip()}\n{SEPARATOR}" for part in parts)])


def split_answer(text: str, kind: str) -> dict[PartName, str]:
    """Return the parts of an answer by name, without fences, with newlines as line ends.

    Text before the first separator and behind the last one is ignored, as are parts that only repeat the name
    of a part. A last separator may be missing.

    Raises:
        AnswerFault: the answer has no parts, or others than the format.
    """
    if len(text) > MAX_ANSWER_CHARS:
        raise AnswerFault(
            Kind.TOO_LONG, f"The answer has {len(text):,} characters; at most {MAX_ANSWER_CHARS:,} are read."
        )
    text = re.sub(r"\r\n?", "\n", replace_surrogates(text)).removeprefix("\ufeff")
    if not text.strip():
        raise AnswerFault(Kind.EMPTY, "The answer is empty.")
    names = PARTS[kind]
    before, *pieces = _SEPARATOR_LINE.split(text)
    if not pieces:
        raise AnswerFault(Kind.NO_PARTS, _expected("The answer has no line of number signs", names))
    del before
    # What follows the last separator is no part, but where that separator was forgotten.
    closed = [piece for piece in pieces[:-1] if piece.strip() not in {*PartName}]
    if len(closed) == len(names) - 1 and pieces[-1].strip().strip("`~").strip():
        closed.append(pieces[-1])
    if len(closed) != len(names):
        count = plural(len(closed), "part")
        raise AnswerFault(Kind.WRONG_PARTS, _expected(f"The answer has {count}", names))
    return {name: _without_fences(name, piece) for name, piece in zip(names, closed, strict=True)}


def _expected(fault: str, names: tuple[PartName, ...]) -> str:
    listed = ", ".join(names)
    return f"{fault}; it must have {plural(len(names), 'part')} between lines of {SEPARATOR}: {listed}."


def _without_fences(name: PartName, piece: str) -> str:
    fences = list(_FENCE.finditer(piece))
    for fence in fences[::2]:
        if fence[1].lower() not in _JAVA_TAGS:
            raise AnswerFault(Kind.OTHER_LANGUAGE, f"The part {name} is {fence[1]} by its fence, not Java.")
    if len(fences) > 2:  # noqa: PLR2004 - one that opens and one that closes
        raise AnswerFault(
            Kind.SEVERAL_BLOCKS, f"The part {name} has several fenced blocks; it must be one text."
        )
    if len(fences) == 2:  # noqa: PLR2004
        piece = piece[fences[0].end() : fences[1].start()]
    elif fences:  # its other half is outside of the separators
        head, tail = piece[: fences[0].start()], piece[fences[0].end() :]
        piece = tail if not head.strip() else head
    return piece.strip("\n")
