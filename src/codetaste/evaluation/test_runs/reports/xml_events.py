"""A bounded reader of untrusted XML: no document type, no entities but the five of XML, bounded depth."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn
from xml.parsers import expat

from codetaste.evaluation.test_runs.reports.limits import (
    InvalidReport,
    ReportProblem,
    check_depth,
    check_size,
)

if TYPE_CHECKING:
    from collections.abc import Callable


def parse_xml(
    content: bytes,
    start: Callable[[str, dict[str, str]], None],
    end: Callable[[str], None],
    text: Callable[[str], None] | None = None,
) -> None:
    """Call ``start`` and ``end`` for each element of a document, and ``text`` for pieces of text.

    Raises:
        InvalidReport: it is too large or deep, has a document type, or is not well-formed. What was passed
            before it is part of a broken document.
    """
    check_size(content)
    depth = 0

    def open_element(name: str, attributes: dict[str, str]) -> None:
        nonlocal depth
        depth += 1
        check_depth(depth)
        start(name, attributes)

    def close_element(name: str) -> None:
        nonlocal depth
        depth -= 1
        end(name)

    parser = expat.ParserCreate()
    parser.StartElementHandler = open_element
    parser.EndElementHandler = close_element
    parser.StartDoctypeDeclHandler = _refuse_doctype
    if text is not None:
        parser.CharacterDataHandler = text
    try:
        # One call with everything: pieces would make expat read a long token again and again.
        parser.Parse(content, True)  # noqa: FBT003 - it takes no keywords
    except (expat.ExpatError, ValueError, LookupError, TypeError) as error:
        # The last three come from encodings that Python has and XML cannot have.
        raise InvalidReport(ReportProblem.NOT_PARSABLE, f"not well-formed XML: {error}") from None


def _refuse_doctype(*_: object) -> NoReturn:
    raise InvalidReport(ReportProblem.HAS_DTD, "it has a document type (<!DOCTYPE …>), which no report needs")
