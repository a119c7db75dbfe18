"""The four keyword sets, read from a TOML file, and each set as one regular expression."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from codetaste.core.section import read_toml
from codetaste.core.text import did_you_mean
from codetaste.errors import ConfigError
from codetaste.mining.keywords.keyword import Keyword, parse_keyword

DEFAULT_FILE = Path(__file__).with_name("keyword_sets.toml")
SET_NAMES = ("strong_plus", "weak_plus", "strong_minus", "weak_minus")
MAX_KEYWORDS = 500
"""Of one set: RE2 refuses expressions that need too much memory."""
_NO_MATCH = r"\b\B"
_LAST_WORD = re.compile(r"\w+\Z", re.ASCII)


@dataclass(frozen=True)
class KeywordSet:
    """The keywords of one set, in the order of the file; a set may be empty."""

    keywords: tuple[Keyword, ...]

    @cached_property
    def pattern(self) -> str:
        r"""One regular expression for the whole set, to be searched in folded text (``fold_case``).

        Python's ``re`` with ``re.ASCII`` and RE2, which DuckDB and BigQuery use, find the same matches with
        it, left to right without overlap; DuckDB: ``len(regexp_extract_all(lower(text), pattern))``.
        Of keywords that match at one place the type of a commit counts, otherwise the phrase with most words.
        """
        by_words = sorted(self.keywords, key=lambda each: (not each.is_type, -each.text.count(" ")))
        return "|".join(keyword.pattern for keyword in by_words) or _NO_MATCH

    @cached_property
    def regex(self) -> re.Pattern[str]:
        """The compiled pattern."""
        return re.compile(self.pattern, re.ASCII)

    def find(self, folded: str) -> tuple[str, ...]:
        """Return what matches in folded text, in its order; of a word in the title the word alone."""
        return tuple(
            _LAST_WORD.findall(found)[0] if self._title_regex.fullmatch(found) else found
            for found in self.regex.findall(folded)
        )

    @cached_property
    def _title_regex(self) -> re.Pattern[str]:
        patterns = [keyword.pattern for keyword in self.keywords if keyword.is_title_word]
        return re.compile("|".join(patterns) or _NO_MATCH, re.ASCII)


@dataclass(frozen=True, slots=True)
class KeywordSets:
    """K+ strong, K+ weak, K- strong and K- weak of CodeTaste A.1. Each is counted for itself."""

    strong_plus: KeywordSet
    weak_plus: KeywordSet
    strong_minus: KeywordSet
    weak_minus: KeywordSet


@cache
def load_keyword_sets(path: Path = DEFAULT_FILE) -> KeywordSets:
    """Return the sets in a TOML file of four lists of keywords.

    Raises:
        ConfigError: the file cannot be read, a list is missing or a keyword is wrong; all problems are named.
    """
    try:
        data = read_toml(path)
    except FileNotFoundError:
        raise ConfigError(f"{path}: there is no such file of keyword sets") from None
    lists = ", ".join(SET_NAMES)
    problems = [
        f"{path}: unknown key {key!r}{did_you_mean(key, SET_NAMES)}; the lists are {lists}"
        for key in data
        if key not in SET_NAMES
    ]
    sets = {name: _read_set(f"{path}: {name}", data.get(name), problems) for name in SET_NAMES}
    problems += _find_repeated(path, sets)
    if not problems and not (sets["strong_plus"].keywords or sets["weak_plus"].keywords):
        problems.append(f"{path}: strong_plus and weak_plus are both empty, so no commit would be kept")
    if problems:
        raise ConfigError(*problems)
    return KeywordSets(**sets)


def _read_set(where: str, value: Any, problems: list[str]) -> KeywordSet:  # noqa: ANN401 - TOML data
    if value is None:
        problems.append(f"{where}: is missing; an empty list is []")
    elif not isinstance(value, list):
        problems.append(f"{where}: must be a list of keywords")
    elif len(value) > MAX_KEYWORDS:
        problems.append(f"{where}: {len(value):,} keywords, at most {MAX_KEYWORDS}")
    else:
        return KeywordSet(tuple(_read_keywords(where, value, problems)))
    return KeywordSet(())


def _read_keywords(where: str, items: list[Any], problems: list[str]) -> list[Keyword]:
    keywords = []
    for number, item in enumerate(items, 1):
        if not isinstance(item, str):
            problems.append(f"{where}: item {number} must be a keyword in quotes")
            continue
        try:
            keywords.append(parse_keyword(item))
        except ValueError as error:
            problems.append(f"{where}: {item!r}: {error}")
    return keywords


def _find_repeated(path: Path, sets: dict[str, KeywordSet]) -> list[str]:
    places: dict[str, list[str]] = {}
    for name, each in sets.items():
        for keyword in each.keywords:
            places.setdefault(keyword.text, []).append(name)
    return [
        f"{path}: {text!r} is there {len(names)} times ({', '.join(names)}): keep one"
        for text, names in places.items()
        if len(names) > 1
    ]
