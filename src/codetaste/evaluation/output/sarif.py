"""Write a scan as SARIF 2.1.0, as the stock engine does; ``trials/coverage.py`` reads other programs' SARIF.

Results have the engine's order, rule ids, paths and regions. They lack the values of metavariables in
messages, the text of lines, fingerprints, and suppressions (suppressed matches count).
"""

from __future__ import annotations

import json
import re
from operator import attrgetter
from typing import TYPE_CHECKING, Any
from urllib.parse import quote_from_bytes, unquote_to_bytes

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from codetaste.rules.rule import Rule
    from codetaste.rules.scan.model import Match, ScanProblem

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/os/schemas/sarif-schema-2.1.0.json"
RULE_ID_PREFIX = "rules."
"""Prefix of rule ids in published files: the engine puts the folder of the rule file there."""
_LEVELS = {"ERROR": "error", "WARNING": "warning", "INFO": "note", "INVENTORY": "note", "EXPERIMENT": "note"}
_LEVELS |= {"CRITICAL": "error", "HIGH": "error", "MEDIUM": "warning", "LOW": "note"}
_VERSION = re.compile(r"\d+\.\d+\.\d+")
_SURROGATES = re.compile(r"[\ud800-\udfff]")


def render_sarif(
    rules: Sequence[Rule], matches: Iterable[Match], problems: Iterable[ScanProblem], engine: str
) -> bytes:
    """Return the SARIF of a scan.

    Args:
        rules: the rules of the scan.
        matches: their matches, with original rule ids, in any order.
        problems: written as notifications of the tool.
        engine: name and version of the rule engine.
    """
    messages = {rule.id: str(rule.body.get("message", "")) for rule in rules}
    version = _VERSION.search(engine)
    driver = {
        "name": "Opengrep OSS",
        "rules": [_rule(rule) for rule in sorted(rules, key=lambda rule: rule.id)],
        "semanticVersion": version[0] if version else "0.0.0",
    }
    run = {
        "invocations": [
            {"executionSuccessful": True, "toolExecutionNotifications": [_notification(p) for p in problems]}
        ],
        "results": [_result(match, messages[match.rule_id]) for match in sort_matches(matches)],
        "tool": {"driver": driver},
    }
    document = {"version": "2.1.0", "runs": [run], "$schema": SCHEMA}
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "backslashreplace")


def sort_matches(matches: Iterable[Match]) -> list[Match]:
    """Return ``matches`` in the order in which the engine prints them: by location, then by rule."""
    fields = ("path", "start_line", "start_column", "end_line", "end_column", "rule_id")
    return sorted(matches, key=attrgetter(*fields))


def _rule(rule: Rule) -> dict[str, Any]:
    name, message = RULE_ID_PREFIX + rule.id, str(rule.body.get("message", ""))
    return {
        "defaultConfiguration": {"level": _LEVELS.get(str(rule.body.get("severity", "")).upper(), "warning")},
        "fullDescription": {"text": message},
        "help": {"markdown": message, "text": message},
        "id": name,
        "name": name,
        "properties": {"precision": "very-high", "tags": []},
        "shortDescription": {"text": f"Opengrep Finding: {name}"},
    }


def _result(match: Match, message: str) -> dict[str, Any]:
    region = {
        "endColumn": match.end_column,
        "endLine": match.end_line,
        "startColumn": match.start_column,
        "startLine": match.start_line,
    }
    location = {"artifactLocation": {"uri": _uri(match.path), "uriBaseId": "%SRCROOT%"}, "region": region}
    return {
        "locations": [{"physicalLocation": location}],
        "message": {"text": message},
        "properties": {},
        "ruleId": RULE_ID_PREFIX + match.rule_id,
    }


def _notification(problem: ScanProblem) -> dict[str, Any]:
    where = f" ({_uri(problem.path)})" if problem.path else ""
    return {
        "descriptor": {"id": problem.kind},
        "level": "warning",
        "message": {"text": f"{_SURROGATES.sub('?', problem.message)}{where}"},
    }


def _uri(path: str) -> str:
    """Return ``path`` as the engine writes it; if it is not UTF-8, which JSON cannot represent, as a URI."""
    return quote_from_bytes(path.encode("utf-8", "surrogateescape")) if _SURROGATES.search(path) else path


def path_from_uri(uri: str) -> str:
    """Return the path below the tree that a result's ``uri`` names."""
    path = uri.removeprefix("./")
    if "%" not in path:
        return path
    decoded = unquote_to_bytes(path).decode("utf-8", "surrogateescape")
    return decoded if _SURROGATES.search(decoded) else path
