"""A bounded reader of untrusted JSON in the output of test runners."""

from __future__ import annotations

import json
import re
from typing import Any

from codetaste.evaluation.test_runs.reports.limits import InvalidReport, ReportProblem, check_size

_MAX_VALUES = 6_000_000
"""Limit of commas and opening brackets, which bounds the memory of the parsed document."""
_START = re.compile(rb"^[ \t]*\{", re.MULTILINE)


def find_json_object(content: bytes) -> dict[str, Any]:
    """Return the JSON object in ``content``; lines of other text before and after it are skipped.

    Raises:
        InvalidReport: there is none, or it breaks a limit.
    """
    check_size(content)
    if sum(map(content.count, (b",", b"{", b"["))) > _MAX_VALUES:
        raise InvalidReport(ReportProblem.TOO_LARGE, f"more than {_MAX_VALUES:,} values")
    start = _START.search(content)
    if start is None:
        raise InvalidReport(ReportProblem.NOT_PARSABLE, "it has no JSON object")
    text = content[start.end() - 1 :].decode("utf-8", "replace")
    try:
        found, _ = json.JSONDecoder().raw_decode(text)
    except RecursionError:
        raise InvalidReport(ReportProblem.TOO_DEEP, "JSON that is nested too deep") from None
    except ValueError as error:
        raise InvalidReport(ReportProblem.NOT_PARSABLE, f"not valid JSON: {error}") from None
    if not isinstance(found, dict):  # cannot happen: it begins with a brace
        raise InvalidReport(ReportProblem.NOT_PARSABLE, "it has no JSON object")
    return found


def objects_in(data: dict[str, Any], key: str) -> list[dict[str, Any]]:
    """Return the objects of the list ``key`` of ``data``; anything else in its place is no object."""
    found = data.get(key)
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def text_in(data: dict[str, Any], key: str) -> str:
    """Return the text ``key`` of ``data``, "" if it is none."""
    found = data.get(key)
    return found if isinstance(found, str) else ""


def texts_in(data: dict[str, Any], key: str) -> list[str]:
    """Return the texts of the list ``key`` of ``data``."""
    found = data.get(key)
    return [each for each in found if isinstance(each, str)] if isinstance(found, list) else []
