"""The leak check: whether an open description names what only the golden patch knows (CodeTaste §3.2).

An open description may name the area that is to be improved in words that R itself uses, and what kind of
improvement is meant. It may not name symbols or paths of the golden patch, quote code, or state a decision:
what takes the place of what. The check is by rules, so that it says why, and a model can answer to it.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from enum import StrEnum
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from codetaste.flows.describe.leak_check.words import join_name, words_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from codetaste.flows.describe.leak_check.patch_names import PatchNames


class DisclosureKind(StrEnum):
    """What an open description gives away."""

    SYMBOL = "symbol"
    PATH = "path"
    CODE = "code"
    DECISION = "decision"


@dataclass(frozen=True, slots=True)
class Disclosure:
    """One finding: the words of the description, and where the golden patch has them, or why they tell."""

    kind: DisclosureKind
    words: str
    evidence: str

    def __str__(self) -> str:
        """Return the finding in one line."""
        return f'{self.kind} "{self.words}" ({self.evidence})'


_MIN_PLAIN_CHARS = 4
"""Shorter words are too common to be recognised as the name of something."""
_KEYWORDS = frozenset(
    """
    abstract and assert async await bool break case catch char class const continue default defer delete
    double elif else enum except export extends extern false final finally float for from func function global
    goto impl implements import include inline instanceof int interface into internal is lambda let long macro
    match module mutable namespace native new nil none not null object operator or override package pass
    private protected public raise readonly record return sealed select self short static string struct super
    switch template then this throw throws trait true try type typedef typename typeof undefined union unsafe
    unsigned using var virtual void volatile when where while with yield
    """.split()  # noqa: SIM905 - as a list it fills a page
)
"""Words of programming languages, which are no names."""
_MAX_RUN = 4
"""Words in a row that may spell one identifier."""
_CODE = re.compile(r"`[^`]*`?|\S*(?:\(\)|::|->|=>|==|\{|\}|\[\])\S*|<\w+>|\$\w+|@\w+")
_TOKEN = re.compile(r"[^\W_](?:[\w./+#:-]*[\w+#/])?|_+\w[\w.]*")
_CODE_SHAPED = re.compile(r"\w*_\w*|\w*[a-z\d][A-Z]\w*|[A-Za-z]\w*\.[A-Za-z_][\w.]*")
_DECISIONS = (
    re.compile(r"\S+\s*(?:→|⇒|-+>|=+>)\s*\S+"),
    re.compile(r"\b(?:replac|substitut|swap|exchang)\w*\s.+?\s(?:with|by|for)\s+\S.*", re.IGNORECASE),
    re.compile(
        r"\b(?:renam|migrat|convert|switch|port|mov|chang|transition)\w*\s.*?\b(?:to|into|onto)\s+\S.*",
        re.IGNORECASE,
    ),
    re.compile(
        r"\b(?:instead of|in favou?r of|rather than|by means of|by using|using|via)\s+\S.*", re.IGNORECASE
    ),
)
"""Wordings that say what takes the place of what, or by which means."""


def find_leaks(
    text: str, names: PatchNames, vocabulary: Collection[str] = (), instructed: str = ""
) -> tuple[Disclosure, ...]:
    """Return what an open description gives away, in the order of kinds; () if nothing.

    Args:
        text: the open description.
        names: of the golden patch.
        vocabulary: lower-case words of R's prose, which may be used.
        instructed: the instructed description; the code that it quotes may not be repeated.
    """
    known = names.words.union(vocabulary)
    text = _plain_letters(text)
    tokens = [match[0] for match in _TOKEN.finditer(text.replace("`", " "))]
    found = [
        *_symbols(tokens, names, known),
        *_joined(tokens, names),
        *_paths(tokens, names),
        *_code(text, tokens, instructed, known),
        *_decisions(text, names),
    ]
    return tuple({(leak.kind, leak.words.lower()): leak for leak in reversed(found)}.values())[::-1]


def _plain_letters(text: str) -> str:
    """Return a text without invisible characters, and with usual letters in place of wide and joined ones."""
    visible = "".join(letter for letter in text if unicodedata.category(letter) != "Cf")
    return unicodedata.normalize("NFKC", visible)


def _symbols(tokens: Sequence[str], names: PatchNames, known: Collection[str]) -> Iterator[Disclosure]:
    """Find identifiers: those that look like code on either side, plain words only if they are new."""
    introduced = {name.lower(): place for name, place in reversed(names.introduced.items())}
    for number, token in enumerate(tokens):
        if _CODE_SHAPED.fullmatch(token):
            new = [names.introduced[part] for part in _dotted(token) if part in names.introduced]
            old = [names.symbols[part] for part in _dotted(token) if part in names.symbols]
            # A name such as GitHub looks like code, too: R's prose has it, and the patch does not bring it.
            if new or (old and not set(_lowered(token)) <= set(known)):
                yield Disclosure(DisclosureKind.SYMBOL, token, (new or old)[0])
        # The first word is the imperative: a function of the same name does not make it a name.
        elif number and _is_unknown(token, known):
            form = next((each for each in _forms(token.lower()) if each in introduced), None)
            if form is not None:
                yield Disclosure(DisclosureKind.SYMBOL, token, introduced[form])


def _dotted(token: str) -> list[str]:
    return [part for part in re.split(r"[.:]+", token) if part]


def _lowered(token: str) -> tuple[str, str]:
    return token.lower(), join_name(token)


def _is_unknown(token: str, known: Collection[str]) -> bool:
    """Whether a plain word is long enough to be a name, and R does not use it."""
    is_name = len(token) >= _MIN_PLAIN_CHARS and token.lower() not in _KEYWORDS
    return is_name and not _is_known(token, known)


def _is_known(token: str, known: Collection[str]) -> bool:
    """Whether R uses a plain word, also in the singular or with another ending."""
    word = token.lower()
    return any(form in known for form in (f"{word}s", *_forms(word)))


def _forms(word: str) -> list[str]:
    """Return a word in lower case as it is, and as the singular that it may be the plural of."""
    singular = [f"{word[:-3]}y"] if word.endswith("ies") else []
    return [word, *singular, word.removesuffix("s"), word.removesuffix("es")]


def _joined(tokens: Sequence[str], names: PatchNames) -> Iterator[Disclosure]:
    """Find words in a row that spell an introduced identifier or a part of a new path."""
    for start in range(len(tokens)):
        for end in range(start + 1, min(start + _MAX_RUN, len(tokens)) + 1):
            run = tokens[start:end]
            if len(run) == 1 and len(list(words_of(run[0]))) == 1:
                continue
            spelled = join_name("".join(run))
            for form in _forms(spelled):
                if form in names.joined:
                    yield Disclosure(DisclosureKind.SYMBOL, " ".join(run), names.joined[form])
                    break


def _paths(tokens: Sequence[str], names: PatchNames) -> Iterator[Disclosure]:
    """Find file names, and folders written with a slash."""
    for token in tokens:
        if "/" not in token and "." not in token:
            continue
        parts = PurePosixPath(token).parts
        for path, place in names.paths.items():
            whole = PurePosixPath(path).parts
            if any(whole[at : at + len(parts)] == parts for at in range(len(whole))):
                yield Disclosure(DisclosureKind.PATH, token, place)
                break


def _code(text: str, tokens: Sequence[str], instructed: str, known: Collection[str]) -> Iterator[Disclosure]:
    """Find code in the text, and words that the instructed description quotes as code."""
    for match in _CODE.finditer(text):
        yield Disclosure(DisclosureKind.CODE, match[0], "it is code")
    quoted = {span.strip(): span for span in re.findall(r"`([^`\s]+)`", instructed)}
    for token in tokens:
        if token in quoted and not _is_known(token, known):
            yield Disclosure(DisclosureKind.CODE, token, "the instructed description quotes it as code")


def _decisions(text: str, names: PatchNames) -> Iterator[Disclosure]:
    """Find what takes the place of what, and versions that the patch brings."""
    for pattern in _DECISIONS:
        for match in pattern.finditer(text):
            yield Disclosure(
                DisclosureKind.DECISION, match[0].rstrip("."), "it says how, or what takes its place"
            )
    for number in re.findall(r"\d+(?:\.\d+)+", text):
        if number in names.versions:
            yield Disclosure(DisclosureKind.DECISION, number, names.versions[number])
