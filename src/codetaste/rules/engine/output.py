"""Parse the engine's output: SARIF for the matches, JSON for errors and scanned files.

The JSON omits results that a ``nosemgrep`` comment suppresses; SARIF includes them, and they count.
Only the JSON names the rule and file of an error.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote_to_bytes

from codetaste.rules.scan.model import Match, ScanProblem, ScanProblemKind, ScanResult

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

MAX_MESSAGE_CHARS = 600
RULE_ALIAS = "codetaste-rule-{:05d}"
"""Rule id inside the engine: the rule's own id may be anything."""
_ALIAS = re.compile(r"codetaste-rule-[0-9]{5}")

# Names of errors, in lower case without spaces: the engine writes them with or without.
_PARSE = frozenset({"syntaxerror", "lexicalerror", "othersyntaxerror", "astbuildererror", "partialparsing"})
_RULE = frozenset({
    "ruleparseerror", "patternparseerror", "patternparseerror0", "invalidyaml", "invalidruleschemaerror",
    "unknownlanguageerror", "incompatiblerule", "incompatiblerule0", "missingplugin", "toomanymatches",
})  # fmt: skip
_TOO_MANY = "toomanymatches"
_ONE_RULE = re.compile(r"\b1 rules result in too many matches")
"""In the message of that error if all matches in the file are of the rule that it names. The engine drops the
matches of all rules in a file with more than 10,000, and names only the rule with most of them."""
_TIME = frozenset({"timeout", "fixpointtimeout", "timeoutduringinterfileanalysis"})
_LIMIT_IN_PARSER = "Limit_reached"
"""In the message of a syntax error that is the end of the engine's own time limit during parsing."""


class UnreadableOutput(ValueError):
    """The engine's output is invalid: it crashed, or rejected the rules as a whole."""

    def __init__(self, message: str, *, rules_refused: bool = False) -> None:
        super().__init__(message)
        self.rules_refused = rules_refused


def parse_output(sarif: bytes, report: bytes, ids: Mapping[str, str], files: Collection[str]) -> ScanResult:
    """Parse the output of one call.

    Args:
        sarif: the SARIF output.
        report: the JSON output.
        ids: the rule's own id for each id that was passed to the engine.
        files: the paths that were passed to the engine.

    Raises:
        UnreadableOutput: one of the two is damaged, or an error concerns the rules as a whole.
    """
    stated = _json(report)
    errors = [error for error in _list(stated, "errors") if isinstance(error, dict)]
    problems = tuple(_problem(error, ids, files) for error in errors)
    refused = next(
        (p for p in problems if p.kind is ScanProblemKind.RULE and not p.rule_id and not p.path), None
    )
    if refused is not None:
        raise UnreadableOutput(refused.message, rules_refused=True)
    runs = _list(_json(sarif), "runs")
    results = [result for run in runs for result in _list(run, "results")]
    try:
        matches = tuple(sorted(_match(result, ids, files) for result in results))
    except (KeyError, IndexError, TypeError) as error:
        raise UnreadableOutput(f"a result has no {error}") from None
    paths = stated.get("paths")
    scanned = _list(paths, "scanned") if isinstance(paths, dict) else []
    return ScanResult(matches, problems, frozenset(_path(path, files) for path in scanned))


def _json(text: bytes) -> dict[str, Any]:
    """Parse JSON that may contain paths in other encodings than UTF-8."""
    try:
        value = json.loads(text.decode("utf-8", "surrogateescape"))
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise UnreadableOutput("the engine's output is cut off")
    return value


def _list(value: object, key: str) -> list[Any]:
    found = value.get(key) if isinstance(value, dict) else None
    return found if isinstance(found, list) else []


def _path(text: str, files: Collection[str]) -> str:
    """Return the path of ``files`` that ``text`` names; some versions of the engine percent-encode it."""
    for candidate in (text, text.removeprefix("./")):
        if candidate in files:
            return candidate
        decoded = unquote_to_bytes(candidate.encode("utf-8", "surrogateescape")).decode(
            "utf-8", "surrogateescape"
        )
        if decoded in files:
            return decoded
    return text


def _match(result: Mapping[str, Any], ids: Mapping[str, str], files: Collection[str]) -> Match:
    location = result["locations"][0]["physicalLocation"]
    region = location["region"]
    start = int(region["startLine"])
    return Match(
        rule_id=ids[result["ruleId"]],
        path=_path(location["artifactLocation"]["uri"], files),
        start_line=start,
        end_line=int(region.get("endLine", start)),
        start_column=int(region.get("startColumn", 0)),
        end_column=int(region.get("endColumn", 0)),
    )


def _problem(error: Mapping[str, Any], ids: Mapping[str, str], files: Collection[str]) -> ScanProblem:
    given = error.get("type")
    name = str(given[0] if isinstance(given, list) and given else given)
    message = str(error.get("message", "")).strip()
    named = _ALIAS.findall(message)
    rule_id = ids.get(str(error.get("rule_id") or (named[0] if len(named) == 1 else "")), "")
    short_name = "".join(name.split()).lower()
    kind = _kind(short_name, rule_id)
    if short_name == _TOO_MANY and not _ONE_RULE.search(message):
        rule_id = ""
    if kind is ScanProblemKind.PARSE and _LIMIT_IN_PARSER in message:
        kind = ScanProblemKind.TIMEOUT
    for alias in named:
        message = message.replace(alias, ids.get(alias, alias))
    if kind is ScanProblemKind.RULE:
        # The first line repeats the kind of error and the rule, which the problem has in its fields.
        message = message.partition(":\n")[2] or message
    # For a broken rule this is sometimes the path of the private rule file.
    path = str(error.get("path") or "")
    shown = f"{name}: {' '.join(message.split())[:MAX_MESSAGE_CHARS]}"
    return ScanProblem(
        kind=kind,
        message=shown.encode("utf-8", "backslashreplace").decode(),
        rule_id=rule_id,
        path=_path(path, files)
        if path and not (kind is ScanProblemKind.RULE and Path(path).is_absolute())
        else "",
        line=_line(error),
    )


def _kind(name: str, rule_id: str) -> ScanProblemKind:
    if name in _PARSE:
        return ScanProblemKind.PARSE
    if name == "fixpointtimeout" and not rule_id:
        return ScanProblemKind.SYMBOLS
    if name in _RULE:
        return ScanProblemKind.RULE
    return ScanProblemKind.TIMEOUT if name in _TIME else ScanProblemKind.ENGINE


def _line(error: Mapping[str, Any]) -> int:
    spans = _list(error, "spans")
    start = spans[0].get("start") if spans and isinstance(spans[0], dict) else None
    line = start.get("line") if isinstance(start, dict) else 0
    return line if isinstance(line, int) else 0
