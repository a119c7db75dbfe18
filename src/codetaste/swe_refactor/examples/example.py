"""One example: a refactoring of a method, with its code before and after, as a line of the corpus has it."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field, field_validator
from pydantic.alias_generators import to_camel

from codetaste.core.hashing import json_digest
from codetaste.retrieval.index import Document
from codetaste.swe_refactor.dataset.instance import REFACTORING_TYPES
from codetaste.swe_refactor.enrich.line_text import slice_lines

RERANK_PROMPT = "swe_refactor/rerank_examples"
"""The prompt of a language model that ranks examples again; it gets ``query`` and ``examples``."""
_DECLARATION = "METHOD_DECLARATION"


class _Record(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, extra="ignore", frozen=True, strict=True)


class RecordedRange(_Record):
    """A place that takes part in the refactoring; see ``refactorings/model.py``."""

    file_path: str
    start_line: int
    end_line: int
    code_element_type: str
    description: str


class RecordedPurity(_Record):
    """What PurityChecker said."""

    is_pure: bool


class RefactoringExample(_Record):
    """A refactoring of the oracle; "before" is the parent of the commit."""

    type: str
    description: str
    repository: str = Field(min_length=1)
    """Its address."""
    commit_id: str = Field(pattern="^[0-9a-f]{40}$")
    file_path_before: str
    source_code_before_refactoring: str
    """The method that is refactored; of an inlining the one that goes away."""
    source_code_after_refactoring: str
    """The method after, with the extracted one behind it; of an inlining the one that took the code in."""
    source_code_before_for_whole: str = ""
    start_line: int = 0
    """Of the method before."""
    human_pure: bool | None = None
    """What people said."""
    purity_check: RecordedPurity | None = None
    left_side_locations: tuple[RecordedRange, ...] = ()

    @field_validator("left_side_locations", mode="before")
    @classmethod
    def _from_list(cls, value: Any) -> Any:  # noqa: ANN401 - JSON data
        return tuple(value) if isinstance(value, list) else value

    @property
    def name(self) -> str:
        """``OWNER/REPO``."""
        return "/".join(self.repository.removesuffix("/").removesuffix(".git").split("/")[-2:])

    @property
    def id(self) -> str:
        """Project, commit and a digest of what was refactored."""
        parts = [self.type, self.description, self.file_path_before, self.start_line]
        return f"{self.name}/{self.commit_id[:12]}/{json_digest(parts)[:8]}"

    @property
    def is_pure(self) -> bool:
        """Whether PurityChecker says that nothing else was changed, and people do not disagree."""
        return self.purity_check is not None and self.purity_check.is_pure and self.human_pure is not False

    @property
    def is_of_the_six_types(self) -> bool:
        """Whether its type is one of the benchmark's."""
        return self.type in REFACTORING_TYPES

    @property
    def related_code(self) -> str:
        """Other methods of the file before that take part: callers of an inlined method, for example."""
        found = [
            slice_lines(self.source_code_before_for_whole, *_lines(each))
            for each in self.left_side_locations
            if each.code_element_type == _DECLARATION
            and each.file_path == self.file_path_before
            and each.start_line != self.start_line
        ]
        return "\n\n".join(dict.fromkeys(filter(None, found)))

    def document(self, description: str = "") -> Document:
        """Return what is searched: the description, if there is one, and the method before."""
        return Document(self.id, search_text(self.source_code_before_refactoring, description))


def search_text(code: str, description: str) -> str:
    """Return the text of a method that is searched, or searched for: a description, if any, and the code."""
    return f"{description}\n\n{code}" if description else code


def _lines(place: RecordedRange) -> tuple[int, int]:
    return place.start_line, place.end_line
