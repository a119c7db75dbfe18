"""The corpus: a JSON-lines file of examples; what it leaves out of them, and why."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from codetaste.core.files import read_regular_file
from codetaste.core.text import one_line, plural, printable
from codetaste.errors import ConfigError
from codetaste.retrieval.code_tokens import code_tokens
from codetaste.retrieval.index import MAX_CHARS
from codetaste.swe_refactor.examples.example import RefactoringExample
from codetaste.swe_refactor.examples.overlap import InstanceOverlap, normalise_code

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from codetaste.retrieval.index import Document
    from codetaste.swe_refactor.dataset.instance import RefactoringInstance

_MAX_FILE_BYTES = 2 * 1024**3
_MAX_PROBLEMS = 20


class LeftOutReason(StrEnum):
    """Why an example is not used."""

    OTHER_TYPE = "other_type"
    UNCONFIRMED = "unconfirmed"
    """No list of the oracle has it; only where the corpus is made of a clone."""
    NOT_PURE = "not_pure"
    OVERLAP = "overlap"
    """It has a commit or a method of an instance."""
    DUPLICATE = "duplicate"
    """Its code before and after is that of an earlier example."""


@dataclass(frozen=True, slots=True)
class LeftOutExample:
    """An example that is not used; ``detail`` is for people."""

    id: str
    reason: LeftOutReason
    detail: str


@dataclass(frozen=True, slots=True)
class ExampleCorpus:
    """The examples that are used, in the order of the file, and those that are left out."""

    examples: tuple[RefactoringExample, ...]
    left_out: tuple[LeftOutExample, ...]

    def documents(self, descriptions: Mapping[str, str]) -> tuple[Document, ...]:
        """Return what is searched; ``descriptions`` by the examples' ids, for those that have one."""
        return tuple(each.document(descriptions.get(each.id, "")) for each in self.examples)

    def describe(self) -> str:
        """Return how many examples there are, and how many are left out for which reason, in one line."""
        counts = Counter(each.reason.value for each in self.left_out)
        left = ", ".join(f"{count:,} {name}" for name, count in sorted(counts.items()))
        used = plural(len(self.examples), "example")
        return f"{used}; left out: {left}" if left else used


def read_corpus(path: Path, instances: Iterable[RefactoringInstance]) -> ExampleCorpus:
    """Return the corpus of a file without what overlaps with ``instances``. Blocking.

    Raises:
        ConfigError: the file cannot be read, lines are no examples, or none is left: a line for each problem.
    """
    try:
        lines = read_regular_file(path, _MAX_FILE_BYTES).split(b"\n")
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from None
    examples, problems = [], list[str]()
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            examples.append(_parse(line))
        except ValueError as error:
            problems.append(f"{path}, line {number}: {error}")
    if len(problems) > _MAX_PROBLEMS:
        problems[_MAX_PROBLEMS:] = [f"{path}: {plural(len(problems) - _MAX_PROBLEMS, 'more problem')}"]
    if problems:
        raise ConfigError(*problems)
    corpus = select_examples(examples, InstanceOverlap.of(instances))
    if not corpus.examples:
        raise ConfigError(f"{path}: no example is left ({corpus.describe()})")
    return corpus


def select_examples(examples: Iterable[RefactoringExample], overlap: InstanceOverlap) -> ExampleCorpus:
    """Return the pure examples of the six types that have nothing in common with an instance, each once."""
    used: list[RefactoringExample] = []
    left_out: list[LeftOutExample] = []
    seen: dict[tuple[str, str], str] = {}
    ids = set[str]()
    for each in examples:
        code = (
            normalise_code(each.source_code_before_refactoring),
            normalise_code(each.source_code_after_refactoring),
        )
        if not each.is_of_the_six_types:
            reason, detail = LeftOutReason.OTHER_TYPE, one_line(each.type)
        elif not each.is_pure:
            reason, detail = LeftOutReason.NOT_PURE, "PurityChecker or a person says so, or neither was asked"
        elif common := overlap.reason(each):
            reason, detail = LeftOutReason.OVERLAP, common
        elif code in seen or each.id in ids:
            reason, detail = LeftOutReason.DUPLICATE, f"its code is that of {seen.get(code, each.id)}"
        else:
            used.append(each)
            seen[code] = each.id
            ids.add(each.id)
            continue
        left_out.append(LeftOutExample(each.id, reason, detail))
    return ExampleCorpus(tuple(used), tuple(left_out))


def _parse(line: bytes) -> RefactoringExample:
    """Return the example of a line.

    Raises:
        ValueError: it is none; the message is one line.
    """
    try:
        document: Any = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"not valid JSON: {one_line(error)}") from None
    try:
        example = RefactoringExample.model_validate(document)
    except ValidationError as error:
        raise ValueError("; ".join(_messages(error))) from None
    method = example.source_code_before_refactoring
    if len(method) > MAX_CHARS:
        raise ValueError(f"sourceCodeBeforeRefactoring: {len(method):,} characters, at most {MAX_CHARS:,}")
    if not code_tokens(method):
        raise ValueError("sourceCodeBeforeRefactoring: it has no word")
    return example


def _messages(error: ValidationError) -> Iterator[str]:
    for fault in error.errors(include_url=False)[:3]:
        place = printable(".".join(map(str, fault["loc"]))) or "the line"
        yield f"{place}: {fault['msg']}"
