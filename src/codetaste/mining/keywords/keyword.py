r"""One keyword and its reading, as a regular expression that Python's ``re`` and RE2 understand alike.

Letters and digits are ASCII, and count whatever their case. A keyword is written as one of these:

========================= ============================================================================
``fix``                   the whole word alone, not *fixes*; the characters around it are neither
                          letters nor digits nor ``_``
``rename~``               a verb: *rename, renames, renamed, renaming*; a final *e* is dropped, *y*
                          becomes *i*, a final consonant may be doubled (*stripped*)
``refactor*``             every word that begins with it: *refactor, refactoring, refactor_io*
``clean~ up``             a phrase: each word is read as above; white space or hyphens are between them
``refactor:``             a type of a conventional commit at the start of the message: ``refactor:``,
                          ``refactor(scope):``, ``refactor!:``, ``Refactor(scope)! :``
``^fix``                  a word, read as above, in the title: the first line of the message. It counts once,
                          and takes the place of keywords of its set before it
========================= ============================================================================

RE2 has no look-around, and its ``\b``, ``\w`` and ``\s`` know ASCII only, so the expressions use nothing
else: no flag, no group that captures, and no ``\s``, because RE2's has no vertical tab.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

MAX_LENGTH = 80
_SEPARATOR = r"[-\t\n\r ]+"
_WORD = re.compile(r"[a-z0-9]+[~*]?")
_TYPE = re.compile(r"[a-z0-9]+:")
_TITLE_WORD = re.compile(r"\^[a-z0-9]+[~*]?")
_SIBILANT = re.compile(r"(?:[sxz]|[cs]h)$")
_CONSONANT_Y = re.compile(r"[^aeiou]y$")
_DOUBLED = re.compile(r"[^aeiou][aeiou][bcdfgklmnprtz]$")


@dataclass(frozen=True, slots=True)
class Keyword:
    """A keyword as a user writes it, and its regular expression for folded text (``fold_case``)."""

    text: str
    pattern: str

    @property
    def is_type(self) -> bool:
        """Whether it is a type of a conventional commit, which only the start of a message can have."""
        return self.text.endswith(":")

    @property
    def is_title_word(self) -> bool:
        """Whether only the first line of a message can have it; its match begins with that line."""
        return self.text.startswith("^")


def parse_keyword(text: str) -> Keyword:
    """Return the keyword that ``text`` writes.

    Raises:
        ValueError: it is not written as the module's docstring says; the message says what is wrong.
    """
    if len(text) > MAX_LENGTH:
        raise ValueError(f"longer than {MAX_LENGTH} characters")
    if text != text.lower():
        raise ValueError(f"write it in small letters: {text.lower()!r} (case does not count)")
    if _TYPE.fullmatch(text):
        return Keyword(text, rf"\A{text[:-1]}(?:\([^()\n]*\))?!? ?:")
    if _TITLE_WORD.fullmatch(text):
        return Keyword(text, rf"\A[^\n]*?\b{_word_pattern(text[1:])}\b")
    words = text.split(" ")
    if not all(map(_WORD.fullmatch, words)):
        raise ValueError(
            "a keyword is words of letters a-z and digits with one space between them, each with ~ (verb), "
            "* (beginning) or neither at its end; or one word with a colon (type of a commit) or with ^ "
            "before it (in the title)"
        )
    return Keyword(text, rf"\b{_SEPARATOR.join(map(_word_pattern, words))}\b")


def _word_pattern(word: str) -> str:
    if word.endswith("*"):
        return rf"{word[:-1]}\w*"
    return _verb_pattern(word[:-1]) if word.endswith("~") else word


def _verb_pattern(verb: str) -> str:
    """Return a pattern of the regular forms of an English verb."""
    if verb.endswith("e"):
        return f"{verb[:-1]}(?:e|es|ed|ing)"
    if _CONSONANT_Y.search(verb):
        return f"{verb[:-1]}(?:y|ies|ied|ying)"
    if _SIBILANT.search(verb):
        return f"{verb}(?:es|ed|ing)?"
    doubled = f"{verb[-1]}?" if _DOUBLED.search(verb) else ""
    return f"{verb}(?:s|{doubled}ed|{doubled}ing)?"
